"""The repository of `gitops-ctl demo cni`: the example's cluster of Talos machines, on the demo's forge."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.cli.demoworld import begin
from gitops_ctl.cli.installing import TENANT_MANAGER, Tenant, granted, tenant_objects
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.loader import load
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.gitea import BOT, DOMAIN, OWNER, GiteaFolder
from gitops_ctl.local.giteaclient import GiteaClient
from gitops_ctl.local.product import put
from gitops_ctl.local.talosmachines import Role
from gitops_ctl.local.workshop import Workshop

NAMESPACE: Final = "network"
CLUSTER: Final = "north"
SOURCE: Final = "network"
FOLDER: Final = "clusters/north"
CLUSTER_FILE: Final = f"{FOLDER}/cluster.yaml"
VALUES_FILE: Final = "values/north/cilium.yaml"
AUTHOR: Final = "platform-author"
APPROVER: Final = "change-approver"
_MACHINES_FILE: Final = f"{FOLDER}/machines.yaml"
_ACCOUNT: Final = "applier"
_PROPOSER: Final = "gitops-ctl"
_FORGE_SECRET: Final = f"{SOURCE}-forge"
_PROPOSER_SECRET: Final = f"{SOURCE}-proposer"
_READY_S: Final = 30.0
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ExampleMachine:
    """A machine of the example: name, role, and the address that the demo replaces."""

    name: str
    role: Role
    address: str


def example_machines() -> tuple[ExampleMachine, ...]:
    """The machines that the example declares, in its order."""
    data = (manifest("examples-repo") / _MACHINES_FILE).read_bytes()
    return tuple(_machine(document.tree) for document in load(data, file=_MACHINES_FILE).documents)


def _machine(tree: JsonObject) -> ExampleMachine:
    role: Role = "controlplane" if text_at(tree, "spec", "role") == "controlplane" else "worker"
    return ExampleMachine(text_at(tree, "metadata", "name"), role, text_at(tree, "spec", "address"))


@dataclass(frozen=True, slots=True)
class Forge:
    """The Gitea of the demo with one repository."""

    url: str
    folder: GiteaFolder

    @property
    def project(self) -> str:
        return f"{OWNER}/{SOURCE}"

    @property
    def clone_url(self) -> str:
        return f"{self.url}/{self.project}.git"

    @property
    def ca(self) -> str:
        return self.folder.ca_file.read_text(encoding="ascii")

    def client(self, clock: Clock) -> GiteaClient:
        """Its API as the owner of the repository; a context manager."""
        login = (OWNER, self.folder.password(OWNER))
        return GiteaClient(self.url, login=login, ca=self.folder.ca_file.read_bytes(), clock=clock)

    async def have_repository(self, api: GiteaClient) -> None:
        """Make the empty repository; the bot may push, and a merge that a person pushes closes the pull request."""
        await api.call("POST", "/user/repos", {"name": SOURCE, "default_branch": "main"})
        path = f"/repos/{self.project}"
        await api.call("PATCH", path, {"allow_manual_merge": True, "autodetect_manual_merge": True})
        await api.call("PUT", f"{path}/collaborators/{BOT}", {"permission": "write"})

    async def until_not_empty(self, api: GiteaClient, clock: Clock) -> None:
        """Wait until the server has noticed the first push: before that it takes no pull request.

        Raises:
            TerminalError: it does not notice (LOCAL_SYSTEM).
        """
        deadline_s = clock.boot_s() + _READY_S
        while (await api.call("GET", f"/repos/{self.project}")).get("empty"):
            if clock.boot_s() > deadline_s:
                what = "Gitea does not notice the first push"
                raise TerminalError(what, code=ErrorCode.LOCAL_SYSTEM, subject=str(self.folder.log))
            await clock.sleep(_POLL_S)


def first_commits(workshop: Workshop, forge: Forge, *, addresses: Mapping[str, str]) -> tuple[str, str]:
    """The policy, and the cluster with the addresses of its machines, signed and pushed; gives root commit and policy digest."""
    example, checkout = manifest("examples-repo"), workshop.checkout
    target = begin(workshop, forge.clone_url)
    target.write_text(_with_proposer(target.read_text(encoding="utf-8"), forge), encoding="utf-8")
    root = workshop.commit("Begin: who may change what", author="policy-admin-a")
    for folder in (FOLDER, "values"):
        shutil.copytree(example / folder, checkout / folder)
    machines = checkout / _MACHINES_FILE
    text = machines.read_text(encoding="utf-8")
    for machine in example_machines():
        text = text.replace(f"address: {machine.address}\n", f"address: {addresses[machine.name]}\n")
    machines.write_text(text, encoding="utf-8")
    workshop.commit("Add the cluster north", author=AUTHOR)
    workshop.push()
    return root, digest_bytes(target.read_bytes())


def _with_proposer(policy: str, forge: Forge) -> str:
    """The policy with the key of this forge's bot in place of the printed one."""
    (document,) = load(policy.encode(), file=POLICY_PATH).documents
    own = " ".join(forge.folder.bot_key.with_suffix(".pub").read_text(encoding="ascii").split()[:2])
    for proposer in objects_at(document.tree, "proposers"):
        for key in objects_at(proposer, "keys"):
            policy = policy.replace(text_at(key, "ssh"), own)
    return policy


async def install_tenant(client: KubeClient, forge: Forge, *, root: str, digest: str) -> None:
    """What a person puts into the cluster: source, Sync, credentials, forge and proposer, and the rights that they need.

    Raises:
        GitopsError: the server does not take an object.
    """
    tenant = Tenant(
        namespace=NAMESPACE,
        source=SOURCE,
        sync=SOURCE,
        url=forge.clone_url,
        branch="main",
        path=FOLDER,
        service_account=_ACCOUNT,
        root=root,
        policy_digest=digest,
        credentials={"username": BOT, "password": forge.folder.token(BOT)},
        ca=forge.ca,
        interval="5s",
    )
    mapper = Mapper(client)
    for tree in tenant_objects(tenant):
        wanted = _with_forge(tree, tenant, forge)
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)
        if text_at(wanted, "kind") == "Namespace":
            for secret in _forge_secrets(forge):
                await put(client, mapper, wanted=secret, manager=TENANT_MANAGER)
    rules: list[JsonObject] = [
        {
            "apiGroups": ["ichor.maesh.dev"],
            "resources": ["talosclusters", "talosmachines"],
            "verbs": ["get", "create", "patch", "delete"],
        }
    ]
    for wanted in granted(f"{NAMESPACE}-{_ACCOUNT}", rules, account=_ACCOUNT, namespace=NAMESPACE):
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)


def _forge_secrets(forge: Forge) -> tuple[JsonObject, JsonObject]:
    """The token for its API and pushes, and the key that signs what is proposed."""
    token, key = forge.folder.token(BOT), forge.folder.bot_key.read_text(encoding="ascii")
    return _secret(_FORGE_SECRET, {"token": token}), _secret(_PROPOSER_SECRET, {"identity": key})


def _secret(name: str, data: Mapping[str, str]) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": {**data}}


def _with_forge(wanted: JsonObject, tenant: Tenant, forge: Forge) -> JsonObject:
    """The object, with forge and proposer on the source, and the manager's right to read what they name."""
    if text_at(wanted, "kind") == "GitSource":
        spec: dict[str, JsonValue] = {
            **object_at(wanted, "spec"),
            "forge": {
                "provider": "gitea",
                "baseURL": forge.url,
                "project": forge.project,
                "credentialsSecretRef": {"name": _FORGE_SECRET},
            },
            "proposer": {
                "name": _PROPOSER,
                "email": f"{BOT}@{DOMAIN}",
                "signingKeySecretRef": {"name": _PROPOSER_SECRET},
            },
        }
        return {**wanted, "spec": spec}
    if text_at(wanted, "kind") == "Role" and text_at(wanted, "metadata", "name") == tenant.role:
        named: JsonObject = {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [_FORGE_SECRET, _PROPOSER_SECRET],
            "verbs": ["get"],
        }
        return {**wanted, "rules": [*list_at(wanted, "rules"), named]}
    return wanted
