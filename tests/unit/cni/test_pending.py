"""What a machine says while its base is ahead of it (cni-switch.md, section 5.2)."""

import pytest

from gitops_ctl.cni.model import Cluster, Machine, Mode, Pending, Record
from gitops_ctl.cni.pending import report_of
from gitops_ctl.core.ids import NamespacedName

PROXY = Pending("KubeProxyConfig.enabled", "kube-proxy")
LEGACY = Pending("cluster.proxy.disabled", "kube-proxy")
KERNEL = Pending("machine.install.extraKernelArgs", "reboot")
API_SERVER = Pending("cluster.apiServer.extraArgs", "api-server")
SAFE = Pending("cluster.inlineManifests", "safe")


def cluster(mode: Mode, consent: str, status: Mode | None) -> Cluster:
    return Cluster(NamespacedName("lab", "north"), "u", mode, consent, Record(mode=status))


def machine(*pending: Pending, base: bool = True) -> Machine:
    return Machine("cp-1", "controlplane", has_base=base, pending=pending)


@pytest.mark.parametrize(
    ("mode", "before"), [(Mode.REPLACED, None), (Mode.REPLACED, Mode.ENABLED), (Mode.ENABLED, Mode.REPLACED)]
)
@pytest.mark.parametrize("path", [PROXY, LEGACY])
def test_a_pending_switch_does_not_look_like_a_reboot_in_either_direction(
    mode: Mode, before: Mode | None, path: Pending
) -> None:
    report = report_of(cluster(mode, mode.value, before), machine(path, SAFE))
    assert report.ready.reason == "KubeProxySwitchPending"
    assert report.ready.status == "False"
    assert report.ready.message == (
        f"the kube-proxy switch to {mode} applies it without a reboot; do not reboot the machine into it"
    )
    assert report.reboot_paths == ()


def test_a_machine_with_another_reboot_path_keeps_all_its_paths_and_gets_the_advice() -> None:
    report = report_of(cluster(Mode.REPLACED, "replaced", None), machine(PROXY, KERNEL))
    assert report.ready.reason == "RebootRequired"
    assert report.reboot_paths == (PROXY.path, KERNEL.path)
    assert (
        "keep the kube-proxy part of the base at the current mode until the other paths are converged, then switch"
        in (report.ready.message)
    )


@pytest.mark.parametrize(("consent", "status"), [("", None), ("enabled", None), ("replaced", Mode.REPLACED)])
def test_without_a_pending_switch_the_change_stays_reboot_required(consent: str, status: Mode | None) -> None:
    report = report_of(cluster(Mode.REPLACED, consent, status), machine(PROXY))
    assert report.ready.reason == "RebootRequired"
    assert report.reboot_paths == (PROXY.path,)
    assert "keep the kube-proxy part" not in report.ready.message


def test_a_kube_proxy_change_that_restarts_the_api_server_is_none_of_the_switch() -> None:
    report = report_of(cluster(Mode.REPLACED, "replaced", None), machine(PROXY, API_SERVER))
    assert report.ready.reason == "RebootRequired"
    assert report.reboot_paths == (PROXY.path,)
    assert report.ready.message == (
        "a reboot applies KubeProxyConfig.enabled; cluster.apiServer.extraArgs restarts the API server; "
        "keep the kube-proxy part of the base at the current mode until the other paths are converged, then switch"
    )


def test_a_restart_of_the_api_server_alone_is_no_reason_for_a_reboot_and_a_worker_has_none() -> None:
    alone = report_of(cluster(Mode.REPLACED, "replaced", None), machine(API_SERVER))
    assert (alone.ready.reason, alone.reboot_paths) == ("Observed", ())
    worker = Machine("node-1", "worker", has_base=True, pending=(LEGACY, API_SERVER))
    assert report_of(cluster(Mode.REPLACED, "replaced", None), worker).ready.reason == "KubeProxySwitchPending"


def test_without_a_supplied_base_there_is_no_pending_path() -> None:
    report = report_of(cluster(Mode.REPLACED, "replaced", None), machine(base=False))
    assert (report.ready.status, report.reboot_paths) == ("True", ())


def test_a_machine_that_nobody_looked_at_is_unknown() -> None:
    report = report_of(cluster(Mode.REPLACED, "replaced", None), Machine("cp-1", "controlplane"))
    assert (report.ready.status, report.ready.reason) == ("Unknown", "NotObserved")
