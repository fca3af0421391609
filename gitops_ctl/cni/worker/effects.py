"""Carries out one request: checks, claims, acts once, reads back, writes the receipt (cni-switch.md, sections 2.1, 7.5, 8.2 and 8.3).

Everything that can be checked is checked before the claim; then nothing was changed and the receipt says `Refused`.  After the claim the
mutating call is made once.  A claim without a receipt, left by a worker that was killed, is settled by looking and never by acting again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gitops_ctl.cni.mode import serves
from gitops_ctl.cni.model import Action, Mode, Operation, Request, Result
from gitops_ctl.cni.reading import observed_of
from gitops_ctl.cni.worker.applying import MachineAway, Sent, apply_mode, read_back
from gitops_ctl.cni.worker.cilium import see_cilium
from gitops_ctl.cni.worker.desk import CLAIM_S, Desk, Outcome, Unfit, Withdrawn, read_cluster, refused, require_lock
from gitops_ctl.cni.worker.kubeproxy import KubeProxy, read_kube_proxy, remove, restore
from gitops_ctl.cni.worker.machine import Look
from gitops_ctl.cni.worker.proxyset import ProxyObject, rendered_set
from gitops_ctl.cni.worker.target import Target, look_at_target
from gitops_ctl.cni.worker.wanted import Question
from gitops_ctl.cni.worker.watch import MachineWatch
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.transport import KubeClient


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds.

    Attributes:
        settle_s: how long an apply without a reply may still go on: its own deadline.
        foreign_s: how much later the apply of another worker may begin: its claim may be fresh, and it asks who the machine is.
        gone_s: how long pods may take to end after the removal.
        away_s: how long a machine may be away when it is to be switched: as long as one that is looked at.
        retry_s: between two looks for manifests that are not rendered yet, or at a machine that is away.
        poll_s: between two looks for pods that end.
    """

    settle_s: float = 60.0
    foreign_s: float = CLAIM_S + 30.0
    gone_s: float = 120.0
    away_s: float = 120.0
    retry_s: float = 10.0
    poll_s: float = 1.0


class Scene(Protocol):
    """What an effect works on: the machines and the target of one cluster."""

    target: Target

    @property
    def is_ending(self) -> bool: ...
    def machine(self, name: str) -> MachineWatch | None: ...
    def control_planes(self) -> Sequence[MachineWatch]: ...
    def looks(self) -> Sequence[Look]: ...
    def question(self, mode: Mode) -> Question: ...
    def nodes(self) -> Sequence[str]: ...


class Effects:
    """The effects of one operation on one cluster."""

    def __init__(self, desk: Desk, *, own: KubeClient, cluster: NamespacedName, scene: Scene, waits: Waits) -> None:
        """`own` is the client of the worker's own cluster."""
        self._desk = desk
        self._own = own
        self._cluster = cluster
        self._scene = scene
        self._waits = waits

    async def perform(self, request: Request) -> Outcome:
        """Carry out a request, or settle what was claimed before, and write the receipt.

        Raises:
            Withdrawn: the request does not stand any more; nothing was done.
            GitopsError: the worker's own cluster does not answer; it is tried again from the start.
        """
        outcome = await self._outcome_in_time(request)
        await self._desk.settle(request.id, outcome)
        return outcome

    async def _outcome_in_time(self, request: Request) -> Outcome:
        """A machine that does not answer before the claim is asked again for a while, each time after all checks."""
        clock = self._own.clock
        end_s = clock.boot_s() + self._waits.away_s
        while True:
            operation = await self._desk.standing(request.id)
            if request.id in operation.claims:
                return await self._settled(request)
            try:
                return await self._carried_out(request, operation)
            except MachineAway as away:
                if clock.boot_s() >= end_s:
                    return refused(away.error)
            if self._scene.is_ending:
                raise Withdrawn("the worker ends; the next one goes on")
            await clock.sleep(self._waits.retry_s)

    async def _carried_out(self, request: Request, operation: Operation) -> Outcome:
        try:
            await self._require_allowed(request, operation)
        except Unfit as error:
            return refused(error)
        match request.action:
            case Action.APPLY:
                return await self._apply(request)
            case Action.REMOVE:
                return await self._remove(request, operation)
            case Action.RESTORE:
                return await self._restore(request)
            case _:
                raise AssertionError(f"{request.action} is no effect")

    async def _require_allowed(self, request: Request, operation: Operation) -> None:
        """The cluster is held by this operation, in the mode of the request."""
        cluster = await read_cluster(self._own, self._cluster)
        require_lock(cluster, operation)
        _require_mode(cluster, request)

    async def _settled(self, request: Request) -> Outcome:
        """How something ended that another run of the worker began."""
        match request.action:
            case Action.APPLY:
                watch = self._scene.machine(request.machine)
                if watch is None:
                    return Outcome(Result.UNKNOWN, f"there is no TalosMachine {request.machine} any more")
                async with watch.turn:
                    return await self._read_back(request, watch, sent=Sent(), later_s=self._waits.foreign_s)
            case Action.REMOVE:
                return await self._until_gone(Outcome(Result.UNKNOWN, ""))
            case _:
                return await self._restored()

    async def _apply(self, request: Request) -> Outcome:
        watch = self._scene.machine(request.machine)
        if watch is None:
            return refused(Unfit("MachineUnknown", f"there is no TalosMachine {request.machine} in this cluster"))
        async with watch.turn:
            return await apply_mode(
                request,
                watch,
                question=self._scene.question(request.mode),
                looks=self._scene.looks(),
                claim=lambda: self._desk.claim(request.id),
                settle=lambda sent: self._read_back(request, watch, sent=sent),
            )

    async def _read_back(self, request: Request, watch: MachineWatch, *, sent: Sent, later_s: float = 0.0) -> Outcome:
        settle_s = self._waits.settle_s + later_s
        return await read_back(request, watch, sent=sent, clock=self._own.clock, settle_s=settle_s)

    async def _remove(self, request: Request, operation: Operation) -> Outcome:
        try:
            client = await self._scene.target.client()
            await self._require_new_side(client, operation)
            self._require_nobody_renders()
            objects = (await read_kube_proxy(client)).objects
        except GitopsError as error:
            return refused(error)
        claim = await self._desk.claim(request.id, removing=objects)
        changed = await remove(client, objects, require_allowed=claim.require_fresh)
        if changed.stopped_at:
            result = Result.UNKNOWN if changed.objects else Result.REFUSED
            _, there = await self._left()
            if there is None:
                there = tuple(item for item in objects if item not in changed.objects)
            message = f"RemovalStopped: {changed.stopped_at}"
            return Outcome(result, message, removed=changed.objects, there=there)
        return await self._until_gone(Outcome(Result.UNKNOWN, "", removed=changed.objects))

    async def _require_new_side(self, client: KubeClient, operation: Operation) -> None:
        look = await look_at_target(client, nodes=self._scene.nodes())
        seen = see_cilium(look.cilium).to_tree() if look.cilium is not None else {}
        observed = observed_of({"at": to_rfc3339(self._own.clock.wall()), "cilium": seen})
        if missing := serves(observed, Mode.REPLACED, operation.state.baseline):
            raise Unfit("NewSideNotReady", "; ".join(missing))

    def _require_nobody_renders(self) -> None:
        still = sorted(look.spec.name for look in self._scene.looks() if look.proxy_enabled)
        if still:
            raise Unfit(
                "StillRendered", f"kube-proxy is still rendered by {', '.join(still)}, which would bring it back"
            )

    async def _until_gone(self, so_far: Outcome) -> Outcome:
        """`so_far` as Done when nothing of kube-proxy is left, or Unknown when the time is over."""
        clock = self._own.clock
        end_s = clock.boot_s() + self._waits.gone_s
        while True:
            left, there = await self._left()
            if left == "":
                note = "the objects and pods of kube-proxy are gone; its old rules stay on each node until it reboots"
                return Outcome(Result.DONE, note, removed=so_far.removed)
            if clock.boot_s() >= end_s:
                message = f"RemovalNotFinished: still there: {left}"
                return Outcome(Result.UNKNOWN, message, removed=so_far.removed, there=there)
            await clock.sleep(self._waits.poll_s)

    async def _left(self) -> tuple[str, tuple[ProxyObject, ...] | None]:
        """What is still there, for people, and its objects; None when it cannot be read."""
        try:
            found = await read_kube_proxy(await self._scene.target.client())
        except GitopsError as error:
            return f"not known ({error.message})", None
        return found.left, found.objects

    async def _restore(self, request: Request) -> Outcome:
        while True:
            try:
                client = await self._scene.target.client()
                rendered, present = await self._rendered(), await read_kube_proxy(client)
            except GitopsError:
                rendered, present = {}, None
            if rendered and present is not None:
                return await self._restore_missing(request, client, present, rendered)
            await self._own.clock.sleep(self._waits.retry_s)
            try:
                await self._require_allowed(request, await self._desk.standing(request.id))
            except Unfit as error:
                return refused(error)
            if self._scene.is_ending:
                raise Withdrawn("the worker ends; the next one goes on")

    async def _restore_missing(
        self, request: Request, client: KubeClient, present: KubeProxy, rendered: Mapping[ObjectId, JsonObject]
    ) -> Outcome:
        missing = present.missing(rendered)
        if not missing:
            return Outcome(Result.DONE, "nothing is missing")
        claim = await self._desk.claim(request.id)
        changed = await restore(client, missing, rendered=rendered, require_allowed=claim.require_fresh)
        if changed.stopped_at:
            result = Result.UNKNOWN if changed.objects else Result.REFUSED
            return Outcome(result, f"RestoreStopped: {changed.stopped_at}", restored=changed.objects)
        return Outcome(Result.DONE, "every missing object of kube-proxy was restored", restored=changed.objects)

    async def _restored(self) -> Outcome:
        try:
            rendered = await self._rendered()
            present = await read_kube_proxy(await self._scene.target.client())
        except GitopsError as error:
            return Outcome(Result.UNKNOWN, f"what the restoration did is not known: {error.message}")
        missing = present.missing(rendered)
        if rendered and not missing:
            return Outcome(Result.DONE, "every object of kube-proxy is there")
        names = ", ".join(f"{id.kind} {id.name}" for id in missing) or "the manifests cannot be read"
        return Outcome(Result.UNKNOWN, f"RestoreNotFinished: {names}")

    async def _rendered(self) -> Mapping[ObjectId, JsonObject]:
        """What the first control plane that renders kube-proxy renders; empty when none does.

        Raises:
            GitopsError: none answers.
        """
        failure: GitopsError | None = None
        for watch in self._scene.control_planes():
            try:
                async with watch.turn, watch.link() as machine:
                    await machine.require_identity()
                    found = rendered_set(await machine.kube_proxy_manifests() or ())
            except GitopsError as error:
                failure = error
                continue
            if found:
                return found
            failure = None
        if failure is not None:
            raise failure
        return {}


def _require_mode(cluster: JsonObject, request: Request) -> None:
    """A request must ask for what the operation has set: kube-proxy goes only where Cilium was told to take over."""
    word = text_at(cluster, "status", "cni", "kubeProxy")
    if word != request.mode.value:
        raise Unfit(
            "ModeNotSet", f"status.cni.kubeProxy is {word or 'not set'}, and the request is for {request.mode.value}"
        )
    needed = {Action.REMOVE: Mode.REPLACED, Action.RESTORE: Mode.ENABLED}.get(request.action, request.mode)
    if needed is not request.mode:
        raise Unfit("ModeNotSet", f"{request.action.value} belongs to {needed.value}, and the request is for {word}")
