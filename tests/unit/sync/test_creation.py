"""The first of the two applies that create a managed queue, when others act in between (topology-scheduling.md, 1.4, D6)."""

from collections.abc import Mapping
from typing import Any

import pytest

from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import FieldConflict
from gitops_ctl.scheduling.queue_documents import first_apply, give_back, is_managed_queue
from gitops_ctl.sync.creation import Creation, creation_of, make_safe, register_creation
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
CREATION = Creation("gitops-ctl-scheduling", is_managed_queue, first_apply, give_back)

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


async def test_a_server_that_does_not_answer_leaves_the_document_unsent():
    with pytest.raises(TransientError):
        await make_safe(CREATION, wanted(), send=Server(error=TransientError("lost")))


def test_only_what_asks_for_it_is_created_so():
    assert creation_of(desired(config_map())) is None
    register_creation(TRIAL, CREATION)
    with pytest.raises(ValueError, match="has a way of being created"):
        register_creation(TRIAL, CREATION)
