"""The state service: resources that follow from the active configuration; reading only."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import yaml
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import Message

from gitops_ctl.netpb.cosi import state_pb2, state_pb2_grpc
from gitops_ctl.netpb.talos.resource.config import config_pb2
from gitops_ctl.netpb.talos.resource.definitions.k8s import k8s_pb2
from gitops_ctl.netpb.talos.resource.definitions.runtime import runtime_pb2
from gitops_ctl.netpb.talos.resource.definitions.v1alpha1 import v1alpha1_pb2
from tools.peers.talos.faults import Faults
from tools.peers.talos.front import Front
from tools.peers.talos.machine import Machine
from tools.peers.talos.objects import checksum
from tools.peers.talos.rights import ADMIN, SENSITIVE, authorise

_K8S = "kubernetes.talos.dev"
NAMESPACES = {"config", "controlplane", "k8s", "runtime"}


@dataclass(frozen=True)
class Held:
    """One resource: its message, and what its YAML shows when that is something else."""

    spec: Message
    shown: object = None

    @property
    def yaml(self) -> str:
        """The same as YAML; a watch that only compares messages does not write it."""
        if isinstance(self.shown, str):
            return self.shown
        return yaml.safe_dump(json_format.MessageToDict(self.spec) if self.shown is None else self.shown)


def resources(machine: Machine) -> dict[tuple[str, str], dict[str, Held]]:
    """Everything that can be read, by namespace and type, then by id."""
    return {
        ("config", "MachineConfigs.config.talos.dev"): {
            name: Held(config_pb2.MachineConfigSpec(yaml_marshalled=text), text.decode())
            for name, text in (("v1alpha1", machine.active.text), ("persistent", machine.state.persistent))
        },
        ("config", "MachineTypes.config.talos.dev"): {
            "machine-type": Held(config_pb2.MachineTypeSpec(machine_type=machine.machine_type_number))
        },
        ("runtime", "Services.v1alpha1.talos.dev"): {
            name: Held(v1alpha1_pb2.ServiceSpec(running=service.running, healthy=service.healthy))
            for name, service in machine.services().items()
        },
        ("runtime", "BootIDs.runtime.talos.dev"): {"boot-id": Held(runtime_pb2.BootIDSpec(boot_id=machine.boot_id))},
        ("runtime", "MachineStatuses.runtime.talos.dev"): {"machine": Held(runtime_pb2.MachineStatusSpec(stage=4))},
        **_kubernetes(machine),
        **_control_plane(machine),
    }


def _kubernetes(machine: Machine) -> dict[tuple[str, str], dict[str, Held]]:
    port, name = machine.active.kubeprism_port, machine.state.nodename
    config = k8s_pb2.KubePrismConfigSpec(host="127.0.0.1", port=port or 0)
    status = k8s_pb2.KubePrismStatusesSpec(host=f"127.0.0.1:{port}", healthy=machine.staging.kubeprism_healthy)
    ready = machine.services().get("kubelet") is not None
    return {
        ("k8s", f"KubePrismConfigs.{_K8S}"): {"k8s-loadbalancer-config": Held(config)} if port else {},
        ("k8s", f"KubePrismStatuses.{_K8S}"): {"k8s-loadbalancer": Held(status)} if port else {},
        ("k8s", f"Nodenames.{_K8S}"): {"nodename": Held(k8s_pb2.NodenameSpec(nodename=name))},
        ("k8s", f"NodeStatuses.{_K8S}"): {name: Held(k8s_pb2.NodeStatusSpec(nodename=name, node_ready=ready))},
        ("k8s", f"StaticPodStatuses.{_K8S}"): {
            pod: Held(k8s_pb2.StaticPodStatusSpec(pod_status=_struct({"conditions": [_ready(is_ready)]})))
            for pod, is_ready in machine.static_pods().items()
        },
    }


def _control_plane(machine: Machine) -> dict[tuple[str, str], dict[str, Held]]:
    is_control_plane = machine.machine_type == "controlplane"
    proxy, manifests = machine.active.proxy, machine.manifests()
    config = k8s_pb2.BootstrapManifestsConfigSpec(
        proxy_enabled=proxy.enabled,
        proxy_image=proxy.image,
        proxy_config=_struct(proxy.config) if proxy.config is not None else None,
        proxy_config_checksum=checksum(proxy),
    )
    status = k8s_pb2.ManifestStatusSpec(manifests_applied=machine.manifests_applied)
    return {
        ("controlplane", f"BootstrapManifestsConfigs.{_K8S}"): {"manifests": Held(config)} if is_control_plane else {},
        ("controlplane", f"Manifests.{_K8S}"): {
            name: Held(
                k8s_pb2.ManifestSpec(items=[k8s_pb2.SingleManifest(object=_struct(item)) for item in items]), items
            )
            for name, items in manifests.items()
        },
        ("controlplane", f"ManifestStatuses.{_K8S}"): {"manifests": Held(status)} if is_control_plane else {},
    }


def _struct(tree: dict[str, Any]) -> struct_pb2.Struct:
    found = struct_pb2.Struct()
    found.update(tree)
    return found


def _ready(is_ready: bool) -> dict[str, str]:
    return {"type": "Ready", "status": "True" if is_ready else "False"}


class StateService(state_pb2_grpc.StateServicer):
    """Answers from `resources`."""

    def __init__(self, machine: Machine, *, front: Front, faults: Faults) -> None:
        self._machine = machine
        self._front = front
        self._faults = faults

    async def Get(self, request: state_pb2.GetRequest, context: grpc.aio.ServicerContext) -> state_pb2.GetResponse:
        found = await self._of_type("Get", request, context)
        if request.id not in found:
            text = f"resource {request.type}({request.namespace}/{request.id}@undefined) doesn't exist"
            await context.abort(grpc.StatusCode.NOT_FOUND, text)
        return state_pb2.GetResponse(resource=_resource(request, request.id, found[request.id]))

    async def List(
        self, request: state_pb2.ListRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[state_pb2.ListResponse]:
        for name, held in (await self._of_type("List", request, context)).items():
            yield state_pb2.ListResponse(resource=_resource(request, name, held))

    async def Watch(
        self, request: state_pb2.WatchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[state_pb2.WatchResponse]:
        await self._of_type("Watch", request, context)
        known: dict[str, bytes] = {}
        first = request.HasField("id") or request.options.bootstrap_contents
        while True:
            live = self._watched(request)
            events = [] if not (first or known) else _events(request, known, live)
            known = {name: held.spec.SerializeToString(deterministic=True) for name, held in live.items()}
            first = True
            if events:
                yield state_pb2.WatchResponse(event=events)
            await self._machine.wait_until(lambda known=known: self._differs(request, known))

    async def Create(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        await self._refuse(context)

    async def Update(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        await self._refuse(context)

    async def Destroy(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        await self._refuse(context)

    async def _refuse(self, context: grpc.aio.ServicerContext) -> None:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "write access is not allowed")

    async def _of_type(self, method: str, request: Any, context: grpc.aio.ServicerContext) -> dict[str, Held]:
        roles = await authorise(self._front, method, context)
        if request.namespace not in NAMESPACES:
            text = f'namespace "{request.namespace}" is not supported'
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        found = resources(self._machine).get((request.namespace, request.type))
        if found is None:
            text = f'resource type "{request.type}" is not supported'
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        if request.type in SENSITIVE and ADMIN not in roles:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not authorized")
        await self._faults.before(method, context)
        await self._faults.after(method)
        assert found is not None
        return found

    def _watched(self, request: state_pb2.WatchRequest) -> dict[str, Held]:
        found = resources(self._machine)[request.namespace, request.type]
        return {name: held for name, held in found.items() if not request.HasField("id") or name == request.id}

    def _differs(self, request: state_pb2.WatchRequest, known: dict[str, bytes]) -> bool:
        live = self._watched(request)
        return known != {name: held.spec.SerializeToString(deterministic=True) for name, held in live.items()}


def _events(request: Any, known: dict[str, bytes], live: dict[str, Held]) -> list[state_pb2.Event]:
    events = []
    for name, held in live.items():
        data = held.spec.SerializeToString(deterministic=True)
        if known.get(name) != data:
            kind = state_pb2.UPDATED if name in known else state_pb2.CREATED
            events.append(state_pb2.Event(resource=_resource(request, name, held), event_type=kind))
    gone = [name for name in known if name not in live]
    metadata = [state_pb2.Metadata(namespace=request.namespace, type=request.type, id=name) for name in gone]
    resources_gone = [state_pb2.Resource(metadata=one) for one in metadata]
    return events + [state_pb2.Event(resource=one, event_type=state_pb2.DESTROYED) for one in resources_gone]


def _resource(request: Any, name: str, held: Held) -> state_pb2.Resource:
    data = held.spec.SerializeToString(deterministic=True)
    version = str(int.from_bytes(hashlib.sha256(data).digest()[:4]))
    metadata = state_pb2.Metadata(
        namespace=request.namespace, type=request.type, id=name, version=version, phase="running"
    )
    return state_pb2.Resource(metadata=metadata, spec=state_pb2.Spec(proto_spec=data, yaml_spec=held.yaml))
