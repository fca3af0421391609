"""The snapshot of a source, read anew in every pass and never from a cache (topology-scheduling.md, 3.1, 9.1 and 10).

A ConfigMap that is not there, a key that it lacks, a Secret that may not be read: these are failures of the source.  An API server that
does not answer says nothing about the snapshot: its error goes to whoever runs the pass, who asks again.
"""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gitops_ctl.core.errors import Forbidden, NotFound, Refused
from gitops_ctl.core.goduration import nanoseconds
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.source_rules import CREDENTIALS
from gitops_ctl.scheduling.source_status import Failed, FailureReason
from gitops_ctl.scheduling.webhook import ClientCertificate, Inquiry

_SECOND: Final = 10**9
_UNREADABLE: Final = (NotFound, Forbidden, Refused)
"""Answers about the object itself; asking again at once changes nothing."""

Get = Callable[[Inquiry], Awaitable[bytes | Failed]]


class _FailedError(Exception):
    """Why there is no snapshot; holds no value of a Secret."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.failure = Failed(reason, detail)


async def read_snapshot(source: JsonObject, *, client: KubeClient, get: Get) -> str | bytes | Failed | None:
    """The text of the snapshot, or why there is none; None for a source that reads none.

    Args:
        source: a TopologySource without problems.
        client: the reader.
        get: asks a webhook once.

    Raises:
        GitopsError: the API server gave no usable answer.
    """
    spec = object_at(source, "spec")
    try:
        if spec.get("configMap") is not None:
            return await _of_config_map(object_at(spec, "configMap"), client)
        if spec.get("webhook") is not None:
            return await _of_webhook(object_at(spec, "webhook"), client, get)
    except _FailedError as error:
        return error.failure
    return None


async def _of_config_map(arm: JsonObject, client: KubeClient) -> str:
    data = await _data(client, "ConfigMap", object_at(arm, "configMapRef"), reason="ConfigMapReadFailed")
    key = text_at(arm, "key")
    text = data.get(key)
    if not isinstance(text, str):
        raise _FailedError(
            "SnapshotKeyMissing", f"{_named('ConfigMap', object_at(arm, 'configMapRef'))} has no key {key}"
        )
    return text


async def _of_webhook(arm: JsonObject, client: KubeClient, get: Get) -> bytes | Failed:
    """Everything within the one deadline: reading the credentials, connecting, the answer to its last byte."""
    timeout = text_at(arm, "timeout")
    try:
        async with asyncio.timeout(nanoseconds(timeout) / _SECOND):
            return await get(await _inquiry(arm, client))
    except TimeoutError:
        return Failed("WebhookReadFailed", f"no whole answer within the timeout of {timeout}")


async def _inquiry(arm: JsonObject, client: KubeClient) -> Inquiry:
    given = [name for name in CREDENTIALS if arm.get(name) is not None]
    if len(given) != 1:
        raise _FailedError("WebhookReadFailed", f"exactly one of {' and '.join(CREDENTIALS)} is required")
    ca = None
    if arm.get("caBundleConfigMapRef") is not None:
        ca = await _authorities(client, object_at(arm, "caBundleConfigMapRef"))
    reference = object_at(arm, given[0])
    secret = await _secret(client, reference)
    if given[0] == "bearerTokenSecretRef":
        return Inquiry(text_at(arm, "url"), token=_token(secret, reference), ca=ca)
    chain, key = (_member(secret, reference, name) for name in ("tls.crt", "tls.key"))
    return Inquiry(text_at(arm, "url"), certificate=ClientCertificate(chain, key), ca=ca)


async def _authorities(client: KubeClient, reference: JsonObject) -> bytes:
    text = (await _data(client, "ConfigMap", reference)).get("ca.crt")
    if not isinstance(text, str) or not text.strip():
        raise _FailedError("WebhookReadFailed", f"{_named('ConfigMap', reference)} has no ca.crt")
    return text.encode()


def _token(secret: Mapping[str, bytes], reference: JsonObject) -> str:
    try:
        token = secret.get("token", b"").decode().strip()
    except UnicodeDecodeError:
        raise _FailedError("WebhookReadFailed", f"the token in {_named('Secret', reference)} is no text") from None
    if not token:
        raise _FailedError("WebhookReadFailed", f"token missing in {_named('Secret', reference)}")
    return token


def _member(secret: Mapping[str, bytes], reference: JsonObject, name: str) -> bytes:
    if not secret.get(name, b"").strip():
        raise _FailedError("WebhookReadFailed", f"{name} missing in {_named('Secret', reference)}")
    return secret[name]


async def _secret(client: KubeClient, reference: JsonObject) -> Mapping[str, bytes]:
    data = await _data(client, "Secret", reference)
    try:
        return {key: b64decode(value, validate=True) for key, value in data.items() if isinstance(value, str)}
    except ValueError:
        raise _FailedError("WebhookReadFailed", f"{_named('Secret', reference)} is not base64") from None


async def _data(
    client: KubeClient, kind: str, reference: JsonObject, *, reason: FailureReason = "WebhookReadFailed"
) -> JsonObject:
    plural = "secrets" if kind == "Secret" else "configmaps"
    namespace, name = text_at(reference, "namespace"), text_at(reference, "name")
    try:
        tree = await client.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}")
    except NotFound:
        raise _FailedError(reason, f"{_named(kind, reference)} does not exist") from None
    except _UNREADABLE as error:
        raise _FailedError(reason, f"{_named(kind, reference)} cannot be read: {error.reason}") from None
    return object_at(tree, "data")


def _named(kind: str, reference: JsonObject) -> str:
    return f"{kind} {text_at(reference, 'namespace')}/{text_at(reference, 'name')}"
