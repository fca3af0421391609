"""Credentials are files; one that is missing is named with its Secret and key (cni-switch.md, section 2.1)."""

from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.worker.credentials import LIMIT_BYTES, CredentialNotMounted, Credentials
from gitops_ctl.core.codes import ErrorCode


def cluster(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "north"}, "spec": {"talosconfigSecretRef": {"name": "north-talos"}, **spec}}


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    (tmp_path / "clusters" / "north").mkdir(parents=True)
    (tmp_path / "machines" / "cp-1").mkdir(parents=True)
    return tmp_path


def test_each_file_is_read_where_it_is_mounted(mounts: Path) -> None:
    (mounts / "clusters/north/talosconfig").write_text("t")
    (mounts / "clusters/north/kubeconfig").write_text("k")
    (mounts / "machines/cp-1/machineconfig.yaml").write_text("m")
    machine = {"metadata": {"name": "cp-1"}, "spec": {"configSecretRef": {"name": "base"}}}
    credentials = Credentials(mounts)
    assert credentials.talosconfig(cluster()) == b"t"
    assert credentials.kubeconfig(cluster(kubeconfigSecretRef={"name": "north-kube"})) == b"k"
    assert credentials.base(machine) == b"m"


def test_what_no_object_names_is_not_read(mounts: Path) -> None:
    (mounts / "clusters/north/kubeconfig").write_text("k")
    assert Credentials(mounts).kubeconfig(cluster()) is None
    assert Credentials(mounts).base({"metadata": {"name": "cp-1"}, "spec": {}}) is None


@pytest.mark.parametrize(
    "content", [None, b"", b" \n", b"x" * (LIMIT_BYTES + 1)], ids=["missing", "empty", "blank", "endless"]
)
def test_a_file_that_cannot_be_used_names_secret_and_key(mounts: Path, content: bytes | None) -> None:
    if content is not None:
        (mounts / "clusters/north/talosconfig").write_bytes(content)
    with pytest.raises(CredentialNotMounted) as caught:
        Credentials(mounts).talosconfig(cluster())
    assert caught.value.code is ErrorCode.CREDENTIAL_NOT_MOUNTED
    assert "the key talosconfig of the Secret north-talos is not mounted at" in caught.value.message
    assert str(mounts / "clusters/north/talosconfig") in caught.value.hint


def test_a_replaced_file_counts_at_once(mounts: Path) -> None:
    path, credentials = mounts / "clusters/north/talosconfig", Credentials(mounts)
    path.write_text("old")
    credentials.talosconfig(cluster())
    path.write_text("new")
    assert credentials.talosconfig(cluster()) == b"new"
