"""The worker of a local system has the rights and the files that it has in a cluster."""

import stat
from pathlib import Path
from typing import Any

from gitops_ctl.cni.worker.credentials import Credentials
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.clusterworker import mount_credentials, worker_objects, worker_process, worker_user
from gitops_ctl.local.state import SystemFolder
from tools.render_install import chart_objects

KINDS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


def test_its_rights_are_those_of_the_chart() -> None:
    values = {"workers": [{"namespace": "team-a", "clusters": [{"name": "north", "talosconfig": "t"}]}]}
    rendered = [tree for tree in chart_objects(values) if tree["metadata"]["name"] == "gitops-ctl-worker"]
    wanted = {tree["kind"]: tree for tree in rendered if tree["kind"] in KINDS}
    objects: Any = worker_objects("team-a")
    assert [tree["kind"] for tree in objects] == list(KINDS)
    for tree in objects:
        same = wanted[tree["kind"]]
        for member in ("rules", "roleRef", "subjects"):
            assert tree.get(member) == same.get(member)
        assert tree["metadata"].get("namespace") == same["metadata"].get("namespace")


def test_mounted_credentials_are_found_and_private(tmp_path: Path) -> None:
    mount_credentials(tmp_path, cluster="north", talosconfig=b"t", kubeconfig=b"k")
    spec = {"talosconfigSecretRef": {"name": "a"}, "kubeconfigSecretRef": {"name": "b"}}
    cluster: Any = {"metadata": {"name": "north"}, "spec": spec}
    assert (Credentials(tmp_path).talosconfig(cluster), Credentials(tmp_path).kubeconfig(cluster)) == (b"t", b"k")
    for name in ("talosconfig", "kubeconfig"):
        assert stat.S_IMODE((tmp_path / "clusters/north" / name).stat().st_mode) == 0o600


def test_its_process_has_an_identity_of_its_own(tmp_path: Path) -> None:
    folder = SystemFolder(tmp_path)
    folder.create()
    spec = worker_process(
        folder,
        url="https://127.0.0.1:6443",
        namespace="team-a",
        credentials=tmp_path / "mounts",
        clock=SystemClock(),
        probe_port=8443,
    )
    assert "--service-probe-port=8443" in spec.argv
    assert (tmp_path / "worker-team-a.kubeconfig").exists()
    assert worker_user("team-a") == "system:serviceaccount:team-a:gitops-ctl-worker"
