"""The reference of cold apply: nothing but server-side applies, so many in flight, over one aiohttp session.

`python -m tools.bench.bareloop JOB.json` reads a job, sends everything, and prints one JSON line.  It imports nothing of the
product.  The clock runs from the first request to the last answer; bodies are ready before it starts.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from pathlib import Path

import aiohttp
from yarl import URL

from tools.bench.process import rss_mib


def requests_in(path: Path) -> list[tuple[str, bytes]]:
    """Path and body of each request of a file."""
    return [(item["path"], item["body"].encode()) for item in json.loads(path.read_bytes())]


async def run(job: dict[str, object], requests: list[tuple[str, bytes]]) -> dict[str, float]:
    """Send everything; gives seconds, CPU seconds, counts and the most memory in MiB."""
    context = ssl.create_default_context(cafile=str(job["ca"]))
    context.load_cert_chain(str(job["certificate"]), str(job["key"]))
    headers = {"Content-Type": str(job["media"]), "Accept": "application/json", "User-Agent": str(job["agent"])}
    headers |= {"Impersonate-User": str(job["account"])} if job.get("account") else {}
    method, server, query = str(job["method"]), str(job["server"]), str(job["query"])
    waiting = iter(requests)
    failed = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0), headers=headers) as session:

        async def work() -> None:
            nonlocal failed
            for path, body in waiting:
                url = URL(f"{server}{path}{query}", encoded=True)
                async with session.request(method, url, data=body or None) as response:
                    await response.read()
                    failed += response.status >= 300

        began_s, cpu_s = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(int(str(job["width"]))):
                group.create_task(work())
        took_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    peak = rss_mib(os.getpid(), peak=True)
    return {"seconds": took_s, "cpu_s": cpu_s, "count": len(requests), "failed": failed, "peak_mib": peak}


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_bytes())
    print(json.dumps(asyncio.run(run(found, requests_in(Path(found["requests"]))))))
