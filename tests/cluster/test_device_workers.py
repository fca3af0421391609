"""Both planes as processes on a real API server, with the tokens of their Pods and no right but those that the manager gave them.

The switch is a real sshd with the responder behind it, and a gNOI server, both of one device.
"""

import asyncio
import contextlib
import getpass
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.fleet import names
from gitops_ctl.kube.transport import KubeClient
from tests.cluster.test_device_topology import CRDS, POLICY_NAME, Hall, _is_served
from tests.support.api_rollouts import HEX, a_frozen_plan, a_planned_target, a_rollout
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.device_policies import Judged, policing
from tests.support.device_workers import Workers
from tests.support.gnoi_peer import Switch, a_switch
from tests.support.netconf_device import NetconfDevice
from tests.support.sync_cluster import until
from tests.support.topology_devices import APP_ACCOUNT, NETWORK_ACCOUNT, REGION, ZONE, policy_objects
from tools.render_install import chart_objects

pytestmark = pytest.mark.cluster

QUICK = (
    *("--worker-poll=1", "--heartbeat-interval=1", "--node-lease-interval=1", "--secret-interval=600"),
    *("--start-spread=0", "--log-level=warning"),
)


class OnlyKubelet(Workers):
    """Makes Pods run; what runs in them are the processes of this test."""

    async def _beat(self, device: Any, pod: dict[str, Any], versions: dict[str, str]) -> None:
        return None

    async def _report(self, device: Any, pod: dict[str, Any], versions: dict[str, str]) -> None:
        return None


class WorkedHall(Hall):
    """A hall whose one switch answers, and whose workers are the product's."""

    WORKERS = OnlyKubelet

    def __init__(self, admin: KubeClient, namespace: str, *, switch: Switch, netconf: NetconfDevice) -> None:
        super().__init__(admin, namespace)
        self.serial = f"FOC{secrets.token_hex(4).upper()}"
        self.netconf, self.switch = netconf, switch
        switch.set(serial=self.serial)

    async def prepare(self) -> None:
        maps = f"/api/v1/namespaces/{self.namespace}/configmaps"
        for tree in policy_objects(self.namespace, name=POLICY_NAME, fleetSelector={"matchLabels": self.mark}):
            await self.admin.create(maps, tree)
        for tree in chart_objects({"managedTopology": {"enabled": True, "namespaces": [self.namespace]}}):
            name = tree["metadata"]["name"]
            if tree["kind"] == "ClusterRole" and name.startswith("cisco-virtual-kubelet-"):
                path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"
                await self.admin.apply(path, tree, manager="tests", force=True)
        secret: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": self.login()}
        await self.admin.create(f"/api/v1/namespaces/{self.namespace}/secrets", secret)
        spec = {
            "driver": "XE",
            "address": "127.0.0.1",
            "netconfPort": self.netconf.port,
            "gnoi": {"transportSecurity": "plaintext", "port": self.switch.target.port},
            "physicalIdentity": self.serial,
            "credentialSecretRef": {"name": "login"},
        }
        metadata = {"name": self.name, "namespace": self.namespace, "labels": {**self.mark, REGION: "n", ZONE: "h"}}
        device: Any = {"apiVersion": "cisco.vk/v1alpha1", "kind": "CiscoDevice", "metadata": metadata, "spec": spec}
        await self.admin.create(self.devices, device)

    def login(self) -> dict[str, str]:
        return {
            "username": getpass.getuser(),
            "privateKey": self.netconf.user_key.path.read_text(),
            "known_hosts": f"[127.0.0.1]:{self.netconf.port} {self.netconf.host_key.public}\n",
        }

    @contextlib.asynccontextmanager
    async def worker(self, plane: str, account: str, plane_kubeconfig: Path, folder: Path) -> AsyncIterator[int]:
        """The process of a plane with the token of its Pod; its process id."""
        pod = await self._pod(account)
        token = await self._token(account, pod)
        tree: Any = yaml.safe_load(plane_kubeconfig.read_text())
        tree["users"] = [{"name": one["name"], "user": {"token": token}} for one in tree["users"]]
        config = folder / f"{plane}.yaml"
        config.write_text(yaml.safe_dump(tree))
        digest = pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST]
        arguments = [sys.executable, "-m", "gitops_ctl", "worker", "device", f"--plane={plane}", *QUICK]
        arguments += [f"--kubeconfig={config}", f"--namespace={self.namespace}", f"--template-digest={digest}"]
        arguments += [f"--journal-dir={folder / 'journal'}", f"--spool-dir={folder / 'spool'}"]
        with (folder / f"{plane}.log").open("wb") as log:
            process = subprocess.Popen(arguments, stdout=log, stderr=log, env={**os.environ})
        try:
            yield process.pid
            assert process.poll() is None, (folder / f"{plane}.log").read_text()
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 60)

    async def _pod(self, account: str) -> Any:
        found: list[Any] = []

        async def is_running() -> bool:
            pods: Any = (await self.admin.list_all(f"/api/v1/namespaces/{self.namespace}/pods")).items
            found[:] = [
                pod
                for pod in pods
                if pod["spec"]["serviceAccountName"] == account and pod["status"]["phase"] == "Running"
            ]
            return bool(found)

        await until(is_running, what=f"the Pod of {account} runs", timeout_s=120)
        return found[0]

    async def _token(self, account: str, pod: Any) -> str:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        asked: Any = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": 3600, "boundObjectRef": bound},
        }
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        answer: Any = await self.admin.create(path, asked)
        return str(answer["status"]["token"])

    async def status(self, *path: str) -> Any:
        found: Any = (await self.seen()).get("status", {})
        for member in path:
            found = found.get(member, {})
        return found

    async def rollout(self) -> None:
        """A campaign whose frozen plan names the device."""
        root = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{self.namespace}/iosxesoftwarerollouts"
        await self.admin.create(root, a_rollout(namespace=self.namespace))
        source = {
            "name": "everywhere",
            "priority": 10,
            "url": "https://127.0.0.1:9/image.bin",
            "sha256": HEX,
        }
        uid = (await self.seen())["metadata"]["uid"]
        target = {**a_planned_target(deviceName=self.name, deviceUID=uid), "source": source}
        status: Any = {"phase": "AwaitingApproval", "frozenPlan": a_frozen_plan(targets=[target])}
        await self.admin.patch_merge(f"{root}/to-17-18", {"status": status}, subresource="status")


@pytest.fixture
async def hall(
    kube_admin: KubeClient, control_plane: ControlPlaneHandle, namespace: str, tmp_path: Path
) -> AsyncIterator[WorkedHall]:
    for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade):
        tree: Any = json.loads(json.dumps(crd_of(kind)))
        await kube_admin.apply(f"{CRDS}/{tree['metadata']['name']}", tree, manager="tests", force=True)
    async with a_switch(tmp_path, None) as switch:
        with NetconfDevice(tmp_path / "netconf", state_file=switch.side.file.path) as netconf:
            found = WorkedHall(kube_admin, namespace, switch=switch, netconf=netconf)
            for path in (found.devices, found.leaves):
                await until(partial(_is_served, kube_admin, path), what=path)
            await found.prepare()
            await found.entitle()
            async with found.working(control_plane):
                yield found
    root = "/apis/rbac.authorization.k8s.io/v1"
    for plural in ("clusterroles", "clusterrolebindings"):
        await kube_admin.delete(f"{root}/{plural}/topology-{found.name}")
    for plural in ("roles", "rolebindings"):
        await kube_admin.delete(f"{root}/namespaces/kube-node-lease/{plural}/heartbeats-{found.name}")


async def test_both_planes_serve_a_real_switch_with_the_rights_that_the_manager_gave_them(
    hall: WorkedHall, control_plane: ControlPlaneHandle, tmp_path: Path, audit_log: AuditLog
) -> None:
    audit_log.mark()
    async with (
        hall.worker("node", APP_ACCOUNT, control_plane.kubeconfig, tmp_path),
        hall.worker("network", NETWORK_ACCOUNT, control_plane.kubeconfig, tmp_path),
    ):
        await until(hall.is_healthy, what="healthy by the gate's own reading", timeout_s=120)
        node = await hall.node()
        assert node["status"]["nodeInfo"]["machineID"] == hall.serial
        assert node["status"]["allocatable"]["pods"] == "0"
        await until(
            lambda: _is(hall, "healthObservation", "acceptedNetwork"), what="a sample is accepted", timeout_s=60
        )
        sample = await hall.status("healthObservation", "acceptedNetwork")
        assert sample["complete"], sample
        # From here on the admission policies judge the planes and their manager, too.
        judged = Judged(
            namespace=hall.namespace, device=hall.name, manager=hall.name, app=APP_ACCOUNT, network=NETWORK_ACCOUNT
        )
        async with policing(control_plane, judged):
            await _is_preflighted(hall)
            await _takes_up_a_rotated_secret(hall)
    users = [f"system:serviceaccount:{hall.namespace}:{account}" for account in (APP_ACCOUNT, NETWORK_ACCOUNT)]
    seen = [entry for user in users for entry in audit_log.entries(user=user)]
    refused = [entry for entry in seen if entry.get("responseStatus", {}).get("code") == 403]
    assert seen
    assert not [entry["requestURI"] for entry in refused if "/secrets/" not in entry["requestURI"]]


async def _is_preflighted(hall: WorkedHall) -> None:
    await hall.rollout()
    await until(lambda: _is(hall, "preflight"), what="the checks are made", timeout_s=120)
    (entry,) = await hall.status("preflight")
    status = {check["name"]: check["status"] for check in entry["checks"]}
    assert status.pop("Source") == "Fail", "nobody serves the image"
    assert {status.pop("Spool"), status.pop("FlashSpace")} == {"Unknown"}
    assert set(status.values()) == {"Pass"}, entry
    assert len(status) == 5


async def _takes_up_a_rotated_secret(hall: WorkedHall) -> None:
    before = await hall.status("workerReport")
    path = f"/api/v1/namespaces/{hall.namespace}/secrets/login"
    await hall.admin.patch_merge(path, {"stringData": {"comment": "rotated"}})

    async def is_proved() -> bool:
        report = await hall.status("workerReport")
        network, app = await hall.status("networkWorkerRevision"), await hall.status("workerRevision")
        is_new = report["observedRevision"] != before["observedRevision"]
        proved = [one.get("desiredRevision") == one.get("observedRevision") for one in (network, app)]
        return is_new and all(proved) and network.get("observedRevision") == report["observedRevision"]

    await until(is_proved, what="both planes proved the new version", timeout_s=120)
    await until(hall.is_healthy, what="healthy again", timeout_s=60)


async def _is(hall: WorkedHall, *path: str) -> bool:
    return bool(await hall.status(*path))
