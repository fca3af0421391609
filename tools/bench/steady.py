"""What a large unit costs when little or nothing happens: forced pass, rest, drift of one object, one changed file, many pushes."""

import asyncio
import hashlib
import hmac
import sys
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from gitops_ctl.api.names import FIELD_MANAGER
from gitops_ctl.kube.exchange import resource_of
from tools.bench.cold import bare_loop, requests_of
from tools.bench.documents import config_map, config_maps
from tools.bench.figures import Figure, Report, Target
from tools.bench.process import cpu_s, descriptors, rss_mib, threads
from tools.bench.world import AUTHOR, MANAGER_AGENT, NAMESPACE, SOURCE, WEBHOOK_SECRET, World

_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_WRITES = ("create", "update", "patch", "delete")


async def settled(world: World, *, still_s: float = 2.0) -> None:
    """Wait until the manager has used no noticeable CPU for a while."""
    while True:
        before = cpu_s(world.manager_pid)
        await asyncio.sleep(still_s)
        if cpu_s(world.manager_pid) - before < 0.05 * still_s:
            return


async def prepare(world: World, count: int) -> str:
    """A unit of so many ConfigMaps, applied, with the manager at rest; gives the commit."""
    commit = await asyncio.to_thread(world.begin, "fabric", list(config_maps(count)))
    await world.create_source()
    await world.start_manager()
    await world.until_accepted(commit)
    await world.create_sync()
    await world.until_applied(commit)
    await settled(world)
    return commit


async def resync(world: World, report: Report, *, count: int, rounds: int) -> None:
    """One forced pass beside what a controller without a cache does at least: read each object once."""
    ours: list[float] = []
    gets: list[float] = []
    calls: list[float] = []
    reads = [{"path": one["path"], "body": ""} for one in requests_of(list(config_maps(count)), world)]
    for number in range(rounds):
        world.audit.mark()
        used = cpu_s(world.manager_pid)
        moment = f"bench-{number}"
        await world.request_reconcile(moment)
        await world.until(lambda moment=moment: _answered(world, moment), f"{moment} is answered", poll_s=0.02)
        await asyncio.sleep(1.0)
        ours.append(cpu_s(world.manager_pid) - used)
        counts = world.audit.counts(MANAGER_AGENT)
        answer = {"patch syncs/status": 1}
        others = {name: number for name, number in counts.items() if "leases" not in name and name not in answer}
        calls.append(float(sum(others.values())))
        report.counts["requests of a forced pass"] = counts
        result = await bare_loop(world, reads, method="GET", query="", account=world.account)
        gets.append(result["cpu_s"])
    report.add(
        Figure(
            f"forced pass over {count} unchanged objects, CPU",
            "s",
            tuple(ours),
            tuple(gets),
            "bare loop, one read an object",
            inverse=True,
            target=Target(0.3),
        ),
        Figure(
            f"forced pass over {count} unchanged objects, requests",
            "",
            tuple(calls),
            (float(count),) * rounds,
            "one read an object",
            inverse=True,
            target=Target(0),
            note="beside the status that answers the request, and Leases",
        ),
    )


async def _answered(world: World, moment: str) -> bool:
    return bool((await world.status("syncs")).get("lastHandledReconcileAt") == moment)


async def rest(world: World, report: Report, *, count: int, window_s: float) -> None:
    """The manager with nothing to do: writes, CPU and memory."""
    await settled(world)
    world.audit.mark()
    used, began = cpu_s(world.manager_pid), time.monotonic()
    await asyncio.sleep(window_s)
    share = (cpu_s(world.manager_pid) - used) / (time.monotonic() - began) * 100
    counts = world.audit.counts(MANAGER_AGENT)
    writes = sum(n for name, n in counts.items() if name.split()[0] in _WRITES and "leases" not in name)
    report.counts[f"requests of the manager at rest in {window_s:g} s"] = counts
    report.counts["threads and descriptors at rest"] = [threads(world.manager_pid), descriptors(world.manager_pid)]
    report.add(
        Figure(
            f"at rest with {count} objects, writes beside Leases",
            "",
            (float(writes),),
            target=Target(0),
            note=f"{window_s:g} s",
        ),
        Figure(f"at rest with {count} objects, CPU", "%", (share,), target=Target(1)),
        Figure(f"at rest with {count} objects, memory", "MiB", (rss_mib(world.manager_pid),), target=Target(250)),
        Figure("the same, most since the start", "MiB", (rss_mib(world.manager_pid, peak=True),)),
    )


async def _until_live(world: World, name: str, holds: Callable[[dict[str, str]], bool]) -> None:
    async def live() -> bool:
        tree: Any = await world.client.get(f"{_MAPS}/{name}")
        return holds(tree["data"])

    await world.until(live, f"{name} is as declared", poll_s=0.01)


async def drift(world: World, report: Report, *, rounds: int) -> None:
    """From a person's edit to the declared value, each time of another object, since repairs of one object cool down."""
    took: list[float] = []
    floor: list[float] = []
    for number in range(rounds):
        for name, repaired_by_us in ((f"site-{number * 2:05d}", True), (f"site-{number * 2 + 1:05d}", False)):
            tree: Any = await world.client.get(f"{_MAPS}/{name}")
            wanted = tree["data"]["vlan"]
            field = "vlan" if repaired_by_us else "remark"
            began = time.monotonic()
            await world.client.patch_merge(f"{_MAPS}/{name}", {"data": {field: "4094"}}, manager="somebody")
            if repaired_by_us:
                await _until_live(world, name, lambda data, wanted=wanted: data["vlan"] == wanted)
                took.append(time.monotonic() - began)
            else:
                await world.client.patch_merge(f"{_MAPS}/{name}", {"data": {field: None}}, manager="somebody")
                await _until_live(world, name, lambda data: "remark" not in data)
                floor.append(time.monotonic() - began)
            await asyncio.sleep(1.0)
    report.add(
        Figure(
            "drift of one object, edit to repaired",
            "s",
            tuple(took),
            tuple(floor),
            "edit and repair by one client that knows",
            inverse=True,
            target=Target(1),
        )
    )


async def deliver(world: World) -> int:
    """A push webhook, signed as a forge signs it; gives the HTTP status."""
    body = b'{"ref": "refs/heads/main"}'
    signature = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": "push"}
    url = f"http://{world.webhook}/hooks/{NAMESPACE}/{SOURCE}"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        return answer.status


async def changed(world: World, report: Report, *, count: int, rounds: int) -> None:
    """From `git push` to the new value in the cluster, beside push, fetch and one apply done by hand."""
    took: list[float] = []
    used: list[float] = []
    floor: list[float] = []
    clone = world.folder / "second"
    await asyncio.to_thread(world.workshop.git, "clone", "--quiet", "--bare", world.url, str(clone))
    for number in range(rounds):
        value = f"changed-{number}"
        commit = await asyncio.to_thread(_commit, world, 100 + number, value)
        await asyncio.sleep(1.1)  # deliveries are paced at one a second
        world.audit.mark()
        cpu, began = cpu_s(world.manager_pid), time.monotonic()
        await asyncio.to_thread(world.workshop.push)
        await deliver(world)
        await _until_live(world, f"site-{100 + number:05d}", lambda data, value=value: data["revision"] == value)
        took.append(time.monotonic() - began)
        await world.until_applied(commit)
        await settled(world)
        used.append(cpu_s(world.manager_pid) - cpu)
        report.counts["requests for one changed file"] = world.audit.counts(MANAGER_AGENT)
        floor.append(await _by_hand(world, clone, number))
    report.add(
        Figure(
            f"one changed file of {count}, push to applied",
            "s",
            tuple(took),
            tuple(floor),
            "git push, git fetch, one apply",
            inverse=True,
            target=Target(1),
        ),
        Figure(f"one changed file of {count}, CPU of the manager", "s", tuple(used)),
    )


def _commit(world: World, number: int, value: str) -> str:
    names = world.write([(f"sites/{number // 200:03d}/site-{number:05d}.yaml", config_map(number, value=value))])
    return world.workshop.commit(value, author=AUTHOR, paths=names)


async def _by_hand(world: World, clone: Any, number: int) -> float:
    """What the same change takes at least: nothing is verified or compared."""
    text = config_map(5000 + number, value=f"hand-{number}")
    requests = requests_of([("one.yaml", text)], world)
    await asyncio.to_thread(_commit, world, 300 + number, f"hand-{number}")
    began = time.monotonic()
    await asyncio.to_thread(world.workshop.push)
    await asyncio.to_thread(world.workshop.git, f"--git-dir={clone}", "fetch", "--quiet", "origin", "main")
    body = requests[0]["body"].encode()
    await world.client.apply(requests[0]["path"], body, manager=FIELD_MANAGER, dry_run=True, account=world.account)
    return time.monotonic() - began


async def pushes(world: World, report: Report, *, count: int) -> None:
    """So many pushes in a row, each with its webhook: the newest counts, and nothing piles up."""
    await settled(world)
    world.audit.mark()
    before = rss_mib(world.manager_pid)
    began = time.monotonic()
    commit, depths = await _push_all(world, count)
    pushed = time.monotonic() - began
    ended = time.monotonic()
    await _until_live(world, "site-00050", lambda data: data["revision"] == f"push-{count - 1}")
    last = time.monotonic() - ended
    await world.until_applied(commit)
    report.counts[f"{count} pushes: requests"] = world.audit.counts(MANAGER_AGENT)
    growth = rss_mib(world.manager_pid) - before
    report.counts[f"{count} pushes: seconds of pushing, growth of memory in MiB"] = [pushed, growth]
    what = f"{count} pushes in a row"
    applied, whole = (float(_applied(world)),), (float(count),)
    report.add(
        Figure(f"{what}, last push to applied", "s", (last,), note="the newest revision"),
        Figure(f"{what}, revisions applied", "", applied, whole, "pushes", inverse=True),
        Figure(f"{what}, longest queue", "", (max(depths),), target=Target(2), note="one source and one Sync"),
    )
    print(f"  {count} pushes in {pushed:.0f} s", file=sys.stderr)


async def _push_all(world: World, count: int) -> tuple[str, list[float]]:
    """The last commit, and the queue's length after each push."""
    commit, depths = "", []
    for number in range(count):
        commit = await asyncio.to_thread(_commit, world, 50, f"push-{number}")
        await asyncio.to_thread(world.workshop.push)
        await deliver(world)
        depths.append(await _queued(world))
    return commit, depths


def _applied(world: World) -> int:
    """How many applies of ConfigMaps the manager sent."""
    entries: list[Any] = world.audit.entries(MANAGER_AGENT)
    return sum(
        1 for one in entries if one["verb"] == "patch" and resource_of(one["requestURI"].split("?")[0]) == "configmaps"
    )


async def _queued(world: World) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"http://{world.metrics}/metrics") as answer:
        text = await answer.text()
    lines = [line for line in text.splitlines() if "workqueue_depth{" in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
