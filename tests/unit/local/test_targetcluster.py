"""The pieces of a target cluster: valid objects, narrow rights, and a forwarder that starts and stops."""

import asyncio
from typing import Any

import kubernetes_validate
import pytest

from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.targetcluster import (
    SERVICE_ADDRESS,
    SERVICE_RANGE,
    CiliumValues,
    Forwarder,
    cilium_objects,
    target_options,
    worker_rights,
)

CHECKSUM = "cilium.io/cilium-configmap-checksum"


def agents(values: CiliumValues) -> Any:
    return next(tree for tree in cilium_objects(values) if tree["kind"] == "DaemonSet")


@pytest.mark.parametrize("values", [CiliumValues(), CiliumValues(True, True, host="localhost", port=7445)])
def test_the_objects_are_valid_and_the_configuration_comes_first(values: CiliumValues) -> None:
    objects: Any = cilium_objects(values)
    assert [tree["kind"] for tree in objects] == ["ConfigMap", "DaemonSet", "Deployment"]
    for tree in [*objects, *worker_rights("worker")]:
        kubernetes_validate.validate(tree, "1.34", strict=True)


def test_the_template_changes_with_the_configuration_only_when_pods_are_to_be_rolled_out() -> None:
    before, after = agents(CiliumValues(False, True)), agents(CiliumValues(True, True))
    marks = [tree["spec"]["template"]["metadata"]["annotations"][CHECKSUM] for tree in (before, after)]
    assert marks[0] != marks[1]
    assert agents(CiliumValues(False)) == agents(CiliumValues(True))


def test_the_nodes_have_the_names_of_the_machines() -> None:
    options = target_options(("cp-1", "worker-1"))
    assert (options.nodes, options.node_names, options.service_range) == (2, ("cp-1", "worker-1"), SERVICE_RANGE)
    assert Options().node_names == ()


def test_the_narrow_rights_touch_nothing_but_kube_proxy() -> None:
    rules = [rule for tree in worker_rights("worker") for rule in tree.get("rules", ())]  # type: ignore[union-attr]
    assert "secrets" not in {resource for rule in rules for resource in rule["resources"]}  # type: ignore[index,call-overload]
    for rule in rules:
        verbs: Any = rule["verbs"]  # type: ignore[index,call-overload]
        changes = {"delete", "patch"} & set(verbs)
        if changes and rule["resources"] != ["configmaps"]:  # type: ignore[index,call-overload]
            assert rule["resourceNames"] == ["kube-proxy"]  # type: ignore[index,call-overload]


async def test_the_forwarder_answers_while_it_runs() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(5))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        forwarder = Forwarder(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await forwarder.start()
        reader, writer = await asyncio.open_connection(SERVICE_ADDRESS, forwarder.port)
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        writer.close()
        await forwarder.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(SERVICE_ADDRESS, forwarder.port)
        await forwarder.start()
        reader, writer = await asyncio.open_connection(SERVICE_ADDRESS, forwarder.port)
        writer.close()
        await forwarder.stop()
