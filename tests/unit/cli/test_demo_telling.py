"""How every demo is told."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gitops_ctl.cli.demotelling import farewell, tell
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError

WORLD = cast("Any", SimpleNamespace(binary="/somewhere/kubectl", kubeconfig="/somewhere/config"))


async def nothing() -> None:
    return


async def late() -> None:
    raise TerminalError("it did not come", code=ErrorCode.CHECK_ENDED, subject="/logs", hint="look there")


async def test_a_step_that_does_not_come_ends_the_demo_and_is_named() -> None:
    told: list[str] = []
    with pytest.raises(TerminalError, match=r"^step 2, it comes: it did not come$") as caught:
        await tell([("it begins", nothing), ("it comes", late), ("it ends", nothing)], say=told.append)
    assert told == ["\n1. it begins", "\n2. it comes"]
    assert (caught.value.code, caught.value.subject, caught.value.hint) == (
        ErrorCode.CHECK_ENDED,
        "/logs",
        "look there",
    )


async def test_all_of_it_stays_until_somebody_ends_it() -> None:
    told: list[str] = []
    staying = asyncio.create_task(farewell(WORLD, command="gitops-ctl demo", kinds="gsync", keep=True, say=told.append))
    while len(told) < 2:
        await asyncio.sleep(0)
    assert told[0].startswith("\nStill running")
    assert "export KUBECONFIG=/somewhere/config" in told[1]
    assert "get gsync -A" in told[1]
    assert not staying.done()
    staying.cancel()
    await asyncio.gather(staying, return_exceptions=True)
    assert len(told) == 2
    await farewell(WORLD, command="gitops-ctl demo", kinds="gsync", keep=False, say=told.append)
    assert "`gitops-ctl demo --keep`" in told[2]
