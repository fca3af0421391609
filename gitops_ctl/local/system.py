"""Brings a local system up and takes it down, whatever it is made of.

The first that works is taken: a kubeconfig that was named; the programs in `KUBEBUILDER_ASSETS`; a `kind` cluster when a container
engine answers; else programs that are built from Go modules.  A system that is up already is given back as it is.
"""

import enum
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.binaries import ASSETS_VARIABLE, find_binaries
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.gitea import find_gitea
from gitops_ctl.local.kind import create_cluster, delete_cluster, find_kind
from gitops_ctl.local.kwok import find_kwok
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.state import SystemFolder, SystemState
from gitops_ctl.local.supervisor import Job, start_supervisor, stop_supervisor, supervise

_POLL_S = 0.1


class Provider(enum.Enum):
    """What may make the system."""

    AUTO = "auto"
    KIND = "kind"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for.  `kubeconfig` names an existing cluster and leaves nothing else to choose.

    With `manager` the product is installed and its manager runs beside the components, with `forge` a Gitea does; only where the
    system is made of processes.
    Such a system ends with the process `owner`, also when that is killed; 0 lets it outlive everybody.
    """

    directory: Path
    kubeconfig: Path | None = None
    context: str | None = None
    provider: Provider = Provider.AUTO
    options: Options = field(default_factory=Options)
    manager: bool = False
    forge: bool = False
    owner: int = 0
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


async def bring_up(request: Request, *, progress: Progress, clock: Clock) -> SystemState:
    """The system, ready; its processes go on in the background.

    Raises:
        GitopsError: what is needed is short or missing, or it did not start; nothing is left running.
    """
    folder = SystemFolder(request.directory)
    folder.create()
    state = await _settled(folder, progress=progress, clock=clock)
    if request.kubeconfig is not None:
        _require_nothing_else(folder, state)
        state = await _external(request, request.kubeconfig, clock=clock)
    elif state is not None and state.kind != "external":
        _require_forge(request, folder, state)
        return state
    elif kind := await _kind(request):
        progress.update("creating a kind cluster; the first time its image is downloaded")
        await create_cluster(kind, kubeconfig=folder.admin_kubeconfig)
        state = SystemState(
            kind="kind", url="", kubeconfig=str(folder.admin_kubeconfig), version="", supervisor=0, pids={}
        )
    else:
        if reason := folder.last_failure():
            progress.update(f"the last run ended by itself: {reason}")
        job = await job_for(request, progress=progress)
        progress.update("starting the control plane")
        return await start_supervisor(job, clock=clock)
    folder.write_state(state)
    return state


async def run_in_foreground(request: Request, *, progress: Progress, clock: Clock) -> str:
    """Run a system of processes until it is asked to stop; the reason when something else ended it, empty else.

    Raises:
        GitopsError: as `bring_up`.
    """
    return await supervise(await job_for(request, progress=progress), clock=clock)


async def job_for(request: Request, *, progress: Progress) -> Job:
    """The work of a supervisor, with its programs found or built."""
    binaries = await find_binaries(progress=progress)
    kwok = await find_kwok(progress=progress) if request.options.nodes else None
    forge = await find_gitea(progress=progress) if request.forge else None
    directory, owner = request.directory.absolute(), request.owner
    return Job(directory, binaries, request.options, owner=owner, kwok=kwok, manager=request.manager, forge=forge)


async def take_down(folder: SystemFolder, *, purge: bool) -> bool:
    """Stop what `bring_up` made; with `purge` its data goes too.  False when nothing was up.

    A cluster that was only named by its kubeconfig is forgotten, never touched.

    Raises:
        TerminalError: it did not stop (LOCAL_SYSTEM).
    """
    was_up = await stop_supervisor(folder)
    state = folder.state()
    if state is not None and state.kind == "kind":
        kind = shutil.which("kind")
        if kind is None:
            raise BlockedError(
                "the cluster was made with kind, which is not installed any more",
                code=ErrorCode.TOOL_MISSING,
                hint="install kind, or remove the container gitops-ctl-control-plane",
            )
        await delete_cluster(Path(kind), kubeconfig=folder.admin_kubeconfig)
    folder.clear_state()
    if purge:
        with folder.held():
            folder.remove()
    return was_up or state is not None


async def _settled(folder: SystemFolder, *, progress: Progress, clock: Clock) -> SystemState | None:
    """What is up, after another process that is starting or stopping it has done so."""
    while (state := folder.state()) is None and folder.is_held():
        progress.update("waiting for another process that starts or stops this system")
        await clock.sleep(_POLL_S)
    return state


async def _kind(request: Request) -> Path | None:
    if request.provider is Provider.PROCESSES:
        return None
    if request.provider is Provider.AUTO and (request.forge or request.environment.get(ASSETS_VARIABLE)):
        return None
    found = await find_kind()
    if found is None and request.provider is Provider.KIND:
        raise BlockedError(
            "kind is not installed, or no container engine answers",
            code=ErrorCode.TOOL_MISSING,
            hint="install kind and start docker or podman, or leave --provider out",
        )
    return found


async def _external(request: Request, kubeconfig: Path, *, clock: Clock) -> SystemState:
    # The official client's configuration takes half a second to import.
    from gitops_ctl.kube.config import load_cluster  # noqa: PLC0415
    from gitops_ctl.kube.transport import KubeClient  # noqa: PLC0415

    config = await load_cluster(kubeconfig, request.context, allow_exec=True)
    async with KubeClient(config, component="up", clock=clock) as client:
        version = await client.get("/version")
    return SystemState(
        kind="external",
        url=config.host,
        kubeconfig=str(kubeconfig),
        version=str(version.get("gitVersion", "")),
        supervisor=0,
        pids={},
    )


def _require_forge(request: Request, folder: SystemFolder, state: SystemState) -> None:
    if request.forge and not state.forge:
        raise BlockedError(
            "the local system is up without a forge",
            code=ErrorCode.LOCAL_BUSY,
            subject=str(folder.path),
            hint="stop it with `gitops-ctl down` and start it again; its data is kept",
        )


def _require_nothing_else(folder: SystemFolder, state: SystemState | None) -> None:
    if state is not None and state.kind != "external":
        raise BlockedError(
            "another local system is up in this folder",
            code=ErrorCode.LOCAL_BUSY,
            subject=str(folder.path),
            hint="stop it with `gitops-ctl down`, or use another --directory",
        )
