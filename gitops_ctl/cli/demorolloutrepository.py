"""The repository of `gitops-ctl demo rollout`: the example's switches at the addresses of the stand-ins, and who may apply them."""

import shutil
from collections.abc import Mapping
from typing import Final

import yaml

from gitops_ctl.api.manifests import manifest
from gitops_ctl.cli.demoworld import begin
from gitops_ctl.cli.installing import TENANT_MANAGER, Tenant, granted, tenant_objects
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.loader import load
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.gitserver import Login
from gitops_ctl.local.ports import LOOPBACK
from gitops_ctl.local.product import put
from gitops_ctl.local.switches import Ports, Served, Switch
from gitops_ctl.local.workshop import Workshop

NAMESPACE: Final = "campus"
NAME: Final = "campus"
FOLDER: Final = "clusters/campus"
ROLLOUT: Final = f"{FOLDER}/rollouts/to-17-18.yaml"
PLATFORM: Final = "platform-author"
AUTHOR: Final = "network-author"
APPROVER: Final = "change-approver"
_ACCOUNT: Final = "applier"
_FRESH_S: Final = 30
"""How old evidence of health may be: it is renewed at a third of that, and each switch waits for new evidence after its upgrade."""
_VERBS: Final = ("get", "create", "patch", "delete")


def example_switches(failing: Mapping[str, tuple[str, ...]]) -> tuple[Switch, ...]:
    """The switches that the example declares, in its order.

    Args:
        failing: versions that a switch does not boot, by its name.
    """
    found = []
    for file in sorted((manifest("examples-repo") / FOLDER / "inventory").glob("*.yaml")):
        for document in load(file.read_bytes(), file=file.name).documents:
            name = text_at(document.tree, "metadata", "name")
            serial = text_at(document.tree, "spec", "physicalIdentity")
            found.append(Switch(name, serial, failing.get(name, ())))
    return tuple(found)


def first_commits(workshop: Workshop, url: str, *, ports: Mapping[str, Ports]) -> tuple[str, str]:
    """The policy, then fleet and inventory, signed and pushed; gives the root commit and the policy's digest."""
    example, checkout = manifest("examples-repo"), workshop.checkout
    target = begin(workshop, url)
    root = workshop.commit("Begin: who may change what", author="policy-admin-a")
    for part in ("policy", "inventory"):
        shutil.copytree(example / FOLDER / part, checkout / FOLDER / part)
    fleet = checkout / FOLDER / "policy/fleet.yaml"
    text = fleet.read_text(encoding="utf-8").replace(
        '"healthFreshnessSeconds": 300', f'"healthFreshnessSeconds": {_FRESH_S}'
    )
    fleet.write_text(text, encoding="utf-8")
    for file in sorted((checkout / FOLDER / "inventory").glob("*.yaml")):
        trees = [at_loopback(one.tree, ports) for one in load(file.read_bytes(), file=file.name).documents]
        file.write_text(yaml.safe_dump_all(trees, sort_keys=False), encoding="utf-8")
    workshop.commit("Add the access switches and what every rollout keeps to", author=PLATFORM)
    workshop.push()
    return root, digest_bytes(target.read_bytes())


def at_loopback(tree: JsonObject, ports: Mapping[str, Ports]) -> JsonObject:
    """The document of a switch with the address of its stand-in."""
    own, spec = ports[text_at(tree, "metadata", "name")], object_at(tree, "spec")
    gnoi = {**object_at(spec, "gnoi"), "port": own.gnoi}
    left = {name: value for name, value in spec.items() if name != "username"}
    return {**tree, "spec": {**left, "address": LOOPBACK, "netconfPort": own.netconf, "gnoi": gnoi}}


def rollout_document(name: str, version: str, image: Served) -> str:
    """The example's rollout for an image of the stand-in; soaks are a second long, because the story is."""
    text = (manifest("examples-repo") / ROLLOUT).read_text(encoding="utf-8")
    (document,) = load(text.encode(), file=ROLLOUT).documents
    plan = object_at(document.tree, "spec", "plan")
    source = {"name": "everywhere", "priority": 100, "url": image.url}
    wanted = {
        **plan,
        "image": {**object_at(plan, "image"), "sha256": image.sha256.removeprefix("sha256:"), "sources": [source]},
        "targetVersion": version,
        "health": {"maxObservationAgeSeconds": _FRESH_S, "canarySoakSeconds": 1, "waveSoakSeconds": 1},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return yaml.safe_dump({**document.tree, "metadata": metadata, "spec": {"plan": wanted}}, sort_keys=False)


async def install_tenant(client: KubeClient, url: str, *, login: Login, pinned: tuple[str, str], ca: str) -> None:
    """What bootstrap does, with what its Sync needs for switches, rollouts and the fleet policy.

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
    rights = granted(f"{NAMESPACE}-{_ACCOUNT}", _rights(), account=_ACCOUNT, namespace=NAMESPACE)
    for wanted in (*tenant_objects(tenant), *rights):
        await put(client, mapper, wanted=wanted, manager=TENANT_MANAGER)


def _rights() -> list[JsonObject]:
    """The plain verbs, and those of the contract that only a Sync's account may carry into the cluster."""
    rollout = [*_VERBS, "approve", "activate", "control", "recover"]
    return [
        {"apiGroups": ["cisco.vk"], "resources": ["ciscodevices"], "verbs": [*_VERBS, "topology"]},
        {"apiGroups": ["ops.cisco.vk"], "resources": ["iosxesoftwarerollouts"], "verbs": rollout},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": [*_VERBS, "topology"]},
    ]
