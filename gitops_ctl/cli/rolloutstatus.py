"""What `status` and `report` read about rollouts: the objects, with the user's rights (rollouts.md, section 3.4)."""

from typing import TYPE_CHECKING, Final

import click

from gitops_ctl.cli.rolloutprogress import KIND, detail_lines, rollout_summary
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.names import OPERATIONS_GROUP

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

_API: Final = f"/apis/{OPERATIONS_GROUP}/v1alpha1"


async def rollout_summaries(client: "KubeClient", *, namespace: str) -> list[JsonObject]:
    """Every rollout in the form of `status`; none where the kind is not installed or may not be read."""
    rollouts = await _listed(client, "iosxesoftwarerollouts", namespace)
    if not rollouts:
        return []
    leaves: dict[str, dict[str, JsonObject]] = {}
    for leaf in await _listed(client, "iosxesoftwareupgrades", namespace):
        leaves.setdefault(text_at(leaf, "metadata", "namespace"), {})[text_at(leaf, "metadata", "name")] = leaf
    return [rollout_summary(tree, leaves.get(text_at(tree, "metadata", "namespace"), {})) for tree in rollouts]


def is_under_way(item: JsonObject) -> bool:
    """Whether a summary is that of a rollout which waits or works: nothing to worry about."""
    return text_at(item, "kind") == KIND and text_at(item, "ready") == "Unknown"


def write_rollout(item: JsonObject) -> None:
    """The devices of a rollout below the table."""
    lines = list(detail_lines(item)) if text_at(item, "kind") == KIND else []
    if lines:
        place = "/".join(text_at(item, name) for name in ("kind", "namespace", "name"))
        click.echo(f"\n{place}: {text_at(item, 'phase') or 'Planning'}, to {text_at(item, 'targetVersion')}")
        for line in lines:
            click.echo(line)


async def _listed(client: "KubeClient", plural: str, namespace: str) -> tuple[JsonObject, ...]:
    scope = f"/namespaces/{namespace}" if namespace else ""
    try:
        return tuple((await client.list_all(f"{_API}{scope}/{plural}")).items)
    except BlockedError as error:
        if error.code in (ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND, ErrorCode.KIND_NOT_SERVED):
            return ()
        raise
