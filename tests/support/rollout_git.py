"""A software rollout in a repository of the bench, and the people who stand behind its blocks."""

from datetime import UTC, datetime
from typing import Any

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.trust.provenance import Introduced
from tests.support.api_rollouts import a_plan
from tests.support.sync_cluster import Bench, document

GROUP = "ops.cisco.vk/v1alpha1"
PLURAL = "iosxesoftwarerollouts"
NAME = "spring"
AUTHOR, APPROVER = "network-author@example.net", "change-approver@example.net"
WHEN = datetime(2026, 11, 30, 8, tzinfo=UTC)


def bare_plan(**members: Any) -> dict[str, Any]:
    """A plan without the names of people."""
    return a_plan(**{"requestedBy": None, "requestedAt": None, **members})


def rollout(site: Bench, *, plan: dict[str, Any] | None = None, **spec: Any) -> str:
    """The document of the rollout."""
    metadata = {"name": NAME, "namespace": site.namespace}
    tree = {"apiVersion": GROUP, "kind": "IOSXESoftwareRollout", "metadata": metadata}
    return document({**tree, "spec": {"plan": bare_plan() if plan is None else plan, **spec}})


def introduced(site: Bench, pointer: str, user: str, *, verb: str, commit: str = "c" * 40) -> None:
    """From the next push on a person stands behind a block."""
    identity = ObjectId("ops.cisco.vk", "IOSXESoftwareRollout", site.namespace, NAME)
    site.consents[identity, pointer] = Introduced(commit, user.partition("@")[0], verb, user, WHEN, WHEN)


def path_of(site: Bench) -> str:
    return site.path(PLURAL, NAME, group=GROUP)


async def live(site: Bench) -> Any:
    """The rollout in the cluster, None when there is none."""
    return await site.get(PLURAL, NAME, group=GROUP)
