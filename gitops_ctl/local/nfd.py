"""Node Feature Discovery on a local control plane: nfd-master, which puts the labels of NodeFeatures on Nodes (topology-scheduling.md, section 14.3).

Its definitions must be served before it starts, and the Node that it is told to be at home on must exist: its first act is to patch that Node.
"""

from pathlib import Path
from typing import Final

from gitops_ctl.local.build import Builder
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.published import Published
from gitops_ctl.local.recipes import NFD
from gitops_ctl.local.supervise import ProcessSpec

NFD_NAMESPACE: Final = "node-feature-discovery"
"""Its own namespace; the NodeFeatures of others lie elsewhere."""

NFD_CRDS: Final = Published(NFD.folder, NFD.module, NFD.version, ("deployment/base/nfd-crds/nfd-api-crds.yaml",))


async def find_nfd(*, progress: Progress) -> Path:
    """The program from the cache, built first when it is missing.

    Raises:
        GitopsError: as `Builder.programs`.
    """
    return (await Builder(progress=progress).programs((NFD,)))["nfd-master"]


def nfd_process(program: Path, *, kubeconfig: Path, node: str, log: Path) -> ProcessSpec:
    """Its process, at home on the Node `node`."""
    flags = (
        f"-kubeconfig={kubeconfig}",
        # It would serve its metrics on every address of the machine; a port that cannot be had keeps it from that.
        "-port=-1",
        # A file that is not there means the defaults; an empty name would be dropped and read as something else.
        f"-config={log.with_suffix('.conf')}",
    )
    environment = {"NODE_NAME": node, "KUBERNETES_NAMESPACE": NFD_NAMESPACE}
    return ProcessSpec("nfd-master", (str(program), *flags), log, environment)
