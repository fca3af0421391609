"""The kube-proxy objects and the Service behind them: removal, restoring, probe (cni-switch.md, sections 8, 9.2, 9.3 and 17)."""

from datetime import timedelta

from tests.support.switch_bench import Bench, make_bench


def removing() -> Bench:
    """Every machine is done; the objects are next."""
    bench = make_bench("replaced").start_machines()
    bench.live.undeletable = 0
    while bench.step != "replaced/6-remove-kube-proxy":
        bench.later(seconds=10)
        bench.work()
        bench.rest()
    return bench


def restoring() -> Bench:
    """kube-proxy is enabled on every machine, and its objects are missing."""
    bench = make_bench("enabled")
    while bench.step != "enabled/4-verify-kube-proxy":
        bench.rest()
        bench.later(seconds=10)
        bench.work()
    return bench


def test_the_removal_comes_once_after_every_machine() -> None:
    bench = removing()
    assert set(bench.rows.values()) == {"Done"}
    assert not [one for one in bench.live.effects if "remove" in one]
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "remove" in one]) == 1


def test_an_object_that_cannot_be_deleted_is_tried_once_more_and_pauses_with_its_name() -> None:
    bench = removing()
    bench.live.undeletable = 5
    bench.run()
    reason, message = bench.paused
    assert reason == "KubeProxyNotRemoved"
    assert "DaemonSet kube-system/kube-proxy: forbidden" in message
    ids = [one for one in bench.live.effects if "remove" in one]
    assert len(ids) == len(set(ids)) == 2
    bench.live.undeletable = 0
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"


def test_nothing_is_removed_while_an_agent_may_run_the_old_mode() -> None:
    bench = removing()
    bench.live.value = "false"
    bench.live.written = bench.now
    bench.run()
    assert bench.phase == "RemovingKubeProxy"
    assert not [one for one in bench.live.effects if "remove" in one]
    for _ in range(7):
        bench.later(minutes=5)
        bench.run(seconds=1)
    assert bench.paused[0] == "NewSideNotReady"
    assert bench.live.proxy
    assert bench.live.broken == []


def test_pods_that_still_run_are_not_gone() -> None:
    bench = make_bench("replaced")
    bench.live.change_cni("true")
    for machine in bench.live.machines.values():
        machine.proxy = "disabled"
    bench.live.proxy = False
    bench.live.proxy_pods = 2
    bench.run()
    assert bench.phase == "Succeeded"
    assert len([one for one in bench.live.effects if "remove" in one]) == 1


def test_objects_that_come_back_after_the_removal_pause() -> None:
    bench = removing()
    while not any("remove" in one for one in bench.live.effects):
        bench.later(seconds=10)
        bench.work()
        bench.rest()
    bench.live.proxy, bench.live.proxy_pods = True, 5
    bench.run()
    assert bench.paused[0] == "KubeProxyNotRemoved"


def test_a_service_that_does_not_answer_pauses_after_30_minutes_and_names_the_way_back() -> None:
    bench = removing()
    bench.live.service = "NotAnswered"
    bench.run()
    assert (bench.phase, bench.step) == ("VerifyingNewSide", "replaced/7-probe-service")
    assert "old kube-proxy rules stay" in bench.condition("VerifyingNewSide")["message"]
    for _ in range(7):
        bench.later(minutes=5)
        bench.run(seconds=1)
    reason, message = bench.paused
    assert reason == "ServiceNotReachable"
    assert "breakLock: true, then switch to enabled with its own consent" in message
    bench.live.service = "Answered"
    bench.steer(resume=1)
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_probe_that_is_not_possible_is_said_and_does_not_fail() -> None:
    bench = removing()
    bench.live.service = "NotPossible"
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.condition("Succeeded")["reason"] == "ProbeNotPossible"


def test_what_is_missing_is_restored_once() -> None:
    bench = restoring()
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert len([one for one in bench.live.effects if "4-verify-kube-proxy" in one]) == 1
    assert bench.live.proxy


def test_objects_that_talos_made_itself_need_no_restore() -> None:
    bench = restoring()
    bench.live.proxy, bench.live.proxy_pods = True, 5
    bench.run()
    assert bench.phase == "AwaitingCNIChange"
    assert not [one for one in bench.live.effects if "4-verify-kube-proxy" in one]


def test_manifests_that_are_not_rendered_yet_are_waited_for_and_nothing_is_applied() -> None:
    bench = restoring()
    bench.live.renders_at = bench.now + timedelta(minutes=12)
    bench.run()
    assert bench.phase == "VerifyingNewSide"
    assert bench.condition("VerifyingNewSide")["message"] == "the kube-proxy DaemonSet has not been created yet"
    assert bench.actions == ["observe", "restore-kube-proxy"]
    for _ in range(3):
        bench.later(minutes=5)
        bench.run(seconds=1)
    assert bench.phase == "AwaitingCNIChange"


def test_a_daemon_set_that_does_not_become_ready_pauses_at_30_minutes_with_both_sides() -> None:
    bench = restoring()
    bench.live.proxy_ready = False
    bench.run()
    for _ in range(7):
        bench.later(minutes=5)
        bench.run(seconds=1)
    reason, message = bench.paused
    assert reason == "KubeProxyNotReady"
    assert "kube-proxy: 4 of 5" in message
    assert "Cilium still serves Services" in message
    assert bench.live.value == "true"


def test_objects_that_vanish_again_after_a_restore_pause() -> None:
    bench = restoring()
    bench.live.proxy_ready = False
    bench.run()
    bench.live.proxy = False
    bench.run()
    # The first restore was done long ago and its request is over: this is asked for anew.
    assert len([one for one in bench.live.effects if "4-verify-kube-proxy" in one]) == 2


def test_a_target_that_cannot_be_read_after_the_removal_is_not_taken_for_one_with_kube_proxy() -> None:
    bench = removing()
    while not any("remove" in one for one in bench.live.effects):
        bench.later(seconds=10)
        bench.work()
        bench.rest()
    bench.live.problems.append({"reason": "Unavailable", "message": "the API server of the target is away"})
    bench.run()
    assert bench.phase == "RemovingKubeProxy"
    assert "the API server of the target is away" in bench.condition("Succeeded")["message"]
    bench.live.problems.clear()
    bench.run()
    assert bench.phase == "Succeeded"


def test_a_target_that_cannot_be_read_for_ten_minutes_pauses_with_its_reason() -> None:
    bench = removing()
    bench.live.problems.append({"reason": "Forbidden", "message": "may not list DaemonSets"})
    bench.run()
    for _ in range(3):
        bench.later(minutes=4)
        bench.run(seconds=1)
    assert bench.paused[0] == "Forbidden"
    assert bench.live.proxy
