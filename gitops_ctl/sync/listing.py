"""What each Sync asks for in the newest revision that it may apply, computed on demand and remembered.

Two Syncs can name one object.  Whoever looks at such an object must know what the other one asks for *now*, whether or not
that one has had its turn; so nobody waits for anybody, and a document that moves from one unit to another is adopted, never
deleted (R03, R07, gitops.md, section 6.2).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from gitops_ctl.api.sync import Sync
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.problem import in_reading_order
from gitops_ctl.documents.setrules import judge_set, without_echoes
from gitops_ctl.kube.mapper import Discovery
from gitops_ctl.sync.desired import Elsewhere, UnitSpec, desired_state
from gitops_ctl.sync.model import Desired, DesiredState, OwnerId
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

Load = Callable[[AcceptedRevision, str], DocumentSet]
"""Reads and checks the documents of a revision below a folder; runs in a thread."""


Recorded = Callable[[Sync], Awaitable[frozenset[ObjectId]]]
"""Reads what is on record of a Sync: what it applied, and what it waits for."""


class Listing:
    """What Syncs ask for.

    `syncs` gives every Sync that exists, with its parsed form.  `recorded` stands in for what a Sync asks for as long as this
    process does not know any revision of it, as after a restart: it still asks for what is on record (R07, R12).
    """

    def __init__(
        self,
        *,
        revisions: AcceptedRevisions,
        load: Load,
        cluster_uid: str,
        syncs: Callable[[], Iterable[Sync]],
        recorded: Recorded,
    ) -> None:
        self.revisions = revisions
        self.cluster_uid = cluster_uid
        self._load = load
        self._syncs = syncs
        self._recorded = recorded
        self._states: dict[NamespacedName, tuple[tuple[object, ...], DesiredState]] = {}
        self._loading: dict[NamespacedName, asyncio.Lock] = {}

    def owner_of(self, sync: Sync) -> OwnerId:
        return OwnerId(self.cluster_uid, sync.metadata.namespace, sync.spec.source_ref.name, sync.metadata.name)

    def revision_of(self, sync: Sync) -> AcceptedRevision | None:
        """The newest revision that may have effects, None when there is none."""
        found = self.revisions.get(NamespacedName(sync.metadata.namespace, sync.spec.source_ref.name))
        return found if found is not None and found.trusted and found.effects_allowed else None

    async def state_of(self, sync: Sync, *, revision: AcceptedRevision, discovery: Discovery) -> DesiredState:
        """What a Sync asks for in a revision.

        Raises:
            GitopsError: the tree cannot be read as a whole.
        """
        key = NamespacedName(sync.metadata.namespace, sync.metadata.name)
        async with self._loading.setdefault(key, asyncio.Lock()):
            unit = self._unit(sync)
            made_from = (*made_from_of(sync, revision), unit.elsewhere)
            known = self._states.get(key)
            if known is not None and known[0] == made_from and not known[1].unsettled:
                return known[1]
            before = known[1].objects if known is not None else {}
            state = await asyncio.to_thread(self._build, unit, sync, revision, discovery, before)
            self._states[key] = (made_from, state)
            return state

    def _build(
        self,
        unit: UnitSpec,
        sync: Sync,
        revision: AcceptedRevision,
        discovery: Discovery,
        known: Mapping[ObjectId, Desired],
    ) -> DesiredState:
        def is_namespaced(gvk: GroupVersionKind) -> bool | None:
            found = discovery.resources.get(gvk) or discovery.preferred.get(gvk.group_kind)
            return found.namespaced if found is not None else None

        documents = self.documents_of(sync, revision=revision)
        return desired_state(
            documents, unit=unit, provenance=revision.provenance, is_namespaced=is_namespaced, known=known
        )

    def _unit(self, sync: Sync) -> UnitSpec:
        return UnitSpec(
            self.owner_of(sync),
            sync.spec.target_namespace or "",
            sync.spec.on_document_error == "HoldUnit",
            self._elsewhere(sync),
        )

    def _elsewhere(self, sync: Sync) -> tuple[Elsewhere, ...]:
        """The other Syncs of the same source."""
        source = (sync.metadata.namespace, sync.spec.source_ref.name)
        found = [
            Elsewhere(
                other.metadata.name,
                other.spec.path,
                other.spec.target_namespace or "",
                _cluster_of(other) != _cluster_of(sync),
            )
            for other in list(self._syncs())
            if (other.metadata.namespace, other.spec.source_ref.name) == source
            and other.metadata.name != sync.metadata.name
            and not other.metadata.deletion_timestamp
        ]
        return tuple(sorted(found, key=lambda one: one.sync))

    def documents_of(self, sync: Sync, *, revision: AcceptedRevision) -> DocumentSet:
        """The documents of a Sync in a revision, judged alone and as a set; read anew.

        Raises:
            GitopsError: the tree cannot be read as a whole.
        """
        return _judged(self._load(revision, sync.spec.path), namespace=sync.spec.target_namespace or "")

    async def asked_at(
        self, commit: str, *, sync: Sync, revision: AcceptedRevision, discovery: Discovery
    ) -> Mapping[ObjectId, Desired]:
        """What a Sync asked for in an earlier commit of the source of `revision`; nothing when that cannot be read."""
        earlier = replace(revision, commit=commit, tree="")
        try:
            return (await asyncio.to_thread(self._build, self._unit(sync), sync, earlier, discovery, {})).objects
        except GitopsError:
            return {}

    async def listed_by_others(self, sync: Sync, *, discovery: Discovery) -> dict[ObjectId, set[OwnerId]]:
        """Which objects other Syncs of the same cluster ask for, by identity.

        Raises:
            GitopsError: the inventory of a Sync without a known revision cannot be read.
        """
        found: dict[ObjectId, set[OwnerId]] = {}
        for other in list(self._syncs()):
            if other.metadata.uid == sync.metadata.uid or other.metadata.deletion_timestamp:
                continue
            if _cluster_of(other) != _cluster_of(sync):
                continue
            for item in await self._lists(other, discovery):
                found.setdefault(item, set()).add(self.owner_of(other))
        return found

    async def _lists(self, sync: Sync, discovery: Discovery) -> frozenset[ObjectId]:
        revision = self.revision_of(sync)
        known = self._states.get(NamespacedName(sync.metadata.namespace, sync.metadata.name))
        if revision is not None:
            try:
                return (await self.state_of(sync, revision=revision, discovery=discovery)).lists
            except GitopsError:
                pass  # what it asked for last still holds
        return known[1].lists if known is not None else await self._recorded(sync)

    async def document_of(self, sync: Sync, *, discovery: Discovery) -> Desired | None:
        """The document of a Sync itself in the newest revision of its source, wherever a unit of that source lists it."""
        wanted = ObjectId("gitops-ctl.dev", "Sync", sync.metadata.namespace, sync.metadata.name)
        for other in list(self._syncs()):
            revision = self.revision_of(other)
            if revision is None or self.owner_of(other).namespace != sync.metadata.namespace:
                continue
            if other.spec.source_ref.name != sync.spec.source_ref.name:
                continue
            try:
                state = await self.state_of(other, revision=revision, discovery=discovery)
            except GitopsError:
                continue
            if wanted in state.objects:
                return state.objects[wanted]
        return None

    def forget(self, key: NamespacedName) -> None:
        """A Sync is gone."""
        self._states.pop(key, None)
        self._loading.pop(key, None)


def _judged(documents: DocumentSet, *, namespace: str) -> DocumentSet:
    """The set, with what the rules between documents say of it."""
    said = [problem for problem in judge_set(documents.documents, namespace=namespace) if problem.is_error]
    if not said:
        return documents
    return replace(documents, problems=in_reading_order([*without_echoes(documents.problems, said), *said]))


def _cluster_of(sync: Sync) -> tuple[str, str, str]:
    """A name for the cluster that a Sync goes to; two kubeconfigs count as two clusters."""
    reference = sync.spec.kube_config_secret_ref
    return ("", "", "") if reference is None else (sync.metadata.namespace, reference.name, reference.key)


def made_from_of(sync: Sync, revision: AcceptedRevision) -> tuple[object, ...]:
    """Everything that what a Sync asks for depends on; equal keys mean equal objects."""
    return (
        sync.metadata.uid,
        sync.metadata.generation,
        revision.uid,
        revision.generation,
        revision.commit,
        revision.tree,
    )
