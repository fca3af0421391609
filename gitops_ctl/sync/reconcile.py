"""The work of one pass: load, look, plan, apply, prune, judge (gitops.md, section 1).  Facts in, an `Outcome` out.

`is_quiet` is the short way: equal inputs, nothing reported by an informer, nothing due.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gitops_ctl.api.names import ANNOTATION_ALLOW_PRUNE, ANNOTATION_RECREATE
from gitops_ctl.api.sync import Sync
from gitops_ctl.api.watched import request_of
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.mapper import Discovery
from gitops_ctl.sync.apply import Target
from gitops_ctl.sync.cluster import NOTE_S, LiveCluster
from gitops_ctl.sync.converge import REPAIRS, Pass, converge, kinds_of
from gitops_ctl.sync.drift import cooled, due_s
from gitops_ctl.sync.driftreport import describe, name_opponents
from gitops_ctl.sync.earlier import Earlier
from gitops_ctl.sync.listing import made_from_of
from gitops_ctl.sync.model import UNSEEN, Apply, Desired, DesiredState, Entry, Held, OwnerId, Seen, Unseen
from gitops_ctl.sync.plan import Drift, Facts, Plan, decide, plan
from gitops_ctl.sync.prune import PruneSpec, candidates, hidden_entries, ignored_entries, waiting_for
from gitops_ctl.sync.recovery import load_record, write_again_if_gone
from gitops_ctl.sync.removal import Pruned, Removal, remove_unlisted
from gitops_ctl.sync.remove import Remover
from gitops_ctl.sync.summarise import Drifted, Outcome
from gitops_ctl.sync.unit import Memory
from gitops_ctl.sync.waiting import Waiting, judge_health
from gitops_ctl.sync.world import World
from gitops_ctl.trust.provenance import AcceptedRevision

MANY = 100
"""A pass with more applies than this says that it is at work before it is done."""

Progress = Callable[[Sync, JsonObject, Outcome], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass begins with."""

    sync: Sync
    tree: JsonObject
    revision: AcceptedRevision
    memory: Memory
    forced: bool
    progress: Progress

    @property
    def made_from(self) -> tuple[object, ...]:
        return made_from_of(self.sync, self.revision)


def account_of(sync: Sync) -> str:
    """The user name of the ServiceAccount that a Sync acts as."""
    return f"system:serviceaccount:{sync.metadata.namespace}:{sync.spec.service_account_name}"


def is_quiet(world: World, sync: Sync, revision: AcceptedRevision, memory: Memory) -> bool:
    """Whether a pass would find nothing to do: the inputs are those of the last one, and nothing is due.

    Changes that informers reported are looked at one by one; most are of fields that are not ours.
    """
    if memory.done != made_from_of(sync, revision) or memory.record is None or memory.state is None:
        return False
    # A kind that was lost asks for a reading by name, also when a pass was at its end meanwhile (fault H18).
    if world.clock.boot_s() >= memory.due_s or memory.read_at_s == -math.inf:
        return False
    if not memory.dirty:
        return True
    if memory.waits or sync.spec.kube_config_secret_ref is not None:
        return False
    facts = Facts(memory.state, memory.entries, _eyes(world.clusters.local, memory), lambda _owner, _item: True)
    if all(_is_calm(item, facts, memory) for item in memory.dirty):
        memory.dirty.clear()
        return True
    return False


def _is_calm(item: ObjectId, facts: Facts, memory: Memory) -> bool:
    desired = facts.state.objects.get(item)
    if desired is None:
        return item not in memory.entries
    return item not in memory.held and item not in memory.heats and decide(desired, facts) is None


def _eyes(cluster: LiveCluster, memory: Memory) -> Callable[[Desired], Seen]:
    return lambda desired: look(cluster, memory, desired.id, desired.gvk)


def look(cluster: LiveCluster, memory: Memory, item: ObjectId, kind: GroupVersionKind) -> Seen:
    """What is known of an object: from an informer, else from the last reading by name."""
    seen = cluster.see(item, kind)
    if isinstance(seen, Unseen) and not cluster.is_watched(kind):
        return memory.read.get(item, UNSEEN)
    return seen


def look_at_doomed(cluster: LiveCluster, memory: Memory, entry: Entry, *, discovery: Discovery) -> Seen:
    """What a prune may rest on: nothing about kinds whose group discovery cannot show, whatever a cache says (H19).

    Without their scope the identity that a document means is not known either.
    """
    if any(group == entry.id.group for group, _ in discovery.unavailable):
        return UNSEEN
    return look(cluster, memory, entry.id, entry.gvk)


@dataclass(slots=True)
class _Work:
    """One pass in its steps; lives for one call of `work`."""

    world: World
    found: Found
    cluster: LiveCluster
    discovery: Discovery
    state: DesiredState
    earlier: Earlier
    others: dict[ObjectId, set[OwnerId]] = field(default_factory=dict)
    fights: dict[ObjectId, str] = field(default_factory=dict)
    postponed: list[Drift] = field(default_factory=list)
    unsure: tuple[Desired, ...] = ()
    again_s: float = 0.0

    @property
    def memory(self) -> Memory:
        return self.found.memory

    @property
    def now_s(self) -> float:
        return self.world.clock.boot_s()

    @property
    def interval_s(self) -> float:
        return to_seconds(self.found.sync.spec.interval)

    def sooner(self, seconds: float | None) -> None:
        if seconds is not None:
            self.again_s = min(self.again_s, max(0.0, seconds))

    def see(self, item: ObjectId, kind: GroupVersionKind) -> Seen:
        return look(self.cluster, self.memory, item, kind)

    def see_doomed(self, entry: Entry) -> Seen:
        return look_at_doomed(self.cluster, self.memory, entry, discovery=self.discovery)

    def lists(self, owner: OwnerId, item: ObjectId) -> bool:
        return owner.cluster != self.world.cluster_uid or owner in self.others.get(item, set())

    @property
    def remover(self) -> Remover:
        return Remover(self.cluster, account_of(self.found.sync), self.world.require)

    async def before(self, item: ObjectId) -> Desired | None:
        """What was last applied of an object: by this process, else by the one before it."""
        entry = self.memory.entries.get(item)
        known = self.memory.before.get(item)
        return known or (await self.earlier.declared(item, digest=entry.declared) if entry is not None else None)

    def new_pass(self) -> Pass:
        found, memory = self.found, self.memory
        revision = found.revision

        def go_on() -> bool:
            newest = self.world.listing.revision_of(found.sync)
            return newest is not None and newest.commit == revision.commit and not self.world.stopping()

        target = Target(
            client=self.cluster.client,
            mapper=self.cluster.mapper,
            clock=self.world.clock,
            account=account_of(found.sync),
            before=self.before,
            lists=self.lists,
            go_on=go_on,
            view=lambda desired, tree: self.cluster.view(desired.id, desired.gvk, tree),
        )
        return Pass(
            memory=memory,
            state=self.state,
            cluster=self.cluster,
            target=target,
            interval_s=self.interval_s,
            see=self.see,
            go_on=go_on,
            require=self.world.require,
            conditions=self.world.conditions,
            dry_run=found.sync.spec.dry_run,
            entries=dict(memory.entries),
        )


async def work(world: World, found: Found) -> tuple[Outcome, float]:
    """Do one pass.  Returns what it learned, and when to look again.

    Raises:
        GitopsError: a step cannot go on; what was done until then is in the inventory.
    """
    dirty, found.memory.dirty = found.memory.dirty, set()
    try:
        job = await _begin(world, found)
        planned = await _plan(job)
        run = job.new_pass()
        run.held.update({item.id: item for item in planned.held})
        await _apply(job, run, planned)
        pruned = await _prune(job, run)
        health = await judge_health(run, found.sync, made_from=found.made_from)
        drift = await _drift(job, planned, run)
    except BaseException:
        found.memory.dirty |= dirty
        raise
    outcome = _outcome(job, run, pruned, (health, drift))
    _tell(job, run, pruned)
    _remember(job, run, pruned, health)
    return outcome, job.again_s


async def _begin(world: World, found: Found) -> _Work:
    """Load what Git asks for, what the inventory holds and what the cluster shows."""
    memory, sync = found.memory, found.sync
    cluster = await world.clusters.of(sync)
    discovery = await cluster.mapper.all()
    state = await world.listing.state_of(sync, revision=found.revision, discovery=discovery)
    if memory.record is None:
        await load_record(world, sync, memory=memory, tree=found.tree)
    await cluster.need(memory.key, kinds_of(state, memory.entries.values()))
    if state.unsettled and (newer := await cluster.mapper.all()) is not discovery:
        # Only now the scope of a kind may be known, and with it the identity that a document means.
        state = await world.listing.state_of(sync, revision=found.revision, discovery=newer)
    memory.state = state
    job = _Work(world, found, cluster, await cluster.mapper.all(), state, _earlier(world, found, discovery))
    job.again_s = job.interval_s
    await _read_by_name(job)
    if _has_strangers(job):
        job.others = await world.listing.listed_by_others(sync, discovery=job.discovery)
    return job


def _earlier(world: World, found: Found, discovery: Discovery) -> Earlier:
    async def load(commit: str) -> Mapping[ObjectId, Desired]:
        return await world.listing.asked_at(commit, sync=found.sync, revision=found.revision, discovery=discovery)

    status = found.sync.status
    return Earlier(load, commits=(status.last_attempted_revision or "", status.last_applied_revision or ""))


async def _read_by_name(job: _Work) -> None:
    """Secrets, kinds that nobody may watch and the stored record are read at each interval, or when a person asks."""
    memory = job.memory
    if memory.read_at_s is None:
        memory.read_at_s = job.now_s
    if not job.found.forced and job.now_s - memory.read_at_s < job.interval_s:
        job.sooner(memory.read_at_s + job.interval_s - job.now_s)
        return
    await write_again_if_gone(job.world, memory, tree=job.found.tree)
    unwatched = [entry for entry in memory.entries.values() if not job.cluster.is_watched(entry.gvk)]
    memory.read_at_s = job.now_s
    if unwatched:
        memory.read.update(await job.remover.read(unwatched))


def _has_strangers(job: _Work) -> bool:
    """Whether this pass has to know what other Syncs ask for."""
    entries = job.memory.entries
    if len(entries) > len(job.state.objects) or any(item not in job.state.lists for item in entries):
        return True
    for item, desired in job.state.objects.items():
        seen = job.see(item, desired.gvk)
        if isinstance(seen, Unseen):
            if item not in entries:
                return True
        elif seen is not None and seen.owner and seen.owner != desired.owner.mark(item):
            return True
    return False


async def _plan(job: _Work) -> Plan:
    """Decide, and take out what is not to be tried now: refused with the same content, or repaired too often."""
    facts = Facts(
        job.state,
        job.memory.entries,
        lambda desired: job.see(desired.id, desired.gvk),
        job.lists,
        correct=job.found.sync.spec.drift == "Correct",
    )
    planned = plan(facts)
    memory = job.memory
    memory.heats = cooled(memory.heats, now_s=job.now_s)
    for item in [item for item in memory.held if item not in job.state.objects]:
        memory.release(item)
    held, applies = list(planned.held), []
    for action in planned.applies:
        waiting = None if job.found.forced else memory.is_waiting(action.desired, now_s=job.now_s)
        if waiting is not None:
            held.append(waiting)
        elif not _is_postponed(job, action):
            applies.append(action)
    await name_opponents(job.remover, memory)
    job.fights = {item: heat.manager for item, heat in memory.heats.items() if heat.fighting}
    return Plan(tuple(applies), planned.drift, tuple(held))


def _is_postponed(job: _Work, action: Apply) -> bool:
    wait_s = due_s(job.memory.heats.get(action.id), now_s=job.now_s) if action.why in REPAIRS else 0.0
    if wait_s > 0:
        job.postponed.append(Drift(action.desired, missing=False))
        job.sooner(wait_s)
    return wait_s > 0


async def _apply(job: _Work, run: Pass, planned: Plan) -> None:
    found = job.found
    if len(planned.applies) > MANY:
        text = f"applying {found.revision.commit}"
        await found.progress(found.sync, found.tree, Outcome(revision=found.revision.commit, progress=text))
    await converge(run, planned.applies)
    await _note_moves(run)
    job.unsure = tuple(item.action.desired for item in run.applied if item.transient)
    for item in run.held.values():
        retry = job.memory.retries.get(item.id)
        if retry is not None:
            job.sooner(retry.due_s - job.now_s)
        elif item.code in (ErrorCode.DEPENDENCY_NOT_READY, ErrorCode.OWNED_ELSEWHERE):
            job.sooner(30.0)


async def _note_moves(run: Pass) -> None:
    """Entries say from which file their objects come; what only moved to another file is not applied again."""
    moved = {
        item: replace(entry, file=desired.file)
        for item, desired in run.state.objects.items()
        if (entry := run.entries.get(item)) is not None and entry.file != desired.file
    }
    if moved:
        run.entries.update(moved)
        await run.save()


async def _prune(job: _Work, run: Pass) -> Pruned:
    """Remove what left Git, if everything that this rests on is complete and known."""
    memory, sync, state = job.memory, job.found.sync, job.state
    pruned = Pruned()
    # Some document errors show only against the live object.
    is_sound = state.complete and all(item.code is not ErrorCode.RULE for item in run.held.values())
    found = candidates(state, run.entries.values()) if is_sound and not state.unit_held else ()
    if found and not run.interrupted:
        own = await job.world.listing.document_of(sync, discovery=job.discovery)
        consent = own.consents.get(ANNOTATION_ALLOW_PRUNE) if own is not None else None
        spec = sync.spec.prune
        removal = Removal(
            owner=job.world.listing.owner_of(sync),
            remover=job.remover,
            see=job.see_doomed,
            listed_elsewhere=lambda item: bool(job.others.get(item)),
            spec=PruneSpec(spec.enabled, spec.max_percent, spec.allow_empty, consent.value if consent else ""),
            own=NamespacedName(sync.metadata.namespace, sync.spec.service_account_name),
            live_uids=frozenset(run.entries[item].uid for item in state.objects if item in run.entries) - {""},
            remaining=len(state.lists - state.hidden),
            consent_commit=consent.commit if consent else "",
            waits=waiting_for(found, unsure=job.unsure),
        )
        pruned = await remove_unlisted(removal, found, memory=memory, total=len(run.entries))
        await _drop(job, run, pruned.dropped)
    pruned.kept.update(dict.fromkeys(hidden_entries(state, run.entries), ErrorCode.HIDDEN_IN_GIT.reason))
    pruned.kept.update(dict.fromkeys(ignored_entries(state, run.entries), "its mode is Ignore"))
    return pruned


async def _drop(job: _Work, run: Pass, dropped: Iterable[ObjectId]) -> None:
    gone = [item for item in dropped if run.entries.pop(item, None) is not None]
    for item in gone:
        job.memory.read.pop(item, None)
        job.memory.before.pop(item, None)
    if gone:
        await run.save()
        for key, other in job.world.units.items():
            if key != job.memory.key and other.state is not None and not other.state.objects.keys().isdisjoint(gone):
                job.world.wake(key)  # it may have waited for us to let go


async def _drift(job: _Work, planned: Plan, run: Pass) -> list[Drifted]:
    """Drift that this pass leaves: reported only, postponed in a fight, or held."""
    if job.found.sync.spec.drift == "Report":
        open_ = list(planned.drift)
    else:
        held = [item for item in planned.drift if item.desired.id in run.held]
        open_ = [*held, *job.postponed]
    return [await describe(run.target, item, memory=job.memory, see=job.see) for item in open_]


def _outcome(job: _Work, run: Pass, pruned: Pruned, judged: tuple[Waiting, list[Drifted]]) -> Outcome:
    health, drift = judged
    memory = job.memory
    held = tuple(run.held.values())
    reported = job.found.sync.spec.drift == "Report" or bool(job.fights)
    return Outcome(
        revision=job.found.revision.commit,
        complete=not run.interrupted,
        objects=len(job.state.objects) - sum(1 for item in held if item.id in job.state.objects),
        held=held,
        retrying=any(_may_go_by_itself(item, run) for item in held),
        drift=drift,
        reported=reported,
        fights=job.fights,
        kept=pruned.kept,
        terminating=pruned.terminating,
        prune_blocked=pruned.blocked,
        prune_failed=pruned.failed,
        pruned=pruned.report,
        checked=health.checked,
        waiting=health.waiting,
        failed=health.failed,
        shards=memory.shards,
        entries=len(memory.entries),
        troubles=tuple(f"{kind}: {text}" for kind, text in sorted(job.cluster.troubles(job.memory.key).items())),
        requested=request_of(job.found.tree) if job.found.forced else "",
    )


def _may_go_by_itself(item: Held, run: Pass) -> bool:
    soon = {found.id for found in run.applied if found.retry}
    return item.why == ErrorCode.DEPENDENCY_NOT_READY.reason or item.id in soon


def _tell(job: _Work, run: Pass, pruned: Pruned) -> None:
    """One event for all fields that were taken back, one for what was made anew, and one for a removal, each with its commits."""
    world, tree, revision = job.world, job.found.tree, job.found.revision
    commit = f"{revision.commit} (signed by {revision.signer})" if revision.signer else revision.commit
    taken = sorted((item.id, item.took_from) for item in run.applied if item.took_from)
    if taken:
        text = listed([f"{item} from {', '.join(managers)}" for item, managers in taken])
        world.emit(tree, "Warning", "Drifted", f"took back fields of {text}, as declared at {commit}")
    anew = sorted(
        (item.id, item.recreated, item.action.desired.consents[ANNOTATION_RECREATE])
        for item in run.applied
        if item.recreated
    )
    if anew:
        text = listed([f"{item} (uid {uid}), with the consent of {consent.commit}" for item, uid, consent in anew])
        world.emit(tree, "Normal", "Recreated", f"deleted and made again, as declared at {commit}: {text}")
    if pruned.report is not None:
        by = f", with the consent of {pruned.report.consent_commit}" if pruned.report.consent_commit else ""
        count = pruned.report.count
        what = "1 object" if count == 1 else f"{count} objects"
        world.emit(tree, "Normal", "Pruned", f"removed {what} that {commit} does not declare{by}")


def _remember(job: _Work, run: Pass, pruned: Pruned, health: Waiting) -> None:
    """What the next pass needs to know to be short."""
    memory = job.memory
    job.sooner(health.again_s)
    if pruned.failed:
        job.sooner(10.0)
    if run.interrupted:
        job.sooner(0.0)
    if run.applied or pruned.report is not None:
        # Until then our own writes may have hidden a change that came together with them.
        job.sooner(NOTE_S)
    memory.waits = bool(health.waiting) or bool(pruned.terminating)
    memory.due_s = job.now_s + job.again_s
    memory.done = () if run.interrupted or pruned.unknown else job.found.made_from
