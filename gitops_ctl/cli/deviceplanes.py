"""Puts the two planes of a device worker together from what the command line says (rollouts.md, section 17.1)."""

import secrets
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

from gitops_ctl.cli.deviceworker import Settings
from gitops_ctl.device.addresses import AddressRules
from gitops_ctl.device.gnoi import GnoiClient
from gitops_ctl.device.imagesources import ImageSources
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.spool import Spool
from gitops_ctl.device.worker.executor import Executor
from gitops_ctl.device.worker.identity import who_am_i
from gitops_ctl.device.worker.networkroom import NetworkRoom
from gitops_ctl.device.worker.noderoom import NodeRoom
from gitops_ctl.device.worker.place import Equipment, Intervals, Served
from gitops_ctl.device.worker.secretreader import SecretReader
from gitops_ctl.kube.transport import KubeClient


async def served_by(client: KubeClient, settings: Settings, *, counted: Callable[[str, bool], None]) -> Served:
    """What either plane works with.

    Raises:
        GitopsError: the token is bound to no Pod, or the server does not say.
    """
    return Served(
        client=client,
        namespace=settings.namespace,
        who=await who_am_i(client),
        template_digest=settings.template_digest,
        secrets=SecretReader(client, namespace=settings.namespace),
        intervals=intervals_of(settings),
        counted=counted,
    )


def intervals_of(settings: Settings) -> Intervals:
    """The intervals that the command line decides."""
    return Intervals(
        worker_poll_s=settings.worker_poll,
        preflight_s=settings.preflight_interval,
        secrets_s=settings.secret_interval,
        heartbeat_s=settings.heartbeat_interval,
        lease_s=settings.node_lease_interval,
        spread_s=settings.start_spread,
    )


def journal_of(settings: Settings) -> AbstractContextManager[Journal | None]:
    """The journal of the network plane; the node plane has none.

    With one that cannot be used nothing is claimed, and devices are looked at all the same.

    Raises:
        JournalUnavailable: its directory cannot be had, or another worker has it.
    """
    if settings.plane == "node":
        return nullcontext()
    return closing(Journal.open(settings.journal_dir, new_id=new_uuid(), to_look=True))


def make_room(served: Served, settings: Settings, journal: Journal | None) -> NetworkRoom | NodeRoom:
    """The room of the plane."""
    if journal is None:
        return NodeRoom(served, netconf=NetconfClient())
    equipment = Equipment(
        client=served.client,
        namespace=served.namespace,
        who=served.who,
        template_digest=served.template_digest,
        secrets=served.secrets,
        intervals=served.intervals,
        counted=served.counted,
        lease_namespace=settings.lease_namespace or settings.namespace,
        netconf=NetconfClient(),
        gnoi=GnoiClient(served.clock),
        journal=journal,
        spool=Spool(settings.spool_dir, limit_bytes=settings.spool_limit),
        sources=ImageSources(AddressRules.of(settings.image_source_allow)),
        new_id=new_uuid,
        read_only=settings.read_only,
        unsaved_blocks=settings.unsaved_configuration == "block",
        freshness_s=settings.evidence_freshness,
        allow=settings.image_source_allow,
    )
    return NetworkRoom(equipment, executor=None if settings.read_only else Executor(equipment))


def new_uuid() -> str:
    """A random UUID."""
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))
