"""Where Cilium values may stand in Git: the parts that a search for them is made of (cni-switch.md, section 12)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, int_at, list_at, object_at, text_at
from gitops_ctl.documents.splice import Inner


@dataclass(frozen=True, slots=True)
class Locator:
    """What a person says about the place (section 12.2); everything left out is searched.

    Attributes:
        path: file or folder; empty for the whole repository.
        shape: letter of the form, or `auto`.
        kind, name, namespace: of the object that deploys Cilium.
        document: place of the document in the file, from 0.
        key_prefix: keys above the values, with dots between them.
        also_sets: further files that hold the same values and are changed with them.
    """

    path: str = ""
    shape: str = "auto"
    kind: str = ""
    name: str = ""
    namespace: str = ""
    document: int | None = None
    key_prefix: str = ""
    also_sets: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: JsonObject) -> "Locator":
        """From `spec.cni.values` of a TalosCluster."""
        named = object_at(tree, "object")
        return cls(
            path=text_at(tree, "path").strip("/"),
            shape=text_at(tree, "shape", default="auto"),
            kind=text_at(named, "kind"),
            name=text_at(named, "name"),
            namespace=text_at(named, "namespace"),
            document=int_at(tree, "documentIndex") if "documentIndex" in tree else None,
            key_prefix=text_at(tree, "keyPrefix"),
            also_sets=tuple(file for file in list_at(tree, "alsoSets") if isinstance(file, str)),
        )

    def covers(self, file: str) -> bool:
        """Whether a file lies where the search should look."""
        return not self.path or file == self.path or file.startswith(f"{self.path}/")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the winning value stands, or would stand."""

    file: str
    document: int
    pointer: str
    inner: tuple[Inner, ...]
    shape: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the places that a deployment takes its values from.

    Attributes:
        pointer, inner: of the mapping that holds the values, or of the list of parameters.
        form: a mapping, or a list of items with `name` and `value`.
        names: what stands before the keys in such names.
        what: the place in words.
        closed: reason word when it cannot be edited or read from here; empty when it can.
        closed_text: the same in a sentence.
        preferred: whether missing keys may go here when no layer sets them.
    """

    shape: str
    file: str
    what: str
    document: int = 0
    pointer: str = ""
    inner: tuple[Inner, ...] = ()
    form: Literal["mapping", "list"] = "mapping"
    names: str = ""
    closed: str = ""
    closed_text: str = ""
    preferred: bool = True


@dataclass(frozen=True, slots=True)
class Deployment:
    """Something that deploys the chart, with its layers, the one that wins first.

    Attributes:
        version: of the chart, as written; empty when it is not told.
        refusal: reason word and sentence when its values cannot be changed in one place.
        warnings: what a person should know.
    """

    kind: str
    name: str
    file: str
    document: int
    layers: tuple[Layer, ...] = ()
    namespace: str = ""
    version: str = ""
    refusal: tuple[str, str] = ("", "")
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name} in {self.file}" if self.name else f"{self.kind} {self.file}"


@dataclass(frozen=True, slots=True)
class Trace:
    """Something about Cilium's values that deploys nothing which could be edited here.

    Attributes:
        reason: word of a refusal when nothing better is found; empty when it never decides.
        text: what was found, where, and what to do.
    """

    file: str
    text: str
    reason: str = ""


@dataclass(slots=True)
class Search:
    """What was found so far.

    Attributes:
        deployments: of the chart by an object of Flux, Argo CD or kustomize, or in a chart around it.
        fallbacks: plain values files, Helmfile and Talos manifests: taken when nothing of the above is there.
        traces: everything else.
    """

    deployments: list[Deployment] = field(default_factory=list)
    fallbacks: list[Deployment] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)


class ValuesRefused(BlockedError):
    """The values cannot be changed by an edit in Git.

    Attributes:
        by_hand: which values to set, and where as far as that is known.
        candidates: the places that were found.
    """

    code = ErrorCode.VALUES_REFUSED

    def __init__(
        self, why: str, message: str, *, by_hand: str, subject: str = "", candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(message, subject=subject, hint=by_hand)
        self._why = why
        self.by_hand = by_hand
        self.candidates = tuple(candidates)

    @property
    def reason(self) -> str:
        """CamelCase word for conditions and events."""
        return self._why
