"""A process that wants one Lease and writes when it is told to and may: `python -m ... KUBECONFIG NAMESPACE IDENTITY`.

It says `leading`, answers each line on its input with `wrote` or `refused`, and ends with `lost`.
"""

import asyncio
import sys
from pathlib import Path

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.lease import Leader, LeadershipLost, LeaseTiming
from gitops_ctl.kube.transport import KubeClient

TIMING = LeaseTiming(duration_s=3.0, renew_deadline_s=2.0, retry_s=0.4, call_s=0.8)


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    config = await load_cluster(Path(kubeconfig), allow_exec=False)
    async with KubeClient(config, component=identity) as client:
        leader = Leader(client, namespace=namespace, name="manager", identity=identity, timing=TIMING)
        async with asyncio.TaskGroup() as group:
            group.create_task(leader.run())
            await leader.leading.wait()
            say("leading")
            answering = group.create_task(answer(leader, client, namespace))
            await leader.lost.wait()
            answering.cancel()
    say("lost")


async def answer(leader: Leader, client: KubeClient, namespace: str) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        try:
            leader.require()
        except LeadershipLost:
            say("refused")
            continue
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "journal"},
            "data": {"by": leader.identity},
        }
        await client.apply(f"/api/v1/namespaces/{namespace}/configmaps/journal", body, manager=leader.identity)
        say("wrote")


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
