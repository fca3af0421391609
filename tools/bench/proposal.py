"""A pull request on a real Gitea: from the moment in which a Proposal is stored to the moment in which a person can see it.

The manager is the product's own process with its shipped rights, on a real API server; each pull request is in a repository that the
manager has never seen, so the first fetch counts too.  Visible means: the forge lists it as open.
"""

import asyncio
import sys
import time
from base64 import b64encode
from typing import Any

from gitops_ctl.api.names import API_VERSION, SYSTEM_NAMESPACE
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.wanted import WantedProposal, proposal_tree
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.local.gitea import BOT, OWNER, GiteaServer, find_gitea
from gitops_ctl.local.giteaclient import GiteaClient
from gitops_ctl.local.product import MANAGER_ACCOUNT, put
from gitops_ctl.local.progress import progress_for
from tools.bench.figures import Figure, Report, Target
from tools.bench.world import NAMESPACE, World

TARGET_S = 2.0
POLL_S = 0.02
DEADLINE_S = 60.0
FILE = "clusters/site-1/cilium.yaml"
VALUES = b"# the CNI of site-1\nkubeProxyReplacement: false\nhubble:\n  enabled: true\n"

_RBAC = "rbac.authorization.k8s.io"
_SECRETS = ("git", "forge", "proposer")
_PARAMETERS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/gitops-ctl-admission"
_EDIT = (FILE, Edit(0, "/kubeProxyReplacement", "replace", False, True))


async def opening(made: World, report: Report, *, count: int) -> None:
    """Open `count` pull requests, one after the other, each in a repository of its own."""
    with progress_for(sys.stderr) as progress:
        program = await find_gitea(progress=progress)
    server = GiteaServer(program, made.folder / "gitea", clock=SystemClock())
    await server.start()
    try:
        await _prepare(made, server)
        await made.start_manager()
        async with server.client(OWNER) as owner:
            seconds = [await _open_one(made, server, owner, number) for number in range(count + 1)]
    finally:
        await made.stop_manager()
        await server.stop()
    # The first one also waits for the manager to lead.
    report.add(
        Figure(
            "a pull request, from the stored Proposal until the forge lists it",
            "s",
            tuple(seconds[1:]),
            target=Target(TARGET_S),
            note="real Gitea, first fetch of the repository included",
        )
    )


async def _prepare(made: World, server: GiteaServer) -> None:
    """The tenant: Secrets, the authority, the right to read them, and ours to write a Proposal as controllers do."""
    mapper, names = Mapper(made.client), {"namespace": NAMESPACE}
    key = server.folder.bot_key.read_text()
    token = server.folder.token(BOT)
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": list(_SECRETS), "verbs": ["get"]}
    maps = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["ca"], "verbs": ["get"]}
    account = {"kind": "ServiceAccount", "name": MANAGER_ACCOUNT, "namespace": SYSTEM_NAMESPACE}
    trees: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _secret("git", username=BOT, password=token),
        _secret("forge", token=token),
        _secret("proposer", identity=key),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ca", **names},
            "data": {"ca.crt": server.folder.ca_file.read_text()},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "proposals", **names},
            "rules": [rule, maps],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "proposals", **names},
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "proposals"},
            "subjects": [account],
        },
    ]
    for tree in trees:
        await put(made.client, mapper, wanted=tree, manager="bench")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer: Any = await made.client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    parameters: Any = await made.client.get(_PARAMETERS)
    writers = f"{parameters['data']['writers'].rstrip()}\n{answer['status']['userInfo']['username']}\n"
    await made.client.patch_merge(_PARAMETERS, {"data": {"writers": writers}})


def _secret(name: str, **data: str) -> JsonObject:
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


async def _open_one(made: World, server: GiteaServer, owner: GiteaClient, number: int) -> float:
    """Seconds until the forge lists the pull request of a new Proposal."""
    name = f"fabric-{number}"
    await owner.call("POST", "/user/repos", {"name": name, "auto_init": True, "default_branch": "main"})
    await owner.call("PUT", f"/repos/{OWNER}/{name}/collaborators/{BOT}", {"permission": "write"})
    content = {"content": b64encode(VALUES).decode(), "message": "values", "branch": "main"}
    await owner.call("POST", f"/repos/{OWNER}/{name}/contents/{FILE}", content)
    place = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
    await made.client.create(f"{place}/gitsources", _source(server, name))
    await asyncio.sleep(1.0)  # the source is polled and at rest: what is measured is the Proposal
    subject = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster", "namespace": NAMESPACE, "name": name}
    wanted = WantedProposal(NAMESPACE, name, name, subject, f"cni/{name}/replaced", "the switch waits", (_EDIT,))
    began = await _store(made, f"{place}/proposals", proposal_tree(wanted))
    while time.monotonic() - began < DEADLINE_S:
        found = await owner.call("GET", f"/repos/{OWNER}/{name}")
        if found.get("open_pr_counter") == 1:
            return time.monotonic() - began
        await asyncio.sleep(POLL_S)
    tree = await made.client.get(f"{place}/proposals/{name}")
    raise TimeoutError(f"no pull request within {DEADLINE_S:g} s: {tree.get('status')}")


def _source(server: GiteaServer, name: str) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "GitSource",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "url": f"{server.url}/{OWNER}/{name}.git",
            "ref": {"branch": "main"},
            "caConfigMapRef": {"name": "ca"},
            "credentialsSecretRef": {"name": "git"},
            "interval": "10m",
            "forge": {
                "provider": "gitea",
                "baseURL": server.url,
                "project": f"{OWNER}/{name}",
                "credentialsSecretRef": {"name": "forge"},
            },
            "proposer": {
                "name": "gitops-ctl",
                "email": f"{BOT}@example.net",
                "signingKeySecretRef": {"name": "proposer"},
            },
        },
    }


async def _store(made: World, collection: str, tree: JsonObject) -> float:
    """When the Proposal was sent; the parameters of the admission policy may need a moment to be read."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        began = time.monotonic()
        try:
            await made.client.create(collection, tree)
        except GitopsError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
        else:
            return began
