"""Stand-ins for the two planes of the device workers, and for whoever runs their Deployments.

The node plane writes the status of the Nodes that its Pod is bound to, the network plane reports what it loaded, as workers do.
"""

import contextlib
from typing import Any

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.revision import secrets_of, worker_revision
from gitops_ctl.kube.transport import KubeClient
from tests.support.topology_devices import APP_ACCOUNT, NETWORK_ACCOUNT

Tree = dict[str, Any]


class Workers:
    """Both planes, and the Deployments' Pods.

    Attributes:
        beats: whether the node plane writes heartbeats.
        loads: whether a Secret that changed is loaded.
        chassis: what the devices answer instead of their own identity, by device.
    """

    def __init__(self, client: KubeClient, *, namespace: str, has_controllers: bool = False) -> None:
        """With controllers the server's own ones make the Pods, and this is no more than their kubelet."""
        self._has_controllers = has_controllers
        self._client, self._namespace = client, namespace
        self._devices = f"/apis/cisco.vk/v1alpha1/namespaces/{namespace}/ciscodevices"
        self._deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        core = f"/api/v1/namespaces/{namespace}"
        self._pods, self._secrets = f"{core}/pods", f"{core}/secrets"
        self.beats = self.loads = True
        self.chassis: dict[str, str] = {}
        self._loaded: dict[str, str] = {}

    async def run(self, *, every_s: float = 10.0) -> None:
        """Step for ever; what fails is done in the next step."""
        while True:
            with contextlib.suppress(GitopsError):
                await self.step()
            await self._client.clock.sleep(every_s)

    async def step(self) -> None:
        """Whatever is due."""
        pods = {account: await self._pod(account) for account in (APP_ACCOUNT, NETWORK_ACCOUNT)}
        for tree in (await self._client.list_all(self._devices)).items:
            device: Any = tree
            versions = await self._versions(device)
            if (app := pods[APP_ACCOUNT]) is not None and self.beats:
                await self._beat(device, app, versions)
            if (network := pods[NETWORK_ACCOUNT]) is not None:
                await self._report(device, network, versions)

    async def _versions(self, device: Any) -> dict[str, str]:
        found = {}
        for member, name in secrets_of(device["spec"])._asdict().items():
            secret: Any = await self._client.find(f"{self._secrets}/{name}") if name else None
            key = f"{device['metadata']['name']}/{member}"
            if self.loads or key not in self._loaded:
                self._loaded[key] = secret["metadata"]["resourceVersion"] if secret else ""
            found[member] = self._loaded[key]
        return found

    async def _pod(self, account: str) -> Tree | None:
        """The ready Pod of a Deployment."""
        deployment: Any = await self._client.find(f"{self._deployments}/{account}")
        if deployment is None:
            return None
        return await (self._started(deployment) if self._has_controllers else self._made(account, deployment))

    async def _started(self, deployment: Any) -> Tree | None:
        """The Pod that the controllers made of the present template, ready from now on."""
        digest = deployment["spec"]["template"]["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST]
        labels = ",".join(f"{key}={value}" for key, value in deployment["spec"]["selector"]["matchLabels"].items())
        pods: Any = (await self._client.list_all(self._pods, label_selector=labels)).items
        for pod in pods:
            if self._digest(pod) == digest and "deletionTimestamp" not in pod["metadata"]:
                return pod if pod["status"]["phase"] == "Running" else await self._run_pod(pod["metadata"]["name"])
        return None

    async def _run_pod(self, name: str) -> Tree:
        at = to_rfc3339(self._client.clock.wall())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}
        status = {"phase": "Running", "startTime": at, "conditions": [ready]}
        return dict(await self._client.patch_merge(f"{self._pods}/{name}", {"status": status}, subresource="status"))

    async def _made(self, account: str, deployment: Any) -> Tree:
        """The Pod of a Deployment that no controller looks after, made anew when the template is another one."""
        template = deployment["spec"]["template"]
        path = f"{self._pods}/{account}-x"
        pod: Any = await self._client.find(path)
        digest = template["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST]
        if pod is not None and pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST] != digest:
            await self._client.delete(path)
            pod = None
        if pod is None:
            owner = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{account}-1",
                "uid": "rs",
                "controller": True,
            }
            metadata = {
                **template["metadata"],
                "name": f"{account}-x",
                "namespace": self._namespace,
                "ownerReferences": [owner],
            }
            await self._client.create(
                self._pods, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            )
            pod = await self._run_pod(f"{account}-x")
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": deployment["metadata"]["generation"], **counts}
        if deployment.get("status", {}).items() < status.items() or deployment.get("status") != status:
            await self._client.patch_merge(f"{self._deployments}/{account}", {"status": status}, subresource="status")
        return dict(pod)

    def _digest(self, pod: Tree) -> str:
        return str(pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST])

    async def _beat(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        """The node plane writes the Node that the manager has bound its Pod to."""
        path = f"/api/v1/nodes/{device['metadata']['name']}"
        node: Any = await self._client.find(path)
        annotations = node["metadata"].get("annotations", {}) if node is not None else {}
        if annotations.get(names.APP_WORKER_POD_UID) != pod["metadata"]["uid"]:
            return
        revision = worker_revision(template_digest=self._digest(pod), **versions)
        if annotations.get(names.WORKER_OBSERVED_REVISION) != revision:
            await self._client.patch_merge(
                path, {"metadata": {"annotations": {names.WORKER_OBSERVED_REVISION: revision}}}
            )
        at = to_rfc3339(self._client.clock.wall())
        old = {each["type"]: each for each in node.get("status", {}).get("conditions", [])}
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "lastHeartbeatTime": at,
                "lastTransitionTime": old.get(kind, {}).get("lastTransitionTime", at),
            }
            for kind, reason in (("Ready", "DeviceReachable"), (names.MANAGED_WRITER, names.MANAGED_WRITER_REASON))
        ]
        chassis = self.chassis.get(device["metadata"]["name"], device["spec"]["physicalIdentity"])
        status = {"nodeInfo": {"machineID": chassis, "systemUUID": chassis}, "conditions": conditions}
        await self._client.patch_merge(path, {"status": status}, subresource="status")

    async def _report(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        """The network plane reports what it loaded, when that changes."""
        report = {
            "podUID": pod["metadata"]["uid"],
            "observedRevision": worker_revision(template_digest=self._digest(pod), **versions),
            "materialValid": True,
            "journal": {"id": "5a0dd3a1-9f0c-4f1e-8f60-0d3ad0f3a6c1", "sequence": 0, "state": "Ready"},
        }
        stored = device.get("status", {}).get("workerReport", {})
        if {key: value for key, value in stored.items() if key != "loadedAt"} == report:
            return
        loaded = {**report, "loadedAt": to_rfc3339(self._client.clock.wall())}
        await self._client.patch_merge(
            f"{self._devices}/{device['metadata']['name']}", {"status": {"workerReport": loaded}}, subresource="status"
        )

    async def sample(self, device: str, sequence: int) -> None:
        """One sample of the network around a device."""
        tree: Any = await self._client.get(f"{self._devices}/{device}")
        report, at = tree["status"]["workerReport"], to_rfc3339(self._client.clock.wall())
        sample = {
            "workerPodUID": report["podUID"],
            "collectionStartedAt": at,
            "collectionEndedAt": at,
            "observedAt": at,
            "sampleSequence": sequence,
            "complete": True,
            "producerRevision": report["observedRevision"],
            "deviceIdentityHash": device_identity_hash(tree["spec"]["physicalIdentity"].lower()),
            "interfaces": [{"name": "TenGigabitEthernet1/1/1", "operUp": True}],
        }
        body = {"status": {"healthObservation": {"network": sample}}}
        await self._client.patch_merge(f"{self._devices}/{device}", body, subresource="status")
