"""The place of one device in the worker, and what all places share (rollouts.md, sections 17.1 and 17.2).

Each device has its own tasks and its own turn, so that one that hangs delays no other.  A Secret that is rotated ends the reading sessions of
its devices; what was sent already is never taken back, and is looked at with the new credential.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.device.gnoi import SoftwareSessions
from gitops_ctl.device.imagesources import ImageSources
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.login import Endpoint
from gitops_ctl.device.netconf import NetconfSession
from gitops_ctl.device.spool import Spool
from gitops_ctl.device.worker.identity import Who
from gitops_ctl.device.worker.material import Material, material_of
from gitops_ctl.device.worker.secretreader import SecretReader, SecretSeen
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.health import DEFAULT_OBSERVATION_AGE_S
from gitops_ctl.fleet.revision import DeviceSecrets, secrets_of, worker_revision
from gitops_ctl.kube.transport import KubeClient

T = TypeVar("T")
_LONGEST = 256


class NetconfSessions(Protocol):
    """Makes sessions; NetconfClient does it over the network."""

    def session(self, endpoint: Endpoint) -> AbstractAsyncContextManager[NetconfSession]:
        """As that of NetconfClient."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Seconds (rollouts.md, section 11.8).

    Attributes:
        worker_poll_s: the latest next look of what waits, and the retry of what failed.
        preflight_s: a preflight is done again after this time.
        secrets_s: Secrets are read again after this time, though nothing says that they changed.
        heartbeat_s: the node plane looks at each device and writes its Node.
        lease_s: the node plane renews the Leases of its Nodes.
        spread_s: first looks are spread over this time, so that a start is no storm.
    """

    worker_poll_s: float = 15.0
    preflight_s: float = 3600.0
    secrets_s: float = 300.0
    heartbeat_s: float = 60.0
    lease_s: float = 10.0
    spread_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What either plane works with.

    Attributes:
        template_digest: of the template of this worker's Pod.
        counted: told how each activity ended: its name, and whether it went well.
    """

    client: KubeClient
    namespace: str
    who: Who
    template_digest: str
    secrets: SecretReader
    intervals: Intervals = field(default_factory=Intervals)
    counted: Callable[[str, bool], None] = lambda _duty, _well: None

    @property
    def clock(self) -> Clock:
        return self.client.clock

    def device_path(self, key: NamespacedName) -> str:
        """Path of a CiscoDevice."""
        return f"/apis/{names.GROUP}/v1alpha1/namespaces/{key.namespace}/ciscodevices/{key.name}"

    def place(self, key: NamespacedName, *, tree: Callable[[], JsonObject | None]) -> "Place":
        """A place for the device of that name; `tree` gives it as it is cached."""
        return Place(key, tree=tree, secrets=self.secrets, template_digest=self.template_digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment(Served):
    """What the network plane works with besides.

    Attributes:
        lease_namespace: where mutation Leases are.
        read_only: nothing is claimed.
        unsaved_blocks: whether a configuration that is not saved blocks an upgrade, or only warns.
        freshness_s: how old evidence may be by the fleet policy, in seconds.
        allow: networks of image servers that are accepted although they are private, as they are reported.
        new_id: gives UUIDs, for tokens of sessions.
    """

    lease_namespace: str
    netconf: NetconfSessions
    gnoi: SoftwareSessions
    journal: Journal
    spool: Spool
    sources: ImageSources
    new_id: Callable[[], str]
    read_only: bool = False
    unsaved_blocks: bool = True
    freshness_s: int = DEFAULT_OBSERVATION_AGE_S
    allow: tuple[str, ...] = ()


class Place:
    """One CiscoDevice.

    Attributes:
        turn: held while somebody talks to the device, except for the stream of an install.
        material: what is loaded; None before the first time.
    """

    def __init__(
        self, key: NamespacedName, *, tree: Callable[[], JsonObject | None], secrets: SecretReader, template_digest: str
    ) -> None:
        """`tree` gives the device as it is cached."""
        self.key = key
        self.turn = asyncio.Lock()
        self.material: Material | None = None
        self.loaded: Callable[[], None] = lambda: None
        """Called when other material was loaded."""
        self._tree = tree
        self._secrets = secrets
        self._digest = template_digest
        self._made_from: tuple[str, int, DeviceSecrets] | None = None
        self._read: tuple[str, Device] | None = None
        self._outdated = asyncio.Event()

    @property
    def device(self) -> Device | None:
        """The device as it is cached; None when it does not exist."""
        tree = self._tree()
        if tree is None:
            return None
        version = text_at(tree, "metadata", "resourceVersion")
        if self._read is None or self._read[0] != version:
            self._read = version, device_of(tree)
        return self._read[1]

    async def reload(self) -> Material:
        """Read the device's Secrets again; other versions end the reading sessions that are open.

        Raises:
            GitopsError: a Secret cannot be read and nothing was loaded before; `material` says so then.
        """
        device = self.device
        if device is None:
            raise Unavailable(f"there is no CiscoDevice {self.key}")
        named = secrets_of(device.spec)
        found: dict[str, SecretSeen | None] = {}
        try:
            for name in sorted({name for name in named if name}):
                found[name] = await self._secrets.read(name)
        except GitopsError as error:
            if self.material is None or self._made_from is None or self._made_from[0] != device.uid:
                self._take(_unreadable(error, self._digest), made_from=None)
            raise
        versions = DeviceSecrets(*(_version(found.get(name)) for name in named))
        made_from = (device.uid, device.generation, versions)
        if self.material is None or self._made_from != made_from:
            return self._take(material_of(device, found, template_digest=self._digest), made_from=made_from)
        return self.material

    async def while_loaded(self, reading: Coroutine[Any, Any, T]) -> T:
        """The result of a reading; it is given up when other material is loaded meanwhile.  Never for what changes the device.

        Raises:
            Unavailable: it was given up.
        """
        task = asyncio.ensure_future(reading)
        outdated = asyncio.ensure_future(self._outdated.wait())
        try:
            await asyncio.wait({task, outdated}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Unavailable("the session was ended: the device's Secrets were changed", subject=str(self.key))
            return task.result()
        finally:
            task.cancel()
            outdated.cancel()
            await asyncio.gather(task, outdated, return_exceptions=True)

    def _take(self, material: Material, *, made_from: tuple[str, int, DeviceSecrets] | None) -> Material:
        self.material, self._made_from = material, made_from
        self._outdated.set()
        self._outdated = asyncio.Event()
        self.loaded()
        return material


def _unreadable(error: GitopsError, template_digest: str) -> Material:
    revision = worker_revision(template_digest=template_digest, credential="", tls="", provisioning="")
    problem = f"{error.code.label} {error.reason}: the device's Secrets cannot be read: {error.message}"
    return Material(revision, DeviceSecrets("", "", ""), None, None, problem[:_LONGEST])


def _version(secret: SecretSeen | None) -> str:
    return secret.version if secret is not None else ""


def usable(material: Material | None, *, subject: str) -> Endpoint:
    """The NETCONF endpoint.

    Raises:
        Unavailable: it cannot be used, and why.
    """
    if material is None or material.endpoint is None:
        why = material.problem if material is not None else "the device's Secrets are not loaded yet"
        raise Unavailable(why, code=ErrorCode.NETCONF_UNAVAILABLE, subject=subject)
    return material.endpoint
