"""Runs commands as a person does: a process of its own, its output and its exit code."""

import asyncio
import json
import os
import pty
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
    typed: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run one command line; its input is a terminal where `typed` says what a person types there, else nothing."""
    keyboard, terminal = (-1, asyncio.subprocess.DEVNULL) if typed is None else pty.openpty()
    try:
        if typed is not None:
            os.write(keyboard, typed.encode())
        return await _run(arguments, stdin=terminal, kubeconfig=kubeconfig, cwd=cwd, environment=environment or {})
    finally:
        if typed is not None:
            os.close(keyboard)
            os.close(terminal)


async def _run(
    arguments: tuple[str, ...],
    *,
    stdin: int,
    kubeconfig: Path | None,
    cwd: Path | None,
    environment: Mapping[str, str],
) -> Done:
    more = {"KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gitops_ctl",
        *arguments,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, **more, **environment},
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            out, err = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())
