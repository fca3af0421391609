"""What a source may use: credentials, authorities, host keys, the forge's token and the signing key that a GitSource names.

All of them lie in the namespace of the source and are read by name, each time, so that a rotated key is used at the next
poll.  A missing object or key is a named wait, never an empty value (gitops.md, section 23.7).
"""

from base64 import b64decode
from collections.abc import Mapping
from typing import Final

from gitops_ctl.api.gitops import GitSource
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, NotFound, Refused
from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.git.transport import Credentials
from gitops_ctl.kube.transport import KubeClient

WEBHOOK_KEY: Final = "token"
TOKEN_USER: Final = "x-access-token"  # noqa: S105  a user name
"""User name beside a token over https: no forge looks at it."""


async def read_credentials(client: KubeClient, *, source: GitSource) -> Credentials | None:
    """Credentials of the source; None when it names no Secret.

    Raises:
        BlockedError: the Secret or one of its keys is missing; the message names it.
        Forbidden: the manager may not read this Secret.
    """
    reference = source.spec.credentials_secret_ref
    if reference is None:
        return None
    data = await _secret(client, namespace=source.metadata.namespace, name=reference.name)
    subject = f"Secret/{source.metadata.namespace}/{reference.name}"
    if "bearerToken" in data:
        return Credentials(bearer_token=_text(data, "bearerToken", subject=subject))
    if "identity" in data:
        passphrase = _text(data, "password", subject=subject) if "password" in data else ""
        key = _text(data, "identity", subject=subject, strip=False)
        return Credentials(ssh_private_key=key, passphrase=passphrase)
    if "username" in data and "password" in data:
        username, password = (_text(data, key, subject=subject) for key in ("username", "password"))
        return Credentials(username=username, password=password)
    raise BlockedError(
        "the Secret has none of: username and password; bearerToken; identity",
        code=ErrorCode.CREDENTIALS_MISSING,
        subject=subject,
        hint="add the keys that the server asks for",
    )


async def read_authorities(client: KubeClient, *, source: GitSource) -> bytes | None:
    """The CA bundle of the source in PEM; None means the system's authorities."""
    reference = source.spec.ca_config_map_ref
    if reference is None:
        return None
    return await _config_map_key(client, namespace=source.metadata.namespace, name=reference.name, key="ca.crt")


async def read_known_hosts(client: KubeClient, *, source: GitSource) -> bytes | None:
    """The host keys of the source's ssh server; None when it names none."""
    reference = source.spec.known_hosts_config_map_ref
    if reference is None:
        return None
    return await _config_map_key(client, namespace=source.metadata.namespace, name=reference.name, key="known_hosts")


async def read_webhook_secret(client: KubeClient, *, source: GitSource) -> bytes | None:
    """The shared secret of the push webhook, key `token`; None when the source has no webhook."""
    forge = source.spec.forge
    if forge is None or forge.webhook_secret_ref is None:
        return None
    name = forge.webhook_secret_ref.name
    data = await _secret(client, namespace=source.metadata.namespace, name=name)
    if WEBHOOK_KEY not in data:
        raise _missing(f"Secret/{source.metadata.namespace}/{name}", key=WEBHOOK_KEY)
    return data[WEBHOOK_KEY].strip()


async def read_forge_token(client: KubeClient, *, source: GitSource) -> str:
    """The token for the API of the source's forge, key `token`; empty when it names no Secret.

    Raises:
        BlockedError: the Secret or the key is missing.
    """
    forge = source.spec.forge
    if forge is None or forge.credentials_secret_ref is None:
        return ""
    name = forge.credentials_secret_ref.name
    data = await _secret(client, namespace=source.metadata.namespace, name=name)
    subject = f"Secret/{source.metadata.namespace}/{name}"
    if "token" not in data:
        raise _missing(subject, key="token")
    return _text(data, "token", subject=subject)


async def read_push_credentials(client: KubeClient, *, source: GitSource) -> Credentials | None:
    """With what proposals are pushed: the forge's Secret, or that of the source when the forge has none.

    Over https the token of the forge (key `token`) is the password, and `username` is free to choose; over ssh an `identity` in that
    Secret is used (`password` opens it), else the one of the source.

    Raises:
        BlockedError: a Secret or one of its keys is missing.
    """
    forge = source.spec.forge
    if forge is None or forge.credentials_secret_ref is None:
        return await read_credentials(client, source=source)
    name = forge.credentials_secret_ref.name
    data = await _secret(client, namespace=source.metadata.namespace, name=name)
    subject = f"Secret/{source.metadata.namespace}/{name}"
    if not source.spec.url.startswith("ssh://"):
        if "token" not in data:
            raise _missing(subject, key="token")
        username = _text(data, "username", subject=subject) if "username" in data else TOKEN_USER
        return Credentials(username=username, password=_text(data, "token", subject=subject))
    if "identity" not in data:
        return await read_credentials(client, source=source)
    passphrase = _text(data, "password", subject=subject) if "password" in data else ""
    return Credentials(ssh_private_key=_text(data, "identity", subject=subject, strip=False), passphrase=passphrase)


async def read_signing_key(client: KubeClient, *, source: GitSource) -> tuple[Mapping[str, bytes], str]:
    """Data and name of the Secret with the proposer's private key; nothing else of the product reads it.

    Raises:
        BlockedError: the source has no proposer, or its Secret does not exist.
    """
    proposer = source.spec.proposer
    if proposer is None:
        raise BlockedError(
            "the source has no spec.proposer: nobody would sign the commit",
            code=ErrorCode.PROPOSER_MISSING,
            subject=f"GitSource/{source.metadata.namespace}/{source.metadata.name}",
        )
    name = proposer.signing_key_secret_ref.name
    data = await _secret(client, namespace=source.metadata.namespace, name=name)
    return data, f"Secret/{source.metadata.namespace}/{name}"


async def _secret(client: KubeClient, *, namespace: str, name: str) -> Mapping[str, bytes]:
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    try:
        tree = await client.get(path)
    except NotFound as error:
        raise BlockedError(
            "the Secret does not exist",
            code=ErrorCode.CREDENTIALS_MISSING,
            subject=f"Secret/{namespace}/{name}",
        ) from error
    try:
        return {key: b64decode(str(value), validate=True) for key, value in object_at(tree, "data").items()}
    except ValueError as error:
        raise Refused("the Secret's data is not base64", subject=f"Secret/{namespace}/{name}") from error


async def _config_map_key(client: KubeClient, *, namespace: str, name: str, key: str) -> bytes:
    subject = f"ConfigMap/{namespace}/{name}"
    try:
        tree = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    except NotFound as error:
        raise BlockedError(
            "the ConfigMap does not exist", code=ErrorCode.CREDENTIALS_MISSING, subject=subject
        ) from error
    text = text_at(tree, "data", key)
    if not text.strip():
        raise _missing(subject, key=key)
    return text.encode()


def _missing(subject: str, *, key: str) -> BlockedError:
    return BlockedError(
        f"the key {key} is missing or empty",
        code=ErrorCode.CREDENTIALS_MISSING,
        subject=subject,
        hint=f"add the key {key}",
    )


def _text(data: Mapping[str, bytes], key: str, *, subject: str, strip: bool = True) -> str:
    try:
        text = data[key].decode()
    except UnicodeDecodeError:
        raise BlockedError(
            f"the key {key} is no UTF-8 text",
            code=ErrorCode.CREDENTIALS_MISSING,
            subject=subject,
            hint="store it as text",
        ) from None  # the cause would show bytes of the secret
    return text.strip() if strip else text
