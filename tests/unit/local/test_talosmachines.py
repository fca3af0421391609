"""Stand-ins for Talos machines, started as the demo starts them."""

from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.local.talosmachines import Machine, TalosMachines, find_checkout, machine_config
from gitops_ctl.talos.client import TalosClient
from gitops_ctl.talos.machineconfig import kube_proxy_part
from gitops_ctl.talos.talosconfig import parse_talosconfig
from tests.support.processes import is_running

SECRET = "4fdo1x.this0is0no0real0token"
IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"


def machine(name: str = "cp-1") -> Machine:
    return Machine(name, "controlplane", machine_config("controlplane", secret=SECRET, image=IMAGE))


def machines(folder: Path) -> TalosMachines:
    return TalosMachines(folder, checkout=find_checkout(), clock=SystemClock())


def test_an_installed_package_says_that_the_stand_in_needs_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(BlockedError) as caught:
        find_checkout(tmp_path)
    assert caught.value.code is ErrorCode.TOOL_MISSING
    assert "checkout" in caught.value.hint


def test_a_control_plane_names_kube_proxy_and_a_worker_does_not() -> None:
    part = kube_proxy_part(machine().config)
    assert (part.form, part.enabled, part.image) == ("document", True, IMAGE)
    assert kube_proxy_part(machine_config("worker", secret=SECRET, image=IMAGE)).form == "none"


async def test_a_machine_answers_its_administrator_and_ends_with_the_others(tmp_path: Path) -> None:
    made = machines(tmp_path)
    await made.start([machine()], kubeconfig=None)
    pids = list(made.pids.values())
    try:
        config = parse_talosconfig(made.talosconfig())
        assert config.roles == ("os:admin",)
        client = TalosClient.connect(made.addresses["cp-1"], talosconfig=config, clock=SystemClock())
        async with client:
            assert await client.version() == "v1.14.0"
            assert await client.machine_config("v1alpha1") == machine().config
    finally:
        await made.stop()
    assert pids
    assert not any(map(is_running, pids))


async def test_a_machine_that_ends_at_once_is_named_with_its_log(tmp_path: Path) -> None:
    made = machines(tmp_path)
    with pytest.raises(TerminalError) as caught:
        await made.start([Machine("broken", "controlplane", b"no: [yaml"), machine()], kubeconfig=None)
    assert caught.value.code is ErrorCode.LOCAL_SYSTEM
    assert "machine broken exited with status 1" in caught.value.message
    assert caught.value.subject.endswith(".log")
    assert not made.pids
