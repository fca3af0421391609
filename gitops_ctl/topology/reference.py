"""The manager never runs beside the leader of the reference (rollouts.md, section 2.5)."""

from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.kube.transport import KubeClient

_PATH: Final = "/apis/coordination.k8s.io/v1/leases"


def leader_problem(leases: list[JsonObject], *, now: datetime) -> str:
    """Who leads the reference's manager now; empty when nobody does.  A record that cannot be read counts as held."""
    for lease in leases:
        spec = object_at(lease, "spec")
        holder = text_at(spec, "holderIdentity")
        renewed = moment_at(spec, "renewTime")
        limit = timedelta(seconds=int_at(spec, "leaseDurationSeconds"))
        if holder and (renewed is None or now < renewed + limit):
            place = f"{text_at(lease, 'metadata', 'namespace')}/{text_at(lease, 'metadata', 'name')}"
            until = f"until {(renewed + limit).isoformat()}" if renewed is not None else "without a time"
            return f"Lease {place} is held by {holder} {until}"
    return ""


async def require_alone(client: KubeClient) -> None:
    """Ask the server once, in all namespaces.

    Raises:
        BlockedError: the reference's manager leads; nothing may be written.
    """
    found: list[JsonObject] = []
    async for page in client.list_pages(_PATH, field_selector=f"metadata.name={names.REFERENCE_LEADER_LEASE}"):
        found += page.items
    if why := leader_problem(found, now=client.clock.wall()):
        raise BlockedError(why, code=ErrorCode.REFERENCE_LEADS, subject=f"Lease/{names.REFERENCE_LEADER_LEASE}")
