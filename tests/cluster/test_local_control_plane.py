"""The control plane that tests and `gitops-ctl up` share: what it must allow, and refuse.

Out of scope: the command line around it (test_local_up_down.py).
"""

import asyncio
import ssl
import subprocess

import pytest

from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.processes import until

pytestmark = pytest.mark.cluster


def test_the_server_is_ready_and_of_the_pinned_version(control_plane: ControlPlaneHandle) -> None:
    assert control_plane.request("GET", "/readyz").body == "ok"
    assert control_plane.request("GET", "/version").body["gitVersion"] == control_plane.state.version


def test_an_anonymous_request_is_refused(control_plane: ControlPlaneHandle) -> None:
    context = ssl.create_default_context(cafile=str(control_plane.folder.certs / "ca.crt"))
    host, port = control_plane.url.removeprefix("https://").split(":")

    async def status_line() -> bytes:
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.write(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return line

    assert b" 401 " in asyncio.run(status_line())


def test_a_certificate_of_the_api_does_not_open_the_store(control_plane: ControlPlaneHandle) -> None:
    port = control_plane.folder.ports()[0]
    context = ssl.create_default_context(cafile=str(control_plane.folder.certs / "etcd-ca.crt"))
    certs = control_plane.folder.certs

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    context.load_cert_chain(certs / "admin.crt", certs / "admin.key")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        asyncio.run(ask())
    context.load_cert_chain(certs / "etcd-client.crt", certs / "etcd-client.key")
    assert b"etcdserver" in asyncio.run(ask())


def test_a_new_namespace_gets_its_service_account_and_its_owned_objects_are_collected(
    control_plane: ControlPlaneHandle, namespace: str
) -> None:
    owner = _create(control_plane, namespace, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    _create(control_plane, namespace, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    control_plane.request("DELETE", f"{path}/owner")
    until(lambda: control_plane.request("GET", f"{path}/owned").status == 404)
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    until(lambda: control_plane.request("GET", accounts).status == 200)


def test_another_identity_has_only_its_own_rights(
    control_plane: ControlPlaneHandle, namespace: str, audit_log: AuditLog
) -> None:
    kubeconfig = control_plane.kubeconfig_for("network-author", ("authors",))
    command = [control_plane.kubectl, "--kubeconfig", kubeconfig, "-n", namespace]
    asked = subprocess.run([*command, "auth", "whoami", "-o", "name"], capture_output=True, text=True, check=False)
    refused = subprocess.run([*command, "get", "secrets"], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert 'User "network-author" cannot list resource "secrets"' in refused.stderr
    entries = audit_log.entries(user="network-author", verbs=("list",), namespace=namespace)
    assert [entry["responseStatus"]["code"] for entry in entries] == [403]
    assert "authors" in entries[0]["user"]["groups"]
    assert audit_log.writes(user="network-author", namespace=namespace) == []


def _create(control_plane: ControlPlaneHandle, namespace: str, tree: dict[str, object]) -> dict[str, dict[str, str]]:
    answer = control_plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", tree)
    assert answer.status == 201, answer.body
    body: dict[str, dict[str, str]] = answer.body
    return body
