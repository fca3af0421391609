"""Secrets of the worker's namespace, read by name through the API and kept nowhere (rollouts.md, sections 17.2 and 18.2).

The worker may read exactly the Secrets that its devices and image sources name, and may neither list nor watch them.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.fleet.trees import texts_at
from gitops_ctl.kube.transport import KubeClient


@dataclass(frozen=True, slots=True)
class SecretSeen:
    """One Secret; its values are shown nowhere."""

    name: str
    uid: str
    version: str
    labels: Mapping[str, str]
    data: Mapping[str, bytes] = field(repr=False)


class SecretReader:
    """Reads Secrets of one namespace."""

    def __init__(self, client: KubeClient, *, namespace: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/secrets"

    async def read(self, name: str) -> SecretSeen | None:
        """The Secret as it is now; None when it does not exist.

        Raises:
            GitopsError: it cannot be read.
        """
        tree = await self._client.find(f"{self._path}/{name}")
        if tree is None:
            return None
        metadata = object_at(tree, "metadata")
        return SecretSeen(
            name=name,
            uid=text_at(metadata, "uid"),
            version=text_at(metadata, "resourceVersion"),
            labels=texts_at(metadata, "labels"),
            data={key: _decoded(value) for key, value in texts_at(tree, "data").items()},
        )


def _decoded(text: str) -> bytes:
    """The bytes of a value; what is no base64 is empty, and whoever needs it says what is missing."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
