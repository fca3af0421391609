"""The API server as the machine's manifest controller and the manifest sync see it: plain requests with an administrator's kubeconfig."""

import asyncio
import base64
import fcntl
import json
import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

_PLURALS = {
    "ConfigMap": "configmaps",
    "DaemonSet": "daemonsets",
    "ServiceAccount": "serviceaccounts",
    "ClusterRoleBinding": "clusterrolebindings",
}


class ClusterError(Exception):
    """The API server said no, or nothing."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class Cluster:
    """One API server.  `async with`."""

    def __init__(self, kubeconfig: Path) -> None:
        self._path = kubeconfig
        self._session: aiohttp.ClientSession | None = None
        self._server = ""

    async def __aenter__(self) -> "Cluster":
        tree = yaml.safe_load(self._path.read_text())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        self._server = cluster["server"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        connector = aiohttp.TCPConnector(ssl=context)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    @asynccontextmanager
    async def mutex(self) -> AsyncIterator[None]:
        """One machine at a time; Talos has a mutex in etcd for that."""
        with self._path.with_suffix(".mutex").open("ab") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            yield

    async def get(self, tree: dict[str, Any]) -> dict[str, Any] | None:
        """The live object, or None."""
        return await self._call("GET", path_of(tree))

    async def apply(self, tree: dict[str, Any], *, manager: str, force: bool = False) -> dict[str, Any] | None:
        """Server-side apply."""
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        kind = "application/apply-patch+yaml"
        return await self._call("PATCH", path_of(tree) + query, tree, content_type=kind)

    async def delete(self, tree: dict[str, Any]) -> None:
        """In the background; one that is gone already is fine."""
        await self._call("DELETE", path_of(tree), {"propagationPolicy": "Background"})

    async def inventory(self, name: str) -> dict[str, str]:
        """Its entries; none when it does not exist."""
        found = await self.get(_inventory(name, {}))
        return dict((found or {}).get("data") or {})

    async def write_inventory(self, name: str, entries: dict[str, str]) -> None:
        """Replace its entries."""
        tree = _inventory(name, entries)
        live = await self.get(tree)
        if live is None:
            await self._call("POST", path_of(tree).rpartition("/")[0], tree)
        elif (live.get("data") or {}) != entries:
            await self._call("PUT", path_of(tree), {**live, "data": entries})

    async def _call(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> dict[str, Any] | None:
        assert self._session is not None
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type, "User-Agent": f"talos-peer/{os.getpid()}"}
        async with self._session.request(method, self._server + path, data=data, headers=headers) as reply:
            text = await reply.text()
            if reply.status == 404:
                return None
            if reply.status >= 400:
                raise ClusterError(reply.status, text)
            found: dict[str, Any] = json.loads(text)
            return found


def path_of(tree: dict[str, Any]) -> str:
    """Of one object of the few kinds that are used here."""
    version, metadata = tree["apiVersion"], tree["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{root}{space}/{_PLURALS[tree['kind']]}/{metadata['name']}"


def _inventory(name: str, entries: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
