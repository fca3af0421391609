"""Kubeconfigs and in-cluster files: what is accepted, what is refused, and that no secret is left behind or shown."""

import asyncio
import base64
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.core.errors import BlockedError, Refused
from gitops_ctl.kube.config import ClusterConfig, load_cluster, load_remote_cluster
from gitops_ctl.kube.exec_credential import run_exec_plugin
from tests.support.kube_clock import JumpingClock
from tests.support.kube_pki import a_certificate

API = "client.authentication.k8s.io/v1"


def a_kubeconfig(*, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "s3cr3t"} if user is None else user}],
    }


def written(tmp_path: Path, tree: dict[str, Any]) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.dump(tree))
    return path


def a_plugin(tmp_path: Path, code: str) -> dict[str, Any]:
    path = tmp_path / "plugin.py"
    path.write_text(code)
    return {"exec": {"apiVersion": API, "command": sys.executable, "args": [str(path)]}}


def credential(**status: str) -> str:
    return f"print({json.dumps({'apiVersion': API, 'kind': 'ExecCredential', 'status': status})!r})"


async def test_a_token_and_a_server_make_a_cluster(tmp_path: Path) -> None:
    config = await load_cluster(written(tmp_path, a_kubeconfig()), allow_exec=False)
    assert config.host == "https://192.0.2.1:6443"
    assert config.credentials.authorization == "Bearer s3cr3t"
    assert config.tls is not None
    assert config.tls.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert "s3cr3t" not in repr(config)


async def test_embedded_certificates_are_used_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    certificate, key = a_certificate("client")
    b64 = {"cert": base64.b64encode(certificate).decode(), "key": base64.b64encode(key).decode()}
    user = {"client-certificate-data": b64["cert"], "client-key-data": b64["key"]}
    tree = a_kubeconfig(user=user, cluster={"certificate-authority-data": b64["cert"]})
    for _ in range(2):  # the same content once more: nothing may be remembered about its file
        config = await load_cluster(written(tmp_path, tree), allow_exec=False)
    assert config.tls is not None
    assert [entry["subject"] for entry in config.tls.get_ca_certs()] == [((("commonName", "client"),),)]
    assert list((tmp_path / "t").iterdir()) == []


async def test_files_beside_the_kubeconfig_are_found(tmp_path: Path) -> None:
    certificate, key = a_certificate("client")
    (tmp_path / "c.crt").write_bytes(certificate)
    (tmp_path / "c.key").write_bytes(key)
    tree = a_kubeconfig(
        user={"client-certificate": "c.crt", "client-key": "c.key"}, cluster={"certificate-authority": "c.crt"}
    )
    config = await load_cluster(written(tmp_path, tree), allow_exec=False)
    assert config.credentials.authorization == ""


async def test_another_context_can_be_chosen_and_a_missing_one_is_named(tmp_path: Path) -> None:
    tree = a_kubeconfig()
    tree["contexts"].append({"name": "other", "context": {"cluster": "c2", "user": "u"}})
    tree["clusters"].append(
        {"name": "c2", "cluster": {"server": "https://192.0.2.2", "tls-server-name": "api.example.net"}}
    )
    config = await load_cluster(written(tmp_path, tree), "other", allow_exec=False)
    assert (config.host, config.server_name) == ("https://192.0.2.2", "api.example.net")
    with pytest.raises(Refused, match="nowhere"):
        await load_cluster(written(tmp_path, tree), "nowhere", allow_exec=False)


async def test_the_manager_starts_no_program_of_a_kubeconfig(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    tree = a_kubeconfig(user=a_plugin(tmp_path, f"open({str(marker)!r}, 'w')"))
    with pytest.raises(Refused, match="not allowed"):
        await load_cluster(written(tmp_path, tree), allow_exec=False)
    assert not marker.exists()


async def test_the_command_line_runs_the_plugin_and_reads_it_again_before_the_token_ends(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    code = (
        f"import json, pathlib\np = pathlib.Path({str(counter)!r})\nn = len(p.read_text()) if p.exists() else 0\n"
        "p.write_text('x' * (n + 1))\n"
        f"print(json.dumps({{'apiVersion': {API!r}, 'kind': 'ExecCredential', 'status': "
        "{'token': f't{n}', 'expirationTimestamp': '2026-01-01T01:16:40Z'}}))"
    )
    clock = JumpingClock()  # its wall clock says 00:16:40
    tree = a_kubeconfig(user=a_plugin(tmp_path, code))
    config = await load_cluster(written(tmp_path, tree), allow_exec=True, clock=clock)
    assert config.credentials.authorization == "Bearer t0"
    assert config.credentials.due_s - clock.now_s == 3600 - 60
    await config.credentials.renew(now_s=clock.now_s, seen="Bearer t0")
    assert config.credentials.authorization == "Bearer t1"
    await config.credentials.renew(now_s=clock.now_s, seen="Bearer t0")
    assert config.credentials.authorization == "Bearer t1"


async def test_a_plugin_that_hangs_and_fills_its_error_stream_is_killed_at_the_limit(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        f"import os, sys, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        "sys.stderr.write('x' * 1_000_000)\nsys.stderr.flush()\ntime.sleep(600)"
    )
    with pytest.raises(BlockedError, match="within 1 s"):
        await run_exec_plugin(a_plugin(tmp_path, code)["exec"], limit_s=1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.exit('token=s3cr3t')", "print('no json')", credential(), "print('x' * 2_000_000)"],
    ids=["fails", "no json", "no credential", "too long"],
)
async def test_a_plugin_that_gives_no_credential_is_one_clear_error(tmp_path: Path, code: str) -> None:
    with pytest.raises(BlockedError) as caught:
        await run_exec_plugin(a_plugin(tmp_path, code)["exec"])
    assert sys.executable in caught.value.message
    assert "s3cr3t" not in caught.value.message


async def test_a_plugin_that_does_not_exist_is_named() -> None:
    with pytest.raises(BlockedError, match="no-such-program"):
        await run_exec_plugin({"apiVersion": API, "command": "/no-such-program"})


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"exec": {"command": "x", "apiVersion": API}}, {}),
        ({"auth-provider": {"name": "oidc"}}, {}),
        ({"tokenFile": "/etc/passwd"}, {}),
        ({"client-certificate": "/etc/passwd"}, {}),
        ({"client-key": "/etc/passwd"}, {}),
        ({}, {"certificate-authority": "/etc/passwd"}),
        ({}, {"insecure-skip-tls-verify": True}),
        ({}, {"server": "http://192.0.2.1"}),
    ],
    ids=["exec", "auth-provider", "tokenFile", "client-certificate", "client-key", "ca file", "no verify", "http"],
)
async def test_the_kubeconfig_of_a_remote_cluster_may_be_nothing_but_data(
    user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    with pytest.raises(Refused):
        await load_remote_cluster(yaml.dump(a_kubeconfig(user=user, cluster=cluster)).encode())


async def test_also_the_unused_users_of_a_remote_kubeconfig_are_looked_at() -> None:
    tree = a_kubeconfig()
    tree["users"].append({"name": "other", "user": {"exec": {"command": "x"}}})
    with pytest.raises(Refused, match="exec"):
        await load_remote_cluster(yaml.dump(tree).encode())


async def test_a_remote_cluster_with_a_token_is_accepted() -> None:
    config = await load_remote_cluster(yaml.dump(a_kubeconfig()).encode())
    assert isinstance(config, ClusterConfig)
    assert config.credentials.authorization == "Bearer s3cr3t"


@pytest.mark.parametrize(
    "data",
    [
        b"[",
        b"- a",
        b"x" * 2_000_000,
        b"{}",
        b"!!python/object/apply:os.system [id]",
        yaml.dump(
            {**a_kubeconfig(), "users": [{"name": "u", "user": {"token": "s3cr3t"}, "x": 1}, {"user": 3}]}
        ).encode(),
        yaml.dump({**a_kubeconfig(), "clusters": "s3cr3t"}).encode(),
    ],
    ids=["syntax", "list", "large", "empty", "tag", "odd user", "odd clusters"],
)
async def test_H22_what_is_no_kubeconfig_is_refused_without_its_content(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        await load_remote_cluster(data)
    assert "s3cr3t" not in str(caught.value)


async def test_no_kubeconfig_at_all_is_said_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(BlockedError, match="nothing-here"):
        await load_cluster(tmp_path / "nothing-here", allow_exec=False)


async def test_in_a_pod_the_token_is_read_again_by_the_boot_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, _ = a_certificate("ca")
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(certificate)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "2001:db8::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    files = "kubernetes.aio.config.incluster_config"
    monkeypatch.setattr(f"{files}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(f"{files}.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    clock = JumpingClock()
    config = await load_cluster(None, allow_exec=False, clock=clock)
    assert config.host == "https://[2001:db8::1]:443"
    assert config.credentials.authorization.split() == ["bearer", "first"]
    assert config.credentials.due_s == clock.now_s + 60
    (tmp_path / "token").write_text("second")
    await config.credentials.renew(now_s=clock.now_s, seen=config.credentials.authorization)
    assert config.credentials.authorization.split() == ["bearer", "second"]


def test_the_client_library_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, gitops_ctl.kube.transport, gitops_ctl.kube.informer; print('kubernetes' in sys.modules)"

    async def run() -> bytes:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return out

    assert asyncio.run(run()).strip() == b"False"
