"""What a pass over a TopologySource reaches the world through (topology-scheduling.md, 3 to 5 and 10).

The room that runs the controller owns the informers; it gives views of them here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.events import Emit
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.names import SOURCE_KIND, WORKER_GROUP
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.source_status import Failed
from gitops_ctl.scheduling.webhook import Inquiry, get

SOURCE: Final = Resource(GroupVersionKind(WORKER_GROUP, "v1alpha1", SOURCE_KIND), "topologysources", namespaced=False)
NODE_FEATURE: Final = Resource(
    GroupVersionKind("nfd.k8s-sigs.io", "v1alpha1", "NodeFeature"), "nodefeatures", namespaced=True
)


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """Everything that a pass needs.

    Attributes:
        client: also the reader of the TopologySource itself, of ConfigMaps and of Secrets: these are never taken from a cache.
        nodes: labels of all Nodes, by name; None until all were seen.  A mapping that nobody changes afterwards.
        sources: all TopologySources; None until all were seen.
        features: all NodeFeatures of the worker namespace; None while they cannot be seen, also when the kind is not installed.
            When they turn up the room wakes every source.
        require: raises LeadershipLost when this process may not write any more.
        http: asks a webhook once.
    """

    client: KubeClient
    nodes: Callable[[], Mapping[str, Labels] | None]
    sources: Callable[[], tuple[JsonObject, ...] | None]
    features: Callable[[], tuple[JsonObject, ...] | None]
    clock: Clock
    emit: Emit
    require: Callable[[], None] = lambda: None
    options: Options = field(default_factory=Options)
    http: Callable[[Inquiry], Awaitable[bytes | Failed]] = get
