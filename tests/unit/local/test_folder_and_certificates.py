"""The folder of a local system and the identities in it.

In scope: who holds it, what a stale record means, which certificate is good for what.  Out of scope: the running system.
"""

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.binaries import PROGRAMS, from_assets
from gitops_ctl.local.certificates import Authority, service_account_key
from gitops_ctl.local.controlplane import issue_kubeconfig
from gitops_ctl.local.ports import pick_ports
from gitops_ctl.local.resources import free_memory, require_memory
from gitops_ctl.local.state import SystemFolder, SystemState, state_home


def a_state(kind: str = "processes") -> SystemState:
    return SystemState(kind, "https://127.0.0.1:1", "/k", "v1", 1, {"etcd": 2})


def test_a_record_that_a_killed_supervisor_left_does_not_count(tmp_path: Path) -> None:
    folder = SystemFolder(tmp_path)
    with folder.held():
        folder.write_state(a_state())
        assert folder.state() == a_state()
        assert folder.holder() == os.getpid()
    assert folder.state() is None
    assert folder.holder() is None


def test_a_cluster_that_is_not_made_of_our_processes_counts_without_a_holder(tmp_path: Path) -> None:
    folder = SystemFolder(tmp_path)
    folder.write_state(a_state("external"))
    assert folder.state() == a_state("external")


def test_only_one_process_can_hold_a_folder(tmp_path: Path) -> None:
    with SystemFolder(tmp_path).held(), pytest.raises(BlockedError) as caught, SystemFolder(tmp_path).held():
        pass
    assert caught.value.code is ErrorCode.LOCAL_BUSY
    assert "gitops-ctl down" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "processes"}', '"x"'], ids=repr)
def test_a_damaged_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "system.json").write_text(text)
    (tmp_path / "ports.json").write_text(text)
    assert SystemFolder(tmp_path).state() is None
    assert SystemFolder(tmp_path).ports() == ()


def test_the_state_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert state_home() == Path("/elsewhere/gitops-ctl")


def test_authorities_and_the_token_key_are_kept_and_certificates_are_new(tmp_path: Path) -> None:
    first, second = (Authority(tmp_path, "ca", clock=SystemClock()) for _ in range(2))
    assert first.certificate_path.read_bytes() == second.certificate_path.read_bytes()
    one = first.client("admin", user="u")[0].read_bytes()
    assert second.client("admin", user="u")[0].read_bytes() != one
    private = service_account_key(tmp_path)[0].read_bytes()
    assert service_account_key(tmp_path)[0].read_bytes() == private


def test_a_client_certificate_names_user_and_groups_and_cannot_be_a_server(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca", clock=SystemClock())
    path, key = authority.client("who", user="system:serviceaccount:a:b", groups=("g1", "g2"))
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=system:serviceaccount:a:b,O=g2,O=g1"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in usage] == ["1.3.6.1.5.5.7.3.2"]
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert timedelta(days=364) < lifetime < timedelta(days=367)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_kubeconfig_holds_everything_and_is_private(tmp_path: Path) -> None:
    path = issue_kubeconfig(
        SystemFolder(tmp_path), "author", server="https://127.0.0.1:6443", user="network-author", clock=SystemClock()
    )
    text = path.read_text()
    tree = yaml.load(text, Loader=yaml.SafeLoader)
    assert tree["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert str(tmp_path) not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_ports_of_the_last_start_are_preferred_and_a_taken_one_is_replaced() -> None:
    ports = pick_ports(3)
    assert len(set(ports)) == 3
    assert pick_ports(3, preferred=ports) == ports
    first, second = pick_ports(2, preferred=(ports[0], ports[0]))
    assert first == ports[0]
    assert second != ports[0]


def test_assets_that_lack_a_program_are_refused_by_name(tmp_path: Path) -> None:
    for name in PROGRAMS[:-2]:
        (tmp_path / name).touch(0o755)
    with pytest.raises(BlockedError) as caught:
        from_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert caught.value.message == "KUBEBUILDER_ASSETS lacks kube-scheduler, kubectl"
    for name in PROGRAMS:
        (tmp_path / name).touch(0o755)
    found = from_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert found is not None
    assert found.kube_apiserver == tmp_path / "kube-apiserver"
    assert from_assets({}) is None


def test_the_memory_limit_of_a_container_counts(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:  4194304 kB\n")
    assert free_memory(meminfo=meminfo, group=tmp_path) == 4 * 1024**3
    (tmp_path / "memory.max").write_text("2147483648\n")
    (tmp_path / "memory.current").write_text("1073741824\n")
    assert free_memory(meminfo=meminfo, group=tmp_path) == 1024**3
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(meminfo=meminfo, group=tmp_path) == 4 * 1024**3
    with pytest.raises(BlockedError, match=r"needs 2\.5 GB of memory, 1\.0 GB are free"):
        require_memory(1024**3, needed=5 * 1024**3 // 2)
