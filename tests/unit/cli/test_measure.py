"""What the manager measures: how long Git takes and how it ended, and the requests that the client counted."""

from pathlib import Path

import pytest

from gitops_ctl.cli.measure import MeasuredGit
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.git.transport import Fetched, FetchLimits, FetchRequest, Ref, RemoteTip
from gitops_ctl.git.url import parse_url
from gitops_ctl.telemetry.metrics import Metrics
from tests.support.kube_clock import JumpingClock

REQUEST = FetchRequest(
    url=parse_url("https://git.example.net/lab.git"),
    repository=Path("/nowhere"),
    ref=Ref("branch", "main"),
    limits=FetchLimits(),
)


class Server:
    """A transport that takes its time by the clock."""

    def __init__(self, clock: JumpingClock, *, broken: bool = False) -> None:
        self.clock = clock
        self.broken = broken

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        raise NotImplementedError

    async def fetch(self, request: FetchRequest) -> Fetched:
        await self.clock.sleep(2.0)
        if self.broken:
            raise TransientError("the server does not answer", code=ErrorCode.FETCH_TIMEOUT)
        return Fetched(tip="c" * 40, tag=None, changed=True, shallow=True, received_bytes=1, complete=True)

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None:
        raise NotImplementedError


async def test_a_fetch_is_timed_by_its_result() -> None:
    clock, metrics = JumpingClock(), Metrics()
    await MeasuredGit(Server(clock), metrics, clock).fetch(REQUEST)
    with pytest.raises(TransientError):
        await MeasuredGit(Server(clock, broken=True), metrics, clock).fetch(REQUEST)
    lines = metrics.render().decode().splitlines()
    for result in ("done", "fetch-timeout"):
        assert f'gitops_ctl_fetch_seconds_sum{{result="{result}",step="fetch"}} 2.0' in lines
        assert f'gitops_ctl_fetch_seconds_bucket{{le="1.0",result="{result}",step="fetch"}} 0.0' in lines


def test_requests_are_those_that_the_client_counts() -> None:
    calls: dict[tuple[str, str], int] = {}
    metrics = Metrics(requests=lambda: calls)
    calls["apply", "configmaps"] = 3
    assert (
        'rest_client_requests_total{resource="configmaps",verb="apply"} 3.0' in metrics.render().decode().splitlines()
    )


def test_passes_over_devices_are_served_as_their_room_counts_them() -> None:
    metrics, counts = Metrics(), {"Ready": 3, "Error": 1}
    metrics.projections.read = lambda: counts
    text = metrics.render().decode()
    assert 'cisco_vk_topology_projection_reconciliations_total{result="Ready"} 3.0' in text
    assert 'cisco_vk_topology_projection_reconciliations_total{result="Error"} 1.0' in text
