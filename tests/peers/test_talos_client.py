"""The client reads a machine, and changes it once, over mutual TLS (cni-switch.md, sections 7, 14 and 15)."""

import asyncio
import base64

import pytest
import yaml

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import InternalError
from gitops_ctl.talos.client import TalosClient
from gitops_ctl.talos.errors import AnswerUnusable, ApplyRefused, ApplyUnknown, MachineBusy, WrongMachine
from gitops_ctl.talos.machineconfig import config_hash, edited
from gitops_ctl.talos.model import Identity, KubePrism
from gitops_ctl.talos.talosconfig import parse_talosconfig
from tests.support.talos_bench import (
    IMAGE,
    MachineBench,
    control_plane_machine,
    machine_bench,
    one_control_plane,
    one_worker,
    worker_machine,
)
from tests.support.talos_configs import KEY, SECRET, machine_config
from tests.support.talos_peer import start_machine
from tests.support.talos_pki import TalosPki

pytestmark = pytest.mark.peers
__all__ = ["control_plane_machine", "one_control_plane", "one_worker", "worker_machine"]


def replaced(base: bytes) -> bytes:
    return edited(base, mode="replaced", contract="v1.14", role="controlplane")


def kubeconfig_of_nobody(pki: TalosPki) -> bytes:
    """For an API server that is not there."""
    config = parse_talosconfig(pki.talosconfig())
    ca, certificate, key = (base64.b64encode(one).decode() for one in (config.ca, config.certificate, config.key))
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": ca}
    user = {"client-certificate-data": certificate, "client-key-data": key}
    return yaml.safe_dump({"clusters": [{"cluster": cluster}], "users": [{"user": user}]}).encode()


class TestReading:
    async def test_it_says_who_it_is(self, control_plane_machine: MachineBench, worker_machine: MachineBench):
        for bench, identity in (
            (control_plane_machine, Identity("v1.14.0", "north-cp-1", "controlplane")),
            (worker_machine, Identity("v1.14.0", "north-worker-1", "worker")),
        ):
            async with bench.client() as client:
                assert await client.require_identity() == identity

    async def test_the_configuration_is_exactly_what_was_submitted(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            active, saved = [await client.machine_config(which) for which in ("v1alpha1", "persistent")]
        assert active == saved == machine_config(form="document", image=IMAGE)

    async def test_a_staged_configuration_shows_as_a_difference(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.stage_config(replaced(machine_config(form="document", image=IMAGE)))
        async with control_plane_machine.client() as client:
            active, saved = [await client.machine_config(which) for which in ("v1alpha1", "persistent")]
        assert config_hash(active) != config_hash(saved)

    async def test_services_load_balancer_and_static_pods_are_told(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.stage(
            unhealthy_services=["etcd"], kubeprism_healthy=False, static_pods_ready=False
        )
        async with control_plane_machine.client() as client:
            services = await client.services()
            assert {name: state.healthy for name, state in services.items()} == {
                **{"apid": True, "etcd": False, "kubelet": True, "machined": True, "trustd": True}
            }
            assert await client.kube_prism() == KubePrism("127.0.0.1", 7445, healthy=False)
            assert {pod.ready for pod in await client.static_pods()} == {False}
            assert await client.boot_id()

    async def test_a_worker_renders_no_manifests(self, worker_machine: MachineBench):
        async with worker_machine.client() as client:
            assert await client.bootstrap_proxy_enabled() is None
            assert await client.kube_proxy_manifests() is None
            assert await client.static_pods() == ()
            assert "etcd" not in await client.services()

    async def test_the_rendered_objects_are_fit_for_the_api_server(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            objects = await client.kube_proxy_manifests()
        assert objects is not None
        assert [tree["kind"] for tree in objects] == ["ConfigMap", "ServiceAccount", "ClusterRoleBinding", "DaemonSet"]
        daemon_set = objects[-1]
        most = daemon_set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]  # type: ignore[index,call-overload]
        assert (most, type(most)) == (1, int)

    async def test_without_the_load_balancer_there_is_none(self, tmp_path):
        config = machine_config(form="none").partition(b"---\napiVersion: v1alpha1\nkind: KubePrismConfig")[0]
        for bench in machine_bench(tmp_path, config=config):
            async with bench.client() as client:
                assert await client.kube_prism() is None

    async def test_a_control_plane_gives_the_kubeconfig_and_a_worker_does_not(
        self, tmp_path, worker_machine: MachineBench
    ):
        pki, kubeconfig = worker_machine.pki, tmp_path / "admin.kubeconfig"
        kubeconfig.write_bytes(kubeconfig_of_nobody(pki))
        machine = start_machine(
            tmp_path, name="cp", role="controlplane", pki=pki, config=machine_config(), kubeconfig=kubeconfig
        )
        with machine:
            config = parse_talosconfig(pki.talosconfig())
            async with TalosClient.connect(machine.address, talosconfig=config, clock=SystemClock()) as client:
                assert await client.kubeconfig() == kubeconfig.read_bytes()
        async with worker_machine.client() as client:
            with pytest.raises(AnswerUnusable, match="only available on control plane nodes"):
                await client.kubeconfig()


class TestApplying:
    async def test_a_dry_run_changes_nothing_and_shows_nothing(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            base = await client.machine_config("v1alpha1")
            result = await client.apply_configuration(replaced(base), dry_run=True)
            again = await client.apply_configuration(base, dry_run=True)
        assert (result.mode, result.changed, again.changed) == ("NO_REBOOT", True, False)
        assert "skipped in dry-run" in result.mode_details
        assert "enabled" not in result.mode_details
        assert control_plane_machine.machine.applies == []

    async def test_an_apply_is_active_and_saved_without_a_reboot(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            boot = await client.boot_id()
            wanted = replaced(await client.machine_config("v1alpha1"))
            result = await client.apply_configuration(wanted, dry_run=False)
            assert (result.mode, result.changed) == ("NO_REBOOT", None)
            assert await client.machine_config("v1alpha1") == await client.machine_config("persistent") == wanted
            assert await client.bootstrap_proxy_enabled() is False
            assert await client.kube_proxy_manifests() is None
            assert await client.boot_id() == boot
        assert [one["sha256"] for one in control_plane_machine.machine.applies] == [config_hash(wanted)]

    async def test_the_kubelet_is_away_for_a_moment(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.stage(restart_s=1.0)
        async with control_plane_machine.client() as client:
            wanted = replaced(await client.machine_config("v1alpha1"))
            await client.apply_configuration(wanted, dry_run=False)
            assert "kubelet" not in await client.services()
            async with asyncio.timeout(20):
                while "kubelet" not in await client.services():
                    await asyncio.sleep(0.05)

    async def test_warnings_are_told(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            base = await client.machine_config("v1alpha1")
            result = await client.apply_configuration(
                base.replace(b"\nimage: ", b"\nmode: ipvs\nimage: "), dry_run=False
            )
        assert result.warnings == ('proxy mode "ipvs" is not recommended, please switch to nftables if possible',)

    async def test_all_errors_of_a_refusal_are_told_and_no_secret(self, control_plane_machine: MachineBench):
        broken = machine_config(form="legacy") + b"---\nkind: KubeProxyConfig\nmode: fast\n"
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyRefused) as caught:
                await client.apply_configuration(broken, dry_run=True)
        first, *others = caught.value.errors
        assert "can't be used with KubeProxyConfig document" in first
        assert others == [
            "proxy image cannot be empty",
            'invalid proxy mode "fast": supported modes are iptables, ipvs and nftables',
        ]
        assert SECRET not in str(caught.value)
        assert control_plane_machine.machine.applies == []

    async def test_what_does_not_parse_is_refused_without_its_text(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyRefused) as caught:
                await client.apply_configuration(machine_config() + f"broken: [{KEY}\n".encode(), dry_run=False)
        assert KEY not in str(caught.value)

    async def test_a_document_of_control_planes_is_refused_on_a_worker(self, worker_machine: MachineBench):
        async with worker_machine.client() as client:
            with pytest.raises(ApplyRefused, match=r"only allowed on control plane machines: \[KubeProxyConfig\]"):
                await client.apply_configuration(
                    machine_config("worker", form="document", enabled=False), dry_run=False
                )

    async def test_a_configuration_without_the_older_document_is_refused(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyRefused, match="doesn't contain v1alpha1 config"):
                await client.apply_configuration(b"kind: HostnameConfig\n", dry_run=False)


class TestIdentity:
    async def test_another_machine_is_never_configured(self, control_plane_machine: MachineBench):
        base = machine_config(form="document", image=IMAGE)
        for members in ({"nodename": "north-cp-2"}, {"machine_type": "worker"}):
            async with control_plane_machine.client(**members) as client:
                for dry_run in (True, False):
                    with pytest.raises(WrongMachine, match="north-cp-1"):
                        await client.apply_configuration(replaced(base), dry_run=dry_run)
        assert "ApplyConfiguration" not in control_plane_machine.machine.state()["calls"]

    async def test_a_machine_that_says_another_type_is_another_machine(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.stage(machine_type="worker")
        async with control_plane_machine.client() as client:
            with pytest.raises(WrongMachine, match="is the worker"):
                await client.require_identity()

    async def test_without_an_expectation_nothing_is_applied(self, control_plane_machine: MachineBench):
        bench = control_plane_machine
        config = parse_talosconfig(bench.pki.talosconfig())
        async with TalosClient.connect(bench.machine.address, talosconfig=config, clock=SystemClock()) as client:
            with pytest.raises(InternalError):
                await client.apply_configuration(b"", dry_run=True)

    async def test_an_apply_is_not_sent_over_a_connection_that_was_made_after_the_machine_was_identified(
        self, control_plane_machine: MachineBench
    ):
        bench = control_plane_machine
        async with bench.client() as client:
            wanted = replaced(await client.machine_config("v1alpha1"))
            identity = client.require_identity

            async def identified_and_then_gone():
                found = await identity()
                bench.machine.listen(False)
                bench.machine.listen(True)
                return found

            client.require_identity = identified_and_then_gone  # type: ignore[method-assign]
            with pytest.raises(ApplyUnknown, match="is lost"):
                await client.apply_configuration(wanted, dry_run=False)
        assert bench.machine.applies == []


class TestOneCallAtATime:
    async def test_calls_of_one_client_wait_for_each_other(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.fault("delay", method="Version", seconds=0.5)
        async with control_plane_machine.client() as client:
            slow = asyncio.create_task(client.version())
            await asyncio.sleep(0)
            quick = asyncio.create_task(client.nodename())
            done, _ = await asyncio.wait({slow, quick}, return_when=asyncio.FIRST_COMPLETED)
            assert slow in done
            await quick

    async def test_a_second_apply_of_somebody_else_is_told_as_busy(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.fault("delay", method="ApplyConfiguration", seconds=1.0)
        base = machine_config(form="document", image=IMAGE)
        async with control_plane_machine.client() as one, control_plane_machine.client() as other:
            first = asyncio.create_task(one.apply_configuration(replaced(base), dry_run=False))
            async with asyncio.timeout(10):
                while not control_plane_machine.machine.state()["calls"].get("ApplyConfiguration"):
                    await asyncio.sleep(0.02)
            with pytest.raises(MachineBusy):
                await other.apply_configuration(base, dry_run=True)
            await first
