"""What `status` and `explain` say about switches and proposals."""

from typing import Any

from gitops_ctl.cli.switches import is_fine, operation_facts, operation_summary, proposal_summary, shown
from tests.support.switch_bench import make_bench


def operation(name: str = "north-1", phase: str = "AwaitingCNIChange", created: str = "2026-03-01T08:00:00Z") -> Any:
    return {
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": created},
        "spec": {"clusterRef": {"name": "north"}, "target": "replaced", "sourceCommit": "c" * 40},
        "status": {"phase": phase},
    }


def test_a_running_switch_shows_its_phase_and_what_it_waits_for() -> None:
    bench = make_bench("replaced")
    bench.run()
    found = operation_summary(bench.operation)
    assert (found["ready"], found["reason"]) == ("Unknown", "AwaitingCNIChange")
    assert "set kubeProxyReplacement: true" in str(found["message"])
    assert found["step"] == "replaced/2-await-cni"
    assert is_fine(found)


def test_a_paused_switch_shows_why_and_is_not_fine() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].staged = True
    bench.run()
    found = operation_summary(bench.operation)
    assert (found["ready"], found["reason"]) == ("False", "StagedConfigPending")
    assert "spec.cni.operation.resume: 1" in str(found["message"])
    assert not is_fine(found)


def test_a_switch_that_is_over_is_ready() -> None:
    assert operation_summary(operation(phase="Succeeded"))["ready"] == "True"
    assert operation_summary(operation(phase="Cancelled"))["ready"] == "True"


def test_only_the_newest_of_those_that_are_over_is_shown() -> None:
    old, new = operation("old", "Succeeded"), operation("new", "Cancelled", "2026-03-02T08:00:00Z")
    waiting = operation("waiting", "Pending", "2026-03-01T09:00:00Z")
    assert shown([old, new, waiting]) == [new, waiting]


def test_explain_prints_counts_step_clocks_and_machines() -> None:
    bench = make_bench("replaced")
    bench.run()
    bench.live.change_cni("true")
    bench.live.agents_ready = False
    bench.run()
    facts = operation_facts(bench.operation)
    assert facts["agents"] == "4 of 5 ready, 4 of 5 updated"
    assert facts["waitsFor"] == "the Cilium agents are rolling out"
    assert facts["lagging"] == "cilium-x1"
    assert facts["requestedBy"] == "consent=network-author"
    assert str(facts["until verify-cni"]).startswith("2026-03-01T08:")
    bench.live.agents_ready = True
    bench.live.machines["cp-2"].gates = {"node"}
    bench.run()
    facts = operation_facts(bench.operation)
    assert facts["machines"] == "1 of 5 done"
    assert facts["machine cp-2"] == "Verifying"


def test_a_proposal_shows_its_address_and_purpose() -> None:
    tree = {
        "metadata": {"name": "north-values", "namespace": "lab"},
        "spec": {"reason": "cni/north/replaced"},
        "status": {
            "phase": "Open",
            "url": "https://git.example.net/network/pulls/7",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Open", "message": ""}],
        },
    }
    found = proposal_summary(tree)
    assert (found["ready"], found["reason"], found["purpose"]) == ("True", "Open", "cni/north/replaced")
    assert found["message"] == "https://git.example.net/network/pulls/7"


def test_sources_and_syncs_must_be_ready_to_be_fine() -> None:
    assert not is_fine({"kind": "Sync", "ready": "Unknown"})
    assert is_fine({"kind": "Sync", "ready": "True"})
