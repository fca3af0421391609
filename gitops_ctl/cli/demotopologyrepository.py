"""The repository of `gitops-ctl demo topology`: the example's hall of Nodes, and who may apply it."""

import shutil
from typing import Final

from gitops_ctl.api.manifests import manifest
from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.demoworld import begin
from gitops_ctl.cli.installing import TENANT_MANAGER, Tenant, granted, tenant_objects
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.gitserver import Login
from gitops_ctl.local.product import MANAGER_ACCOUNT, put
from gitops_ctl.local.workshop import Workshop

NAMESPACE: Final = "team-scheduling"
NAME: Final = "hall"
FOLDER: Final = "clusters/hall"
SOURCE_FILE: Final = f"{FOLDER}/inventory/source.yaml"
SNAPSHOT_FILE: Final = f"{FOLDER}/inventory/hall-7.yaml"
AUTHOR: Final = "platform-author"
NODES: Final = ("gpu-n01", "gpu-n02", "gpu-n03", "gpu-n04")
_RULE: Final = "topology/machine-types.yaml"
_ACCOUNT: Final = "applier"
_RACKS: Final = {"gpu-n01": "a1", "gpu-n02": "a2", "gpu-n03": "b1", "gpu-n04": "b2"}
_ZONE_LEVEL: Final = "    - topology.gpustack.ai/zone\n"


def first_commits(workshop: Workshop, url: str) -> tuple[str, str]:
    """The policy and the hall, signed and pushed; gives the root commit and the policy's digest."""
    example = manifest("examples-repo")
    target = begin(workshop, url)
    root = workshop.commit("Begin: who may change what", author="policy-admin-a")
    shutil.copytree(example / FOLDER, workshop.checkout / FOLDER)
    shutil.copy(example / _RULE, workshop.checkout / FOLDER / "inventory/machine-types.yaml")
    workshop.commit("Say where the Nodes of hall 7 stand, and who may use them", author=AUTHOR)
    workshop.push()
    return root, digest_bytes(target.read_bytes())


def with_racks(source: str, snapshot: str) -> tuple[str, str]:
    """Both documents with one level more: which rack each Node stands in."""
    wider = source.replace(_ZONE_LEVEL, f"{_ZONE_LEVEL}    - topology.gpustack.ai/rack\n")
    lines = [_in_rack(line) for line in snapshot.replace("hall-7/1", "hall-7/2").splitlines(keepends=True)]
    return wider, "".join(lines)


def _in_rack(line: str) -> str:
    name = line.strip().partition(":")[0]
    return line.replace("}", f", topology.gpustack.ai/rack: {_RACKS[name]}}}") if name in _RACKS else line


async def install_tenant(client: KubeClient, url: str, *, login: Login, pinned: tuple[str, str], ca: str) -> None:
    """What bootstrap does, with what its Sync needs for the documents of the hall.

    Args:
        pinned: root commit and digest of its policy.
    """
    root, digest = pinned
    tenant = Tenant(
        namespace=NAMESPACE,
        source=NAME,
        sync=NAME,
        url=url,
        branch="main",
        path=FOLDER,
        service_account=_ACCOUNT,
        root=root,
        policy_digest=digest,
        credentials={"username": login.user, "password": login.password},
        ca=ca,
        interval="5s",
    )
    mapper = Mapper(client)
    for wanted in (
        *tenant_objects(tenant),
        *granted(f"{NAMESPACE}-informers", _watched(), account=MANAGER_ACCOUNT, namespace=SYSTEM_NAMESPACE),
        *granted(f"{NAMESPACE}-{_ACCOUNT}", _rights(), account=_ACCOUNT, namespace=NAMESPACE),
    ):
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)


def _watched() -> list[JsonObject]:
    """What the manager needs to hear of drift in kinds that are not its own."""
    kinds = {"kueue.x-k8s.io": ["localqueues"], "nfd.k8s-sigs.io": ["nodefeaturerules"]}
    return [{"apiGroups": [group], "resources": names, "verbs": ["list", "watch"]} for group, names in kinds.items()]


def _rights() -> list[JsonObject]:
    verbs = ["get", "create", "patch", "delete"]
    kinds = {
        "": ["configmaps", "namespaces"],
        "worker.gpustack.ai": ["topologysources"],
        "kueue.x-k8s.io": ["clusterqueues", "localqueues"],
        "nfd.k8s-sigs.io": ["nodefeaturerules"],
    }
    return [{"apiGroups": [group], "resources": names, "verbs": verbs} for group, names in kinds.items()]
