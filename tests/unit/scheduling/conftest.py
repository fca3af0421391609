"""A cluster in memory, once with our defaults and once with those of the reference."""

import pytest

from gitops_ctl.scheduling.options import Options
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.kube_clock import JumpingClock
from tests.support.source_bench import SourceBench, first_store


@pytest.fixture(params=[Options(), Options.reference()], ids=["ours", "reference-defaults"])
async def source_bench(request):
    """The worker namespace, and Nodes node-a and node-b without topology labels."""
    api, clock = ApiServer(seed=7), JumpingClock()
    api.restore(first_store())
    async with direct_client(api, component="tests", clock=clock) as client:
        found = SourceBench(client, api, clock, request.param)
        await found.namespace()
        for name in ("node-a", "node-b"):
            await found.node(name)
        api.audit.clear()
        yield found
