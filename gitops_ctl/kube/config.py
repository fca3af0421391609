"""How a cluster is reached: address, TLS and a credential that can be read again (gitops.md, section 23.3).

The official client reads kubeconfigs and the files of a pod; it is imported here only, and only when it is needed, because
that takes half a second.  Three sources: a person's kubeconfig, the pod that we run in, and the kubeconfig of a remote
cluster, which comes from a Secret and therefore may start no program and name no file of our machine.
"""

import asyncio
import base64
import binascii
import importlib
import math
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml

from gitops_ctl.core.clock import Clock, SystemClock, from_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import BlockedError, Refused
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.kube.exec_credential import EXEC_LIMIT_S, run_exec_plugin

KUBECONFIG_LIMIT_BYTES: Final = 1024 * 1024
TOKEN_PERIOD_S: Final = 60.0
"""A pod's token is read again this often; the kubelet replaces it about hourly."""

_CLIENT: Final = "kubernetes.aio.client"
_KUBECONFIG: Final = "kubernetes.aio.config.kube_config"
_POD: Final = "kubernetes.aio.config.incluster_config"

_DATA_FIELDS: Final = ("client-certificate", "client-key", "certificate-authority")
_FILE_FIELDS: Final = (*_DATA_FIELDS, "tokenFile")


class Credentials:
    """The `Authorization` header, and how to get a newer one.  Its text is never shown.

    Durations are counted on the boot clock, so that a wall clock set back does not keep an old token (H15).
    """

    def __init__(
        self,
        authorization: str = "",
        *,
        read: Callable[[], Awaitable[str]] | None = None,
        period_s: float = math.inf,
        due_s: float = math.inf,
    ) -> None:
        """`read` gives a new header; it is called when `due_s` is reached, then every `period_s`, and after a 401."""
        self.authorization = authorization
        self.due_s = due_s
        self._read = read
        self._period_s = period_s
        self._renewing = asyncio.Lock()

    async def renew(self, *, now_s: float, seen: str) -> bool:
        """Read the credential again, unless somebody did since `seen` was used.  False when there is nothing to read."""
        if self._read is None:
            return False
        async with self._renewing:
            if self.authorization == seen:
                self.authorization = await self._read()
                self.due_s = now_s + self._period_s
        return True


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One cluster.  `tls` is None for plain HTTP; `server_name` replaces the host name in the TLS check."""

    host: str
    tls: ssl.SSLContext | None = None
    credentials: Credentials = field(default_factory=Credentials, repr=False)
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)


async def load_cluster(
    kubeconfig: Path | None, context: str | None = None, *, allow_exec: bool, clock: Clock | None = None
) -> ClusterConfig:
    """The cluster of a kubeconfig, of the pod that we run in, or of `KUBECONFIG` and `~/.kube/config`, in this order.

    Raises:
        Refused: the kubeconfig is broken, or needs a program and `allow_exec` is False.
        BlockedError: there is no kubeconfig, a named file is missing, or the plug-in failed.
    """
    if kubeconfig is None and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return await _in_cluster(clock or SystemClock())
    names = _kubeconfig_names(kubeconfig)
    try:
        merged = (await _library(_KUBECONFIG)).KubeConfigMerger(names).config
        return await _from_node(merged, context, allow_exec=allow_exec, clock=clock or SystemClock())
    except Exception as error:
        raise _translated(error, where=names) from error


async def _library(name: str) -> Any:
    """A module of the official client, imported in a thread: that takes half a second, and the loop has renewals to send."""
    return await asyncio.to_thread(importlib.import_module, name)


def _kubeconfig_names(kubeconfig: Path | None) -> str:
    """One or more paths, separated as in `KUBECONFIG`."""
    names = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "") or str(Path.home() / ".kube" / "config")
    if not any(Path(name).is_file() for name in names.split(os.pathsep)):
        raise _unreachable(f"no kubeconfig at {names}")
    return names


async def load_remote_cluster(kubeconfig: bytes) -> ClusterConfig:
    """The cluster of a kubeconfig that came from a Secret.

    Raises:
        Refused: it is no kubeconfig, starts a program, uses an auth provider, names a file, or is not https.
    """
    where = "the kubeconfig of the Secret"
    try:
        tree = parse_kubeconfig(kubeconfig)
        _require_self_contained(tree)
        node = (await _library(_KUBECONFIG)).ConfigNode("kubeconfig", tree)
        config = await _from_node(node, None, allow_exec=False, clock=SystemClock())
    except Exception as error:
        raise _translated(error, where=where) from error
    if config.tls is None:
        raise _refused(f"{where} names {config.host}, which is not https", hint="use an https address")
    return config


def parse_kubeconfig(data: bytes) -> dict[str, Any]:
    """The tree of a kubeconfig; `Any` because the library's loader takes it.

    Raises:
        Refused: too large, no YAML, or no mapping.
    """
    if len(data) > KUBECONFIG_LIMIT_BYTES:
        raise _refused(f"the kubeconfig is larger than {KUBECONFIG_LIMIT_BYTES} bytes")
    try:
        tree = yaml.CSafeLoader(data).get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        raise _refused("the kubeconfig is no YAML") from error
    if not isinstance(tree, dict):
        raise _refused("the kubeconfig is no mapping")
    return tree


def _require_self_contained(tree: dict[str, Any]) -> None:
    for kind, member in (("users", "user"), ("clusters", "cluster")):
        for item in tree.get(kind) or ():
            section = item.get(member) if isinstance(item, dict) else None
            for name in section if isinstance(section, dict) else ():
                if name in ("exec", "auth-provider"):
                    raise _refused(
                        f"{kind} entry {item.get('name')!r} uses {name}", hint="use a token or a certificate"
                    )
                if name in _FILE_FIELDS:
                    raise _refused(f"{kind} entry {item.get('name')!r} names a file ({name})", hint="embed its content")


async def _from_node(node: Any, context: str | None, *, allow_exec: bool, clock: Clock) -> ClusterConfig:
    """From the library's tree of a kubeconfig; sections are changed in place, so that its loader sees no program."""
    name = context or node["current-context"]
    chosen = node["contexts"].get_with_name(name)["context"]
    cluster = node["clusters"].get_with_name(chosen["cluster"])["cluster"]
    user = _user_of(node, chosen)
    if cluster.value.get("insecure-skip-tls-verify"):
        raise _refused("insecure-skip-tls-verify is not supported", hint="give certificate-authority-data")
    if "auth-provider" in user and not allow_exec:
        raise _refused("auth-provider is not allowed here", hint="use a token or a certificate")
    plugin: JsonObject | None = user.pop("exec", None)
    if plugin is None:
        return await _build(node, name, cluster.value, user)
    if not allow_exec:
        raise _refused(
            f"the kubeconfig starts {text_at(plugin, 'command')!r}, which is not allowed here",
            hint="use a token or a certificate",
        )
    status = await run_exec_plugin(plugin)
    user.update(_exec_user(status))
    config = await _build(node, name, cluster.value, user)
    return _with_exec_renewal(config, plugin, status, clock)


def _user_of(node: Any, chosen: Any) -> dict[str, Any]:
    name = chosen.safe_get("user")
    found = node["users"].get_with_name(name, safe=True) if name and node.safe_get("users") else None
    return found["user"].value if found and found.safe_get("user") else {}


def _exec_user(status: JsonObject) -> dict[str, str]:
    user = {"token": text_at(status, "token")} if text_at(status, "token") else {}
    for ours, theirs in (("client-certificate-data", "clientCertificateData"), ("client-key-data", "clientKeyData")):
        if text_at(status, theirs):
            user[ours] = base64.b64encode(text_at(status, theirs).encode()).decode()
    return user


def _with_exec_renewal(config: ClusterConfig, plugin: JsonObject, status: JsonObject, clock: Clock) -> ClusterConfig:
    async def read() -> str:
        return f"Bearer {text_at(await run_exec_plugin(plugin), 'token')}"

    if not text_at(status, "token"):
        return config
    expiry = text_at(status, "expirationTimestamp")
    lifetime = _seconds_until(expiry, clock.wall()) if expiry else math.inf
    renewed = Credentials(
        config.credentials.authorization, read=read, period_s=lifetime, due_s=clock.boot_s() + lifetime
    )
    return ClusterConfig(config.host, config.tls, renewed, config.server_name, config.proxy)


def _seconds_until(moment: str, now: datetime) -> float:
    return max(TOKEN_PERIOD_S, (from_rfc3339(moment) - now).total_seconds() - TOKEN_PERIOD_S)


async def _build(node: Any, context: str, cluster: dict[str, Any], user: dict[str, Any]) -> ClusterConfig:
    library = await _library(_KUBECONFIG)
    with tempfile.TemporaryDirectory(prefix="gitops-ctl-") as directory:
        # The library would leave keys in files until the process ends, and remember them; ours are gone at once.
        for section in (cluster, user):
            _spill(section, Path(directory))
        loader = library.KubeConfigLoader(node, active_context=context, config_base_path=None)
        loaded = (await _library(_CLIENT)).Configuration()
        async with asyncio.timeout(EXEC_LIMIT_S):
            await loader.load_and_set(loaded)
        return _config_of(loaded)


def _spill(section: dict[str, Any], directory: Path) -> None:
    for name in _DATA_FIELDS:
        if data := section.pop(f"{name}-data", None):
            path = directory / name
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(data, validate=False))
            section[name] = str(path)


def _config_of(loaded: Any) -> ClusterConfig:
    host = str(loaded.host).rstrip("/")
    context = None
    if host.startswith("https://"):
        context = ssl.create_default_context(cafile=loaded.ssl_ca_cert or None)
        # Cluster CAs are often made without the extensions that the strict mode of newer Pythons asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if loaded.cert_file:
            context.load_cert_chain(loaded.cert_file, loaded.key_file)
    return ClusterConfig(
        host, context, Credentials(_authorization(loaded)), loaded.tls_server_name or None, loaded.proxy or None
    )


def _authorization(loaded: Any) -> str:
    return str(loaded.api_key.get("BearerToken", "")).strip()


async def _in_cluster(clock: Clock) -> ClusterConfig:
    client, library = await _library(_CLIENT), await _library(_POD)

    def load() -> Any:
        loaded = client.Configuration()
        try:
            library.load_incluster_config(loaded)
        except Exception as error:
            raise _translated(error, where="the files of the pod") from error
        return loaded

    async def read() -> str:
        return _authorization(load())

    config = _config_of(load())
    credentials = Credentials(
        config.credentials.authorization, read=read, period_s=TOKEN_PERIOD_S, due_s=clock.boot_s() + TOKEN_PERIOD_S
    )
    return ClusterConfig(config.host, config.tls, credentials)


def _translated(error: Exception, *, where: str) -> Exception:
    """Ours for the library's.  Its texts may quote the section that is wrong, with the token in it: cut before that."""
    if isinstance(error, (Refused, BlockedError)):
        return error
    if isinstance(error, TimeoutError):
        return _unreachable(f"{where}: no credential within {EXEC_LIMIT_S:g} s")
    text = cut(redact_text(str(error).partition("{")[0].strip()) or type(error).__name__, limit=300)
    if isinstance(error, (ssl.SSLError, binascii.Error)):
        return _refused(f"{where}: certificate or key cannot be read")
    return _refused(f"{where}: {text}")


def _refused(message: str, *, hint: str = "") -> Refused:
    return Refused(message, code=ErrorCode.CLUSTER_UNREACHABLE, hint=hint)


def _unreachable(message: str) -> BlockedError:
    return BlockedError(message, code=ErrorCode.CLUSTER_UNREACHABLE)
