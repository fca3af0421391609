"""Builders for tests of the sync room: documents, desired objects, views, entries, provenance."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import Document, load
from gitops_ctl.sync.desired import UnitSpec, desired_state
from gitops_ctl.sync.model import Desired, DesiredState, Entry, OwnerId, View
from gitops_ctl.trust.provenance import Introduced, Provenance

OWNER = OwnerId("11111111-2222-3333-4444-555555555555", "team", "network", "site")
OTHER = OwnerId("11111111-2222-3333-4444-555555555555", "team", "network", "other")
NOBODY = Provenance()
CLUSTER_KINDS = frozenset(
    {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "StorageClass"}
)


def is_namespaced(gvk: GroupVersionKind) -> bool | None:
    """Scope of the kinds that the tests use; unknown outside of the built-in groups."""
    if "." in gvk.group and not gvk.group.endswith("k8s.io"):
        return None
    return gvk.kind not in CLUSTER_KINDS


def documents(text: str, *, file: str = "site.yaml", hidden_ids: Iterable[ObjectId] = ()) -> DocumentSet:
    """The documents of one file, as the index gives them."""
    loaded = load(text.encode(), file=file, blob="b" * 40)
    errors = tuple(problem for problem in loaded.problems if problem.is_error)
    return DocumentSet("t" * 40, "", loaded.documents, errors, hidden_ids=frozenset(hidden_ids))


def state_of(text: str, *, unit: UnitSpec | None = None, provenance: Provenance = NOBODY, **more: Any) -> DesiredState:
    """What a unit asks for, from YAML."""
    return desired_state(
        documents(text, **more), unit=unit or UnitSpec(OWNER), provenance=provenance, is_namespaced=is_namespaced
    )


def config_map(
    name: str = "a", *, namespace: str = "lab", data: str = "1", annotations: Mapping[str, str] | None = None
) -> str:
    """YAML of a ConfigMap."""
    lines = "".join(f"\n    {key}: {value!r}" for key, value in (annotations or {}).items())
    noted = f"\n  annotations:{lines}" if lines else ""
    return (
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}{noted}\n"
        f"data: {{key: {data!r}}}\n"
    )


def desired(text: str = "", **more: Any) -> Desired:
    """The one object of a YAML text."""
    (found,) = state_of(text or config_map(), **more).objects.values()
    return found


def view(found: Desired, **changes: Any) -> View:
    """How the cluster shows an object after our apply."""
    shown = View(uid=f"uid-{found.id.name}", version="7", digest="sha256:live", owner=found.owner.mark(found.id))
    return replace(shown, **changes)


def entry(found: Desired, **changes: Any) -> Entry:
    """What the inventory holds of an object after our apply."""
    held = Entry(found.id, found.gvk.version, f"uid-{found.id.name}", found.digest, "sha256:live", found.file)
    return replace(held, **changes)


def consent_by(person: str, identity: ObjectId, annotation: str, *, commit: str = "c" * 40) -> Provenance:
    """Provenance in which a person introduced the present value of a consent annotation."""
    now = datetime(2026, 11, 30, 8, tzinfo=UTC)
    pointer = f"/metadata/annotations/{annotation.replace('/', '~1')}"
    return Provenance(fields={(identity, pointer): Introduced(commit, person, "consent", person, now, now)})


def only(found: Iterable[Document]) -> Document:
    (document,) = found
    return document
