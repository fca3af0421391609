"""Which schema belongs to a document: ours, Kubernetes' own, or that of a CustomResourceDefinition (gitops.md, section 5.1).

No cluster is asked.  A kind of a group that is known as a whole must be in it; kinds of other groups may be installed by
somebody else, so they are a warning.
"""

from collections.abc import Iterable, Iterator

from gitops_ctl.api.names import API_VERSION, CISCO_GROUP, GROUP, ICHOR_GROUP, OPS_GROUP, WORKER_GROUP
from gitops_ctl.core.canonical import digest_lines
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.documents.builtin import builtin_kinds
from gitops_ctl.documents.crds import CRD, crd_flaws, kinds_of, schema_of
from gitops_ctl.documents.kindschema import KindSchema, SchemaRefusedError
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.problem import Problem
from gitops_ctl.documents.shape import GIT_ONLY_KINDS, Flaw

_OUR_GROUPS = (GROUP, ICHOR_GROUP, WORKER_GROUP, CISCO_GROUP, OPS_GROUP)


class SchemaCatalog:
    """Schemas by kind, prepared when they are first asked for.

    Args:
        crds: CustomResourceDefinitions of the repository, or of a cluster.
        lenient: for a Sync, which talks to servers of other releases: members and values that a newer server may know are
            warnings for Kubernetes' own kinds.
    """

    def __init__(self, *, crds: Iterable[Document] = (), lenient: bool = False) -> None:
        self._crds: dict[GroupVersionKind, JsonObject] = {}
        self._digests: list[str] = []
        self._lenient = lenient
        self._known: dict[GroupVersionKind, KindSchema | None] = {}
        for crd in crds:
            self.add(crd.tree, digest=crd.digest)

    def add(self, crd: JsonObject, *, digest: str) -> None:
        """Take over the kinds of one more CustomResourceDefinition."""
        self._digests.append(digest)
        for gvk in kinds_of(crd):
            self._crds[gvk] = crd
            self._known.pop(gvk, None)

    @property
    def digest(self) -> str:
        """Changes when any answer could."""
        return digest_lines([*self._digests, builtin_kinds().version, f"lenient {self._lenient}"])

    def schema_of(self, gvk: GroupVersionKind) -> KindSchema | None:
        """The schema of a kind; None when it is not known here."""
        if gvk not in self._known:
            self._known[gvk] = self._find(gvk)
        return self._known[gvk]

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Scope of a kind; None when it is not known here."""
        schema = self.schema_of(gvk)
        return None if schema is None else schema.namespaced

    def plural_of(self, gvk: GroupVersionKind) -> str:
        """Name of the resource; for kinds that are not known here the usual form of it."""
        crd = self._crds.get(gvk)
        known = builtin_kinds().plural_of(gvk) if crd is None else text_at(crd, "spec", "names", "plural")
        return known or f"{gvk.kind.lower()}s"

    def check(self, document: Document) -> list[Problem]:
        """What the schema says about a document."""
        return [document.problem(flaw) for flaw in self._flaws(document)]

    def _flaws(self, document: Document) -> Iterator[Flaw]:
        if document.id.group_kind in GIT_ONLY_KINDS:
            return
        if document.id.group_kind == CRD:
            yield from crd_flaws(document.tree)
        schema = self.schema_of(document.gvk)
        if schema is None:
            yield self._unknown(document.gvk)
            return
        if schema.namespaced is False and document.id.namespace:
            message = f"{document.gvk.kind} is cluster-scoped and has no namespace"
            yield Flaw(ErrorCode.SCHEMA, message, "/metadata/namespace", "remove the namespace")
        try:
            yield from schema.flaws(document.tree, nulls=document.nulls)
        except SchemaRefusedError as error:
            yield Flaw(
                ErrorCode.SCHEMA_REFUSED,
                f"the schema of {document.gvk.kind} cannot be used: {error}",
                severity="warning",
            )

    def _find(self, gvk: GroupVersionKind) -> KindSchema | None:
        builtin = builtin_kinds()
        name = builtin.definition_of(gvk)
        if name:
            schema: JsonObject = {"$ref": f"#/$defs/{name}", "$defs": builtin.closure(name)}
            return KindSchema(gvk, schema, builtin.is_namespaced(gvk), lenient=self._lenient)
        ours = _our_schema(gvk) if gvk.group in _OUR_GROUPS else None
        if ours is not None or gvk.api_version == API_VERSION:
            return ours
        crd = self._crds.get(gvk)
        return None if crd is None else schema_of(crd, gvk)

    def _unknown(self, gvk: GroupVersionKind) -> Flaw:
        siblings = sorted(known.version for known in self._crds if known.group_kind == gvk.group_kind)
        if siblings:
            return Flaw(
                ErrorCode.KIND_UNKNOWN,
                f"{gvk} is not served; versions of {gvk.kind}: {', '.join(siblings)}",
                "/apiVersion",
            )
        is_ours = gvk.group in builtin_kinds().groups or gvk.group in (GROUP, ICHOR_GROUP)
        message = f"the kind {gvk} is not known here"
        return Flaw(
            ErrorCode.KIND_UNKNOWN, message, "/kind", severity="error" if is_ours and not self._lenient else "warning"
        )


def is_crd(document: Document) -> bool:
    """True for a CustomResourceDefinition."""
    return document.id.group_kind == CRD


def _our_schema(gvk: GroupVersionKind) -> KindSchema | None:
    # The models bring pydantic, a third of the start-up time: only for repositories that hold our kinds.
    from gitops_ctl.api.crd import crd_of, kind_of  # noqa: PLC0415
    from gitops_ctl.api.kinds import ALL_KINDS  # noqa: PLC0415

    for kind, model in ((kind_of(model), model) for model in ALL_KINDS):
        if (kind.group, kind.kind) == (gvk.group, gvk.kind) and gvk.version in kind.versions:
            return schema_of(crd_of(model), gvk)
    return None
