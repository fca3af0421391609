"""A cluster whose Services Cilium or kube-proxy serves, made of a control plane and simulated nodes (cni-switch.md, section 16.2).

The objects are those that the chart of Cilium makes, as far as a switch looks at them; kwok runs their pods.  Services get addresses in
127.96.0.0/24, which are loopback addresses on Linux: a forwarder on the address of the Service `kubernetes` makes the last check real.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.controlplane import Options

SERVICE_RANGE: Final = "127.96.0.0/24"
SERVICE_ADDRESS: Final = "127.96.0.1"
CONTROL_PLANES: Final = ("cp-1", "cp-2", "cp-3")
WORKERS: Final = ("worker-1", "worker-2")
OWNER: Final = "helm"
"""Field manager of whoever owns Cilium."""

_CHECKSUM: Final = "cilium.io/cilium-configmap-checksum"
_SYSTEM: Final = "kube-system"


def target_options(nodes: Sequence[str] = (*CONTROL_PLANES, *WORKERS), *, audit: bool = False) -> Options:
    """How the control plane of such a cluster runs."""
    return Options(
        durable=False,
        nodes=len(nodes),
        node_names=tuple(nodes),
        service_range=SERVICE_RANGE,
        audit=audit,
        event_ttl="10m",
    )


@dataclass(frozen=True, slots=True)
class CiliumValues:
    """The values of the chart that matter here.

    Attributes:
        replacement: `kubeProxyReplacement`.
        roll_out_pods: `rollOutCiliumPods`: the pod template changes with the configuration, so that the agents restart.
        host, port: `k8sServiceHost` and `k8sServicePort`; empty and 0 where they are not set.
    """

    replacement: bool = False
    roll_out_pods: bool = False
    host: str = ""
    port: int = 0
    version: str = "1.18.2"


def cilium_objects(values: CiliumValues) -> tuple[JsonObject, ...]:
    """Configuration, agents and operator, in the order in which they are applied."""
    data: JsonObject = {"kube-proxy-replacement": str(values.replacement).lower(), "cluster-name": "default"}
    config: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _named("cilium-config"), "data": data}
    checksum = hashlib.sha256(canonical_json(config)).hexdigest()
    annotations: JsonObject = {_CHECKSUM: checksum} if values.roll_out_pods else {}
    return config, _agents(values, annotations), _operator(values)


async def roll_out(client: KubeClient, values: CiliumValues) -> None:
    """Apply the objects, as whoever owns Cilium does.

    Raises:
        GitopsError: the cluster did not take one.
    """
    for tree in cilium_objects(values):
        await client.apply(_path(tree), tree, manager=OWNER, force=True)


def _agents(values: CiliumValues, annotations: JsonObject) -> JsonObject:
    labels: JsonObject = {"k8s-app": "cilium"}
    spec: JsonObject = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {"name": "cilium-agent", "image": f"quay.io/cilium/cilium:v{values.version}", "env": _environment(values)}
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**_named("cilium"), "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
        },
    }


def _operator(values: CiliumValues) -> JsonObject:
    labels: JsonObject = {"io.cilium/app": "operator", "name": "cilium-operator"}
    spec: JsonObject = {
        "containers": [
            {
                "name": "cilium-operator",
                "image": f"quay.io/cilium/operator-generic:v{values.version}",
                "env": _environment(values),
            }
        ]
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_named("cilium-operator"), "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _environment(values: CiliumValues) -> list[JsonObject]:
    given = (("KUBERNETES_SERVICE_HOST", values.host), ("KUBERNETES_SERVICE_PORT", str(values.port or "")))
    return [{"name": name, "value": value} for name, value in given if value]


def _named(name: str) -> JsonObject:
    return {"name": name, "namespace": _SYSTEM}


def _path(tree: JsonObject) -> str:
    kinds = {"ConfigMap": "api/v1", "DaemonSet": "apis/apps/v1", "Deployment": "apis/apps/v1"}
    kind, metadata = str(tree["kind"]), tree["metadata"]
    assert isinstance(metadata, dict)
    return f"/{kinds[kind]}/namespaces/{_SYSTEM}/{kind.lower()}s/{metadata['name']}"


def worker_rights(user: str) -> tuple[JsonObject, ...]:
    """The narrow rights of a cluster worker in its target cluster, for a user (section 15.7); not the same as administrator."""
    everywhere = (
        _rule("", ["nodes"], "get"),
        _rule("", ["namespaces"], "get", names=[_SYSTEM]),
        _rule("cilium.io", ["ciliumnodeconfigs"], "list"),
        _rule("rbac.authorization.k8s.io", ["clusterrolebindings"], "get", "patch", "delete", names=["kube-proxy"]),
        _rule("rbac.authorization.k8s.io", ["clusterrolebindings"], "create"),
        _rule("rbac.authorization.k8s.io", ["clusterroles"], "bind", names=["system:node-proxier"]),
    )
    in_system = (
        _rule("", ["configmaps"], "get", "list", "watch", "create", "patch", "delete"),
        _rule("", ["pods"], "get", "list", "watch"),
        _rule("", ["services"], "get"),
        _rule("", ["serviceaccounts"], "get", "patch", "delete", names=["kube-proxy"]),
        _rule("apps", ["daemonsets"], "patch", "delete", names=["kube-proxy"]),
        _rule("apps", ["daemonsets", "deployments"], "get", "list", "watch"),
        _rule("", ["serviceaccounts"], "create"),
        _rule("apps", ["daemonsets"], "create"),
    )
    in_default = (_rule("", ["services"], "get", names=["kubernetes"]),)
    return (
        *_granted("ClusterRole", "", everywhere, user=user),
        *_granted("Role", _SYSTEM, in_system, user=user),
        *_granted("Role", "default", in_default, user=user),
    )


def _rule(group: str, resources: list[str], *verbs: str, names: Sequence[str] = ()) -> JsonObject:
    rule: dict[str, list[str]] = {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _granted(kind: str, namespace: str, rules: Sequence[JsonObject], *, user: str) -> tuple[JsonObject, JsonObject]:
    group = "rbac.authorization.k8s.io"
    metadata: JsonObject = {"name": "gitops-ctl-worker", **({"namespace": namespace} if namespace else {})}
    return (
        {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)},
        {
            "apiVersion": f"{group}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": "gitops-ctl-worker"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        },
    )


class Forwarder:
    """Stands for the data path of the Service `kubernetes`: connections to its address reach the API server while it runs.

    Port 443 needs root; with another one the worker is told `--service-probe-port`.
    """

    def __init__(self, server: str, *, port: int = 0) -> None:
        """`server` is the `host:port` of the API server; `port` 0 takes a free one."""
        self._host, _, self._to = server.rpartition(":")
        self.port = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Answer.

        Raises:
            OSError: the port is taken, or not allowed.
        """
        self._server = await asyncio.start_server(self._accept, SERVICE_ADDRESS, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Answer no longer; connections end."""
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._open):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            upstream, onward = await asyncio.open_connection(self._host, int(self._to))
            self._open.add(onward)
            await asyncio.gather(_copy(reader, onward), _copy(upstream, writer))
            self._open.discard(onward)
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        writer.transport.abort()
    finally:
        writer.close()
