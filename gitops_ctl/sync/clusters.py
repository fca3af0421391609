"""Which cluster a unit goes to: that of the manager, or the one of its kubeconfig Secret (gitops.md, section 23.3).

A remote kubeconfig is read strictly: no exec plug-ins, no auth providers, no files.  Clusters that units share are opened
once; a changed Secret opens a new one and closes the old.
"""

import base64
import binascii
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from gitops_ctl.api.sync import Sync
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, NotFound
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.kube.config import load_remote_cluster
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.cluster import LiveCluster
from gitops_ctl.sync.model import OwnerId

OnChange = Callable[[OwnerId, ObjectId], None]
OnLost = Callable[[NamespacedName], None]


@dataclass(frozen=True, slots=True)
class _Remote:
    version: str
    cluster: LiveCluster
    stack: AsyncExitStack


class Clusters:
    """An async context manager; every cluster that was opened closes with it."""

    def __init__(
        self, client: KubeClient, *, on_change: OnChange, on_lost: OnLost = lambda _: None, timing: Timing | None = None
    ) -> None:
        self._client = client
        self._on_change, self._on_lost = on_change, on_lost
        self._timing = timing
        self._remotes: dict[tuple[str, str, str], _Remote] = {}
        self.local = LiveCluster(client, on_change=on_change, on_lost=on_lost, timing=timing)

    async def __aenter__(self) -> Self:
        await self.local.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for remote in self._remotes.values():
            await remote.stack.aclose()
        self._remotes.clear()
        await self.local.__aexit__(kind, error, trace)

    async def of(self, sync: Sync) -> LiveCluster:
        """The cluster that a Sync names.

        Raises:
            NotFound: the Secret or its key is missing.
            Refused: the kubeconfig is not one that is allowed.
            TransientError: the Secret cannot be read now.
        """
        reference = sync.spec.kube_config_secret_ref
        if reference is None:
            return self.local
        key = (sync.metadata.namespace, reference.name, reference.key)
        path = f"/api/v1/namespaces/{sync.metadata.namespace}/secrets/{reference.name}"
        secret = await self._client.find(path)
        if secret is None:
            raise NotFound(f"Secret {reference.name} does not exist", code=ErrorCode.CLUSTER_UNREACHABLE)
        version = text_at(secret, "metadata", "resourceVersion")
        known = self._remotes.get(key)
        if known is not None and known.version == version:
            return known.cluster
        opened = await self._open("/".join(key), text_at(secret, "data", reference.key), version)
        if known is not None:
            await known.stack.aclose()
        self._remotes[key] = opened
        return opened.cluster

    async def forget(self, key: NamespacedName) -> None:
        """A unit is gone."""
        for cluster in (self.local, *(remote.cluster for remote in self._remotes.values())):
            await cluster.forget(key)

    async def _open(self, name: str, data: str, version: str) -> _Remote:
        if not data:
            raise NotFound(f"Secret {name} has no such key", code=ErrorCode.CLUSTER_UNREACHABLE)
        try:
            config = await load_remote_cluster(base64.b64decode(data, validate=True))
        except binascii.Error:
            raise BlockedError(f"Secret {name} is not base64", code=ErrorCode.CLUSTER_UNREACHABLE) from None
        except GitopsError as error:
            raise BlockedError(error.message, code=ErrorCode.CLUSTER_UNREACHABLE, subject=name) from error
        stack = AsyncExitStack()
        client = await stack.enter_async_context(KubeClient(config, component="sync", clock=self._client.clock))
        cluster = LiveCluster(client, key=name, on_change=self._on_change, on_lost=self._on_lost, timing=self._timing)
        await stack.enter_async_context(cluster)
        return _Remote(version, cluster, stack)
