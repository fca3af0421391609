"""One machine at run time: its configurations, and everything that follows from the active one."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tools.peers.talos.config import Config
from tools.peers.talos.objects import MANIFEST, kube_proxy
from tools.peers.talos.state import StateFile, sha256

SERVICES = {
    "controlplane": ("apid", "etcd", "kubelet", "machined", "trustd"),
    "worker": ("apid", "kubelet", "machined"),
}
STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_TYPES = {"controlplane": 2, "worker": 3, "init": 1, "unknown": 0}


@dataclass
class Service:
    """State of one service."""

    running: bool = True
    healthy: bool = True


@dataclass
class Staging:
    """What the tests set; nothing of it is kept over a restart of the process."""

    kubeprism_healthy: bool = True
    machine_type: str = ""
    unhealthy_services: set[str] = field(default_factory=set)
    static_pods_ready: bool = True
    manifests_late_s: float = 0.0
    restart_s: float = 0.2
    """How long the kubelet is away after an apply."""


class Machine:
    """The machine behind the API."""

    def __init__(self, state: StateFile) -> None:
        self.state = state
        self.staging = Staging()
        self.manifests_applied: tuple[str, ...] = ()
        self.applying = False
        self._condition = asyncio.Condition()
        self._rollback: asyncio.Task[None] | None = None
        self._before_try: bytes = b""
        self._notifying: set[asyncio.Task[None]] = set()
        self.boot()

    def boot(self) -> None:
        """Start anew with the saved configuration."""
        self.cancel_rollback()
        self.state.boots += 1
        self.state.save()
        self.boot_id = str(uuid.uuid4())
        self.active = Config(self.state.persistent)
        self._rendered = self.active
        self._render_at = self._services_from = time.monotonic()

    def reset(self, config: bytes) -> None:
        """As a machine that has just been installed with `config`."""
        self.staging = Staging()
        self.manifests_applied = ()
        self.state.persistent, self.state.applies = config, []
        self.boot()
        self.changed()

    @property
    def machine_type(self) -> str:
        return self.staging.machine_type or self.state.machine_type

    @property
    def machine_type_number(self) -> int:
        return _TYPES[self.machine_type]

    @property
    def trying(self) -> bool:
        return self._rollback is not None

    def take(self, config: Config, *, mode: str, try_s: float = 60.0) -> None:
        """Take over a configuration; saved first, then active."""
        if mode == "TRY":
            self._before_try = self._before_try if self.trying else self.active.text
            self.cancel_rollback()
            self._rollback = asyncio.create_task(self._roll_back(try_s))
        else:
            self.state.persistent = config.text
        self.state.applies.append({"mode": mode, "sha256": sha256(config.text)})
        self.state.save()
        if mode != "STAGED":
            self._activate(config)

    def cancel_rollback(self) -> None:
        """What was tried stays active."""
        if self._rollback is not None:
            self._rollback.cancel()
            self._rollback = None

    def services(self) -> dict[str, Service]:
        """By name; the kubelet is away for a moment after an apply."""
        names = list(SERVICES["worker" if self.machine_type == "worker" else "controlplane"])
        if time.monotonic() < self._services_from:
            names.remove("kubelet")
        return {name: Service(healthy=name not in self.staging.unhealthy_services) for name in names}

    def manifests(self) -> dict[str, list[dict[str, Any]]]:
        """What this machine renders; nothing on a worker."""
        if self.machine_type != "controlplane":
            return {}
        proxy = (self._rendered if time.monotonic() < self._render_at else self.active).proxy
        return {MANIFEST: kube_proxy(proxy)} if proxy.enabled else {}

    def static_pods(self) -> dict[str, bool]:
        """Readiness by name."""
        if self.machine_type != "controlplane":
            return {}
        return {f"kube-system/{name}-{self.state.nodename}": self.staging.static_pods_ready for name in STATIC_PODS}

    def changed(self) -> None:
        """Wake everybody who waits for a change."""
        task = asyncio.create_task(self._notify())
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def wait_until(self, predicate: Callable[[], bool], *, timeout_s: float | None = None) -> None:
        """Return when the predicate holds; it is looked at after every change, and ten times a second for what time changes."""
        async with asyncio.timeout(timeout_s):
            while not predicate():
                async with self._condition:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._condition.wait(), 0.1)

    async def _notify(self) -> None:
        async with self._condition:
            self._condition.notify_all()

    def _activate(self, config: Config) -> None:
        now = time.monotonic()
        self._rendered, self._render_at = self.active, now + self.staging.manifests_late_s
        if config.text != self.active.text:
            self._services_from = now + self.staging.restart_s
        self.active = config
        self.changed()

    async def _roll_back(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._rollback = None
        self._activate(Config(self._before_try))
