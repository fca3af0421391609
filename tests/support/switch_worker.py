"""A model of the cluster worker at work: claims by compare-and-swap, acts once, and settles what an earlier one claimed by reading back."""

import json
from collections.abc import Callable
from datetime import datetime

from gitops_ctl.api.names import FIELD_MANAGER_CNI_WORKER, ICHOR_API_VERSION, ICHOR_GROUP
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.transport import KubeClient
from tests.support.switch_live import Live, Tree, worked


class ModelWorker:
    """One worker of one cluster."""

    def __init__(
        self, client: KubeClient, *, namespace: str, cluster: str, live: Live, wall: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._api = f"/apis/{ICHOR_GROUP}/v1alpha1/namespaces/{namespace}"
        self._cluster = cluster
        self._live = live
        self._wall = wall

    async def look(self) -> None:
        """One look at every operation."""
        listed = await self._client.list_all(f"{self._api}/talosoperations")
        for tree in listed.items:
            await self._operation(_copy(tree))

    async def _operation(self, tree: Tree) -> None:
        live, status = self._live, tree.get("status", {})
        live.now = self._wall()
        done = {one["id"] for one in status.get("receipts", [])}
        for request in status.get("requests", []):
            if request["action"] in ("observe", "probe-service") or request["id"] in done:
                continue
            if request["action"] == "restore-kube-proxy" and not live._proxy().get("missing"):
                continue
            tree = await self._effect(tree, request)
        new = worked(tree, await self._read_cluster(), live, looks_only=True)
        if new is not None:
            await self._write(tree, new)

    async def _effect(self, tree: Tree, request: Tree) -> Tree:
        live, status = self._live, tree.get("status", {})
        cluster = await self._read_cluster()
        if request["id"] in {one["id"] for one in status.get("claims", [])}:
            outcome = live.read_back(request)
        elif cluster.get("status", {}).get("lock", {}).get("operationUID") != tree["metadata"]["uid"]:
            outcome = {"result": "Refused", "message": "LockNotOurs: another operation has the cluster"}
        elif refusal := live.refusal(request, cluster):
            outcome = {"result": "Refused", "message": refusal}
        else:
            claim = {"id": request["id"], "worker": "model", "at": self._now()}
            tree = await self._write(tree, {**status, "claims": [*status.get("claims", []), claim]})
            outcome = live.act(request)
        receipt = {"id": request["id"], "at": self._now(), **outcome}
        status = tree.get("status", {})
        return await self._write(tree, {**status, "receipts": [*status.get("receipts", []), receipt]})

    async def _write(self, tree: Tree, status: Tree) -> Tree:
        """A compare-and-swap of the worker's members."""
        own = {name: status[name] for name in ("claims", "receipts", "observed") if name in status}
        metadata = {name: tree["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
        body = {"apiVersion": ICHOR_API_VERSION, "kind": "TalosOperation", "metadata": metadata, "status": own}
        path = f"{self._api}/talosoperations/{tree['metadata']['name']}"
        answer = await self._client.apply(path, body, manager=FIELD_MANAGER_CNI_WORKER, subresource="status")
        return _copy(answer)

    async def _read_cluster(self) -> Tree:
        return _copy(await self._client.get(f"{self._api}/talosclusters/{self._cluster}"))

    def _now(self) -> str:
        return to_rfc3339(self._wall())


def _copy(tree: JsonObject) -> Tree:
    return json.loads(json.dumps(tree))  # type: ignore[no-any-return]
