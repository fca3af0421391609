"""The plan of a switch on objects in memory, without a server: the time is a number, and the worker of switch_live answers when it is asked to."""

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH, ANNOTATION_HOLD, ICHOR_API_VERSION
from gitops_ctl.cni.model import Authority, Introduction, Mode, Operation, Steering
from gitops_ctl.cni.plan import Decision, World, plan
from gitops_ctl.cni.reading import cluster_of, machine_of, operation_of
from gitops_ctl.cni.writing import operation_tree, record_tree, state_tree
from gitops_ctl.core.conditions import condition_of
from tests.support.switch_live import Live, LiveMachine, Tree, worked

BEGIN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
PLANES = ("cp-1", "cp-2", "cp-3")
WORKERS = ("node-1", "node-2")


@dataclass
class Bench:
    """One cluster, its operations, and what Git says about it."""

    target: str
    live: Live
    cluster: Tree
    machines: dict[str, Tree]
    authority: Authority
    operations: dict[str, Tree] = field(default_factory=dict)
    now: datetime = BEGIN
    last: Decision = field(default_factory=Decision)
    seen: list[tuple[str, str]] = field(default_factory=list)
    _uids: Any = field(default_factory=lambda: itertools.count(1))

    # -- time and people ---------------------------------------------------------------------------------------------

    def later(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        self.now += timedelta(hours=hours, minutes=minutes, seconds=seconds)
        self.live.now = self.now

    def steer(self, **values: Any) -> None:
        """A signed commit that sets members of spec.cni.operation."""
        names = {"break_lock": "breakLock"}
        self.cluster["spec"]["cni"]["operation"] = {names.get(name, name): value for name, value in values.items()}
        self.authority = replace(self.authority, steering=Steering(**values))

    def hold(self, name: str, *, on: bool = True) -> None:
        annotations = self.machines[name]["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION_HOLD] = "true" if on else "false"

    # -- the executor ------------------------------------------------------------------------------------------------

    def world(self) -> World:
        machines = sorted(
            map(machine_of, self.machines.values()), key=lambda one: (one.role != "controlplane", one.name)
        )
        found = tuple(one for tree in self.operations.values() if (one := operation_of(tree)) is not None)
        return World(cluster_of(self.cluster), tuple(machines), found, self.authority, self.now)

    def round(self) -> bool:
        """One decision, carried out; whether it changed anything."""
        world = self.world()
        self.last = decision = plan(world)
        if decision.create is not None:
            made = dict(operation_tree(world.cluster, introduced=decision.create, commit=self.authority.revision))
            number = next(self._uids)
            made["metadata"] = {
                **made["metadata"],
                "uid": f"uid-{number}",
                "creationTimestamp": f"2026-03-01T08:00:{number:02}Z",
            }  # type: ignore[dict-item]
            assert made["metadata"]["name"] not in self.operations  # type: ignore[index,call-overload]
            self.operations[made["metadata"]["name"]] = made  # type: ignore[index,call-overload]
            return True
        if decision.record is not None:
            worker = {name: self.cluster["status"]["cni"][name] for name in () if name in self.cluster["status"]["cni"]}
            tree = dict(record_tree(decision.record))
            foreign = self.cluster["status"].get("lock", {})
            self.cluster["status"] = {**tree, "cni": {**worker, **tree.get("cni", {})}}  # type: ignore[dict-item]
            if foreign.get("kind", "cni") != "cni":
                self.cluster["status"]["lock"] = foreign
            return True
        changed = [self._store(operation, state) for operation, state in decision.states]
        return any(changed)

    def _store(self, operation: Operation, state: Any) -> bool:
        tree = self.operations[operation.key.name]
        before = tree.get("status", {})
        after = {**before, **state_tree(state, tree=tree, now=self.now)}
        for gone in ("step", "baseline", "operation", "pullRequest"):
            if gone in before and gone not in state_tree(state, tree=tree, now=self.now):
                after.pop(gone)
        tree["status"] = after
        self.seen.append((state.step, state.phase.value))
        return _timeless(before) != _timeless(after)

    def rest(self) -> None:
        """The executor alone, until it has nothing to do."""
        for _ in range(50):
            if not self.round():
                return
        raise AssertionError("the executor does not come to rest")

    # -- both --------------------------------------------------------------------------------------------------------

    def work(self, **more: Any) -> bool:
        """One look of the worker at every operation."""
        changed = False
        for tree in self.operations.values():
            new = worked(tree, self.cluster, self.live, **more)
            if new is not None:
                tree["status"] = new
                changed = True
        return changed

    def run(self, *, seconds: float = 10, times: int = 60) -> None:
        """Executor and worker in turns, with a little time between them, until both have nothing to do."""
        for _ in range(times):
            self.rest()
            self.later(seconds=seconds)
            if not self.work():
                return
        raise AssertionError(f"no rest: {self.operation.get('status')}")

    def start_machines(self) -> "Bench":
        """The CNI is changed, and the first machine is asked for."""
        self.live.change_cni("true")
        self.rest()
        while "apply-mode" not in self.actions:
            self.later(seconds=10)
            self.work()
            self.rest()
        return self

    # -- what is there -----------------------------------------------------------------------------------------------

    @property
    def operation(self) -> Tree:
        """The newest operation."""
        return next(reversed(self.operations.values()), {})

    @property
    def status(self) -> Tree:
        return self.operation.get("status", {})  # type: ignore[no-any-return]

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def step(self) -> str:
        return str(self.status.get("step", ""))

    def condition(self, name: str) -> Tree:
        return dict(condition_of(self.status, name) or {})

    @property
    def paused(self) -> tuple[str, str]:
        """Reason and message of the pause."""
        found = self.condition("Paused")
        assert found["status"] == "True", self.status
        return str(found["reason"]), str(found["message"])

    @property
    def rows(self) -> dict[str, str]:
        return {row["name"]: row["state"] for row in self.status.get("machines", [])}

    @property
    def actions(self) -> list[str]:
        return [one["action"] for one in self.status.get("requests", [])]

    @property
    def mode(self) -> str | None:
        return self.cluster["status"].get("cni", {}).get("kubeProxy")  # type: ignore[no-any-return]

    @property
    def lock(self) -> Tree | None:
        return self.cluster["status"].get("lock")  # type: ignore[no-any-return]


def make_bench(
    target: str = "replaced", *, planes: Any = PLANES, workers: Any = WORKERS, contract: str = "v1.13"
) -> Bench:
    """A cluster in the other mode, with field and consent for the target in the accepted revision."""
    mode = Mode(target)
    before = mode.other
    roles = dict.fromkeys(planes, "controlplane") | dict.fromkeys(workers, "worker")
    machines = {name: LiveMachine(name, role, before.proxy_word, contract) for name, role in roles.items()}
    live = Live(BEGIN, machines)
    live.written = live.template_written = BEGIN - timedelta(days=30)
    live.started = BEGIN - timedelta(days=29)
    if before is Mode.REPLACED:
        live.value, live.agents_run, live.proxy, live.proxy_pods = "true", "replaced", False, 0
    cluster: Tree = {
        "apiVersion": ICHOR_API_VERSION,
        "kind": "TalosCluster",
        "metadata": {
            "name": "north",
            "namespace": "lab",
            "uid": "cluster-uid",
            "annotations": {ANNOTATION_CONFIRM_SWITCH: target},
        },
        "spec": {"talosconfigSecretRef": {"name": "talos"}, "cni": {"kubeProxy": target, "operation": {}}},
        "status": {"cni": {"kubeProxy": before.value}} if before is Mode.REPLACED else {},
    }
    trees = {name: machine_tree(name, role) for name, role in roles.items()}
    authority = Authority(
        revision="c" * 40,
        mode=mode,
        consent=target,
        introduced=Introduction("a" * 40, "network-author"),
        source="network",
        file="clusters/north.yaml",
    )
    return Bench(target, live, cluster, trees, authority)


def machine_tree(name: str, role: str) -> Tree:
    return {
        "apiVersion": ICHOR_API_VERSION,
        "kind": "TalosMachine",
        "metadata": {"name": name, "namespace": "lab", "uid": f"machine-{name}"},
        "spec": {"clusterRef": {"name": "north"}, "address": "192.0.2.1", "role": role},
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(member) for name, member in value.items() if name != "lastTransitionTime"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
