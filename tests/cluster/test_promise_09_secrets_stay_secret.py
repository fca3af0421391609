"""P9: secrets never reach status, events, logs, metrics, command output or error text (fault H22).

Marked values are planted wherever the product may meet one; then everything that it says is searched for them, also in base64.
"""

import asyncio
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gitops_ctl.local.ports import pick_ports
from tests.support.git_keys import SshKey
from tests.support.git_servers import Fault
from tests.support.manager_process import PASSWORD, Managed, managed_tenant, manager_plane  # noqa: F401
from tests.support.product import AUTHOR, SOURCE, config_map, people  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(420)]

MARKS = {
    "git password": PASSWORD,
    "bearer token": "planted-bearer-token",
    "webhook secret": "planted-webhook-secret",
    "user info of an address": "planted-user-info",
    "redirect of a server": "planted-redirect",
    "value of a Secret document": "planted-document-value",
    "value of a broken Secret document": "planted-broken-value",
    "value of a changed Secret": "planted-by-hand",
}


def places_of(text: str, marks: Mapping[str, str]) -> list[str]:
    """Which marks a text holds, plain or in base64 at any offset."""
    found = []
    for name, mark in marks.items():
        shifted = [b64encode(b"x" * pad + mark.encode()).decode()[4 if pad else 0 : -4] for pad in range(3)]
        if any(form in text for form in (mark, *shifted)):
            found.append(name)
    return found


def test_promise_09_the_search_finds_a_mark_in_any_form() -> None:
    marks = {"it": "planted-document-value"}
    for text in (
        "x planted-document-value",
        *(b64encode(b"y" * pad + b"planted-document-value!").decode() for pad in range(5)),
    ):
        assert places_of(text, marks) == ["it"], text
    assert places_of("nothing", marks) == []


def secret(name: str, value: str) -> str:
    return f"---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\nstringData:\n  password: {value}\n"


async def plant(managed: Managed, folder: Path) -> dict[str, str]:
    """Put the marks in place; gives all of them, with the lines of a private key."""
    tenant, admin = managed.tenant, managed.admin
    key = SshKey.generate(folder, name="deploy")
    private = key.path.read_text()
    secrets = f"/api/v1/namespaces/{tenant.namespace}/secrets"
    for name, data in (
        ("ssh", {"identity": private}),
        ("bearer", {"bearerToken": MARKS["bearer token"]}),
        ("hook", {"token": MARKS["webhook secret"]}),
    ):
        await admin.create(secrets, {"metadata": {"name": name}, "stringData": data})
    await admin.create(
        f"/api/v1/namespaces/{tenant.namespace}/configmaps",
        {"metadata": {"name": "hosts"}, "data": {"known_hosts": f"127.0.0.1 {key.public}"}},
    )
    tree: Any = await admin.get(tenant.source_path)
    sources: dict[str, dict[str, Any]] = {
        "over-ssh": {
            "url": "ssh://git@127.0.0.1:1/x.git",
            "credentialsSecretRef": {"name": "ssh"},
            "knownHostsConfigMapRef": {"name": "hosts"},
        },
        "with-bearer": {"credentialsSecretRef": {"name": "bearer"}},
        "redirected": {"url": managed.server.url("elsewhere.git")},
    }
    for name, spec in sources.items():
        body = {
            "apiVersion": tree["apiVersion"],
            "kind": "GitSource",
            "metadata": {"name": name, "namespace": tenant.namespace},
            "spec": {**tree["spec"], **spec},
        }
        if "caConfigMapRef" in body["spec"] and spec.get("url", "").startswith("ssh"):
            del body["spec"]["caConfigMapRef"]
        await admin.create(tenant.source_path.rpartition("/")[0], body)
    lines = {
        f"line {number} of a key": line for number, line in enumerate(private.splitlines()[1:-1]) if len(line) > 20
    }
    return {**MARKS, **lines}


async def live_through_it(managed: Managed) -> None:
    """Apply, drift, errors of documents and of servers: everything that makes the product speak."""
    tenant = managed.tenant
    away = f"https://{MARKS['user info of an address']}@localhost/{'x'}?token={MARKS['redirect of a server']}"
    managed.server.script(Fault(on="elsewhere.git", status=302, headers={"Location": away}, times=-1))
    await managed.start(options=["--log-level=debug", *managed_addresses(managed)])
    await tenant.until_applied(tenant.root)
    value, broken = MARKS["value of a Secret document"], MARKS["value of a broken Secret document"]
    files = {
        "site/good.yaml": secret("good", value),
        "site/wrong.yaml": secret("wrong", broken).replace("kind: Secret\n", "kind: Secret\ntype: kubernetes.io/tls\n"),
        "site/shape.yaml": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shape\ndata: {broken}\n",
        "site/broken.yaml": f"apiVersion: v1\nkind: Secret\nstringData:\n  password: '{broken}\n",
    }
    await managed.push(files)

    async def held() -> bool:
        found = str((await tenant.sync_status()).get("held", ()))
        return "wrong" in found and "broken.yaml" in found

    await until(held, what="broken Secrets are held", timeout_s=60)
    by_hand = {"stringData": {"password": MARKS["value of a changed Secret"]}}
    path = f"/api/v1/namespaces/{tenant.namespace}/secrets/good"
    await tenant.sync(drift="Report")
    await managed.admin.patch_merge(path, by_hand, manager="somebody")
    await tenant.request("site")
    await tenant.sync()
    await tenant.request("site")
    await managed.push({"site/base.yaml": config_map("base", "mine")}, by=AUTHOR)
    await tenant.until_reason("PathNotAuthorised")
    managed.server.script(Fault(on="repo/.git", status=401, times=1))
    await managed.poll()


def managed_addresses(managed: Managed) -> list[str]:
    (port,) = pick_ports(1)
    managed.metrics_url = f"http://127.0.0.1:{port}/metrics"
    return [f"--metrics-address=127.0.0.1:{port}"]


async def command(managed: Managed, *arguments: str, cwd: Path) -> str:
    """What a command of the product prints, on both streams."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gitops_ctl", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
        env={**os.environ, "KUBECONFIG": str(managed.plane.kubeconfig)},
    )
    output, _ = await process.communicate()
    return f"$ {' '.join(arguments)}\n{output.decode()}"


async def everything_said(managed: Managed) -> dict[str, str]:
    """Every text that the product has given out, by where it stands."""
    namespace, found = managed.tenant.namespace, {}
    ours = f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{namespace}"
    for path in (f"{ours}/gitsources", f"{ours}/syncs"):
        page = await managed.admin.list_all(path)
        trees: Any = page.items
        found[path] = str([tree.get("status") for tree in trees])
    for path in (f"{ours}/inventories", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"):
        found[path] = str((await managed.admin.list_all(path)).items)
    for process in managed.processes:
        found[process.log.name] = process.log.read_text()
    async with aiohttp.ClientSession() as session, session.get(managed.metrics_url) as answer:
        found["metrics"] = await answer.text()
    repo = managed.tenant.repo.path
    for arguments in (
        ("status", "-n", namespace),
        ("status", "-n", namespace, "-o", "json"),
        ("events", "-n", namespace),
        ("explain", "Secret/good", "-n", namespace),
        ("explain", "Secret/wrong", "-n", namespace),
        ("diff", "-n", namespace),
        ("diff", "site", "-n", namespace),
        ("check", "site"),
        ("check", "site", "-o", "json"),
        ("verify",),
    ):
        text = await command(managed, *arguments, cwd=repo)
        assert "Traceback" not in text, text
        found[" ".join(arguments)] = text
    return found


async def test_promise_09_planted_secrets_are_found_nowhere(managed: Managed, tmp_path: Path) -> None:
    marks = await plant(managed, tmp_path)
    await live_through_it(managed)
    said = await everything_said(managed)
    leaks = {where: places for where, text in said.items() if (places := places_of(text, marks))}
    assert leaks == {}
    assert len(said["metrics"]) > 1000
    assert SOURCE in said[f"status -n {managed.tenant.namespace}"]
