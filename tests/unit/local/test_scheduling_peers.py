"""How nfd-master and Kueue are started; that they then work is shown in tests/peers."""

from pathlib import Path

import yaml

from gitops_ctl.local.kueue import kueue_process
from gitops_ctl.local.nfd import NFD_NAMESPACE, nfd_process
from gitops_ctl.local.recipes import KUEUE, NFD
from tools.peers.kueue_manager import ADDRESS, KUEUE_MANAGER, manager_process


def test_nfd_master_listens_nowhere_and_knows_its_namespace_and_node(tmp_path: Path) -> None:
    spec = nfd_process(Path("/bin/nfd-master"), kubeconfig=tmp_path / "k", node="node-0", log=tmp_path / "nfd.log")
    assert {"-port=-1", f"-kubeconfig={tmp_path}/k"} <= set(spec.argv)
    (configured,) = (word for word in spec.argv if word.startswith("-config="))
    assert configured != "-config="
    assert not Path(configured.removeprefix("-config=")).exists()
    assert spec.environment == {"NODE_NAME": "node-0", "KUBERNETES_NAMESPACE": NFD_NAMESPACE}


def test_kueue_places_by_topology_and_listens_nowhere(tmp_path: Path) -> None:
    spec = kueue_process(Path("/bin/minimalkueue"), kubeconfig=tmp_path / "k", log=tmp_path / "kueue.log")
    assert {"--enableTAS", "--metricsPort=0"} <= set(spec.argv)


def test_the_full_manager_serves_webhooks_on_a_loopback_address_only(tmp_path: Path) -> None:
    manager_process(Path("/bin/kueue"), kubeconfig=tmp_path / "k", folder=tmp_path)
    written = yaml.safe_load((tmp_path / "kueue.yaml").read_text())
    assert written["webhook"]["host"] == ADDRESS
    assert ADDRESS.startswith("127.")
    assert (written["metrics"]["bindAddress"], written["health"]["healthProbeBindAddress"]) == ("0", "0")


def test_versions_are_pinned_and_the_manager_is_built_apart() -> None:
    assert (NFD.version, KUEUE.version, KUEUE_MANAGER.version) == ("v0.19.0", "v0.17.0", "v0.17.0")
    assert KUEUE.key() != KUEUE_MANAGER.key()
