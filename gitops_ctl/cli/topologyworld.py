"""What `plan topology` and `explain` look at: the objects of a cluster, with the user's own rights."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.topologyoptions import Asked
from gitops_ctl.core.errors import BlockedError, NotFound
from gitops_ctl.core.jsonvalue import JsonObject, list_at, objects_at, text_at
from gitops_ctl.scheduling.forecast import Key, Live
from gitops_ctl.scheduling.names import WORKER_API_VERSION
from gitops_ctl.scheduling.nodefeature import NODE_FEATURE_API_VERSION
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.topology import KUEUE_API_VERSION
from gitops_ctl.scheduling.wakes import references_of

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

MANAGER: Final = "gitops-ctl-manager"
NODES: Final = "/api/v1/nodes"
SOURCES: Final = f"/apis/{WORKER_API_VERSION}/topologysources"
_KUEUE: Final = f"/apis/{KUEUE_API_VERSION}"


def kueue_path(plural: str) -> str:
    """Path of all objects of one kind of Kueue."""
    return f"{_KUEUE}/{plural}"


async def options_beside(client: "KubeClient", asked: Asked) -> Options:
    """The options by which the manager of this cluster judges, with what the command was given in their place.

    They are the arguments of the manager's Deployment; who may not read it, or has none, is told that defaults stand for them.
    """
    path = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/deployments/{MANAGER}"
    try:
        deployment = await client.get(path)
        containers = objects_at(deployment, "spec", "template", "spec", "containers")
        return asked.over([one for each in containers for one in list_at(each, "args") if isinstance(one, str)])
    except (BlockedError, click.UsageError) as error:
        click.echo(f"note: options of the manager are not known, their defaults are taken: {error.message}", err=True)
        return asked.over()


async def live_world(client: "KubeClient", *, options: Options, with_workloads: bool = True) -> Live:
    """Everything that forecasts and explanations depend on; a kind that is not installed has no objects.

    Raises:
        GitopsError: the server does not answer, or does not let this user read one of them.
    """
    sources = await listed_objects(client, SOURCES)
    features = f"/apis/{NODE_FEATURE_API_VERSION}/namespaces/{options.worker_namespace}/nodefeatures"
    return Live(
        nodes=by_name(await listed_objects(client, NODES)),
        sources=sources,
        features=await listed_objects(client, features),
        flavors=await listed_objects(client, kueue_path("resourceflavors")),
        queues=await listed_objects(client, kueue_path("clusterqueues")),
        local_queues=await listed_objects(client, kueue_path("localqueues")),
        workloads=await listed_objects(client, kueue_path("workloads")) if with_workloads else (),
        topologies=await listed_objects(client, kueue_path("topologies")),
        config_maps=await _config_maps(client, sources),
    )


async def listed_objects(client: "KubeClient", path: str) -> tuple[JsonObject, ...]:
    """All objects below a path; none where the kind is not installed."""
    try:
        return tuple((await client.list_all(path)).items)
    except NotFound:
        return ()


def by_name(trees: Iterable[JsonObject]) -> Mapping[str, JsonObject]:
    """Cluster-scoped objects by their names."""
    return {text_at(tree, "metadata", "name"): tree for tree in trees}


async def _config_maps(client: "KubeClient", sources: Iterable[JsonObject]) -> Mapping[Key, JsonObject]:
    """The snapshots of the sources that are live."""
    found: dict[Key, JsonObject] = {}
    for reference in {one for source in sources for one in references_of(source) if one.kind == "ConfigMap"}:
        path = f"/api/v1/namespaces/{reference.namespace}/configmaps/{reference.name}"
        tree = await client.find(path)
        if tree is not None:
            found[(reference.namespace, reference.name)] = tree
    return found
