"""The processes that talk to Git servers: how one is started, asked once and ended (engineering.md, section 4.5).

A child serves one call, in a session of its own with an empty environment, and is killed with its whole group afterwards.  A third of
the time of a small fetch is the start of the interpreter, so a child may be started before it is asked: it waits for its request, knows
nothing yet, and ends when the pipe to its parent does.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_ERROR_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Child:
    """One process and the folder that is its home; whoever has it ends it."""

    process: asyncio.subprocess.Process
    home: Path

    @property
    def waits(self) -> bool:
        """Whether it is still there to be asked."""
        if self.process.returncode is not None:
            return False
        # The kernel knows of its end before the event loop does.
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    async def ask(self, document: bytes) -> tuple[bytes, bytes]:
        """Standard output and error after it has read `document`.

        Read to a bound, not to the end: a child that goes on writing is killed with its group.
        """
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        await tell(process.stdin, document)
        answer = await asyncio.gather(
            read_up_to(process.stdout, MAX_ANSWER_BYTES), read_up_to(process.stderr, MAX_ERROR_BYTES)
        )
        await process.wait()
        return answer

    async def end(self) -> None:
        """Kill whatever is left of its session and remove its home; returns when it is gone."""
        try:
            await end_session(self.process)
        finally:
            shutil.rmtree(self.home, ignore_errors=True)


async def start(module: str, *, scratch: Path | None) -> Child:
    """Start `module` with a new home below `scratch`, the system's place for temporary files when None.

    Raises:
        OSError: no process or no folder can be made.
    """
    home = Path(tempfile.mkdtemp(prefix="gitops-ctl-fetch-", dir=scratch))
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-m",
            module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(home), "LC_ALL": "C.UTF-8"},
            cwd=home,
            start_new_session=True,
            close_fds=True,
            limit=MAX_ANSWER_BYTES,
        )
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return Child(process, home)


async def tell(stream: asyncio.StreamWriter, document: bytes) -> None:
    """Hand everything over and close; a child that is gone does not read it."""
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(document)
        await stream.drain()
    stream.close()


async def read_up_to(stream: asyncio.StreamReader, limit: int) -> bytes:
    """What comes, to its end or to the limit."""
    parts: list[bytes] = []
    size = 0
    while size < limit and (part := await stream.read(limit - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


async def end_session(process: asyncio.subprocess.Process) -> None:
    """Kill whatever is left of a child that leads its own session; returns when it is gone."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A cancelled caller waits too: no child outlives its call.
        await asyncio.shield(process.wait())
