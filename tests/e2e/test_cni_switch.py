"""The switch of a cluster as a person sees it: `gitops-ctl demo cni` tells it both ways, with real components.

The cluster that is switched has an API server of its own here, so that "no connection to it" can be seen (cni-switch.md, section 21.14).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes import processes_of, until
from tests.support.switch_demo import Demo, Watch, forge_says, planted, scrape, start_demo

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

STORY = (
    "1. kube-proxy serves the Services of cluster north, beside Cilium",
    "2. A change approver asks for the switch to Cilium, with consent, by one signed commit",
    "+    ichor.maesh.dev/confirm-kube-proxy-switch: replaced",
    "an operation has begun",
    "AwaitingCNIChange   replaced/2-await-cni",
    "a pull request for cni/north/replaced is open",
    "set kubeProxyReplacement: true, with k8sServiceHost: localhost and k8sServicePort: 7445",
    "4. A platform author merges it with a signed merge; the switch goes by the live cluster",
    "Merge pull request #1: cni/north/replaced",
    "5. The owner of Cilium rolls the values out",
    "SwitchingMachines   replaced/5-switch-machines",
    "north-cp-1 (controlplane) is done",
    "north-cp-3 (controlplane) is done",
    "north-w-2 (worker) is done",
    "Succeeded   replaced/7-probe-service",
    "the Service kubernetes answered the cluster worker",
    "7. The spent consent goes, by a second pull request",
    "-    ichor.maesh.dev/confirm-kube-proxy-switch: replaced",
    "ConsentMissing",
    "+    ichor.maesh.dev/confirm-kube-proxy-switch: enabled",
    "the switch to enabled is in phase AwaitingCNIChange",
    "a pull request for cni/north/enabled is open",
    "Succeeded   enabled/6-verify-cni",
    "13. This consent goes as well",
    "14. Nothing is left to do",
    "Everything came as it was claimed.",
)
"""Lines of the story, in their order."""


@dataclass
class Told:
    """A demo whose story is told and that still runs, and what was seen of its connections on the way."""

    demo: Demo
    watch: Watch


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    demo = start_demo(tmp_path_factory.mktemp("cni"), "--keep", "--separate")
    try:
        with Watch(demo) as watch:
            demo.until_over(timeout_s=700)
        yield Told(demo, watch)
    finally:
        if demo.process.poll() is None:
            demo.interrupt()


def test_the_switch_is_told_both_ways_with_real_components(told: Told) -> None:
    text, place = told.demo.told, -1
    for line in STORY:
        found = text.find(line, place + 1)
        assert found > place, f"{line!r} is missing or out of order in:\n{text}"
        place = found
    assert "Traceback" not in text


def test_no_machine_reboots_and_each_control_plane_takes_one_configuration_a_way(told: Told) -> None:
    for name in ("north-cp-1", "north-cp-2", "north-cp-3", "north-w-1", "north-w-2"):
        kept = told.demo.machine(name)
        assert kept["boots"] == 1
        # What the form of documents says about kube-proxy, control planes say alone.
        assert len(kept["applies"]) == (2 if kept["type"] == "controlplane" else 0)


def test_kube_proxy_is_whole_again_after_the_way_back(told: Told) -> None:
    named = told.demo.kubectl(
        "target", "get", "daemonset/kube-proxy", "serviceaccount/kube-proxy", "-n", "kube-system", "-o", "name"
    )
    assert named.split() == ["daemonset.apps/kube-proxy", "serviceaccount/kube-proxy"]
    assert "kube-proxy" in told.demo.kubectl("target", "get", "clusterrolebindings", "-o", "name")
    assert "configmap/kube-proxy" in told.demo.kubectl("target", "get", "configmaps", "-n", "kube-system", "-o", "name")


def test_promise_05_the_manager_connects_to_no_machine_and_not_to_the_target(told: Told) -> None:
    machines = told.demo.home / "checkout" / "clusters" / "north" / "machines.yaml"
    talos = {line.split()[1] for line in machines.read_text().splitlines() if "address:" in line}
    target = told.demo.system("target")["url"].removeprefix("https://")
    own = told.demo.system("management")["url"].removeprefix("https://")
    watch = told.watch
    assert watch.samples > 100
    assert own in watch.manager, "the samples see the connections of the manager"
    assert not watch.manager & {target, *talos}
    assert not [remote for remote in watch.manager if remote.startswith("127.96.")]
    assert watch.worker >= {own, target}, "the samples see the connections of the worker"
    assert watch.worker & talos


def test_promise_05_the_worker_may_read_no_secret_and_the_manager_none_of_a_machine(told: Told) -> None:
    worker = "--as=system:serviceaccount:network:gitops-ctl-worker"
    for verb in ("get", "list", "watch", "create", "patch", "delete"):
        for namespace in ("network", "gitops-ctl-system", "kube-system"):
            assert may(told.demo, "management", verb, "secrets", namespace, worker) == "no"
        assert may(told.demo, "target", verb, "secrets", "kube-system", "--as=cluster-worker") == "no"
    assert may(told.demo, "management", "get", "talosoperations.ichor.maesh.dev", "network", worker) == "yes"
    manager = "--as=system:serviceaccount:gitops-ctl-system:gitops-ctl-manager"
    assert may(told.demo, "management", "get", "secrets/network-forge", "network", manager) == "yes"
    assert may(told.demo, "management", "get", "secrets/north-talosconfig", "network", manager) == "no"


def may(demo: Demo, system: str, verb: str, what: str, namespace: str, user: str) -> str:
    """`yes` or `no`, as the authoriser says."""
    return demo.kubectl(system, "auth", "can-i", verb, what, f"--namespace={namespace}", user, check=False).strip()


def test_no_configuration_key_or_kubeconfig_is_in_anything_that_is_written(told: Told) -> None:
    demo = told.demo
    kinds = "talosclusters,talosmachines,talosoperations,proposals,gitsources,syncs,inventories,events,configmaps"
    said = {
        "the story": demo.told,
        "objects and events": demo.kubectl("management", "get", kinds, "-A", "-o", "yaml", "--show-managed-fields"),
        "objects of the target": demo.kubectl("target", "get", "events,configmaps,daemonsets", "-A", "-o", "yaml"),
        "metrics": scrape(int(demo.system("management")["manager"])),
        "the forge": forge_says(demo),
        **{
            str(log.relative_to(demo.home)): log.read_text(errors="replace")
            for log in sorted(demo.home.rglob("*.log*"))
        },
    }
    assert "gitops_ctl_" in said["metrics"]
    assert "SwitchingMachines" in said["the story"]
    assert "worker-network.log" in " ".join(said)
    for name, secret in planted(demo).items():
        assert len(secret) >= 12
        assert [place for place, text in said.items() if secret in text] == [], name


def test_the_demo_of_the_switch_ends_with_ctrl_c_and_leaves_nothing(told: Told) -> None:
    assert told.demo.interrupt() == 130
    assert not processes_of(str(told.demo.folder))
    assert not told.demo.home.exists()


@pytest.mark.soak
def test_a_demo_of_the_switch_that_is_killed_takes_everything_with_it(tmp_path: Path) -> None:
    demo = start_demo(tmp_path, "--separate")
    until(lambda: "AwaitingCNIChange" in demo.told, timeout_s=300, what="a switch that runs")
    assert len(processes_of(str(tmp_path))) > 10
    demo.kill()


@pytest.mark.soak
def test_the_demo_of_the_switch_is_told_on_one_api_server_too(tmp_path: Path) -> None:
    demo = start_demo(tmp_path)
    assert demo.process.wait(700) == 0, demo.told[-6000:]
    assert "Everything came as it was claimed." in demo.told
    assert not processes_of(str(tmp_path))
