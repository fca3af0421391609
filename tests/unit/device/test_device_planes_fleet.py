"""Both planes with many devices in one process: every device is served, and memory neither grows nor is large."""

import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.device_planes import Planes, in_planes
from tools.bench.process import rss_mib

MOST_MIB = 300
PROGRAM = "from tests.unit.device.test_device_planes_fleet import report; report(count={count}, stretch_s={stretch_s})"


def report(*, count: int, stretch_s: int) -> None:
    """Run in a process of its own: resident MiB after one stretch of time and after three more, and what was written in those."""
    found: dict[str, float] = {}

    async def rest(planes: Planes, seconds: int) -> int:
        """Let time go by, without a memory of what was asked; how many writes of the workers there were."""
        count = 0
        for _ in range(seconds // 10):
            await planes.world.clock.sleep(10)
            count += len(planes.writes)
            for seen in (planes.writes, planes.secret_reads, planes.world.writes, planes.world.api.audit):
                seen.clear()
        gc.collect()
        return count

    async def story(planes: Planes) -> None:
        planes.world.api.store.window = 200  # what the server remembers for late watches would grow for hours
        names = [f"access-{number}" for number in range(1, count + 1)]
        for number, name in enumerate(names, start=1):
            await planes.switch(name, number=number)
        await planes.node()
        await planes.network()
        await rest(planes, 300)
        for name in names:
            assert await planes.world.is_ready(name), name
        before = {name: (await planes.sample(name))["sampleSequence"] for name in names}
        await rest(planes, stretch_s)
        found["first"] = rss_mib(os.getpid())
        found["writes"] = await rest(planes, 3 * stretch_s)
        found["last"] = rss_mib(os.getpid())
        after = [(await planes.sample(name))["sampleSequence"] - before[name] for name in names]
        found["samples"] = min(after)

    with tempfile.TemporaryDirectory() as folder:
        in_planes(Path(folder), story)
    print(json.dumps({**found, "most": rss_mib(os.getpid(), peak=True)}))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_devices_need_less_than_300_mib_and_no_more_from_stretch_to_stretch() -> None:
    count, stretch_s = 20, 100
    program = PROGRAM.format(count=count, stretch_s=stretch_s)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["samples"] >= 4 * stretch_s // 100 - 2, "every device is sampled at a third of 300 s"
    due = 3 * stretch_s * (1 / 10 + 1 / 60 + 1 / 100)
    assert found["writes"] <= 1.1 * count * due, "Leases, heartbeats and samples, and nothing else"
    assert found["most"] < MOST_MIB, "with API server, manager and switches in the same process"
    assert found["last"] < found["first"] + 15
