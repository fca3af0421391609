"""kube-proxy that comes back, or goes, after the end is reported (cni-switch.md, section 8.4)."""

from tests.support.switch_bench import Bench, make_bench


def finished(target: str = "replaced") -> Bench:
    bench = make_bench(target)
    bench.live.change_cni("true" if target == "replaced" else "false")
    bench.run()
    assert bench.phase == "Succeeded"
    return bench


def look(bench: Bench) -> None:
    """The worker goes on looking into the finished operation."""
    bench.later(minutes=10)
    bench.status["observed"] = bench.live.observed(request="", mode=bench.target)
    bench.rest()


def drift(bench: Bench) -> dict[str, str]:
    return bench.cluster["status"]["cni"].get("drift", {})  # type: ignore[no-any-return]


def test_a_daemon_set_that_returns_is_reported_with_the_control_plane_that_renders_it() -> None:
    bench = finished()
    look(bench)
    assert drift(bench) == {}
    bench.live.proxy, bench.live.proxy_pods = True, 5
    bench.machines["cp-2"]["status"] = {"observed": {"at": "2026-03-01T09:00:00Z", "kubeProxy": "enabled"}}
    look(bench)
    found = drift(bench)
    assert found["reason"] == "KubeProxyDrift"
    assert "rendered by cp-2" in found["message"]
    since = found["since"]
    look(bench)
    assert drift(bench)["since"] == since
    assert len(bench.operations) == 1


def test_a_daemon_set_that_vanishes_is_reported_and_goes_away_with_its_cause() -> None:
    bench = finished("enabled")
    bench.live.proxy = False
    look(bench)
    assert "is gone" in drift(bench)["message"]
    bench.live.proxy = True
    look(bench)
    assert drift(bench) == {}


def test_a_drift_and_its_beginning_stay_while_the_cluster_cannot_be_read() -> None:
    bench = finished()
    bench.live.proxy, bench.live.proxy_pods = True, 5
    look(bench)
    known = drift(bench)
    assert known["reason"] == "KubeProxyDrift"
    bench.live.problems = [{"reason": "Unavailable", "message": "the API server of the cluster does not answer"}]
    look(bench)
    assert drift(bench) == known
    bench.live.problems = []
    look(bench)
    assert drift(bench) == known
    bench.live.proxy, bench.live.proxy_pods = False, 0
    look(bench)
    assert drift(bench) == {}


def test_a_switch_that_was_broken_off_has_no_drift() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-2"].refuses = "ApplyRefused: no"
    bench.live.change_cni("true")
    bench.run()
    bench.steer(break_lock=True)
    bench.run()
    look(bench)
    assert drift(bench) == {}
