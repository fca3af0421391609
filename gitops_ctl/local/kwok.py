"""Nodes without machines: kwok reports them ready and lets the Pods on them run.

It manages only Nodes with its annotation, so a Node that stands for a device is never touched.
"""

from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.local.build import Builder
from gitops_ctl.local.certificates import write_private
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.published import Published, published_files
from gitops_ctl.local.recipes import KWOK

_ANNOTATION, _VALUE = "kwok.x-k8s.io/node", "fake"

# The heartbeat keeps the Node ready beside a real controller-manager, which wants to see its Lease.
STAGES = Published(
    folder=KWOK.folder,
    module=KWOK.module,
    version=KWOK.version,
    patterns=(
        "kustomize/stage/node/fast/*.yaml",
        "kustomize/stage/node/heartbeat-with-lease/*.yaml",
        "kustomize/stage/pod/fast/*.yaml",
    ),
)


@dataclass(frozen=True, slots=True)
class Kwok:
    """The program and what it plays."""

    program: Path
    stages: tuple[Path, ...]


async def find_kwok(*, progress: Progress) -> Kwok:
    """The program from the cache, built first when it is missing.

    Raises:
        GitopsError: as `Builder.programs` and `published_files`.
    """
    programs = await Builder(progress=progress).programs((KWOK,))
    return Kwok(programs["kwok"], tuple((await published_files(STAGES)).values()))


def kwok_argv(kwok: Kwok, *, kubeconfig: Path, config: Path) -> tuple[str, ...]:
    """Its command line; the stages are written to `config`."""
    write_private(config, b"\n---\n".join(path.read_bytes() for path in kwok.stages))
    return (
        str(kwok.program),
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        f"--manage-nodes-with-annotation-selector={_ANNOTATION}={_VALUE}",
        "--node-lease-duration-seconds=40",
        "--cidr=10.244.0.0/16",
    )


def node_named(name: str) -> JsonObject:
    """A Node that kwok plays."""
    room: JsonObject = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_ANNOTATION: _VALUE},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "status": {"allocatable": room, "capacity": room},
    }
