"""One status write per pass, or none."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict, InternalError
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.kube.answers import FieldConflict, KindNotServed, ObjectReplaced
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import status_patch, swap_status, write_status
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import JumpingClock
from tests.support.kube_server import KubeServer, reply, status_object

SYNCS = Resource(GroupVersionKind("gitops-ctl.dev", "v1alpha1", "Sync"), "syncs", namespaced=True)
PATH = "/apis/gitops-ctl.dev/v1alpha1/namespaces/team-a/syncs/app/status"


def a_status(*, ready: str = "True", at: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at}], **more}


def an_object(status: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "app", "namespace": "team-a", "uid": "u1", "managedFields": [{}], "resourceVersion": "4"}
    return {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "status": status}


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        running.on("PATCH", PATH, reply(200, {}))
        yield running


@pytest.fixture
async def client(server: KubeServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(server.config(), component="test", clock=JumpingClock()) as made:
        yield made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a_status(), a_status()),
        (a_status(), a_status(at="2026-02-02T00:00:00Z")),
        (a_status(count=1), a_status(count=1.0)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({}, {}),
    ],
    ids=["equal", "only times", "one number type", "order of members", "empty"],
)
def test_promise_08_nothing_is_written_when_nothing_but_times_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert status_patch(old, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a_status(), a_status(ready="False")),
        (a_status(x=1), a_status()),
        (a_status(), a_status(x=1)),
        ({"list": [1, 2]}, {"list": [2, 1]}),
        ({"lastHandledReconcileAt": "2026-01-01T00:00:00Z"}, {"lastHandledReconcileAt": "2026-01-02T00:00:00Z"}),
        ({"bootTime": "short"}, {"bootTime": "long"}),
    ],
    ids=["value", "removed", "added", "order of a list", "a token that looks like a time", "a word named Time"],
)
def test_every_other_difference_is_written_whole(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert status_patch(old, new) == new


def test_members_of_another_writer_are_not_compared() -> None:
    assert status_patch({"a": 1, "worker": 2}, {"a": 1}, foreign=("worker",)) is None


async def test_promise_08_an_unchanged_status_costs_no_request(server: KubeServer, client: KubeClient) -> None:
    assert not await write_status(
        client, SYNCS, an_object(a_status()), a_status(at="2026-03-03T00:00:00Z"), manager="m"
    )
    assert server.requests == []


async def test_a_changed_status_is_one_apply_to_the_status_alone(server: KubeServer, client: KubeClient) -> None:
    new = a_status(ready="False")
    assert await write_status(client, SYNCS, an_object(a_status()), new, manager="gitops-ctl-sync") is not None
    (seen,) = server.requests
    assert seen.query == {"fieldManager": "gitops-ctl-sync", "fieldValidation": "Strict"}
    body = json.loads(seen.body)
    assert body["status"] == new
    assert body["metadata"] == {"name": "app", "namespace": "team-a", "uid": "u1"}
    assert set(body) == {"apiVersion", "kind", "metadata", "status"}


async def test_an_object_that_is_gone_needs_no_status(server: KubeServer, client: KubeClient) -> None:
    server.on("PATCH", PATH, reply(404, status_object(404, "NotFound", kind="syncs")))
    assert await write_status(client, SYNCS, an_object({}), a_status(), manager="m") is None


async def test_a_kind_that_is_gone_is_an_error(server: KubeServer, client: KubeClient) -> None:
    server.on("PATCH", PATH, reply(404, "404 page not found"))
    with pytest.raises(KindNotServed):
        await write_status(client, SYNCS, an_object({}), a_status(), manager="m")


async def test_another_owner_of_a_field_is_reported_and_not_overruled(server: KubeServer, client: KubeClient) -> None:
    causes = [{"reason": "FieldManagerConflict", "field": ".status.x", "message": 'conflict with "worker" using v1'}]
    server.on("PATCH", PATH, reply(409, status_object(409, "Conflict", causes=causes)))
    with pytest.raises(FieldConflict):
        await write_status(client, SYNCS, an_object({}), a_status(), manager="m")
    assert "force" not in server.requests[0].query


async def test_the_status_of_an_object_that_was_made_anew_is_not_overwritten(
    server: KubeServer, client: KubeClient
) -> None:
    causes = [{"field": "metadata.uid", "message": "field is immutable"}]
    server.on("PATCH", PATH, reply(422, status_object(422, "Invalid", causes=causes)))
    with pytest.raises(ObjectReplaced):
        await write_status(client, SYNCS, an_object({}), a_status(), manager="m")


async def test_a_status_over_half_a_megabyte_is_our_bug_and_is_not_sent(server: KubeServer, client: KubeClient) -> None:
    with pytest.raises(InternalError):
        await write_status(client, SYNCS, an_object({}), {"x": "y" * 600_000}, manager="m")
    assert server.requests == []


async def test_a_swap_names_the_version_that_was_read_and_gives_what_is_stored(
    server: KubeServer, client: KubeClient
) -> None:
    new = a_status(ready="False")
    read = an_object(a_status())
    read = {**read, "metadata": {**read["metadata"], "resourceVersion": "7"}}
    stored = await swap_status(client, SYNCS, read, new, manager="m")
    (seen,) = server.requests
    assert json.loads(seen.body)["metadata"]["resourceVersion"] == "7"
    assert stored is not None
    assert await swap_status(client, SYNCS, read, a_status(), manager="m") is None
    assert len(server.requests) == 1


async def test_a_swap_of_an_object_that_was_written_since_is_lost(server: KubeServer, client: KubeClient) -> None:
    server.on("PATCH", PATH, reply(409, status_object(409, "Conflict")))
    with pytest.raises(Conflict):
        await swap_status(client, SYNCS, an_object({}), a_status(), manager="m")
