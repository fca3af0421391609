"""The source controller: what a TopologySource says becomes NodeFeatures, conditions and a next look (topology-scheduling.md, 3 to 5, 9, 10).

A pass reads the source and its ConfigMap or webhook anew, lets `source_pass` judge, and writes what follows: the finalizer before anything
else, NodeFeatures before the status that speaks of them.  It never writes a Node.  Every write is guarded by what was read (a name that is
free, a uid, a resourceVersion), so a pass that saw something old loses and is planned again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from gitops_ctl.api.topologysource import REVISION_LIMIT
from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of, cut
from gitops_ctl.core.errors import BlockedError, Conflict, NotFound, TerminalError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.scheduling.featurewrites import write_features
from gitops_ctl.scheduling.fetching import read_snapshot
from gitops_ctl.scheduling.names import SOURCE_FINALIZER
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_pass import Pass, Surroundings, plan_pass
from gitops_ctl.scheduling.source_rules import source_problems
from gitops_ctl.scheduling.source_status import Failed, Judgement, status_of
from gitops_ctl.scheduling.sourceports import NODE_FEATURE, SOURCE, SourcePorts
from gitops_ctl.scheduling.topology import is_terminating
from gitops_ctl.scheduling.wakes import Lifecycle, lifecycle

UNSEEN_S: Final = 30.0
"""When a pass looks again that could not see what it has to; the room wakes it earlier."""
LARGE: Final = 64 * 1024
"""Bytes of a snapshot from which on it is judged beside the event loop."""


class SourceController:
    """Reconciles TopologySources."""

    def __init__(self, ports: SourcePorts) -> None:
        self._ports = ports

    async def reconcile(self, key: NamespacedName) -> float | None:
        """One pass; seconds until the next one, None when only events wake the source.

        Raises:
            GitopsError: something could not be read or written; what was written stays, and the next pass goes on from there.
            LeadershipLost: this process may not write any more.
        """
        tree = await self._ports.client.find(SOURCE.path(name=key.name))
        if tree is None:
            return None
        step = self._step(tree)
        if is_terminating(tree) and step is Lifecycle.NOTHING:
            return None
        if step is Lifecycle.ADD_FINALIZER:
            tree = await self._set_finalizers(tree, [*_finalizers(tree), SOURCE_FINALIZER])
        around = await self._around(tree, step)
        if around is None:
            return UNSEEN_S
        read = None
        if not is_terminating(tree) and not self._problems(tree):
            read = await read_snapshot(tree, client=self._ports.client, get=self._ports.http)
        now = self._ports.clock.wall()
        planned = await self._planned(tree, read, around, now)
        tree = await self._write_features(tree, planned)
        if step is Lifecycle.REMOVE_FEATURES:
            tree = await self._set_finalizers(tree, [item for item in _finalizers(tree) if item != SOURCE_FINALIZER])
        if planned.judgement is None:
            return None
        await self._write_status(tree, planned, now)
        return planned.judgement.requeue_s

    def _problems(self, tree: JsonObject) -> bool:
        return bool(source_problems(tree, options=self._ports.options))

    def _step(self, tree: JsonObject) -> Lifecycle:
        """What comes first; nothing is concluded from the arm of a spec that cannot be read (D9)."""
        if self._problems(tree) and not is_terminating(tree):
            return Lifecycle.NOTHING
        return lifecycle(tree)

    async def _around(self, tree: JsonObject, step: Lifecycle) -> Surroundings | None:
        """What the cluster holds; None when too little of it can be seen to judge this source."""
        nodes, sources, features = self._ports.nodes(), self._ports.sources(), self._ports.features()
        if step is Lifecycle.REMOVE_FEATURES:
            # The finalizer goes after this: what a cache has not seen would stay for good.
            features = await self._listed_features()
        if is_terminating(tree):
            return Surroundings({}, (), features or ())
        if nodes is None or sources is None:
            return None
        if features is None and TopologySource.of(tree).writes and not self._problems(tree):
            message = (
                "NodeFeatures cannot be seen: Node Feature Discovery is not installed, or its kinds are not served"
            )
            self._ports.emit(tree, "Warning", ErrorCode.KIND_NOT_SERVED.reason, message)
            return None
        return Surroundings(nodes, tuple(map(TopologySource.of, sources)), features or ())

    async def _listed_features(self) -> tuple[JsonObject, ...]:
        """All NodeFeatures as the server has them now; none when there is no such kind, which took its objects along."""
        try:
            page = await self._ports.client.list_all(NODE_FEATURE.path(self._ports.options.worker_namespace))
        except KindNotServed:
            return ()
        return tuple(page.items)

    async def _planned(
        self, tree: JsonObject, read: str | bytes | Failed | None, around: Surroundings, now: datetime
    ) -> Pass:
        options = self._ports.options
        if isinstance(read, (str, bytes)) and len(read) > LARGE:
            return await asyncio.to_thread(plan_pass, tree, read, around, now=now, options=options)
        return plan_pass(tree, read, around, now=now, options=options)

    async def _write_features(self, tree: JsonObject, planned: Pass) -> JsonObject:
        """Carry the plan out; the source as it is stored afterwards."""

        async def progress(written: int) -> None:
            nonlocal tree
            tree = await self._apply_status(tree, {**object_at(tree, "status"), "mutatedNodes": written}) or tree

        try:
            await write_features(planned.features, ports=self._ports, progress=progress)
        except (Conflict, LeadershipLost):
            raise
        except (BlockedError, TerminalError) as error:
            self._ports.emit(tree, "Warning", error.reason, error.message)
            raise
        return tree

    async def _write_status(self, tree: JsonObject, planned: Pass, now: datetime) -> None:
        assert planned.judgement is not None
        judgement = _paced(planned.judgement, planned, self._ports.options)
        look = replace(planned.look, revision=cut(planned.look.revision, limit=REVISION_LIMIT))
        generation = int_at(tree, "metadata", "generation")
        status = status_of(tree, judgement, look, generation=generation, now=now)
        # Times count here: each success renews the clock of staleness.
        if canonical_json(status) == canonical_json(object_at(tree, "status")):
            return
        if await self._apply_status(tree, status) is not None:
            self._tell(tree, status)

    async def _apply_status(self, tree: JsonObject, status: JsonObject) -> JsonObject | None:
        """Put this status in place of the one that was read; None when the source is gone."""
        self._ports.require()
        metadata = {name: text_at(tree, "metadata", name) for name in ("name", "uid", "resourceVersion")}
        body: dict[str, JsonValue] = {"apiVersion": SOURCE.gvk.api_version, "kind": SOURCE.gvk.kind}
        body |= {"metadata": metadata, "status": status}
        try:
            return await self._ports.client.apply(
                SOURCE.path(name=metadata["name"]), body, manager=FIELD_MANAGER, force=True, subresource="status"
            )
        except NotFound:
            return None

    def _tell(self, tree: JsonObject, status: JsonObject) -> None:
        """One Event for each change of Ready."""
        before = condition_of(object_at(tree, "status"), "Ready") or {}
        after, valid = (condition_of(status, kind) or {} for kind in ("Ready", "Valid"))
        if all(text_at(before, name) == text_at(after, name) for name in ("status", "reason")):
            return
        said = dict.fromkeys(text for item in (after, valid) if (text := text_at(item, "message")))
        revision = text_at(status, "lastSuccessfulRevision")
        is_well = text_at(after, "status") == "True"
        note = "; ".join(said) or (
            f"revision {revision} is applied" if is_well and revision else "the levels are a tree"
        )
        self._ports.emit(tree, "Normal" if is_well else "Warning", text_at(after, "reason"), note)

    async def _set_finalizers(self, tree: JsonObject, finalizers: Sequence[str]) -> JsonObject:
        """The source with these finalizers; as it was read when it is gone."""
        self._ports.require()
        version = text_at(tree, "metadata", "resourceVersion")
        patch: JsonObject = {"metadata": {"resourceVersion": version, "finalizers": list(finalizers)}}
        place = SOURCE.path(name=text_at(tree, "metadata", "name"))
        try:
            return await self._ports.client.patch_merge(place, patch, manager=FIELD_MANAGER)
        except NotFound:
            return tree


def _paced(judgement: Judgement, planned: Pass, options: Options) -> Judgement:
    """With a word on the write rate where it made the pass slower."""
    if options.write_rate <= 0 or planned.features.mutations < 2:
        return judgement
    note = f"{planned.features.mutations} NodeFeatures were written one after the other (write-rate)"
    return replace(
        judgement,
        conditions=tuple(
            replace(item, message=f"{item.message}; {note}" if item.message else note) if item.type == "Valid" else item
            for item in judgement.conditions
        ),
    )


def _finalizers(tree: JsonObject) -> list[str]:
    return [item for item in list_at(tree, "metadata", "finalizers") if isinstance(item, str)]
