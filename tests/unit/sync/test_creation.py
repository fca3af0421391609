"""The first of the two applies that create a managed queue, when others act in between (topology-scheduling.md, 1.4, D6)."""

from collections.abc import Mapping
from typing import Any

import pytest

from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import FieldConflict
from gitops_ctl.scheduling.queue_documents import first_apply, give_back, is_managed_queue, take_along
from gitops_ctl.sync.creation import Creation, creation_of, keep_safe, make_safe, register_creation
from gitops_ctl.sync.desired import UnitSpec
from gitops_ctl.sync.model import Desired
from tests.support.sync import OWNER, config_map, desired

QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: pool
  labels: {resource.gpustack.ai/type: instancetypes, feature.gpustack.ai/acceleratable: "false"}
spec: {namespaceSelector: {}}
"""
CREATION = Creation("gitops-ctl-scheduling", is_managed_queue, first_apply, give_back, take_along)

TRIAL = GroupKind("trial.example.net", "Trial")


def wanted() -> Desired:
    return desired(QUEUE, unit=UnitSpec(OWNER, target_namespace="lab"))


def entry(manager: str, **members: Any) -> dict[str, Any]:
    return {"manager": manager, "fieldsV1": {"f:spec": {"f:stopPolicy": {}}}, **members}


class Server:
    """Answers an apply with an object that has these entries of managers, or with an error."""

    def __init__(self, *entries: dict[str, Any], error: Exception | None = None) -> None:
        self.entries, self.error = list(entries), error
        self.sent: list[tuple[str, Mapping[str, Any]]] = []

    async def __call__(self, body: JsonObject, manager: str) -> JsonObject:
        self.sent.append((manager, body))
        if self.error is not None:
            raise self.error
        return {"metadata": {"managedFields": self.entries}}


async def test_a_queue_that_this_apply_created_keeps_its_hold():
    server = Server(entry("gitops-ctl-scheduling"))
    await make_safe(CREATION, wanted(), send=server)
    assert server.sent == [("gitops-ctl-scheduling", first_apply(wanted().tree))]


async def test_a_repeated_apply_keeps_the_hold_of_a_queue_that_kueue_has_seen_in_between():
    """The reply of the first attempt was lost; Kueue puts its finalizer and a status on every new queue."""
    finalizers = {"f:metadata": {"f:finalizers": {".": {}, 'v:"kueue.x-k8s.io/resource-in-use"': {}}}}
    status = entry("kueue", subresource="status", fieldsV1={"f:status": {"f:conditions": {}}})
    server = Server(entry("gitops-ctl-scheduling"), entry("kueue", fieldsV1=finalizers), status)
    await make_safe(CREATION, wanted(), send=server)
    assert len(server.sent) == 1


@pytest.mark.parametrize(
    "fields", [{"f:spec": {}}, {"f:metadata": {"f:finalizers": {}, "f:labels": {}}}, {"f:metadata": {"f:labels": {}}}]
)
async def test_a_queue_that_somebody_created_in_between_gets_both_fields_back(fields):
    server = Server(entry("gitops-ctl-scheduling"), entry("somebody", fieldsV1=fields))
    await make_safe(CREATION, wanted(), send=server)
    assert [body.get("spec") for _, body in server.sent] == [{"stopPolicy": "Hold"}, None]
    assert server.sent[1] == (
        "gitops-ctl-scheduling",
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "pool"}},
    )


async def test_a_queue_whose_policy_somebody_holds_is_left_as_it_is():
    server = Server(error=FieldConflict("taken", causes=()))
    await make_safe(CREATION, wanted(), send=server)
    assert len(server.sent) == 1


def standing(*entries: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The queue as it was before it became managed."""
    metadata = {"name": "pool", "uid": "u", "managedFields": list(entries)}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": metadata, "spec": spec}


def applied(manager: str, *fields: str) -> dict[str, Any]:
    owned = {f"f:{name}": {} for name in fields}
    return {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": owned}}


async def test_what_the_document_lets_go_of_is_kept_under_the_other_manager():
    server = Server()
    live = standing(applied("gitops-ctl", "stopPolicy", "namespaceSelector"), stopPolicy="Hold", namespaceSelector={})
    await keep_safe(CREATION, live, send=server)
    ((manager, body),) = server.sent
    assert manager == "gitops-ctl-scheduling"
    assert body["spec"] == {"stopPolicy": "Hold"}
    assert body["metadata"] == {
        "name": "pool",
        "uid": "u",
        "annotations": {"topology.gpustack.ai/applied-stop-policy": "Hold"},
    }


async def test_a_hold_that_somebody_wrote_with_kubectl_stays_and_stays_theirs():
    """The take-over makes the field ours, and the document would let go of it."""
    server = Server()
    live = standing({**applied("kubectl-client-side-apply", "stopPolicy"), "operation": "Update"}, stopPolicy="Hold")
    await keep_safe(CREATION, live, send=server)
    ((_, body),) = server.sent
    assert (body["spec"], body["metadata"]) == ({"stopPolicy": "Hold"}, {"name": "pool", "uid": "u"})


@pytest.mark.parametrize(
    "entries",
    [
        (applied("gitops-ctl", "namespaceSelector"),),
        (applied("somebody", "stopPolicy"),),
        (applied("gitops-ctl", "stopPolicy"), applied("gitops-ctl-scheduling", "stopPolicy")),
        ({**applied("gitops-ctl", "stopPolicy"), "subresource": "status"},),
        (),
    ],
    ids=["nothing is let go of", "of somebody else", "kept already", "of a status", "nobody applied it"],
)
async def test_nothing_is_kept_that_does_not_go(entries):
    server = Server()
    await keep_safe(CREATION, standing(*entries, stopPolicy="Hold"), send=server)
    assert server.sent == []


async def test_a_policy_that_somebody_has_set_in_the_meantime_is_theirs():
    server = Server(error=FieldConflict("taken", causes=()))
    await keep_safe(CREATION, standing(applied("gitops-ctl", "stopPolicy"), stopPolicy="Hold"), send=server)
    assert len(server.sent) == 1


async def test_a_server_that_does_not_answer_leaves_the_document_unsent():
    with pytest.raises(TransientError):
        await make_safe(CREATION, wanted(), send=Server(error=TransientError("lost")))


def test_only_what_asks_for_it_is_created_so():
    assert creation_of(desired(config_map())) is None
    register_creation(TRIAL, CREATION)
    with pytest.raises(ValueError, match="has a way of being created"):
        register_creation(TRIAL, CREATION)
