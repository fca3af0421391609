"""What `plan rollout` looks at: the objects of a cluster with the user's own rights, files of kubectl, or the documents of a checkout."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gitops_ctl.cli.topologyfiles import objects_in
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Forbidden, NotFound, Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.documents.collection import load_directory
from gitops_ctl.documents.worktree import repository_root
from gitops_ctl.fleet.names import COMPONENT, COMPONENT_POLICY, DEVICE_KIND, GROUP, OPERATIONS_GROUP, POLICY_KEY
from gitops_ctl.rollout.sources import SourceSecret, source_secret_of

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

DEVICES: Final = f"/apis/{GROUP}/v1alpha1"
_ROLLOUTS: Final = f"/apis/{OPERATIONS_GROUP}/v1alpha1"
_WHICH: Final = "name one with --policy-name NAMESPACE/NAME"


@dataclass(frozen=True, slots=True)
class RolloutWorld:
    """The objects that a plan depends on.

    Attributes:
        secrets: source Secrets by name; None where they could not be read.
        live: the rollout as it is in the cluster; None where there is none, or no cluster was asked.
        observed: False where devices are documents without a state.
        unseen: what could not be looked at, in words.
    """

    policy: JsonObject
    devices: tuple[JsonObject, ...]
    nodes: tuple[JsonObject, ...] = ()
    leaves: tuple[JsonObject, ...] = ()
    secrets: Mapping[str, SourceSecret] | None = None
    live: JsonObject | None = None
    observed: bool = True
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorldFiles:
    """Where the objects of a cluster are, when none is asked; what is not given comes from the checkout."""

    devices: Path | None
    nodes: Path | None
    policy: Path | None
    secrets: Path | None
    leaves: Path | None

    @property
    def given(self) -> tuple[str, ...]:
        names = ("devices", "nodes", "policy", "secrets", "leaves")
        return tuple(f"--{name}" for name in names if getattr(self, name) is not None)


def world_in_files(files: WorldFiles, *, beside: Path, namespace: str) -> RolloutWorld:
    """The objects from files, devices and policy otherwise from the checkout that `beside` lies in.

    Args:
        namespace: of documents that name none.

    Raises:
        Refused: a file cannot be used, or there is no policy, or several.
    """
    documents = tuple(_documents(beside)) if files.devices is None or files.policy is None else ()
    devices = _of_kind(documents, DEVICE_KIND) if files.devices is None else objects_in(files.devices, kind=DEVICE_KIND)
    policies = documents if files.policy is None else objects_in(files.policy, kind="ConfigMap")
    devices = tuple(_placed(tree, namespace) for tree in devices)
    return RolloutWorld(
        policy=_one_policy(policies, "pass --policy FILE"),
        devices=devices,
        nodes=() if files.nodes is None else objects_in(files.nodes, kind="Node"),
        leaves=() if files.leaves is None else objects_in(files.leaves, kind="IOSXESoftwareUpgrade"),
        secrets=None if files.secrets is None else _secrets(objects_in(files.secrets, kind="Secret")),
        observed=files.nodes is not None and any(object_at(tree, "status") for tree in devices),
    )


def world_of_documents(trees: Iterable[JsonObject], *, namespace: str) -> RolloutWorld:
    """What the documents of a checkout alone tell.

    Args:
        namespace: of devices that name none.

    Raises:
        Refused: there is no policy, or several.
    """
    documents = tuple(trees)
    devices = tuple(_placed(tree, namespace) for tree in _of_kind(documents, DEVICE_KIND))
    return RolloutWorld(_one_policy(documents, "commit the fleet policy"), devices, observed=False)


def _documents(beside: Path) -> Iterator[JsonObject]:
    root = repository_root(beside.parent)
    return (document.tree for document in load_directory(root).documents)


def _of_kind(trees: Iterable[JsonObject], kind: str) -> tuple[JsonObject, ...]:
    return tuple(tree for tree in trees if text_at(tree, "kind") == kind)


def _placed(tree: JsonObject, namespace: str) -> JsonObject:
    meta = object_at(tree, "metadata")
    return tree if text_at(meta, "namespace") else {**tree, "metadata": {**meta, "namespace": namespace}}


def _one_policy(trees: Iterable[JsonObject], hint: str) -> JsonObject:
    found = [tree for tree in trees if text_at(object_at(tree, "data"), POLICY_KEY)]
    if len(found) == 1:
        return found[0]
    named = ", ".join(f"{text_at(tree, 'metadata', 'namespace')}/{text_at(tree, 'metadata', 'name')}" for tree in found)
    message = f"there are several fleet policies: {named}" if found else f"there is no ConfigMap with {POLICY_KEY}"
    raise Refused(message, code=ErrorCode.USAGE, hint=hint)


def _secrets(trees: Iterable[JsonObject]) -> Mapping[str, SourceSecret]:
    read = (source_secret_of(tree) for tree in trees)
    return {secret.name: secret for secret in read}


@dataclass(slots=True)
class Looking:
    """Reads with the user's rights; what they do not allow is noted and left out."""

    client: "KubeClient"
    namespace: str
    unseen: list[str] = field(default_factory=list)

    async def world(self, rollout: JsonObject, *, policy: str) -> RolloutWorld:
        """Everything that the plan of `rollout` depends on.

        Args:
            policy: `namespace/name` of the fleet policy; "" finds it by its label.

        Raises:
            GitopsError: the server does not answer, or what no plan can do without cannot be read.
        """
        name = text_at(rollout, "metadata", "name")
        return RolloutWorld(
            policy=await self.find_policy(policy),
            devices=await self._devices(),
            nodes=tuple((await self.client.list_all("/api/v1/nodes")).items),
            leaves=tuple((await self.client.list_all(self._path("iosxesoftwareupgrades"))).items),
            secrets=await self.source_secrets(rollout),
            live=await self.client.find(f"{self._path('iosxesoftwarerollouts')}/{name}"),
            unseen=tuple(self.unseen),
        )

    def _path(self, plural: str) -> str:
        return f"{_ROLLOUTS}/namespaces/{self.namespace}/{plural}"

    async def find_policy(self, named: str) -> JsonObject:
        """The ConfigMap of the fleet policy, as for `world`.

        Raises:
            NotFound, Refused: there is none, or several.
        """
        if named:
            namespace, _, name = named.partition("/")
            tree = await self.client.find(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
            if tree is None:
                raise NotFound(f"there is no ConfigMap {named}", hint=_WHICH)
            return tree
        selector = f"{COMPONENT}={COMPONENT_POLICY}"
        return _one_policy((await self.client.list_all("/api/v1/configmaps", label_selector=selector)).items, _WHICH)

    async def _devices(self) -> tuple[JsonObject, ...]:
        try:
            return tuple((await self.client.list_all(f"{DEVICES}/ciscodevices")).items)
        except Forbidden:
            self.unseen.append("the devices of other namespaces")
            path = f"{DEVICES}/namespaces/{self.namespace}/ciscodevices"
            return tuple((await self.client.list_all(path)).items)

    async def source_secrets(self, rollout: JsonObject) -> Mapping[str, SourceSecret] | None:
        """The Secrets that the sources of a rollout name, those that are there; None where they may not be read."""
        sources = objects_at(rollout, "spec", "plan", "image", "sources")
        names = sorted({name for source in sources if (name := text_at(source, "urlSecretRef", "name"))})
        try:
            trees = [await self.client.find(f"/api/v1/namespaces/{self.namespace}/secrets/{name}") for name in names]
        except Forbidden:
            return None
        return _secrets(tree for tree in trees if tree is not None)
