"""One Talos machine over its API: read it, and apply a configuration to it (cni-switch.md, sections 7, 14 and 15).

Every machine is contacted by its own address, without the `node` key that would forward a call.  One call at a time; nothing is tried
again here.  Each call has a deadline.  `ApplyConfiguration`, also as a dry run, is sent only to the machine that was expected, over the
connection on which it said who it is.  Configurations hold every secret of a cluster: they are returned, and never written anywhere.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Literal, TypeVar

import grpc
from google.protobuf import empty_pb2, json_format
from google.protobuf.message import Message

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import InternalError
from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at
from gitops_ctl.netpb.cosi import state_pb2, state_pb2_grpc
from gitops_ctl.netpb.talos.machine import machine_pb2, machine_pb2_grpc
from gitops_ctl.netpb.talos.resource.config import config_pb2
from gitops_ctl.talos import resources
from gitops_ctl.talos.answers import apply_error_of, decoded, error_of, only
from gitops_ctl.talos.errors import AnswerUnusable, ApplyUnknown, ConfigRefused, WrongMachine, said_about
from gitops_ctl.talos.kubeconfig import MOST_BYTES, kubeconfig_in
from gitops_ctl.talos.machineconfig import secret_values
from gitops_ctl.talos.manifests import kube_proxy_objects, with_integers
from gitops_ctl.talos.model import ApplyResult, Expected, Identity, KubePrism, MachineType, ServiceState, StaticPod
from gitops_ctl.talos.resources import ResourceKind
from gitops_ctl.talos.talosconfig import TalosConfig
from gitops_ctl.talos.tunnel import Tunnel

M = TypeVar("M", bound=Message)

READ_S: Final = 30.0
APPLY_S: Final = 60.0
_MESSAGE_BYTES: Final = 32 * 2**20
_MOST_ITEMS: Final = 5000
_KUBE_PROXY_MANIFEST: Final = "10-kube-proxy"
_MACHINE_TYPES: Final[Mapping[int, MachineType]] = {
    config_pb2.UNKNOWN: "unknown",
    config_pb2.INIT: "init",
    config_pb2.CONTROL_PLANE: "controlplane",
    config_pb2.WORKER: "worker",
}
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class TalosClient:
    """One machine.  `async with`; one channel as long as that lasts.

    Every method raises MachineUnreachable, TlsRefused, NotAuthorised or AnswerUnusable; what else it raises it says itself.
    """

    def __init__(self, tunnel: Tunnel, *, address: str, expect: Expected | None) -> None:
        self._tunnel = tunnel
        self._address = address
        self._expect = expect
        self._turn = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._machine: machine_pb2_grpc.MachineServiceStub | None = None
        self._state: state_pb2_grpc.StateStub | None = None

    @classmethod
    def connect(
        cls, address: str, *, talosconfig: TalosConfig, clock: Clock, expect: Expected | None = None
    ) -> "TalosClient":
        """A client for the machine at `address`; nothing is sent before the first call.

        Raises:
            ConfigRefused: `address` is none.
        """
        try:
            return cls(Tunnel(address, talosconfig=talosconfig, clock=clock), address=address, expect=expect)
        except ValueError as error:
            raise ConfigRefused(str(error)) from None

    async def __aenter__(self) -> "TalosClient":
        await self._stack.enter_async_context(self._tunnel)
        channel = grpc.aio.insecure_channel(self._tunnel.target, options=_OPTIONS)
        await self._stack.enter_async_context(channel)
        self._machine = machine_pb2_grpc.MachineServiceStub(channel)
        self._state = state_pb2_grpc.StateStub(channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def version(self) -> str:
        """The version of Talos, for example `v1.14.0`."""
        reply = await self._unary("Version", empty_pb2.Empty(), reply=machine_pb2.VersionResponse)
        return only(reply.messages, method="Version", subject=self._address).version.tag

    async def machine_type(self) -> MachineType:
        """What the machine says that it is; `unknown` as long as it does not know."""
        spec = await self._get(resources.MACHINE_TYPES, "machine-type")
        return "unknown" if spec is None else _MACHINE_TYPES.get(spec.machine_type, "unknown")

    async def nodename(self) -> str:
        """Its name in Kubernetes; empty as long as it has none."""
        spec = await self._get(resources.NODENAMES, "nodename")
        return "" if spec is None else spec.nodename

    async def boot_id(self) -> str:
        """Changes with every boot; empty when it is not known."""
        spec = await self._get(resources.BOOT_IDS, "boot-id")
        return "" if spec is None else spec.boot_id

    async def identity(self) -> Identity:
        """Which machine this is."""
        return Identity(await self.version(), await self.nodename(), await self.machine_type())

    async def require_identity(self) -> Identity:
        """Which machine this is, and that it is the expected one.

        Raises:
            WrongMachine: it is another one.
        """
        expect = self._expect
        if expect is None:
            raise InternalError("a machine is changed only when it is said which one it must be")
        found = await self.identity()
        if (found.nodename, found.machine_type) != (expect.nodename, expect.machine_type):
            raise WrongMachine(
                f"{self._address} is the {found.machine_type} {found.nodename or 'without a name'},"
                f" not the {expect.machine_type} {expect.nodename}",
                subject=self._address,
            )
        return found

    async def machine_config(self, which: Literal["v1alpha1", "persistent"]) -> bytes:
        """The configuration exactly as it was submitted: the active one (`v1alpha1`), or the saved one.

        Raises:
            AnswerUnusable: the machine has none.
        """
        spec = await self._get(resources.MACHINE_CONFIGS, which)
        if spec is None:
            raise AnswerUnusable(f"the machine has no configuration {which}", subject=self._address)
        return bytes(spec.yaml_marshalled)

    async def apply_configuration(self, data: bytes, *, dry_run: bool) -> ApplyResult:
        """Hand over a whole configuration, to be taken without a reboot.  Sent once; also a dry run ends a `TRY` of somebody else.

        Raises:
            WrongMachine: another machine is at the address; nothing was sent.
            MachineBusy: another apply runs; nothing was changed.
            ApplyRefused: the configuration is not accepted; nothing was changed.
            ApplyUnknown: sent, and no reply (never of a dry run).
        """
        request = machine_pb2.ApplyConfigurationRequest(
            data=data, mode=machine_pb2.ApplyConfigurationRequest.NO_REBOOT, dry_run=dry_run
        )
        await self.version()
        async with self._pinned():
            await self.require_identity()
            reply = await self._apply(request)
        one = only(reply.messages, method="ApplyConfiguration", subject=self._address)
        known = secret_values(data)
        said, _, difference = one.mode_details.partition("Config diff:")
        return ApplyResult(
            mode=machine_pb2.ApplyConfigurationRequest.Mode.Name(one.mode),
            mode_details=said_about(said, known=known),
            warnings=tuple(said_about(text, known=known) for text in one.warnings),
            changed=bool(difference) if dry_run else None,
        )

    async def services(self) -> Mapping[str, ServiceState]:
        """Services by name.  One that is being restarted is missing for some seconds."""
        listed = await self._list(resources.SERVICES)
        return {name: ServiceState(spec.running, spec.healthy, spec.unknown) for name, spec in listed.items()}

    async def kube_prism(self) -> KubePrism | None:
        """The machine's load balancer for the API server; None when it has none."""
        config = await self._get(resources.KUBEPRISM_CONFIGS, "k8s-loadbalancer-config")
        if config is None:
            return None
        status = await self._get(resources.KUBEPRISM_STATUSES, "k8s-loadbalancer")
        return KubePrism(config.host, config.port, healthy=status is not None and status.healthy)

    async def bootstrap_proxy_enabled(self) -> bool | None:
        """Whether this control plane renders kube-proxy; None on a worker, or when that is not settled yet."""
        spec = await self._get(resources.BOOTSTRAP_MANIFESTS, "manifests")
        return None if spec is None else spec.proxy_enabled

    async def kube_proxy_manifests(self) -> tuple[JsonObject, ...] | None:
        """The objects that this control plane renders for kube-proxy, in the order of a restore; None when it renders none."""
        spec = await self._get(resources.MANIFESTS, _KUBE_PROXY_MANIFEST)
        if spec is None:
            return None
        return kube_proxy_objects(with_integers(json_format.MessageToDict(item.object)) for item in spec.items)

    async def static_pods(self) -> tuple[StaticPod, ...]:
        """The static pods of this machine with their readiness, by name."""
        listed = await self._list(resources.STATIC_POD_STATUSES)
        found = {name: json_format.MessageToDict(spec.pod_status) for name, spec in listed.items()}
        return tuple(StaticPod(name, ready=_is_ready(status)) for name, status in sorted(found.items()))

    async def kubeconfig(self) -> bytes:
        """An administrator's kubeconfig of the cluster; only a control plane gives it.  Keep it in memory only.

        Raises:
            AnswerUnusable: this is no control plane, or what came is no kubeconfig.
        """
        assert self._machine is not None
        received = bytearray()
        async with self._call("Kubeconfig"):
            async for part in self._machine.Kubeconfig(empty_pb2.Empty(), timeout=READ_S):
                received += part.bytes
                if len(received) > MOST_BYTES:
                    raise AnswerUnusable("Kubeconfig: the answer has no end", subject=self._address)
        try:
            return kubeconfig_in(bytes(received))
        except ValueError as error:
            raise AnswerUnusable(f"Kubeconfig: {error}", subject=self._address) from None

    async def _apply(self, request: machine_pb2.ApplyConfigurationRequest) -> machine_pb2.ApplyConfigurationResponse:
        assert self._machine is not None
        async with self._turn:
            try:
                reply: machine_pb2.ApplyConfigurationResponse
                reply = await self._machine.ApplyConfiguration(request, timeout=APPLY_S)
            except grpc.aio.AioRpcError as error:
                failure, known = self._tunnel.failure, secret_values(request.data)
                found = apply_error_of(error, subject=self._address, failure=failure, known=known)
                if request.dry_run and isinstance(found, ApplyUnknown):
                    # A dry run changes nothing, however it ended.
                    method = "ApplyConfiguration (dry run)"
                    found = error_of(error, method=method, subject=self._address, failure=failure)
                raise found from None
        return reply

    @asynccontextmanager
    async def _pinned(self) -> AsyncIterator[None]:
        """No other connection than the one that is open now."""
        self._tunnel.pinned = True
        try:
            yield
        finally:
            self._tunnel.pinned = False

    @asynccontextmanager
    async def _call(self, method: str) -> AsyncIterator[None]:
        """This call's turn; its failure becomes an error of ours."""
        async with self._turn:
            try:
                yield
            except grpc.aio.AioRpcError as error:
                raise error_of(error, method=method, subject=self._address, failure=self._tunnel.failure) from None

    async def _unary(self, method: str, request: Message, *, reply: type[M]) -> M:
        async with self._call(method):
            answer = await getattr(self._machine, method)(request, timeout=READ_S)
        assert isinstance(answer, reply)
        return answer

    async def _get(self, kind: ResourceKind[M], name: str) -> M | None:
        """The spec of one resource, or None when there is none of that name."""
        assert self._state is not None
        async with self._call(f"Get {kind.name}/{name}"):
            try:
                request = state_pb2.GetRequest(namespace=kind.namespace, type=kind.name, id=name)
                answer: state_pb2.GetResponse = await self._state.Get(request, timeout=READ_S)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return None
                raise
        return decoded(kind.message, answer.resource.spec.proto_spec, what=kind.name, subject=self._address)

    async def _list(self, kind: ResourceKind[M]) -> Mapping[str, M]:
        """Every resource of one kind, by its name."""
        assert self._state is not None
        found: dict[str, M] = {}
        async with self._call(f"List {kind.name}"):
            request = state_pb2.ListRequest(namespace=kind.namespace, type=kind.name)
            async for answer in self._state.List(request, timeout=READ_S):
                one: state_pb2.Resource = answer.resource
                found[one.metadata.id] = decoded(
                    kind.message, one.spec.proto_spec, what=kind.name, subject=self._address
                )
                if len(found) > _MOST_ITEMS:
                    raise AnswerUnusable(f"List {kind.name}: the answer has no end", subject=self._address)
        return found


def _is_ready(status: JsonObject) -> bool:
    conditions = {text_at(item, "type"): text_at(item, "status") for item in objects_at(status, "conditions")}
    return conditions.get("Ready") == "True"
