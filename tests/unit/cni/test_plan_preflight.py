"""Everything that keeps a switch from starting, all of it at once (cni-switch.md, section 6.4)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.switch_bench import Bench, make_bench

Change = Callable[[Bench], Any]


def refused(change: Change, target: str = "replaced") -> tuple[str, str]:
    bench = make_bench(target)
    change(bench)
    bench.run()
    if bench.phase == "Preflight":  # what may pass by itself has two minutes
        bench.later(minutes=2)
        bench.run()
    assert bench.step.endswith("/1-preflight")
    assert bench.live.effects == []
    assert bench.mode in (None, "replaced" if target == "enabled" else None)
    assert bench.lock is not None
    return bench.paused


def cp(bench: Bench) -> Any:
    return bench.live.machines["cp-2"]


def overridden(bench: Bench) -> None:
    bench.live.overrides = [{"object": "kube-system/edge", "value": "true", "nodes": ["node-2"]}]


def denied(component: str, versions: str) -> Change:
    def change(bench: Bench) -> None:
        entry = {"component": component, "versions": versions, "reason": "takes nodes off the net"}
        bench.cluster["spec"]["cni"]["deniedVersions"] = [entry]

    return change


def kept_port(bench: Bench) -> None:
    bench.live.service_host, bench.live.service_port = "localhost", "6443"


def without_base(machine: Any) -> None:
    machine.reachable = False
    machine.problem = {
        "reason": "CredentialNotMounted",
        "message": "the key machineconfig.yaml of the Secret node-1-base is not mounted",
    }


CASES: dict[str, tuple[Change, str, str]] = {
    "preset": (lambda b: b.cluster["spec"]["cni"].update(preset="custom"), "PresetNotReadable", "custom"),
    "unreachable": (lambda b: setattr(cp(b), "reachable", False), "MachineUnreachable", "cp-2"),
    "on hold": (lambda b: b.hold("cp-3"), "ControlPlaneOnHold", "cp-3"),
    "staged": (lambda b: setattr(b.live.machines["node-1"], "staged", True), "StagedConfigPending", "node-1"),
    "unrelated": (
        lambda b: cp(b).pending.append({"path": "cluster.apiServer.image", "class": "reboot"}),
        "UnrelatedPendingChange",
        "unrelated pending configuration change at cluster.apiServer.image: converge it first",
    ),
    "KubePrism": (lambda b: setattr(b.live.machines["node-2"], "prism", False), "KubePrismNotHealthy", "node-2"),
    "override": (overridden, "NodeOverridePresent", "node-2"),
    "two forms": (lambda b: setattr(cp(b), "contract", "v1.14"), "ContractMismatch", "v1.13, v1.14"),
    "other port": (
        lambda b: setattr(b.live.machines["node-2"], "prism_port", 7446),
        "KubePrismNotHealthy",
        "port 7446",
    ),
    "kept port": (kept_port, "KubePrismNotHealthy", "cp-1: KubePrism listens on port 7445, not on 6443"),
    "base of a worker": (
        lambda b: without_base(b.live.machines["node-1"]),
        "CredentialNotMounted",
        "node-1: the key machineconfig.yaml of the Secret node-1-base is not mounted",
    ),
    "old Talos": (
        lambda b: [
            setattr(m, "contract", "v1.14") or setattr(m, "version", "v1.13.2") for m in b.live.machines.values()
        ],
        "ContractMismatch",
        "v1.13.2",
    ),  # type: ignore[func-returns-value]
    "Cilium": (denied("cilium", ">=1.18.0 <1.18.5"), "VersionDenied", "takes nodes off the net"),
    "Talos": (denied("talos", "1.14.x"), "VersionDenied", "talos v1.14.0 on cp-1"),
    "Kubernetes": (denied("kubernetes", "^1.36"), "VersionDenied", "kubernetes v1.36.3"),
    "mixed": (lambda b: setattr(b.live, "value", "partial"), "CiliumModeMixed", "partial"),
    "wrong type": (lambda b: setattr(cp(b), "type", "worker"), "WrongMachine", "cp-2"),
    "credential": (
        lambda b: b.live.problems.append(
            {"reason": "CredentialNotMounted", "message": "Secret talos, key talosconfig"}
        ),
        "CredentialNotMounted",
        "Secret talos, key talosconfig",
    ),
    "machine problem": (
        lambda b: setattr(cp(b), "problem", {"reason": "ProxyImageUnknown", "message": "no version"}),
        "ProxyImageUnknown",
        "no version",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_preflight_pauses_with_its_reason_and_touches_nothing(name: str) -> None:
    change, reason, text = CASES[name]
    found, message = refused(change)
    assert found == reason
    assert text in message
    assert "spec.cni.operation.resume: 1" in message


@pytest.mark.parametrize("cls", ["reboot", "install", "api-server", "unsupported", "unknown"])
def test_every_class_that_cannot_ride_along_stops_with_its_path(cls: str) -> None:
    reason, message = refused(lambda b: cp(b).pending.append({"path": "machine.sysctls", "class": cls}))
    assert reason == "UnrelatedPendingChange"
    assert "machine.sysctls" in message


def test_a_safe_path_rides_along() -> None:
    bench = make_bench("replaced")
    cp(bench).pending.append({"path": "cluster.inlineManifests", "class": "safe"})
    cp(bench).pending.append({"path": "cluster.proxy.disabled", "class": "kube-proxy"})
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_all_refusals_are_shown_together() -> None:
    def change(bench: Bench) -> None:
        cp(bench).staged = True
        bench.live.machines["node-1"].prism = False
        overridden(bench)

    _, message = refused(change)
    assert all(word in message for word in ("StagedConfigPending", "KubePrismNotHealthy", "NodeOverridePresent"))


def test_a_version_that_is_not_known_cannot_pass_the_deny_list() -> None:
    def change(bench: Bench) -> None:
        denied("cilium", "1.19.x")(bench)
        bench.live.cilium_version = ""

    assert refused(change)[0] == "VersionDenied"


def test_kube_prism_is_not_asked_for_where_cilium_uses_another_address() -> None:
    bench = make_bench("replaced")
    bench.live.service_host = "192.0.2.10"
    bench.live.machines["node-1"].prism = False
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_kube_prism_is_not_asked_for_when_kube_proxy_comes_back() -> None:
    bench = make_bench("enabled")
    bench.live.machines["node-1"].prism = False
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_worker_that_does_not_answer_does_not_stop_the_preflight() -> None:
    bench = make_bench("replaced")
    bench.live.service_host = "192.0.2.10"
    bench.live.machines["node-1"].reachable = False
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_where_cilium_will_ask_kube_prism_every_machine_must_say_that_it_answers() -> None:
    reason, message = refused(lambda b: setattr(b.live.machines["node-1"], "reachable", False))
    assert reason == "MachineUnreachable"
    assert "node-1" in message


def test_the_port_that_cilium_uses_already_is_the_one_that_is_asked_for() -> None:
    bench = make_bench("replaced")
    bench.live.service_host, bench.live.service_port = "localhost", "7446"
    for machine in bench.live.machines.values():
        machine.prism_port = 7446
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_form_that_the_cluster_names_replaces_the_one_that_the_machines_have() -> None:
    bench = make_bench("replaced")
    bench.cluster["spec"]["contract"] = "v1.14"
    bench.live.machines["cp-1"].contract = "v1.14"
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_one_document_among_older_machines_without_either_form_stops_before_anything_is_touched() -> None:
    def mixed(bench: Bench) -> None:
        for name, machine in bench.live.machines.items():
            first = name == "cp-1"
            machine.contract, machine.version = ("v1.14", "v1.14.0") if first else ("", "v1.13.2")

    reason, message = refused(mixed)
    assert reason == "ContractMismatch"
    assert "cp-2 runs Talos v1.13.2, which has no document KubeProxyConfig" in message
    assert "cp-1 runs" not in message


def test_machines_of_one_release_without_either_form_beside_one_document_may_be_switched() -> None:
    bench = make_bench("replaced")
    for name, machine in bench.live.machines.items():
        machine.contract = "v1.14" if name == "cp-1" else ""
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_nothing_to_do_ends_at_once_and_says_so() -> None:
    bench = make_bench("replaced")
    bench.live.value, bench.live.agents_run = "true", "replaced"
    bench.live.proxy, bench.live.proxy_pods = False, 0
    for machine in bench.live.machines.values():
        machine.proxy = "disabled"
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.condition("Succeeded")["reason"] == "NothingToDo"
    assert bench.live.effects == []
    assert bench.mode == "replaced"
    assert bench.lock is None


def test_the_live_value_decides_whether_there_is_something_to_do_and_neither_status_nor_spec() -> None:
    bench = make_bench("replaced")
    bench.live.proxy, bench.live.proxy_pods = False, 0
    for machine in bench.live.machines.values():
        machine.proxy = "disabled"
    bench.rest()
    bench.cluster["status"]["cni"]["kubeProxy"] = "replaced"
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert "live kube-proxy-replacement is false" in bench.condition("AwaitingCNIChange")["message"]


def test_machines_that_differ_are_something_to_do_although_the_mode_is_set() -> None:
    bench = make_bench("replaced")
    bench.live.value, bench.live.agents_run = "true", "replaced"
    bench.live.change_cni("true")
    for name in ("cp-1", "cp-2"):
        bench.live.machines[name].proxy = "disabled"
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "5-switch" in one]) == 3


def test_a_refusal_that_was_cleared_is_passed_after_a_resume() -> None:
    bench = make_bench("replaced")
    cp(bench).staged = True
    bench.run()
    assert bench.paused[0] == "StagedConfigPending"
    cp(bench).staged = False
    bench.run()
    assert bench.phase == "Paused"
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert bench.status["operation"]["resume"] == 1


def test_a_machine_that_answers_again_within_two_minutes_stops_nothing() -> None:
    bench = make_bench("replaced")
    cp(bench).reachable = False
    bench.run()
    assert bench.phase == "Preflight"
    assert "cp-2" in bench.condition("Succeeded")["message"]
    cp(bench).reachable = True
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_refusal_that_cannot_pass_pauses_at_once_whatever_else_is_away() -> None:
    bench = make_bench("replaced")
    cp(bench).reachable = False
    bench.live.machines["node-1"].staged = True
    bench.run()
    assert bench.phase == "Paused"
