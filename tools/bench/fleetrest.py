"""A fleet at rest under a manager, and a rollout over it: on the API server in memory, and a smaller one on the real server.

At rest heartbeats and Leases of Nodes go on as the workers write them.  The manager writes what is due: each device's evidence again at a
third of its limit.  Whatever else it writes is counted.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.ports import pick_ports
from gitops_ctl.local.supervise import Family, ProcessSpec, log_tail
from tools.bench.devices import FRESHNESS_S, Site, collection
from tools.bench.figures import Figure, Report, Target
from tools.bench.process import cpu_s, descriptors, rss_mib, threads

Tree = dict[str, Any]
OPTIONS = ("--managed-topology", "--worker-image=gitops-ctl:bench")
MOST_MIB, MOST_FREEZE_S = 300, 2
_PASSES = "cisco_vk_topology_projection_reconciliations_total"
_START_S = 1800.0


@dataclass(frozen=True)
class Rest:
    """What a window at rest came to.

    Attributes:
        evidence: renewals of evidence that were due.
        others: every other write of the manager, Leases and events left out, by verb and resource.
    """

    evidence: int
    others: Mapping[str, int]
    cpu_share: float
    mib: float
    peak_mib: float


def rest_figures(report: Report, rest: Rest, *, where: str, count: int, window_s: float) -> None:
    """The lines of a fleet at rest."""
    what = f"{count} devices at rest {where}"
    report.counts[f"{what}: writes beside evidence"] = dict(rest.others)
    due = count * window_s / (FRESHNESS_S / 3)
    report.add(
        Figure(
            f"{what}, writes beside due evidence",
            "",
            (float(sum(rest.others.values())),),
            target=Target(0),
            note=f"{window_s:g} s",
        ),
        Figure(
            "the same, evidence renewed",
            "",
            (float(rest.evidence),),
            (due,),
            "each device once in a third of its limit",
            inverse=True,
        ),
        Figure("the same, CPU of the manager", "%", (rest.cpu_share,)),
        Figure("the same, memory of the manager", "MiB", (rest.mib,), target=Target(MOST_MIB)),
        Figure("the same, most since the start", "MiB", (rest.peak_mib,), target=Target(MOST_MIB)),
    )


class MemoryWorld:
    """The server in memory and a manager, each a process of its own."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        self._server, self._manager = Family(), Family()
        self._asked = self._metrics = ""
        self.url = ""

    async def start(self) -> None:
        """The fleet, taken up; no manager runs then."""
        job = {"namespaces": self.site.namespaces, "each": self.site.each, "targets": self.site.targets}
        self.folder.mkdir(parents=True, exist_ok=True)
        ready = self.folder / "ready.json"
        file = self.folder / "server.json"
        file.write_text(json.dumps({**job, "ready": str(ready)}))
        argv = (sys.executable, "-m", "tools.bench.memoryserver", str(file))
        await self._server.spawn(ProcessSpec("server", argv, self.folder / "server.log"))
        await until(ready.exists, "the server in memory listens")
        found = json.loads(ready.read_text())
        self.url, self._asked = found["url"], f"http://127.0.0.1:{found['asked']}"
        (self.folder / "kubeconfig").write_text(json.dumps(_kubeconfig(self.url)))
        await self.start_manager()
        await self._until_ready(self.site.namespaces)
        await self.stop_manager()
        await self._ask("POST", "/multiply")
        await self._until_ready(self.site.count)

    async def stop(self) -> None:
        await self.stop_manager()
        await self._server.stop()

    async def start_manager(self) -> None:
        metrics = free_address()
        argv = (
            *(sys.executable, "-m", "gitops_ctl", "manager", f"--kubeconfig={self.folder / 'kubeconfig'}"),
            *(f"--cache-dir={self.folder / 'clones'}", "--lease-duration=60", "--log-level=warning", *OPTIONS),
            f"--metrics-address={metrics}",
        )
        self._manager, self._metrics = Family(), f"http://{metrics}/metrics"
        environment = {"PYTHONDONTWRITEBYTECODE": ""}
        spec = ProcessSpec("manager", argv, self.folder / "manager.log", environment, grace_s=20.0)
        await self._manager.spawn(spec)

    async def stop_manager(self) -> None:
        await self._manager.stop()

    @property
    def manager_pid(self) -> int:
        return self._manager.pids["manager"]

    async def until_looked_at_all(self) -> None:
        """Wait until the manager has looked at every device since it started."""
        await until_passes(self._metrics, self.site.count)

    async def rest(self, window_s: float) -> Rest:
        """A window at rest."""
        await self._ask("POST", "/mark")
        used = cpu_s(self.manager_pid)
        began = time.monotonic()
        await asyncio.sleep(window_s)
        share = (cpu_s(self.manager_pid) - used) / (time.monotonic() - began) * 100
        seen = await self._ask("GET", "/seen")
        others = {**seen["others"], **({"evidence that was not due": seen["early"]} if seen["early"] else {})}
        pid = self.manager_pid
        return Rest(seen["evidence"] - seen["early"], others, share, rss_mib(pid), rss_mib(pid, peak=True))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[KubeClient]:
        async with KubeClient(ClusterConfig(self.url), component="bench", clock=SystemClock()) as client:
            yield client

    async def _until_ready(self, count: int) -> None:
        async def are_ready() -> bool:
            seen = await self._ask("GET", "/seen")
            return bool(seen["ready"] >= count)

        await until(are_ready, f"{count} devices are ready", poll_s=0.5)

    async def _ask(self, method: str, path: str) -> Tree:
        limit = aiohttp.ClientTimeout(total=_START_S)
        async with aiohttp.ClientSession(timeout=limit) as session, session.request(method, self._asked + path) as said:
            found: Tree = await said.json()
            return found


async def in_memory(report: Report, folder: Path, *, site: Site, window_s: float) -> None:
    """The whole fleet on the server in memory."""
    made = MemoryWorld(folder, site)
    try:
        await made.start()
        began = time.monotonic()
        await made.start_manager()
        await made.until_looked_at_all()
        report.add(
            Figure(f"{site.count} devices, from a start of the manager to a look at each", "s", (_since(began),))
        )
        rest_figures(report, await made.rest(window_s), where="(server in memory)", count=site.count, window_s=window_s)
        pid = made.manager_pid
        report.counts["fleet in memory: threads and descriptors of the manager"] = [threads(pid), descriptors(pid)]
        async with made.client() as client:
            await freezes(report, client, site, pid=pid)
    except Exception as error:
        logs = (log_tail(folder / f"{name}.log", lines=20) for name in ("manager", "server"))
        error.add_note("\n".join(logs))
        raise
    finally:
        await made.stop()


async def freezes(report: Report, client: KubeClient, site: Site, *, pid: int) -> None:
    """From the request of a rollout to its frozen plan, by a manager that has never planned, and again by one that has."""
    took, used = [], []
    for name in ("spring", "summer"):
        tree = site.rollout()
        tree["metadata"]["name"] = name
        path = f"{collection(tree)}/{name}"
        cpu, began = cpu_s(pid), time.monotonic()
        await client.create(collection(tree), tree)

        async def is_frozen(path: str = path) -> bool:
            found: Any = await client.get(path)
            if found.get("status", {}).get("phase") == "Failed":
                raise RuntimeError(found["status"]["message"])
            return bool(found.get("status", {}).get("frozenPlan"))

        await until(is_frozen, f"{name} is planned", poll_s=0.02)
        took.append(_since(began))
        used.append(cpu_s(pid) - cpu)
        frozen: Any = await client.get(path)
        report.counts[f"{name}: targets of the frozen plan"] = len(frozen["status"]["frozenPlan"]["targets"])
    what = f"{site.targets} targets of {site.count} devices"
    report.add(
        Figure(
            f"{what}, request to frozen plan, the first since the start",
            "s",
            (took[0],),
            target=Target(MOST_FREEZE_S),
            note="by the manager, requests included",
        ),
        Figure(f"{what}, request to frozen plan, the next one", "s", (took[1],), target=Target(MOST_FREEZE_S)),
        Figure("the same two, CPU of the manager", "s", tuple(used)),
    )


# -- what both worlds use ----------------------------------------------------------------------------------------------


async def until(holds: Callable[[], Any], what: str, *, poll_s: float = 0.1, limit_s: float = _START_S) -> None:
    """Wait until a claim holds, plain or awaited.

    Raises:
        TimeoutError: not in time.
    """
    end = time.monotonic() + limit_s
    while True:
        found = holds()
        if await found if asyncio.iscoroutine(found) else found:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"not in {limit_s:g} s: {what}")
        await asyncio.sleep(poll_s)


async def until_passes(metrics: str, count: int) -> None:
    """Wait until a manager has passed over so many devices."""

    async def passed() -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(metrics) as answer:
                return passes_in(await answer.text()) >= count
        except aiohttp.ClientError:
            return False  # it does not listen yet

    await until(passed, f"{count} devices were looked at", poll_s=0.5)


def passes_in(text: str) -> float:
    """Passes over devices, whatever they left, by the text of the metrics."""
    lines = [line for line in text.splitlines() if line.startswith(_PASSES)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def free_address() -> str:
    (port,) = pick_ports(1)
    return f"127.0.0.1:{port}"


def _since(began: float) -> float:
    return time.monotonic() - began


def _kubeconfig(url: str) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "memory", "cluster": {"server": url}}],
        "users": [{"name": "manager", "user": {}}],
        "contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "manager"}}],
        "current-context": "memory",
    }
