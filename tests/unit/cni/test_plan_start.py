"""From the signed revision to an operation: consent, its single use, the lock (cni-switch.md, sections 4, 5.1, 6.1 and 6.6)."""

from dataclasses import replace

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH
from gitops_ctl.cni.model import Introduction, Mode
from gitops_ctl.cni.plan import plan
from gitops_ctl.core.conditions import condition_of
from tests.support.switch_bench import Bench, make_bench


def test_field_and_consent_of_one_accepted_revision_make_one_operation() -> None:
    bench = make_bench("replaced")
    bench.rest()
    [operation] = bench.operations.values()
    assert operation["spec"] == {
        "clusterRef": {"name": "north"},
        "kind": "cni",
        "target": "replaced",
        "sourceCommit": "c" * 40,
    }
    assert operation["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == "consent=network-author"
    assert operation["metadata"]["annotations"]["gitops-ctl.dev/introduced-commit"] == f"consent={'a' * 40}"


def test_the_consent_is_recorded_before_the_lock_and_before_the_first_step() -> None:
    bench = make_bench("replaced")
    order = []
    while bench.round():
        status = bench.cluster["status"]
        order.append(
            (
                bool(bench.operations),
                "consumedConsent" in status.get("cni", {}),
                bench.lock is not None,
                bench.step != "",
            )
            if bench.operations
            else ()
        )
    assert order[:4] == [
        (True, False, False, False),
        (True, True, False, False),
        (True, True, True, False),
        (True, True, True, True),
    ]
    consumed = bench.cluster["status"]["cni"]["consumedConsent"]
    assert consumed == {"commit": "a" * 40, "target": "replaced", "operationUID": "uid-1"}


def test_a_spent_consent_starts_nothing_again() -> None:
    bench = make_bench("replaced")
    bench.rest()
    bench.steer(cancel=True)
    bench.authority = replace(bench.authority, steering=make_bench().authority.steering)
    bench.run()
    assert bench.phase == "AwaitingCNIChange", "a value that authorises nothing stops nothing"
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Cancelled"
    bench.steer()
    bench.run()
    assert len(bench.operations) == 1
    assert bench.last.problem is not None
    assert bench.last.problem.reason == "ConsentMissing"
    assert f"in {'a' * 40} has had its operation" in bench.last.problem.message


def test_a_consent_whose_operation_runs_is_no_problem() -> None:
    bench = make_bench("replaced")
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert bench.last.problem is None
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.last.problem is None


def test_a_consent_that_is_introduced_anew_starts_another_operation() -> None:
    bench = make_bench("replaced")
    bench.rest()
    bench.steer(cancel=True)
    bench.run()
    bench.steer()
    bench.authority = replace(bench.authority, introduced=Introduction("b" * 40, "network-author"))
    bench.run()
    assert len(bench.operations) == 2
    assert bench.phase == "AwaitingCNIChange"
    assert bench.cluster["status"]["cni"]["consumedConsent"]["commit"] == "b" * 40


def test_a_value_that_stands_only_in_the_cluster_authorises_nothing_and_is_reported() -> None:
    bench = make_bench("replaced")
    bench.authority = replace(bench.authority, consent="", introduced=None)
    assert not bench.round()
    assert bench.operations == {}
    assert bench.last.problem is not None
    assert bench.last.problem.reason == "NotFromGit"


def test_another_mode_in_git_than_in_the_cluster_authorises_nothing() -> None:
    bench = make_bench("replaced")
    bench.authority = replace(bench.authority, mode=Mode.ENABLED)
    assert not bench.round()
    assert bench.last.problem is not None
    assert bench.last.problem.reason == "NotFromGit"


def test_a_consent_that_nobody_introduced_since_the_root_authorises_nothing() -> None:
    bench = make_bench("replaced")
    bench.authority = replace(bench.authority, introduced=None)
    assert not bench.round()
    assert bench.last.problem is not None
    assert "introduced anew" in bench.last.problem.message


def test_a_void_consent_says_why_it_counts_for_nothing() -> None:
    bench = make_bench("replaced")
    why = "network-author introduced field and consent, and the rule asks for two persons"
    bench.authority = replace(bench.authority, introduced=None, why_void=why)
    assert not bench.round()
    assert bench.last.problem is not None
    assert (bench.last.problem.reason, bench.last.problem.message) == ("ConsentMissing", why)


def test_an_object_that_the_sync_holds_starts_nothing() -> None:
    bench = make_bench("replaced")
    bench.authority = replace(bench.authority, held="ConsentMissing: not yet")
    assert not bench.round()
    assert bench.operations == {}


def test_without_an_accepted_revision_nothing_starts() -> None:
    bench = make_bench("replaced")
    bench.authority = replace(bench.authority, revision="", why="SourceNotAccepted")
    assert not bench.round()
    assert bench.operations == {}


def test_a_consent_for_the_other_mode_starts_nothing() -> None:
    bench = make_bench("replaced")
    bench.cluster["metadata"]["annotations"][ANNOTATION_CONFIRM_SWITCH] = "enabled"
    bench.authority = replace(bench.authority, consent="enabled")
    assert not bench.round()
    assert bench.operations == {}
    assert bench.last.problem is None


def test_an_operation_that_nothing_in_git_stands_behind_is_cancelled_before_it_takes_the_lock() -> None:
    bench = make_bench("replaced")
    bench.round()
    bench.authority = replace(bench.authority, introduced=Introduction("b" * 40, "network-author"))
    name = next(iter(bench.operations))
    bench.operations[name]["metadata"]["annotations"] = {}
    decision = plan(bench.world())
    assert decision.create is not None  # the real consent has its own
    bench.rest()
    assert bench.operations[name]["status"]["phase"] == "Cancelled"
    found = condition_of(bench.operations[name]["status"], "Succeeded")
    assert found is not None
    assert found["reason"] == "NotFromGit"


def test_the_lock_of_another_operation_keeps_a_new_one_pending_with_its_name() -> None:
    bench = make_bench("replaced")
    lock = {
        "holder": "upgrade-7",
        "operationUID": "other",
        "kind": "kubernetes-upgrade",
        "since": "2026-03-01T07:00:00Z",
    }
    bench.cluster["status"]["lock"] = lock
    bench.run()
    assert bench.phase == "Pending"
    assert "kubernetes-upgrade upgrade-7" in bench.condition("Succeeded")["message"]
    assert bench.lock == lock
    del bench.cluster["status"]["lock"]
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_second_operation_of_the_cluster_stays_pending_with_the_name_of_the_holder() -> None:
    bench = running(make_bench("replaced"))
    first = next(iter(bench.operations))
    bench.authority = replace(bench.authority, introduced=Introduction("b" * 40, "network-author"))
    bench.run()
    assert len(bench.operations) == 2
    assert bench.phase == "Pending"
    assert first in bench.condition("Succeeded")["message"]
    assert bench.lock is not None
    assert bench.lock["holder"] == first


def test_a_left_over_cancel_keeps_a_new_operation_pending_and_names_the_value() -> None:
    bench = make_bench("replaced")
    bench.steer(cancel=True)
    bench.run()
    assert bench.phase == "Pending"
    assert "spec.cni.operation.cancel" in bench.condition("Succeeded")["message"]
    bench.steer(break_lock=True)
    bench.run()
    assert "spec.cni.operation.breakLock" in bench.condition("Succeeded")["message"]
    bench.steer()
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_cancel_that_authorises_nothing_keeps_a_new_operation_pending_too() -> None:
    bench = make_bench("replaced")
    bench.cluster["spec"]["cni"]["operation"] = {"cancel": True}  # it stands there since the pinned root
    bench.rest()
    assert bench.phase == "Pending"
    assert bench.lock is None
    assert "remove spec.cni.operation.cancel" in bench.condition("Succeeded")["message"]
    bench.steer()
    bench.run()
    assert bench.phase == "AwaitingCNIChange"


def test_a_cluster_that_is_being_deleted_is_left_alone() -> None:
    bench = make_bench("replaced")
    bench.cluster["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    assert not bench.round()
    assert bench.operations == {}


def test_the_lock_of_a_deleted_operation_is_freed_by_a_person_only() -> None:
    bench = running(make_bench("replaced"))
    bench.operations.clear()
    bench.rest()
    assert bench.lock is not None
    bench.steer(break_lock=True)
    bench.rest()
    assert bench.lock is None


def test_the_lock_is_freed_when_the_end_was_written_and_the_process_died_before_it() -> None:
    bench = running(make_bench("replaced"))
    bench.steer(cancel=True)
    while bench.phase != "Cancelled":
        bench.round()
    assert bench.lock is not None
    bench.rest()
    assert bench.lock is None


def running(bench: Bench) -> Bench:
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    return bench
