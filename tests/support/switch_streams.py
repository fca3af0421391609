"""Watches whose events are I/O points: they may come twice, or later than those of other watches."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.streams import Streams
from tests.support.simulation_faults import FaultPlan, Kind, Side


class FaultyStreams(Streams):
    """Streams of one process."""

    def __init__(self, api: ApiServer, plan: FaultPlan, *, late_s: float) -> None:
        super().__init__(api)
        self._plan = plan
        self._late_s = late_s

    async def events(self, watch: Any, query: Mapping[str, str], *, fault: Any = None) -> AsyncIterator[Any]:
        async for event in super().events(watch, query, fault=fault):
            if event["type"] == "BOOKMARK":
                yield event
                continue
            metadata = event["object"]["metadata"]
            name = f"event {event['type']} {event['object']['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
            kind = self._plan.pass_by(name, Side.BEFORE, state="")
            if kind is Kind.LATE:
                await asyncio.sleep(self._late_s)
            yield event
            if kind is Kind.REPEATED:
                yield event
