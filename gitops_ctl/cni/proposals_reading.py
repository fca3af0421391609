"""Looks for the values of Cilium in Git, so that an operation can say where they are and ask for their change (cni-switch.md, sections 11, 12).

The files are those of the source that `spec.cni.values` names: of its accepted revision, or of the tip that was observed last where the
source has no trust and feeds proposals only.  Nothing here writes.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import GROUP, ICHOR_GROUP, VERSION
from gitops_ctl.cni.authority import CONSENT
from gitops_ctl.cni.messages import Place, asks_roll_out, prism_port
from gitops_ctl.cni.model import Authority, Cluster, Observed, Operation, Phase
from gitops_ctl.cni.proposals import cleanup_proposal, values_proposal, wants_cleanup
from gitops_ctl.cni.values import Locator, ValuesPlan, ValuesRefused, Wanted, plan_values
from gitops_ctl.core.errors import GitopsError, NotFound, Refused
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, text_at
from gitops_ctl.documents.splice import SpliceRefused, documents_in, value_in
from gitops_ctl.forge.wanted import proposal_tree
from gitops_ctl.git.repository import CloneCache, Snapshot
from gitops_ctl.git.tree import TreeLimits, walk_tree
from gitops_ctl.git.url import parse_url
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevisions

LARGEST_BYTES: Final = 2**20
"""A larger file holds no values (section 12.2)."""

LIMITS: Final = TreeLimits(entries=100_000, bytes=256 * 2**20)
_REGULAR: Final = frozenset({0o100644, 0o100755, 0o100664})
_UNLOCATED: Final = "the Application's or release's Helm values in Git"
_NAMESPACES: Final = f"/apis/{GROUP}/{VERSION}/namespaces"

Files = Mapping[str, bytes]
Open = Callable[[], Snapshot]


@dataclass(frozen=True, slots=True)
class _Found:
    """The outcome of one search; `is_final` says whether the same commit gives it again."""

    place: Place
    plan: ValuesPlan | None = None
    source: str = ""
    is_final: bool = True


class ProposalDesk:
    """Answers for the executor; remembers the last search of each operation."""

    def __init__(self, client: KubeClient, *, revisions: AcceptedRevisions, clones: CloneCache) -> None:
        self._client = client
        self._revisions = revisions
        self._clones = clones
        self._searched: dict[str, tuple[object, _Found]] = {}

    async def place(self, cluster: Cluster, operation: Operation, observed: Observed) -> Place:
        """Where the values of Cilium are changed; never raises for what Git holds."""
        if cluster.handover != "git":
            return await self._patches(cluster)
        try:
            return (await self._search(cluster, operation, observed)).place
        except (NotFound, Refused) as error:
            return Place(_UNLOCATED, error.message)

    async def wanted(self, cluster: Cluster, operation: Operation, authority: Authority) -> JsonObject | None:
        """The proposal that an operation needs now, None when it needs none.

        Raises:
            GitopsError: it cannot be said now.
        """
        if operation.state.phase is Phase.AWAITING and cluster.handover == "git" and operation.observed is not None:
            return await self._values(cluster, operation, operation.observed)
        if wants_cleanup(cluster, operation, authority):
            return await self._cleanup(cluster, operation, authority)
        return None

    async def _values(self, cluster: Cluster, operation: Operation, observed: Observed) -> JsonObject | None:
        found, clock = await self._search(cluster, operation, observed), operation.state.clock("await-cni")
        if found.plan is None or not found.plan.edits or clock is None:
            return None
        why = "\n".join((found.plan.why, f"By hand: {found.plan.by_hand}", *found.plan.warnings))
        wanted, owner = values_proposal(
            cluster, operation, source=found.source, edits=found.plan.edits, why=why, expires=clock.deadline
        )
        return proposal_tree(wanted, owner=owner)

    async def _cleanup(self, cluster: Cluster, operation: Operation, authority: Authority) -> JsonObject | None:
        revision = self._revisions.get(NamespacedName(cluster.key.namespace, authority.source))
        if revision is None:
            return None
        data = await asyncio.to_thread(
            self._file, lambda: self._clones.snapshot(revision.store_path), revision.commit, authority.file
        )
        document = _document_of(data, cluster)
        if document is None:
            return None
        wanted, owner = cleanup_proposal(cluster, operation, authority=authority, document=document)
        return proposal_tree(wanted, owner=owner)

    async def _search(self, cluster: Cluster, operation: Operation, observed: Observed) -> _Found:
        locator = cluster.locator or EMPTY
        name = text_at(locator, "sourceRef", "name")
        if not name:
            return _Found(Place(_UNLOCATED, "spec.cni.values does not say where they are"))
        source = await self._client.find(f"{_NAMESPACES}/{cluster.key.namespace}/gitsources/{name}")
        if source is None:
            return _Found(Place(_UNLOCATED, f"there is no GitSource {name}"))
        wanted = Wanted(
            target=operation.target.value,
            kube_prism_port=prism_port(observed),
            roll_out_pods=asks_roll_out(observed.cilium),
            chart_version=(observed.cilium.version or None) if observed.cilium is not None else None,
        )
        commit, opened = self._revision(cluster.key.namespace, source)
        asked = (commit, locator, wanted)
        known = self._searched.get(operation.uid)
        if known is None or known[0] != asked:
            found = await asyncio.to_thread(self._plan, opened, commit, source, Locator.of(locator), wanted)
            if found.is_final:
                self._searched[operation.uid] = (asked, found)
            return found
        return known[1]

    def _plan(self, opened: Open, commit: str, source: JsonObject, locator: Locator, wanted: Wanted) -> _Found:
        name, url = text_at(source, "metadata", "name"), text_at(source, "spec", "url")
        try:
            plan = plan_values(self._files(opened, commit), locator=locator, wanted=wanted)
        except ValuesRefused as error:
            text = f"{error.reason}: {error.message}; {error.by_hand}"
            more = "; ".join(error.candidates)
            return _Found(Place(_UNLOCATED, f"{text}; found: {more}" if more else text), source=name)
        except GitopsError as error:
            # The copy may only be late: after a restart, or while another one takes its place.
            return _Found(Place(_UNLOCATED, f"{name} cannot be read: {error.message}"), source=name, is_final=False)
        place = plan.place
        inside = f"{place.file} {place.pointer or '/'}" if place is not None else plan.by_hand
        return _Found(Place(f"{parse_url(url, allow_file=True).display}, {inside}"), plan, name)

    def _revision(self, namespace: str, source: JsonObject) -> tuple[str, Open]:
        """The commit whose files count, and how its copy is opened."""
        revision = self._revisions.get(NamespacedName(namespace, text_at(source, "metadata", "name")))
        if revision is not None and revision.effects_allowed:
            return revision.commit, lambda: self._clones.snapshot(revision.store_path)
        if "trust" in object_at(source, "spec"):
            raise NotFound("its source has no accepted revision", subject=text_at(source, "metadata", "name"))
        url = parse_url(text_at(source, "spec", "url"), allow_file=True)
        secret = text_at(source, "spec", "credentialsSecretRef", "name")
        tenant = f"{namespace}/{secret}" if secret else ""
        return text_at(source, "status", "observed", "revision"), lambda: self._clones.lease(url, tenant=tenant)

    @staticmethod
    def _files(opened: Open, commit: str) -> Files:
        """Regular files of a commit that are small enough to hold values."""
        with opened() as copy, copy.open() as store:
            entries = walk_tree(store, store.links(commit).tree, limits=LIMITS)
            wanted = [entry for entry in entries if entry.mode in _REGULAR and store.size(entry.id) <= LARGEST_BYTES]
            return {entry.path: store.blob(entry.id) for entry in wanted}

    @staticmethod
    def _file(opened: Open, commit: str, path: str) -> bytes:
        with opened() as copy, copy.open() as store:
            return next((store.blob(entry.id) for entry in walk_tree(store, store.links(commit).tree, path=path)), b"")

    async def _patches(self, cluster: Cluster) -> Place:
        """The patches that hold the CNI as an inline manifest, by name."""
        path = f"/apis/{ICHOR_GROUP}/{VERSION}/namespaces/{cluster.key.namespace}/talosconfigpatches"
        items = (await self._client.list_all(path)).items
        names = sorted(
            text_at(item, "metadata", "name")
            for item in items
            if text_at(item, "spec", "targets", "clusterRef", "name") == cluster.key.name
            and "cilium" in text_at(item, "spec", "patch").lower()
        )
        if not names:
            return Place("the inline-manifest entry of the user-owned TalosConfigPatch", "none of them names Cilium")
        return Place(f"the inline-manifest entry of TalosConfigPatch {', '.join(names)}")


def _document_of(data: bytes, cluster: Cluster) -> int | None:
    """The place of the cluster's document in its file, from 0; None when it has no consent to take away."""
    try:
        documents = documents_in(data)
        for number, tree in enumerate(documents):
            if not isinstance(tree, Mapping) or text_at(tree, "kind") != "TalosCluster":
                continue
            named = text_at(tree, "metadata", "name") == cluster.key.name
            if named and text_at(tree, "metadata", "namespace") in ("", cluster.key.namespace):
                value = value_in(data, document=number, pointer=CONSENT)
                return number if value == cluster.consent else None
    except SpliceRefused:
        return None
    return None
