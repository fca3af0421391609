"""Reads, removes and restores the objects of kube-proxy in the target cluster (cni-switch.md, sections 8.2, 8.3 and 9.2).

A removal names each object by the uid that was read just before, so that one that was made anew in between is never hit.  It stops at
the first object that cannot be deleted: the account of a kube-proxy that still runs must stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.talos_observed import ProxyObservation
from gitops_ctl.cni.worker.proxyset import CONFIG_MAPS, DAEMON_SETS, NAME, NAMED, POD_LABELS, ProxyObject, path_of
from gitops_ctl.cni.worker.rollout import NAMES, is_of_template, is_ready, rollout_of_daemonset, template_generation
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, list_at, text_at
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.talos.manifests import FIELD_MANAGER, NAMESPACE, is_kube_proxy_object

PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"

_OBJECTS: Final = 50


@dataclass(frozen=True, slots=True)
class KubeProxy:
    """What is there of kube-proxy.

    Attributes:
        daemonset: the stored DaemonSet, None when there is none.
        objects: everything of the set, in the order of removal.
        pods: names of the pods that still exist, also those being deleted.
        lagging: pods that the roll-out waits for.
    """

    daemonset: JsonObject | None
    objects: tuple[ProxyObject, ...]
    pods: tuple[str, ...]
    lagging: tuple[str, ...]

    @property
    def is_gone(self) -> bool:
        """Whether nothing of the set and none of its pods is left."""
        return not self.objects and not self.pods

    @property
    def left(self) -> str:
        """What is still there, for people."""
        pods = [f"{len(self.pods)} pods"] if self.pods else []
        return ", ".join([*map(str, self.objects), *pods])

    def missing(self, rendered: Mapping[ObjectId, JsonObject]) -> tuple[ObjectId, ...]:
        """Objects that Talos renders and that are not there, in the order in which they are applied."""
        there = {item.id for item in self.objects}
        return tuple(id for id in rendered if id not in there)

    def seen(self, rendered: Mapping[ObjectId, JsonObject] | None) -> ProxyObservation:
        """The member `kubeProxy` of an observation; `rendered` is None when no control plane could be asked."""
        missing = self.missing(rendered) if rendered is not None else ()
        return ProxyObservation(
            present=self.daemonset is not None,
            roll_out=rollout_of_daemonset(self.daemonset) if self.daemonset is not None else None,
            pods=len(self.pods),
            objects=tuple(item.seen() for item in self.objects)[:_OBJECTS],
            missing=tuple(ProxyObject(id).seen() for id in missing)[:_OBJECTS],
            rendered=bool(rendered),
            lagging=self.lagging,
        )


async def read_kube_proxy(client: KubeClient) -> KubeProxy:
    """Everything of the set and its pods, uncached.

    Raises:
        GitopsError: something cannot be read; then nothing is known.
    """
    trees = [await client.find(resource.path(NAMESPACE, NAME)) for resource in NAMED]
    objects = [ProxyObject.of(tree) for tree in trees if tree is not None]
    listed = await client.collect(CONFIG_MAPS.path(NAMESPACE), keep=_config_map)
    objects.extend(sorted(item for item in listed.items if item is not None))
    pods = (await client.list_all(PODS, label_selector=POD_LABELS)).items
    daemonset = trees[NAMED.index(DAEMON_SETS)]
    generation = template_generation(daemonset) if daemonset is not None else 0
    lagging = [pod for pod in pods if not is_ready(pod) or not is_of_template(pod, generation)]
    return KubeProxy(daemonset, tuple(objects), _names(pods), _names(lagging)[:NAMES])


@dataclass(frozen=True, slots=True)
class Changed:
    """How far a removal or a restoration came: the objects, and where and why it stopped, empty when nothing is left to do."""

    objects: tuple[ProxyObject, ...]
    stopped_at: str = ""


async def remove(client: KubeClient, objects: Sequence[ProxyObject], *, require_allowed: Callable[[], None]) -> Changed:
    """Delete each object once, in order, in the background.  One that is gone already counts as removed.

    `require_allowed` is asked before each deletion; it raises a GitopsError when nothing more may be done.
    """
    removed: list[ProxyObject] = []
    for item in objects:
        try:
            require_allowed()
            left = await client.delete(item.path, uid=item.uid, propagation="Background")
        except GitopsError as error:
            return Changed(tuple(removed), f"{item}: {error.message}")
        if left is not None and (finalizers := list_at(left, "metadata", "finalizers")):
            return Changed(tuple(removed), f"{item} is held by the finalizers {', '.join(map(str, finalizers))}")
        removed.append(item)
    return Changed(tuple(removed))


async def restore(
    client: KubeClient,
    missing: Sequence[ObjectId],
    *,
    rendered: Mapping[ObjectId, JsonObject],
    require_allowed: Callable[[], None],
) -> Changed:
    """Apply each missing object once, as Talos would, in the order of `missing`; `require_allowed` as for `remove`."""
    restored: list[ProxyObject] = []
    for id in missing:
        try:
            require_allowed()
            made = await client.apply(path_of(id), rendered[id], manager=FIELD_MANAGER)
        except GitopsError as error:
            return Changed(tuple(restored), f"{id.kind} {id.name}: {error.message}")
        restored.append(ProxyObject(id, text_at(made, "metadata", "uid")))
    return Changed(tuple(restored))


def _config_map(tree: JsonObject) -> ProxyObject | None:
    return ProxyObject.of(tree) if is_kube_proxy_object(tree) else None


def _names(pods: Sequence[JsonObject]) -> tuple[str, ...]:
    return tuple(sorted(text_at(pod, "metadata", "name") for pod in pods))
