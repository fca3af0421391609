"""Which programs make the control plane: those that `KUBEBUILDER_ASSETS` names, else those that we build."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.build import Builder
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.recipes import CONTROL_PLANE

PROGRAMS = tuple(program for recipe in CONTROL_PLANE for program in recipe.programs)
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Binaries:
    """Absolute paths of the programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path


def from_assets(environment: Mapping[str, str] = os.environ) -> Binaries | None:
    """The programs in the folder that `KUBEBUILDER_ASSETS` names, None when it names none.

    Raises:
        BlockedError: a program is not in that folder (TOOL_MISSING).  Nothing else is taken in its place: whoever set the
            variable wants these programs and no others.
    """
    folder = environment.get(ASSETS_VARIABLE, "")
    if not folder:
        return None
    paths = {name: Path(folder).absolute() / name for name in PROGRAMS}
    absent = [name for name, path in paths.items() if not os.access(path, os.X_OK)]
    if absent:
        raise BlockedError(
            f"{ASSETS_VARIABLE} lacks {', '.join(absent)}",
            code=ErrorCode.TOOL_MISSING,
            subject=folder,
            hint=f"add the programs to the folder, or unset {ASSETS_VARIABLE} to have all of them built",
        )
    return _binaries(paths)


async def find_binaries(*, progress: Progress) -> Binaries:
    """The programs of `KUBEBUILDER_ASSETS`, else ours from the cache, built first where they are missing.

    Raises:
        GitopsError: as `from_assets` and `Builder.programs`.
    """
    return from_assets() or _binaries(await Builder(progress=progress).programs(CONTROL_PLANE))


def _binaries(paths: Mapping[str, Path]) -> Binaries:
    return Binaries(**{name.replace("-", "_"): paths[name] for name in PROGRAMS})
