"""Resources of the stand-in: watches, and what `talosctl` would show as YAML beside the messages (cni-switch.md, 14.5)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
import yaml
from google.protobuf import json_format

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.netpb.cosi import state_pb2, state_pb2_grpc
from gitops_ctl.netpb.talos.resource.definitions.k8s import k8s_pb2
from gitops_ctl.talos.machineconfig import edited
from gitops_ctl.talos.manifests import with_integers
from gitops_ctl.talos.talosconfig import parse_talosconfig
from gitops_ctl.talos.tunnel import Tunnel
from tests.support.talos_bench import MachineBench, control_plane_machine, one_control_plane

pytestmark = pytest.mark.peers
__all__ = ["control_plane_machine", "one_control_plane"]

MANIFESTS = {"namespace": "controlplane", "type": "Manifests.kubernetes.talos.dev"}


@asynccontextmanager
async def states(bench: MachineBench) -> AsyncIterator[state_pb2_grpc.StateStub]:
    config = parse_talosconfig(bench.pki.talosconfig())
    async with Tunnel(bench.machine.address, talosconfig=config, clock=SystemClock()) as tunnel:
        async with grpc.aio.insecure_channel(tunnel.target) as channel:
            yield state_pb2_grpc.StateStub(channel)


async def switched(bench: MachineBench, mode: str) -> None:
    async with bench.client() as client:
        base = await client.machine_config("v1alpha1")
        wanted = edited(base, mode=mode, contract="v1.14", role="controlplane")  # type: ignore[arg-type]
        await client.apply_configuration(wanted, dry_run=False)


async def next_events(watch: AsyncIterator[state_pb2.WatchResponse]) -> list[tuple[int, str]]:
    async with asyncio.timeout(10):
        answer = await anext(watch)
    return [(event.event_type, event.resource.metadata.id) for event in answer.event]


async def test_a_watch_on_one_resource_tells_the_present_state_first_and_then_what_changes(
    control_plane_machine: MachineBench,
):
    async with states(control_plane_machine) as stub:
        watch = aiter(stub.Watch(state_pb2.WatchRequest(**MANIFESTS, id="10-kube-proxy"), timeout=30))
        assert await next_events(watch) == [(state_pb2.CREATED, "10-kube-proxy")]
        await switched(control_plane_machine, "replaced")
        assert await next_events(watch) == [(state_pb2.DESTROYED, "10-kube-proxy")]
        await switched(control_plane_machine, "enabled")
        assert await next_events(watch) == [(state_pb2.CREATED, "10-kube-proxy")]


async def test_the_message_with_its_floats_made_integers_is_what_the_yaml_says(control_plane_machine: MachineBench):
    async with states(control_plane_machine) as stub:
        (answer,) = [one async for one in stub.List(state_pb2.ListRequest(**MANIFESTS), timeout=10)]
    spec = k8s_pb2.ManifestSpec.FromString(answer.resource.spec.proto_spec)
    objects = [with_integers(json_format.MessageToDict(item.object)) for item in spec.items]
    assert objects == yaml.safe_load(answer.resource.spec.yaml_spec)


async def test_a_reader_may_not_see_configurations(control_plane_machine: MachineBench):
    config = parse_talosconfig(control_plane_machine.pki.talosconfig(roles=("os:reader",)))
    async with Tunnel(control_plane_machine.machine.address, talosconfig=config, clock=SystemClock()) as tunnel:
        async with grpc.aio.insecure_channel(tunnel.target) as channel:
            stub = state_pb2_grpc.StateStub(channel)
            request = state_pb2.ListRequest(namespace="config", type="MachineConfigs.config.talos.dev")
            with pytest.raises(grpc.aio.AioRpcError, match="not authorized"):
                _ = [one async for one in stub.List(request, timeout=10)]
