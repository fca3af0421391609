"""Kueue on a local control plane: its own small build with core controllers, scheduler and topologies (topology-scheduling.md, section 14.3).

It has an empty configuration, no webhooks and no job integrations: nothing turns Jobs or Pods into Workloads.  Its definitions must be
established and listed by the server before it starts, else it ends at once.
"""

from pathlib import Path
from typing import Final

from gitops_ctl.local.build import Builder
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.published import Published
from gitops_ctl.local.recipes import KUEUE
from gitops_ctl.local.supervise import ProcessSpec

KUEUE_CRDS: Final = Published(KUEUE.folder, KUEUE.module, KUEUE.version, ("config/components/crd/bases/*.yaml",))


async def find_kueue(*, progress: Progress) -> Path:
    """The program from the cache, built first when it is missing.

    Raises:
        GitopsError: as `Builder.programs`.
    """
    return (await Builder(progress=progress).programs((KUEUE,)))["minimalkueue"]


def kueue_process(program: Path, *, kubeconfig: Path, log: Path) -> ProcessSpec:
    """Its process; the log says what it decides."""
    flags = (f"--kubeconfig={kubeconfig}", "--enableTAS", "--metricsPort=0", "--zap-log-level=2")
    return ProcessSpec("kueue", (str(program), *flags), log)
