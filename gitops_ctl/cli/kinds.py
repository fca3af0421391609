"""Our kinds as a person names them on a command line: `gsrc/network`, `sync/network`."""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import GROUP, VERSION
from gitops_ctl.cli.connection import require_namespace
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind and the words that mean it."""

    name: str
    plural: str
    words: tuple[str, ...]

    def path(self, namespace: str = "", name: str = "") -> str:
        scope = f"/namespaces/{namespace}" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"/apis/{GROUP}/{VERSION}{scope}/{self.plural}{tail}"


GIT_SOURCE: Final = Kind("GitSource", "gitsources", ("gitsource", "gitsources", "gsrc", "source"))
SYNC: Final = Kind("Sync", "syncs", ("sync", "syncs", "gsync"))


@dataclass(frozen=True, slots=True)
class Named:
    """One object of ours in a namespace."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name}/{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace, self.name)


def parse_named(text: str, *, namespace: str) -> Named:
    """From `<kind>/<name>`.

    Raises:
        Refused: another form, an unknown kind, or no namespace.
    """
    word, _, name = text.partition("/")
    kind = next((kind for kind in (GIT_SOURCE, SYNC) if word.lower() in kind.words), None)
    if kind is None or not name or "/" in name:
        raise Refused(f"{text!r} is not <kind>/<name>", code=ErrorCode.USAGE, hint="write gsrc/<name> or gsync/<name>")
    require_namespace(namespace)
    return Named(kind, namespace, name)
