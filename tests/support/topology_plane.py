"""Control planes of their own for Node Feature Discovery and Kueue, since Nodes and queues belong to a whole cluster.

`peer_plane` is the quick one, without controllers: tests say themselves that a Node is ready.  `topology_plane` has controllers, and kwok
keeps its Nodes ready; import it with `kwok` into a test module.  Both run nfd-master and minimalkueue.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.binaries import find_binaries
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.kueue import KUEUE_CRDS, kueue_process
from gitops_ctl.local.kwok import Kwok
from gitops_ctl.local.nfd import NFD_CRDS, NFD_NAMESPACE, nfd_process
from gitops_ctl.local.progress import stderr_progress
from gitops_ctl.local.published import Published, published_files
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervise import ProcessSpec, log_tail, signal_group, tied_argv
from gitops_ctl.local.supervisor import Job, start_supervisor, stop_supervisor
from tests.support.cluster import ControlPlaneHandle
from tests.support.processes import until

WORKER_NAMESPACE = "gpustack-system"
HOME = "nfd-home"
"""The Node that nfd-master is told to run on; nothing else looks at it."""

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass
class PeerProcess:
    """One component that a test stops and starts."""

    spec: ProcessSpec
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its log goes on."""
        with self.spec.log.open("ab") as stream:
            self.process = subprocess.Popen(
                tied_argv(self.spec.argv),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**os.environ, **self.spec.environment},
                start_new_session=True,
            )

    def stop(self) -> None:
        """End it at once; nothing happens when it has ended."""
        if self.process is not None:
            signal_group(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def until_says(self, words: str) -> None:
        """Wait until its log has these words; a process that ended by itself is an error with its last lines."""

        def said() -> bool:
            ended = self.process is None or self.process.poll() is not None
            assert not ended, f"{self.spec.name} ended: {log_tail(self.spec.log)}"
            return words in self.spec.log.read_text()

        until(said, timeout_s=60, what=f"{self.spec.name} says {words}")


@dataclass
class TopologyPlane:
    """A control plane with both components.

    Attributes:
        plane: the control plane.
        nfd, kueue: the processes, running.
    """

    plane: ControlPlaneHandle
    nfd: PeerProcess
    kueue: PeerProcess
    kwok: bool

    def add_node(self, name: str, labels: dict[str, str], *, cpu: int = 4, annotated: bool = True) -> None:
        """A ready Node with room for `cpu` CPUs; `annotated` as every kubelet's Node is."""
        add_node(self.plane, name, labels, cpu=cpu, annotated=annotated, kwok=self.kwok)


def add_node(
    plane: ControlPlaneHandle, name: str, labels: dict[str, str], *, cpu: int = 4, annotated: bool = True, kwok: bool
) -> None:
    """A Node that kwok keeps ready, or one that is said to be ready where nothing says anything else."""
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    annotations = {"kwok.x-k8s.io/node": "fake"} if kwok else {"example.net/made-by": "tests"}
    metadata = {"name": name, "labels": {**known, **labels}, "annotations": annotations if annotated else {}}
    # With its room from the first moment, as a kubelet makes it: kwok gives a Node without any a thousand CPUs.
    status: dict[str, Any] = {"allocatable": room, "capacity": room}
    if not kwok:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "Tests"}]
    made = plane.request("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})
    assert made.status == 201, made.body
    assert made.body["status"]["allocatable"]["cpu"] == room["cpu"]
    if not kwok:
        _merge(plane, f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def _merge(plane: ControlPlaneHandle, path: str, patch: Any) -> None:
    done = plane.request("PATCH", path, patch, content_type="application/merge-patch+json")
    assert done.status == 200, done.body


def install_definitions(plane: ControlPlaneHandle, trees: Sequence[dict[str, Any]]) -> None:
    """Create definitions and wait until every kind is served and announced: Kueue ends at once when it does not find its kinds."""
    for tree in trees:
        made = plane.request("POST", _DEFINITIONS, tree)
        assert made.status == 201, made.body
    wanted = {
        (tree["spec"]["group"], version["name"], tree["spec"]["names"]["plural"])
        for tree in trees
        for version in tree["spec"]["versions"]
        if version["served"]
    }
    until(lambda: wanted <= _found(plane, wanted), what=f"the server announces and serves {sorted(wanted)}")


def _found(plane: ControlPlaneHandle, among: Set[tuple[str, str, str]]) -> Set[tuple[str, str, str]]:
    """Which of these are in both answers of discovery, which the server renews one after the other, and can be read."""
    groups = plane.request("GET", "/apis", accept=_AGGREGATED).body["items"]
    together = {
        (group["metadata"]["name"], version["version"], resource["resource"])
        for group in groups
        for version in group["versions"]
        for resource in version.get("resources", ())
    }
    plain: set[tuple[str, str, str]] = set()
    for group, version in {each[:2] for each in among & together}:
        listed = plane.request("GET", f"/apis/{group}/{version}")
        plain |= (
            {(group, version, each["name"]) for each in listed.body["resources"]} if listed.status == 200 else set()
        )
    return {each for each in among & together & plain if plane.request("GET", f"/apis/{'/'.join(each)}").status == 200}


def published_trees(*published: Published) -> list[dict[str, Any]]:
    """All documents of published files."""
    trees: list[dict[str, Any]] = []
    for each in published:
        for path in asyncio.run(published_files(each)).values():
            trees += [tree for tree in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if tree]
    return trees


def started_plane(directory: Path, options: Options, *, kwok: Kwok | None = None) -> ControlPlaneHandle:
    """A control plane of this test process, ready."""

    async def start() -> ControlPlaneHandle:
        binaries = await find_binaries(progress=stderr_progress())
        job = Job(directory, binaries, options, owner=os.getpid(), kwok=kwok)
        state = await start_supervisor(job, clock=SystemClock())
        return ControlPlaneHandle(SystemFolder(directory), state, binaries)

    return asyncio.run(start())


def stopped_plane(plane: ControlPlaneHandle) -> None:
    """Its end."""
    asyncio.run(stop_supervisor(plane.folder))


def _running(plane: ControlPlaneHandle, *, nfd: Path, kueue: Path, kwok: bool) -> Iterator[TopologyPlane]:
    """Both components on a control plane that is ready; ended afterwards, with their logs where pytest shows them."""
    install_definitions(plane, published_trees(NFD_CRDS, KUEUE_CRDS))
    for name in (NFD_NAMESPACE, WORKER_NAMESPACE):
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    # Users of their own, so that the audit log tells who did what.
    logs, everything = plane.folder.logs, ("system:masters",)
    for_nfd, for_kueue = (plane.kubeconfig_for(user, everything) for user in ("nfd-master", "kueue"))
    made = TopologyPlane(
        plane,
        PeerProcess(nfd_process(nfd, kubeconfig=for_nfd, node=HOME, log=logs / "nfd-master.log")),
        PeerProcess(kueue_process(kueue, kubeconfig=for_kueue, log=logs / "kueue.log")),
        kwok,
    )
    if plane.request("GET", f"/api/v1/nodes/{HOME}").status == 404:
        made.add_node(HOME, {})
    try:
        made.kueue.start()
        made.nfd.start()
        made.nfd.until_says("http server starting")
        made.kueue.until_says("Starting workers")
        yield made
    finally:
        for each in (made.nfd, made.kueue):
            each.stop()
            print(log_tail(each.spec.log, lines=40))


@pytest.fixture(scope="session")
def peer_plane(nfd: Path, kueue: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopologyPlane]:
    """Without controllers, once for each test process that asks."""
    plane = started_plane(tmp_path_factory.mktemp("peers") / "plane", Options(durable=False, controllers=False))
    try:
        yield from _running(plane, nfd=nfd, kueue=kueue, kwok=False)
    finally:
        stopped_plane(plane)


@pytest.fixture(scope="module")
def topology_plane(
    nfd: Path, kueue: Path, kwok: Kwok, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TopologyPlane]:
    """With controllers and kwok, for one module."""
    options = Options(durable=False, audit=True, nodes=1, node_names=(HOME,), event_ttl="10m")
    plane = started_plane(tmp_path_factory.mktemp("topology") / "plane", options, kwok=kwok)
    try:
        yield from _running(plane, nfd=nfd, kueue=kueue, kwok=True)
    finally:
        stopped_plane(plane)
