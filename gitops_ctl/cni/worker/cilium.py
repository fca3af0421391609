"""What the objects of Cilium say, without a judgement (cni-switch.md, sections 9.1, 9.4 and 9.5).  Pure.

The configuration and a complete roll-out prove nothing by themselves: agents read the configuration when they start, so all of them may
still run the old mode.  Hence the times: when the key was written, and when the agent that runs longest was started.  Both come from
the API server and the kubelets, never from a clock of ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gitops_ctl.api.talos_fields import LiveMode
from gitops_ctl.api.talos_observed import CiliumObservation, NodeOverride
from gitops_ctl.cni.worker.rollout import (
    NAMES,
    is_of_template,
    is_ready,
    rollout_of_daemonset,
    rollout_of_deployment,
    template_generation,
)
from gitops_ctl.cni.worker.selectors import selects
from gitops_ctl.core.clock import from_rfc3339, to_rfc3339
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, objects_at, text_at

KEY: Final = "kube-proxy-replacement"
CHECKSUM: Final = "cilium.io/cilium-configmap-checksum"
AGENT: Final = "cilium-agent"
SHORT: Final = 253

_TEMPLATE: Final = ("f:spec", "f:template")

_MODES: Final[Mapping[str, LiveMode]] = {
    "": "enabled",
    "false": "enabled",
    "disabled": "enabled",
    "true": "replaced",
    "strict": "replaced",
}


@dataclass(frozen=True, slots=True)
class CiliumObjects:
    """The objects as they are stored; None for what is not there.

    Attributes:
        pods: of the agents.
        node_configs: the CiliumNodeConfigs of all namespaces.
        nodes: the Nodes of the machines, by name.
    """

    config: JsonObject | None
    daemonset: JsonObject | None = None
    operator: JsonObject | None = None
    pods: Sequence[JsonObject] = ()
    node_configs: Sequence[JsonObject] = ()
    nodes: Mapping[str, JsonObject] = field(default_factory=dict)


def mode_of(value: str) -> LiveMode:
    """What a value of the key means; every other word than the known ones is neither on nor off (9.1)."""
    return _MODES.get(value.strip().lower(), "mixed")


def live_mode(config: JsonObject | None) -> LiveMode:
    """The mode that the configuration names; `unknown` without one (section 10)."""
    return "unknown" if config is None else mode_of(text_at(config, "data", KEY))


def see_cilium(objects: CiliumObjects) -> CiliumObservation:
    """The member `cilium` of an observation."""
    config, daemonset = objects.config, objects.daemonset
    container = _container(daemonset or EMPTY)
    return CiliumObservation(
        present=config is not None,
        value=_value(config),
        mode=live_mode(config),
        agents=rollout_of_daemonset(daemonset) if daemonset is not None else None,
        operator=rollout_of_deployment(objects.operator) if objects.operator is not None else None,
        checksum=_optional(text_at(daemonset or EMPTY, "spec", "template", "metadata", "annotations", CHECKSUM)),
        template_generation=template_generation(daemonset or EMPTY),
        template_written_at=_moment(_latest(objects_at(daemonset or EMPTY, "metadata", "managedFields"), _TEMPLATE)),
        config_written_at=_moment(_written(config or EMPTY)),
        oldest_agent_start=_moment(_oldest_start(objects)),
        lagging=_lagging(objects),
        overrides=tuple(_overrides(objects))[:NAMES],
        version=_version(text_at(container, "image")),
        service_host=_optional(_variable(container, "KUBERNETES_SERVICE_HOST")),
        service_port=_optional(_variable(container, "KUBERNETES_SERVICE_PORT")),
    )


def _value(config: JsonObject | None) -> str | None:
    data = object_at(config or EMPTY, "data")
    return cut(text_at(data, KEY), limit=SHORT) if KEY in data else None


def _optional(text: str) -> str | None:
    return cut(text, limit=SHORT) or None


def _oldest_start(objects: CiliumObjects) -> datetime | None:
    """When the agent that runs longest started; None while one of the wanted agents does not run.

    The container counts, not the pod: one that restarts in place reads the configuration, too.
    """
    desired = rollout_of_daemonset(objects.daemonset or EMPTY).desired
    starts = [_started(pod) for pod in objects.pods]
    known = [start for start in starts if start is not None]
    return min(known) if known and len(known) == len(starts) >= desired else None


def _started(pod: JsonObject) -> datetime | None:
    for status in objects_at(pod, "status", "containerStatuses"):
        if text_at(status, "name") == AGENT:
            return _time(text_at(status, "state", "running", "startedAt"))
    return None


def _written(config: JsonObject) -> datetime | None:
    """The last write by a manager that owns the key; of any manager when nobody owns it, because it was removed."""
    entries = objects_at(config, "metadata", "managedFields")
    return _latest(entries, ("f:data", f"f:{KEY}")) or _latest(entries, ())


def _latest(managed: Sequence[JsonObject], path: tuple[str, ...]) -> datetime | None:
    """The last write by a manager that owns something at `path`."""
    times = (_time(text_at(entry, "time")) for entry in managed if _owns(entry, path))
    return max((time for time in times if time is not None), default=None)


def _owns(entry: JsonObject, path: tuple[str, ...]) -> bool:
    return not path or path[-1] in object_at(entry, "fieldsV1", *path[:-1])


def _moment(time: datetime | None) -> str | None:
    return to_rfc3339(time) if time is not None else None


def _time(text: str) -> datetime | None:
    try:
        return from_rfc3339(text).replace(microsecond=0)
    except ValueError:
        return None


def _lagging(objects: CiliumObjects) -> tuple[str, ...]:
    generation = template_generation(objects.daemonset or EMPTY)
    late = [pod for pod in objects.pods if not is_ready(pod) or not is_of_template(pod, generation)]
    return tuple(sorted(text_at(pod, "metadata", "name") for pod in late))[:NAMES]


def _overrides(objects: CiliumObjects) -> Iterator[NodeOverride]:
    for tree in sorted(objects.node_configs, key=lambda item: text_at(item, "metadata", "name")):
        defaults = object_at(tree, "spec", "defaults")
        if KEY not in defaults:
            continue
        raw = defaults[KEY]
        chosen = object_at(tree, "spec", "nodeSelector")
        nodes = sorted(name for name, node in objects.nodes.items() if selects(chosen, node))
        yield NodeOverride(
            object=f"{text_at(tree, 'metadata', 'namespace')}/{text_at(tree, 'metadata', 'name')}",
            value=cut(raw if isinstance(raw, str) else str(raw).lower(), limit=SHORT),
            nodes=tuple(nodes)[:NAMES],
        )


def _container(daemonset: JsonObject) -> JsonObject:
    containers = objects_at(daemonset, "spec", "template", "spec", "containers")
    return next((item for item in containers if text_at(item, "name") == AGENT), EMPTY)


def _variable(container: JsonObject, name: str) -> str:
    return next((text_at(item, "value") for item in objects_at(container, "env") if text_at(item, "name") == name), "")


def _version(image: str) -> str:
    """The version in an image reference `host:port/name:vX.Y.Z@digest`; empty when it has no tag."""
    _, colon, tag = image.partition("@")[0].rpartition(":")
    return tag.removeprefix("v")[:128] if colon and "/" not in tag else ""
