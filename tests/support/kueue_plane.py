"""A control plane with the full manager of Kueue and its webhooks, for one module; no controllers, and Nodes are ready because tests say so."""

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.supervise import log_tail
from tests.support.cluster import ControlPlaneHandle
from tests.support.kueue import BASE, cluster_queue
from tests.support.processes import until
from tests.support.topology_plane import PeerProcess, add_node, install_definitions, started_plane, stopped_plane
from tools.peers.kueue_manager import SECRET, SERVICE_RANGE, manager_objects, manager_process

_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Secret": "/api/v1/namespaces/kueue-system/secrets",
    "Service": "/api/v1/namespaces/kueue-system/services",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}


@dataclass
class KueuePlane:
    """The control plane and the running manager."""

    plane: ControlPlaneHandle
    manager: PeerProcess

    def add_node(self, name: str, labels: dict[str, str], *, cpu: int = 4) -> None:
        """A ready Node."""
        add_node(self.plane, name, labels, cpu=cpu, kwok=False)


@pytest.fixture(scope="module")
def kueue_plane(kueue_manager: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KueuePlane]:
    """The manager serves its webhooks; import this into a test module."""
    folder = tmp_path_factory.mktemp("kueue")
    options = Options(durable=False, controllers=False, audit=True, service_range=SERVICE_RANGE)
    plane = started_plane(folder / "plane", options)
    user = plane.kubeconfig_for("kueue", ("system:masters",))
    made = KueuePlane(plane, PeerProcess(manager_process(kueue_manager, kubeconfig=user, folder=folder)))
    try:
        _install(plane)
        made.manager.start()
        _mount(plane, folder / "certificates")
        made.manager.until_says("Starting workers")
        until(lambda: _judges(plane), timeout_s=60, what="the webhooks answer")
        yield made
    finally:
        made.manager.stop()
        print(log_tail(made.manager.spec.log, lines=40))
        stopped_plane(plane)


def _install(plane: ControlPlaneHandle) -> None:
    trees = manager_objects()
    definitions = [tree for tree in trees if tree["kind"] == "CustomResourceDefinition"]
    for tree in trees:
        if tree["kind"] != "CustomResourceDefinition":
            made = plane.request("POST", _COLLECTIONS[tree["kind"]], tree)
            assert made.status == 201, made.body
    install_definitions(plane, definitions)


def _mount(plane: ControlPlaneHandle, folder: Path) -> None:
    """What a kubelet does: the certificates that the manager has put into its Secret become files."""

    def made() -> Any:
        tree = plane.request("GET", f"{_COLLECTIONS['Secret']}/{SECRET}").body
        return tree.get("data", {}) if "tls.crt" in tree.get("data", {}) else None

    until(made, timeout_s=60, what="the manager has made its certificates")
    folder.mkdir(exist_ok=True)
    for name, value in made().items():
        (folder / name).write_bytes(b64decode(value))


def _judges(plane: ControlPlaneHandle) -> Any:
    """Whether the webhook of queues lets a good one pass."""
    return plane.request("POST", f"{BASE}/clusterqueues?dryRun=All", cluster_queue("asks", {})).status == 201
