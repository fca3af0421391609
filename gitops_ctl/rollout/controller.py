"""The controller of software rollouts: plans, passes over frozen campaigns, ends deletions (rollouts.md, sections 9.1 and 11).

It writes the status of a rollout by one optimistic patch, and only what differs.  Who may authorise something it asks of a port, whose
answers come from the accepted revisions.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.conditions import condition_of, cut
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.names import CAMPAIGN_UID, LEAF_FINALIZER, ROLLOUT_FINALIZER
from gitops_ctl.kube.events import Emit, EventKind
from gitops_ctl.rollout.activation import INVALID
from gitops_ctl.rollout.activationrun import goes_on
from gitops_ctl.rollout.approval import HASH_MISMATCH, REVOKED
from gitops_ctl.rollout.authority import Authority
from gitops_ctl.rollout.campaignpass import CampaignPass, Passed
from gitops_ctl.rollout.campaignstate import campaign_state
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, LedgerSize, swap
from gitops_ctl.rollout.planning import PLANNING_FAILED, PlanningPorts, plan_rollout
from gitops_ctl.rollout.ports import Ports, rollout_path
from gitops_ctl.rollout.progress import Phase, Standing, TargetPhase, standings_of
from gitops_ctl.rollout.refusal import Reason

_ENDED: Final = frozenset({Phase.SUCCEEDED.value, Phase.CANCELLED.value})
_AT_ONCE_S: Final = 0.0
_EVENTS: Final = {
    Phase.AWAITING_APPROVAL: "AwaitingApproval",
    Phase.PAUSED: "RolloutPaused",
    Phase.EXECUTING: "RolloutExecuting",
    Phase.SOAKING: "RolloutSoaking",
    Phase.CANCELLING: "RolloutCancelling",
    Phase.SUCCEEDED: "RolloutSucceeded",
    Phase.FAILED: "RolloutFailed",
    Phase.CANCELLED: "RolloutCancelled",
}


_WARNED: Final = frozenset(
    {
        HASH_MISMATCH,
        REVOKED,
        INVALID,
        "PolicyUnavailable",
        "PolicyChanged",
        "PolicyChangedIncompatibly",
        "SourceIdentityChanged",
        "ChildIdentityConflict",
        "ActivationChildIdentityConflict",
    }
)
"""Reasons of the condition Ready that somebody has to do something about: an Event says so once (3.7)."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Latest times of the next look, in seconds; every wait is driven by a watch besides.

    Attributes:
        preflight_s: after so long a plan is put before its approvers although a preflight is missing.
    """

    resync_s: float = 10.0
    planning_retry_s: float = 5.0
    activation_recheck_s: float = 60.0
    preflight_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class RolloutPorts:
    """What the controller reaches out to.

    Attributes:
        authority: what the accepted revision has of the blocks of a rollout.
        require: raises LeadershipLost when this process may not write any more; asked before every pass.
    """

    steps: Ports
    planning: PlanningPorts
    authority: Callable[[JsonObject], Awaitable[Authority]]
    emit: Emit
    require: Callable[[], None]
    intervals: Intervals = field(default_factory=Intervals)


@dataclass(slots=True)
class Counts:
    """What passes came to, for metrics: by phase of the rollout, by phase that a target came into, by reason that one waits for."""

    passes: Counter[str] = field(default_factory=Counter)
    transitions: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)

    def add(self, before: JsonObject, standing: Standing, *, wrote: bool) -> None:
        """Count one pass over a campaign."""
        self.passes[standing.phase.value] += 1
        known = {uid: target.phase for uid, target in standings_of(before).items()}
        for target in standing.targets:
            if wrote and known.get(target.device_uid) is not target.phase:
                self.transitions[target.phase.value] += 1
            if target.phase is TargetPhase.BLOCKED:
                self.waits[target.reason] += 1


class RolloutController:
    """Reconciles rollouts, one at a time for each name."""

    def __init__(self, ports: RolloutPorts) -> None:
        self._ports = ports
        self._client = ports.steps.client
        self._failed: dict[str, str] = {}
        """UID of a rollout to what its last failed planning depended on; a new process plans once more."""
        self.counts = Counts()

    @property
    def ledger_size(self) -> LedgerSize:
        """Of the ledger as it was seen last."""
        return self._ports.steps.ledger_size

    async def reconcile(self, name: NamespacedName) -> float | None:
        """Take one rollout one step further; seconds until the next look at the latest, None for when something changes.

        Raises:
            GitopsError: as the controller's queue expects it.
        """
        self._ports.require()
        tree = await self._client.find(rollout_path(name.namespace, name.name))
        if tree is None:
            await self._release_leaves(name.namespace, ending=name.name)
            return None
        if "deletionTimestamp" in object_at(tree, "metadata"):
            return await self._deleted(tree)
        if ROLLOUT_FINALIZER not in list_at(tree, "metadata", "finalizers"):
            await self._set_finalizers(tree, [*list_at(tree, "metadata", "finalizers"), ROLLOUT_FINALIZER])
            return _AT_ONCE_S
        phase = text_at(tree, "status", "phase")
        if (phase in _ENDED and not goes_on(tree)) or _is_mismatched(tree):
            return None
        if not object_at(tree, "status", "frozenPlan"):
            return await self._plan(tree)
        return await self._pass(tree)

    # ---- planning ----

    async def _plan(self, tree: JsonObject) -> float | None:
        uid = text_at(tree, "metadata", "uid")
        try:
            found = await plan_rollout(self._ports.planning, tree, failed_digest=self._failed.get(uid, ""))
        except (NotFound, Refused) as error:
            # The policy or its ledger: nothing is wrong with the rollout, which is planned once they are there.
            await self._write(tree, {"message": cut(f"not planned yet: {error.subject}: {error.message}", limit=512)})
            return self._ports.intervals.resync_s
        if found is None:
            return self._ports.intervals.planning_retry_s
        if found.frozen is not None:
            self._failed.pop(uid, None)
            await self._write(tree, found.status)
            self._ports.emit(tree, "Normal", "PlanFrozen", f"{len(found.frozen.targets)} targets, {found.frozen.hash}")
            self._ports.emit(tree, "Normal", _EVENTS[Phase.AWAITING_APPROVAL], text_at(found.status, "message"))
            return _AT_ONCE_S
        if found.problem is None:
            return self._ports.intervals.resync_s
        if found.problem.is_deferred:
            self._ports.emit(tree, "Normal", "PlanningDeferred", found.problem.message)
            return self._ports.intervals.planning_retry_s
        self._failed[uid] = found.digest
        if await self._write(tree, found.status):
            self._ports.emit(tree, "Warning", PLANNING_FAILED, found.problem.message)
        return self._ports.intervals.resync_s

    # ---- campaigns ----

    async def _pass(self, tree: JsonObject) -> float | None:
        campaign = campaign_state(tree)
        assert campaign is not None
        authority = await self._ports.authority(tree)
        passed = await CampaignPass(self._ports.steps, campaign, authority).run()
        wrote = await self._write(tree, passed.status)
        phase = passed.standing.phase
        self.counts.add(tree, passed.standing, wrote=wrote)
        if wrote and passed.standing.approved and not campaign.approved:
            self._ports.emit(tree, "Normal", "RolloutApproved", passed.standing.message)
        if wrote and phase.value != text_at(tree, "status", "phase"):
            kind: EventKind = "Warning" if phase is Phase.FAILED else "Normal"
            self._ports.emit(tree, kind, _EVENTS[phase], passed.standing.message or phase.value)
        why = passed.standing.ready_reason
        if wrote and why in _WARNED and why != _ready_reason(tree):
            self._ports.emit(tree, "Warning", why, passed.standing.message)
        if passed.again and wrote:
            return _AT_ONCE_S
        if phase.value in _ENDED:
            return _AT_ONCE_S if campaign.deleting else None
        return self._next(passed)

    def _next(self, passed: Passed) -> float:
        """Seconds until the next look: a soak or a closed window sets a timer for its own end."""
        awaits_window = any(target.reason == Reason.WINDOW_NOT_OPEN for target in passed.standing.targets)
        intervals = self._ports.intervals
        latest_s = intervals.activation_recheck_s if awaits_window else intervals.resync_s
        if passed.soak_ends is None:
            return latest_s
        return max(0.0, min(latest_s, (passed.soak_ends - self._ports.steps.clock.wall()).total_seconds()))

    async def _write(self, tree: JsonObject, wanted: JsonObject) -> bool:
        """One optimistic patch of what differs; whether there was anything to write."""
        change = merge_patch(object_at(tree, "status"), wanted)
        if not change:
            return False
        path = rollout_path(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
        body = swap(tree, {"status": change})
        await self._client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")
        return True

    # ---- deletion ----

    async def _deleted(self, tree: JsonObject) -> float | None:
        """A deletion is a cancellation; the finalizer goes when everything is settled."""
        if ROLLOUT_FINALIZER not in list_at(tree, "metadata", "finalizers"):
            return None
        ended = text_at(tree, "status", "phase") in _ENDED or not object_at(tree, "status", "frozenPlan")
        if not ended:
            return await self._pass(tree)
        if await self._keeps_receipts(tree):
            if goes_on(tree):
                await self._pass(tree)
            return self._ports.intervals.resync_s
        await self._release_leaves(text_at(tree, "metadata", "namespace"), ending=text_at(tree, "metadata", "name"))
        rest = [name for name in list_at(tree, "metadata", "finalizers") if name != ROLLOUT_FINALIZER]
        await self._set_finalizers(tree, rest)
        return None

    async def _keeps_receipts(self, tree: JsonObject) -> bool:
        """Whether a device is still prepared by this campaign: its receipt is neither consumed nor given up (12.1)."""
        namespace, uid = text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "uid")
        listed = await self._client.list_all(leaf_path(namespace), label_selector=f"{CAMPAIGN_UID}={uid}")
        leaves = tuple(map(leaf_of, listed.items))
        consumed = {leaf.binding.prepared_upgrade_uid for leaf in leaves if leaf.phase == "Succeeded"}
        return any(leaf.phase == "Prepared" and leaf.uid not in consumed for leaf in leaves)

    async def _release_leaves(self, namespace: str, *, ending: str) -> None:
        """A leaf that is being deleted goes once its admission is Settled, and a prepared one with its campaign: it owns the device."""
        listed = await self._client.list_all(leaf_path(namespace))
        for tree in listed.items:
            leaf = leaf_of(tree)
            settled = leaf.admission is not None and leaf.admission.state == "Settled"
            if not (leaf.deleting and settled and LEAF_FINALIZER in leaf.finalizers):
                continue
            campaign = leaf.binding.campaign_name
            if leaf.phase == "Prepared" and campaign != ending and await self._exists(namespace, campaign):
                continue
            rest = [name for name in leaf.finalizers if name != LEAF_FINALIZER]
            body = swap(tree, {"metadata": {"finalizers": rest}})
            await self._client.patch_merge(leaf_path(namespace, leaf.name), body, manager=FIELD_MANAGER)

    async def _exists(self, namespace: str, name: str) -> bool:
        return await self._client.find(rollout_path(namespace, name)) is not None

    async def _set_finalizers(self, tree: JsonObject, finalizers: list[JsonValue]) -> None:
        path = rollout_path(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
        body = swap(tree, {"metadata": {"finalizers": finalizers}})
        await self._client.patch_merge(path, body, manager=FIELD_MANAGER)


def _ready_reason(rollout: JsonObject) -> str:
    return text_at(condition_of(object_at(rollout, "status"), "Ready") or {}, "reason")


def _is_mismatched(rollout: JsonObject) -> bool:
    """Whether another plan was approved: an approval never changes, so nothing but a deletion follows (S10)."""
    return text_at(rollout, "status", "phase") == Phase.FAILED and _ready_reason(rollout) == HASH_MISMATCH


def merge_patch(stored: JsonObject, wanted: JsonObject) -> dict[str, JsonValue]:
    """The JSON merge patch that makes the members of `wanted` what they are there: lists and leftovers of objects included.

    A member of None goes; what `wanted` does not name stays.
    """
    change: dict[str, JsonValue] = {}
    for name, value in wanted.items():
        had = stored.get(name)
        if isinstance(value, Mapping) and isinstance(had, Mapping):
            gone: dict[str, JsonValue] = {member: None for member in had if member not in value}
            inner = {**gone, **merge_patch(had, value)}
            if inner:
                change[name] = inner
        elif value != had:
            change[name] = value
    return change
