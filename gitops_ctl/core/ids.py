"""Names of things: kinds, objects, sources.

Identity of an object is group + kind + namespace + name; the version is not part of it (fault Y10).  Names are tuples because they
are the keys of every mapping: a tuple is hashed and compared without a step of Python.
"""

from typing import NamedTuple, Self

from gitops_ctl.core.jsonvalue import JsonObject, text_at


class GroupKind(NamedTuple):
    """A kind without its version; the core group is the empty string."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `<Kind>.<group>`, or `<Kind>` for the core group."""
        kind, _, group = text.partition(".")
        return cls(group=group, kind=kind)


class GroupVersionKind(NamedTuple):
    """A kind at one version."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        """Of an object's `apiVersion` and `kind`; empty members where they are missing."""
        group, _, version = text_at(tree, "apiVersion").rpartition("/")
        return cls(group=group, version=version, kind=text_at(tree, "kind"))


class ObjectId(NamedTuple):
    """One object of a cluster, whatever version it is read at; `namespace` is empty for cluster-scoped ones."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        scope = f"{self.namespace}/" if self.namespace else ""
        return f"{self.group_kind}/{scope}{self.name}"

    @classmethod
    def of(cls, tree: JsonObject, *, namespace: str | None = None) -> Self:
        """Of a whole object; `namespace` replaces the one that the object names."""
        gvk = GroupVersionKind.of(tree)
        found = text_at(tree, "metadata", "namespace") if namespace is None else namespace
        return cls(gvk.group, gvk.kind, found, text_at(tree, "metadata", "name"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `<Kind>.<group>/<namespace>/<name>`; without a namespace for cluster-scoped objects.

        Raises:
            ValueError: another number of parts, or an empty one.
        """
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise ValueError(f"{text!r} is not <Kind>.<group>/<namespace>/<name>")
        kind = GroupKind.parse(parts[0])
        return cls(kind.group, kind.kind, parts[1] if len(parts) == 3 else "", parts[-1])


class NamespacedName(NamedTuple):
    """Key of one of our own objects in its kind's queue."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        return cls(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
