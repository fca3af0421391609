"""Writes what the worker owns of TalosMachines and TalosClusters, and only when something other than a time differs (section 3.2).

The caches lag behind our own writes, so the last write counts as well; not for ever, because somebody may have removed it by hand.
"""

from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_CNI_WORKER
from gitops_ctl.api.talos_fields import LiveMode
from gitops_ctl.api.talos_machine import MachineObservation
from gitops_ctl.cni.worker.desk import CLUSTERS, MACHINES
from gitops_ctl.cni.worker.observation import is_same
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient

_REMEMBERED_S: Final = 300.0


class Statuses:
    """The statuses of one cluster and its machines."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._last: dict[str, tuple[float, JsonObject]] = {}

    async def machine(self, tree: JsonObject, seen: MachineObservation) -> None:
        """Write `status.observed` of a TalosMachine as it is cached.

        Raises:
            GitopsError: the server did not take it.
        """
        new = seen.to_tree()
        if not is_same(object_at(tree, "status", "observed"), new):
            await self._apply(MACHINES, tree, {"observed": new}, means=new)

    async def cluster(self, tree: JsonObject, mode: LiveMode) -> None:
        """Write the observed mode of a TalosCluster, with the time at which this value was seen first.

        Raises:
            GitopsError: the server did not take it.
        """
        if text_at(tree, "status", "cni", "observedMode") != mode:
            at = to_rfc3339(self._client.clock.wall())
            status: JsonObject = {"cni": {"observedMode": mode, "observedAt": at}}
            await self._apply(CLUSTERS, tree, status, means={"mode": mode})

    async def _apply(self, resource: Resource, object: JsonObject, status: JsonObject, *, means: JsonObject) -> None:
        metadata = {name: text_at(object, "metadata", name) for name in ("name", "namespace", "uid")}
        now_s = self._client.clock.boot_s()
        at_s, last = self._last.get(metadata["uid"], (now_s, {}))
        if now_s - at_s < _REMEMBERED_S and is_same(last, means):
            return
        body: JsonObject = {
            "apiVersion": resource.gvk.api_version,
            "kind": resource.gvk.kind,
            "metadata": metadata,
            "status": status,
        }
        path = resource.path(metadata["namespace"], metadata["name"])
        await self._client.apply(path, body, manager=FIELD_MANAGER_CNI_WORKER, subresource="status")
        self._last[metadata["uid"]] = (now_s, means)
