"""Runs commands as a person does: a process of its own, its output and its exit code."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT_S = 120


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def run_cli(
    *arguments: str,
    kubeconfig: Path | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run one command line without a terminal."""
    more = {"KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gitops_ctl",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, **more, **(environment or {})},
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            out, err = await process.communicate(stdin.encode() if stdin is not None else None)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())
