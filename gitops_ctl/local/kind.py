"""A `kind` cluster, taken when a container engine answers."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError

CLUSTER_NAME = "gitops-ctl"
_ENGINES = ("docker", "podman", "nerdctl")
_ENGINE_ANSWERS_WITHIN_S = 10.0


async def find_kind() -> Path | None:
    """The `kind` program, None when it is not installed or no container engine answers."""
    program = shutil.which("kind")
    if program is None:
        return None
    for engine in _ENGINES:
        found = shutil.which(engine)
        if found is not None and await _engine_answers(found):
            return Path(program)
    return None


async def create_cluster(kind: Path, *, kubeconfig: Path) -> None:
    """Have a cluster named `gitops-ctl` and write its kubeconfig; a cluster that is there already is kept.

    Raises:
        TerminalError: kind refused (LOCAL_SYSTEM).
    """
    if CLUSTER_NAME in (await _kind(kind, "get", "clusters")).split():
        await _kind(kind, "export", "kubeconfig", "--name", CLUSTER_NAME, "--kubeconfig", str(kubeconfig))
        return
    await _kind(kind, "create", "cluster", "--name", CLUSTER_NAME, "--kubeconfig", str(kubeconfig), "--wait", "180s")


async def delete_cluster(kind: Path, *, kubeconfig: Path) -> None:
    """Remove the cluster; its entry in the kubeconfig goes too.

    Raises:
        TerminalError: kind refused (LOCAL_SYSTEM).
    """
    await _kind(kind, "delete", "cluster", "--name", CLUSTER_NAME, "--kubeconfig", str(kubeconfig))


async def _engine_answers(engine: str) -> bool:
    process = await asyncio.create_subprocess_exec(
        engine,
        "info",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_ENGINE_ANSWERS_WITHIN_S):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _kind(program: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(program),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise TerminalError(
            f"kind {' '.join(arguments[:2])} ended with status {process.returncode}: "
            + "; ".join(errors.decode("utf-8", "replace").splitlines()[-3:]),
            code=ErrorCode.LOCAL_SYSTEM,
            subject=str(program),
        )
    return output.decode("utf-8", "replace")
