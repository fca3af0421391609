"""The Talos kinds on a real API server: what never changes, and what `kubectl get` shows.

Every keyword and rule of a single version is in tests/cluster/test_crds.py; the rules here compare with the old version.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.kinds import ALL_KINDS
from tests.support.api_talos import a_cluster, a_machine, a_patch, an_operation, full_talos_objects
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, install_crds

pytestmark = pytest.mark.cluster

PLURALS = {
    "TalosCluster": "talosclusters",
    "TalosMachine": "talosmachines",
    "TalosOperation": "talosoperations",
    "TalosConfigPatch": "talosconfigpatches",
}


@pytest.fixture(scope="module")
def server(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    yield api
    api.close()


def place_of(tree: dict[str, Any]) -> str:
    return f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{tree['metadata']['namespace']}/{PLURALS[tree['kind']]}"


def made(server: PlainApi, tree: dict[str, Any]) -> str:
    reply = server.post(place_of(tree), tree)
    assert reply.status == 201, reply.message
    return f"{place_of(tree)}/{tree['metadata']['name']}"


FIXED: tuple[tuple[Any, dict[str, Any], dict[str, Any]], ...] = (
    (a_machine, {"clusterRef": {"name": "south"}}, {"address": "192.0.2.12"}),
    (an_operation, {"clusterRef": {"name": "south"}}, {"clusterRef": {"name": "north"}}),
    (an_operation, {"target": "enabled"}, {"target": "replaced"}),
    (an_operation, {"sourceCommit": "90ce" * 10}, {"kind": "cni"}),
)


@pytest.mark.parametrize(
    ("kind", "bad", "good"), FIXED, ids=lambda value: str(value) if isinstance(value, dict) else ""
)
def test_what_a_record_is_about_never_changes(server: PlainApi, namespace: str, kind: Any, bad: Any, good: Any):
    path = made(server, kind(namespace=namespace))
    refused = server.merge(path, {"spec": bad})
    assert refused.status == 422
    assert f"spec.{next(iter(bad))}" in refused.message
    assert "must not change" in refused.message
    assert server.merge(path, {"spec": good}).status == 200


def test_every_rule_about_the_old_version_has_a_case():
    tried = {(case[0]()["kind"], name) for case in FIXED for name in case[1]} | {("TalosOperation", "kind")}
    stated = {
        (crd["spec"]["names"]["kind"], name)
        for crd in map(_as_any, ALL_KINDS)
        for name, part in crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
            "properties"
        ].items()
        if any("oldSelf" in rule["rule"] for rule in part.get("x-kubernetes-validations", ()))
        and crd["spec"]["group"] == "ichor.maesh.dev"
    }
    assert stated == tried


def _as_any(model: Any) -> Any:
    return crd_of(model)


def test_the_only_kind_of_an_operation_cannot_become_another(server: PlainApi, namespace: str):
    path = made(server, an_operation(namespace=namespace))
    assert server.merge(path, {"spec": {"kind": "upgrade"}}).status == 422


@pytest.mark.parametrize(
    ("tree", "shown"),
    [
        (a_cluster(cni={"kubeProxy": "replaced"}), ["north", "replaced", "enabled", "mixed", "north-1"]),
        (a_machine(), ["cp-1", "north", "controlplane", "enabled", "True", "Succeeded"]),
        (an_operation(), ["north-1", "north", "cni", "replaced", "SwitchingMachines", "replaced/5-switch-machines"]),
        (a_patch(), ["cni", "north"]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_table_shows_what_is_asked_for_and_where_it_stands(server, namespace: str, tree: Any, shown: list[str]):
    tree = {**tree, "metadata": {**tree["metadata"], "namespace": namespace}}
    path = made(server, tree)
    status = full_talos_objects()[tree["kind"]].get("status")
    if status is not None:
        assert server.merge(f"{path}/status", {"status": status}).status == 200
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    table = server.get(f"{place_of(tree)}?includeObject=None", accept=accept).body
    columns = [column["priority"] for column in table["columnDefinitions"]]
    cells = [cell for cell, priority in zip(table["rows"][0]["cells"], columns, strict=True) if priority == 0]
    assert cells[:-1] == shown
