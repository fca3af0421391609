"""Both directions from the request to the end (cni-switch.md, sections 6.2 and 6.3)."""

from tests.support.switch_bench import PLANES, WORKERS, make_bench


def test_to_replaced_waits_for_the_cni_then_switches_every_machine_then_removes() -> None:
    bench = make_bench("replaced")
    bench.run()
    assert (bench.phase, bench.step) == ("AwaitingCNIChange", "replaced/2-await-cni")
    assert bench.mode is None
    assert bench.live.effects == []
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.mode == "replaced"
    machines = [effect.split("/")[2].split("#")[0] for effect in bench.live.effects[:-1]]
    assert machines == [*PLANES, *WORKERS]
    assert bench.live.effects[-1].startswith("replaced/6-remove-kube-proxy/north#")
    assert bench.live.broken == []
    assert bench.lock is None
    steps = list(dict.fromkeys(step for step, _ in bench.seen if step))
    assert steps == [
        "replaced/1-preflight",
        "replaced/2-await-cni",
        "replaced/3-verify-cni",
        "replaced/4-set-mode",
        "replaced/5-switch-machines",
        "replaced/6-remove-kube-proxy",
        "replaced/7-probe-service",
    ]


def test_to_enabled_brings_kube_proxy_back_before_the_cni_is_asked_to_step_aside() -> None:
    bench = make_bench("enabled")
    bench.run()
    assert (bench.phase, bench.step) == ("AwaitingCNIChange", "enabled/5-await-cni")
    assert bench.mode == "enabled"
    assert bench.live.proxy
    assert all(machine.proxy == "enabled" for machine in bench.live.machines.values())
    bench.live.change_cni("false")
    bench.run()
    assert bench.phase == "Succeeded"
    assert bench.lock is None
    assert bench.live.broken == []


def test_the_end_says_that_old_rules_stay_and_never_that_the_nodes_are_clean() -> None:
    bench = make_bench("replaced")
    bench.live.change_cni("true")
    bench.run()
    message = bench.condition("Succeeded")["message"]
    assert "the old kube-proxy rules stay on each node until it reboots" in message
    assert "clean" not in message
