"""What `check` says about Kubernetes' own kinds, and what a real API server says about the same documents.

In scope: faults S01, S16, Y04, Y05 at the server; the generated schemas.  Out of scope: the messages of our own findings.
"""

import gzip
import json
from pathlib import Path

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.documents.builtin import builtin_kinds
from gitops_ctl.documents.schema import SchemaCatalog
from tests.support.documents import document
from tools.generate_builtin_schemas import TARGET, Server, generate

pytestmark = pytest.mark.cluster

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: %s}\nspec: {serviceAccountName: default, automountServiceAccountToken: false, containers: [{name: a, image: x, %s}]}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: %s}\nspec: {%s}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: %s}\n%s\n"

CASES = {
    "S01 env": (POD, "env: [{name: A, value: '1'}, {name: A, value: '2'}]", False),
    "S01 ports": (POD, "ports: [{containerPort: 53}, {containerPort: 53, protocol: TCP}]", False),
    "S01 tcp and udp": (POD, "ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]", True),
    "S01 service": (SERVICE, "ports: [{name: a, port: 1}, {name: b, port: 1}]", False),
    "Y04 boolean": (POD, "env: [{name: A, value: False}]", False),
    "Y05 number": (CONFIG, "data: {a: 0777}", False),
    "Y05 time": (CONFIG, "data: {a: 12:30:45, b: 2024-01-01}", True),
    "unknown member": (POD, "comand: [x]", False),
    "unknown at the top": (CONFIG, "dataa: {}", False),
    "enumeration": (POD, "imagePullPolicy: always", False),
    "missing": (POD, "ports: [{name: a}]", False),
    "base64": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: %s}\n%s\n",
        "data: {a: 'no base64!'}",
        False,
    ),
    "quantity": (POD, "resources: {limits: {cpu: 1, memory: 1Gi}}", True),
    "port name": (SERVICE, "ports: [{port: 1, targetPort: http}]", True),
    "list for a mapping": (CONFIG, "data: [a]", False),
}


@pytest.mark.parametrize("case", CASES)
async def test_check_and_the_server_agree(kube_admin, namespace, case):
    text, extra, is_good = CASES[case]
    item = document(text % (namespace, extra))
    plural = SchemaCatalog().plural_of(item.gvk)
    path = f"/api/v1/namespaces/{namespace}/{plural}/{item.id.name}"
    assert (SchemaCatalog().check(item) == []) == is_good
    assert await accepts(kube_admin, path, item.tree) == is_good


async def accepts(client, path, tree):
    try:
        await client.apply(path, tree, manager="check", dry_run=True)
    except GitopsError:
        return False
    return True


async def test_S16_a_member_without_a_value_gives_the_same_object_both_times(kube_admin, namespace):
    item = document(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: nulls, namespace: {namespace}, labels: null}}\ndata: {{a: x}}\nbinaryData:\n"
    )
    path = f"/api/v1/namespaces/{namespace}/configmaps/nulls"
    first = await kube_admin.apply(path, item.tree, manager="check")
    second = await kube_admin.apply(path, item.tree, manager="check")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert "binaryData" not in second


def test_the_committed_schemas_are_those_of_this_server(control_plane):
    server = Server(str(control_plane.kubectl), str(control_plane.kubeconfig))
    fresh = generate(server)
    committed = json.loads(gzip.decompress(Path(TARGET).read_bytes()))
    assert fresh["version"] == builtin_kinds().version
    assert {name: kind["plural"] for name, kind in committed["kinds"].items()} == {
        name: kind["plural"] for name, kind in fresh["kinds"].items()
    }
    assert committed["definitions"] == json.loads(json.dumps(fresh["definitions"]))
