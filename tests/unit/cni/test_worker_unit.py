"""Everything that the worker does for one cluster, over time: looks, answers, writes, effects and its end (cni-switch.md, 2.1, 3.2, 3.3)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.worker.machine import problem_of
from gitops_ctl.cni.worker.target import TargetLook
from gitops_ctl.cni.worker.unit import ClusterUnit
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.ids import NamespacedName
from tests.support.kube_clock import SteppedClock
from tests.support.talos_configs import KEY, SECRET, machine_config
from tests.support.target_cluster_fakes import (
    CLUSTER,
    CLUSTER_PATH,
    GROUP,
    IMAGE,
    NAMESPACE,
    OPERATION_PATH,
    WorkerWorld,
)

LOOK = {"id": "replaced/1-preflight/north#1", "action": "observe", "mode": "replaced"}
PROBE = {"id": "replaced/7-probe/north#2", "action": "probe-service", "mode": "replaced"}
UNIT_KEY = NamespacedName(NAMESPACE, CLUSTER)


class Running:
    """A world with a running unit on a clock that the test moves."""

    def __init__(self, world: WorkerWorld, clock: SteppedClock) -> None:
        self.world, self.clock = world, clock
        self.settled: list[tuple[str, str]] = []
        ports = replace(world.ports(), settled=lambda action, result: self.settled.append((action, result)))
        self.unit = ClusterUnit(UNIT_KEY, ports=ports, world=self)
        self.unit.target = world.target

    def cluster(self, key: NamespacedName) -> Any:
        return self.world.send(self.world.own_api, "GET", CLUSTER_PATH)

    def machines(self, key: NamespacedName) -> Any:
        return self.world.send(self.world.own_api, "GET", f"{GROUP}/talosmachines")["items"]

    def operations(self, key: NamespacedName) -> Any:
        return self.world.send(self.world.own_api, "GET", f"{GROUP}/talosoperations")["items"]

    async def advance(self, seconds: float) -> None:
        """Move on in small steps, since looks take turns of the loop."""
        self.unit.wake()
        for _ in range(max(1, round(seconds))):
            await self.clock.advance(seconds / max(1, round(seconds)), settle=120)

    @property
    def observed(self) -> Any:
        return self.world.stored().get("observed", {})

    def writes(self) -> int:
        """Writes of the worker so far."""
        return sum(
            1 for entry in self.world.own_api.audit if entry.verb == "patch" and entry.user_agent.endswith("(t)")
        )


@asynccontextmanager
async def running(folder: Path, *, start: bool = True) -> AsyncIterator[Running]:
    clock = SteppedClock()
    async with WorkerWorld(folder, clock=clock) as world:
        world.cilium("false")
        world.kube_proxy()
        made = Running(world, clock)
        task = asyncio.create_task(made.unit.run()) if start else None
        try:
            yield made
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as made:
        yield made


async def test_a_question_is_answered_with_every_machine_and_the_target(run: Running) -> None:
    run.world.operation(LOOK)
    await run.advance(4)
    assert run.observed["request"] == LOOK["id"]
    assert [item["name"] for item in run.observed["machines"]] == ["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"]
    assert run.observed["cilium"]["mode"] == "enabled"
    assert run.observed["kubernetesVersion"] == "v1.36.3"
    machine = run.observed["machines"][0]
    assert {gate["name"] for gate in machine["gates"]} == {
        "api",
        "services",
        "proxy",
        "manifest",
        "static-pods",
        "node",
    }
    assert {gate["name"] for gate in run.observed["machines"][4]["gates"]} == {"api", "services", "node"}


async def test_a_question_waits_for_a_look_that_began_after_it(run: Running) -> None:
    run.world.operation()
    await run.advance(12)
    before = {name: fake.calls for name, fake in run.world.machines.items()}
    run.world.status(OPERATION_PATH, {"requests": [LOOK]})
    await run.advance(1)
    assert all(fake.calls > before[name] for name, fake in run.world.machines.items())
    await run.advance(11)
    assert run.observed["request"] == LOOK["id"]


async def test_a_machine_that_hangs_keeps_only_its_own_look_and_the_answer_back(run: Running) -> None:
    run.world.machines["cp-3"].hangs = True
    run.world.operation(LOOK)
    await run.advance(5)
    assert {item["name"] for item in run.observed["machines"]} == {"cp-1", "cp-2", "worker-1", "worker-2"}
    assert "request" not in run.observed


async def test_a_bug_in_one_look_is_not_the_last_look(run: Running) -> None:
    machine = run.world.machines["cp-1"]
    original = machine.services
    failures: list[int] = []

    async def broken() -> Any:
        failures.append(1)
        if len(failures) == 1:
            raise KeyError("a bug")
        return await original()

    machine.services = broken  # type: ignore[method-assign]
    run.world.operation(LOOK)
    await run.advance(30)
    assert len(failures) > 1
    assert run.observed["request"] == LOOK["id"]
    assert len(run.observed["machines"]) == 5


async def test_nothing_is_written_while_nothing_differs(run: Running) -> None:
    run.world.operation(LOOK)
    await run.advance(25)
    written, looks = run.writes(), run.world.machines["cp-1"].calls
    await run.advance(120)
    assert run.writes() == written
    assert run.world.machines["cp-1"].calls > looks


async def test_an_operation_is_written_at_most_once_in_ten_seconds(run: Running) -> None:
    run.world.operation(LOOK)
    await run.advance(5)
    moments = []
    for value in ("true", "false", "true", "false", "true", "false"):
        run.world.cilium(value)
        run.unit._target_changed()
        await run.advance(3)
        moments.append(run.observed["at"])
    assert len(set(moments)) <= 3


async def test_machine_and_cluster_have_their_own_statuses(run: Running) -> None:
    await run.advance(2)
    cluster = run.cluster(UNIT_KEY)
    assert cluster["status"]["cni"]["observedMode"] == "enabled"
    machine = run.world.send(run.world.own_api, "GET", f"{GROUP}/talosmachines/worker-1")["status"]["observed"]
    assert (machine["type"], machine["kubeProxy"], machine["version"]) == ("worker", "enabled", "v1.14.0")
    assert machine.get("pending", []) == []


async def test_the_observed_mode_keeps_the_time_at_which_it_was_seen_first(run: Running) -> None:
    await run.advance(2)
    first = run.cluster(UNIT_KEY)["status"]["cni"]["observedAt"]
    await run.advance(700)
    assert run.cluster(UNIT_KEY)["status"]["cni"]["observedAt"] == first
    run.world.cilium("true")
    run.unit._target_changed()
    await run.advance(3)
    assert run.cluster(UNIT_KEY)["status"]["cni"]["observedMode"] == "replaced"
    assert run.cluster(UNIT_KEY)["status"]["cni"]["observedAt"] > first


async def test_pending_paths_come_from_a_supplied_base_only(tmp_path: Path) -> None:
    async with running(tmp_path, start=False) as run:
        base = machine_config("controlplane", form="document", enabled=False, image=IMAGE).replace(
            b"debug: false", b"debug: true"
        )
        (tmp_path / "machines" / "cp-1").mkdir(parents=True)
        (tmp_path / "machines" / "cp-1" / "machineconfig.yaml").write_bytes(base)
        body = {"spec": {"configSecretRef": {"name": "cp-1-base"}}}
        run.world.send(run.world.own_api, "PATCH", f"{GROUP}/talosmachines/cp-1", body)
        run.world.operation(LOOK)
        task = asyncio.create_task(run.unit.run())
        await run.advance(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        seen = {item["name"]: item for item in run.observed["machines"]}
        assert {item["class"] for item in seen["cp-1"]["pending"]} == {"kube-proxy", "safe"}
        assert seen["cp-2"].get("pending", []) == []
        status = run.world.send(run.world.own_api, "GET", f"{GROUP}/talosmachines/cp-1")["status"]["observed"]
        assert {item["path"] for item in status["pending"]} == {"debug", "KubeProxyConfig.enabled"}


async def test_a_request_is_carried_out_once_and_its_machine_is_looked_at_again(run: Running) -> None:
    request = run.world.apply_request("cp-2")
    run.world.operation(LOOK, request)
    await run.advance(30)
    assert run.world.receipt(request["id"])["result"] == "Done"
    assert run.world.machines["cp-2"].applies == 1
    machine = run.world.send(run.world.own_api, "GET", f"{GROUP}/talosmachines/cp-2")["status"]["observed"]
    assert (machine["kubeProxy"], machine["hash"]) == ("disabled", request["hashWanted"])


async def test_a_claim_whose_request_is_gone_gets_a_receipt(run: Running) -> None:
    orphan = {"id": "replaced/5-switch-machines/cp-1#7", "worker": "worker-b", "at": "2026-01-01T00:00:00Z"}
    run.world.operation(LOOK, claims=[orphan])
    await run.advance(3)
    assert run.world.receipt(orphan["id"])["result"] == "Unknown"
    assert run.world.machines["cp-1"].applies == 0


async def test_the_service_is_shown_only_while_its_question_stands(run: Running) -> None:
    run.world.operation(LOOK, PROBE)
    await run.advance(25)
    assert run.observed["service"]["request"] == PROBE["id"]
    assert run.observed["service"]["reason"] == "ProbeNotPossible"
    run.world.status(OPERATION_PATH, {"requests": [LOOK]})
    await run.advance(25)
    assert "service" not in run.observed
    assert run.observed["request"] == LOOK["id"]


async def test_an_operation_that_is_over_is_still_observed(run: Running) -> None:
    run.world.operation(LOOK)
    await run.advance(15)
    run.world.status(OPERATION_PATH, {"phase": "Succeeded", "requests": []})
    run.world.cilium("true")
    run.unit._target_changed()
    await run.advance(15)
    assert run.observed["cilium"]["mode"] == "replaced"


async def test_without_an_operation_machines_are_looked_at_every_ten_minutes(run: Running) -> None:
    await run.advance(5)
    calls = run.world.machines["cp-1"].calls
    await run.advance(500)
    assert run.world.machines["cp-1"].calls == calls
    await run.advance(120)
    assert run.world.machines["cp-1"].calls > calls


async def test_an_unreachable_target_is_a_problem_and_nothing_is_concluded(run: Running) -> None:
    run.world.target.failure = Unavailable("no answer")
    run.world.operation(LOOK)
    run.world.status(CLUSTER_PATH, {"cni": {"kubeProxy": "replaced", "observedMode": "replaced"}})

    async def failing(*, nodes: Any) -> Any:
        return TargetLook(run.clock.boot_s(), problem=problem_of(run.world.target.failure))

    run.world.target.look = failing
    await run.advance(5)
    assert [item["message"] for item in run.observed["problems"]] == ["no answer"]
    assert "cilium" not in run.observed
    assert "kubeProxy" not in run.observed
    assert run.cluster(UNIT_KEY)["status"]["cni"]["observedMode"] == "replaced"


async def test_a_machine_that_cannot_be_edited_has_a_problem(run: Running) -> None:
    run.world.machines["worker-1"].active = machine_config("worker", form="document", image=IMAGE)
    run.world.machines["worker-1"].persistent = run.world.machines["worker-1"].active
    run.world.operation(LOOK)
    await run.advance(5)
    seen = {item["name"]: item for item in run.observed["machines"]}["worker-1"]
    assert seen["problem"]["reason"] == "MachineConfigUnreadable"
    assert "hashWanted" not in seen


async def test_the_end_waits_for_an_effect_and_begins_no_other(tmp_path: Path) -> None:
    async with running(tmp_path, start=False) as run:
        task = asyncio.create_task(run.unit.run())
        gate = asyncio.Event()
        machine = run.world.machines["cp-1"]
        original = machine.apply_configuration

        async def held(data: bytes, *, dry_run: bool) -> Any:
            if not dry_run:
                await gate.wait()
            return await original(data, dry_run=dry_run)

        machine.apply_configuration = held  # type: ignore[method-assign]
        first, second = run.world.apply_request("cp-1"), run.world.apply_request("cp-2", n=2)
        run.world.operation(first)
        await run.advance(3)
        assert run.world.claims() == [first["id"]]
        run.unit.stop()
        run.world.status(OPERATION_PATH, {"requests": [first, second]})
        await run.advance(3)
        assert not task.done()
        gate.set()
        await run.advance(20)
        assert task.done()
        assert run.world.receipt(first["id"])["result"] == "Done"
        assert run.world.receipt(second["id"]) is None


async def test_no_text_of_a_configuration_is_in_any_status(run: Running) -> None:
    run.world.machines["cp-2"].refuse = ("everything is wrong",)
    run.world.operation(LOOK, run.world.apply_request("cp-1"), run.world.apply_request("cp-2", n=2))
    await run.advance(30)
    stored = str([run.operations(UNIT_KEY), run.machines(UNIT_KEY), run.cluster(UNIT_KEY)])
    assert SECRET not in stored
    assert KEY not in stored


async def test_machines_are_counted_by_the_newest_look_at_them_and_requests_by_their_end(run: Running) -> None:
    assert run.unit.machine_states() == {"unseen": 5}
    run.world.machines["worker-2"].unreachable = True
    request = run.world.apply_request("cp-2")
    run.world.operation(LOOK, request)
    await run.advance(30)
    assert run.unit.machine_states() == {"reachable": 4, "unreachable": 1}
    assert (run.settled, run.unit.running) == ([("apply-mode", "Done")], 0)
