"""The world of `gitops-ctl demo cni`, as far as it needs no cluster.

Out of scope: the story itself (tests/e2e/test_cni_switch.py).
"""

from pathlib import Path

import pytest

from gitops_ctl.cli.democni import cilium_values
from gitops_ctl.cli.democnirepository import VALUES_FILE, Forge, example_machines, first_commits
from gitops_ctl.cli.democniworld import cni_world
from gitops_ctl.cli.demoworld import logs_kept
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.local.gitea import GiteaFolder
from gitops_ctl.local.gitserver import Login
from gitops_ctl.local.state import SystemFolder, locked, state_home
from gitops_ctl.local.targetcluster import CiliumValues
from gitops_ctl.local.workshop import Workshop
from tests.support.cli import run_cli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"


async def test_a_second_demo_of_the_switch_is_told_and_the_first_one_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = SystemFolder(state_home() / "demo-cni" / "management")
    first.create()
    with locked(state_home() / "demo-cni.lock", busy=BlockedError("not expected here")):
        with pytest.raises(BlockedError) as caught:
            async with cni_world(say=print, separate=False):
                pass
        assert first.path.is_dir()
    assert caught.value.code is ErrorCode.LOCAL_BUSY


def test_a_failure_keeps_the_logs_and_names_their_folder(tmp_path: Path) -> None:
    log = tmp_path / "demo-cni" / "management" / "logs" / "manager.log"
    log.parent.mkdir(parents=True)
    log.write_text("said\n")
    with pytest.raises(TerminalError) as caught, logs_kept(tmp_path / "demo-cni"):
        raise TerminalError("step 3, a title: it did not come", code=ErrorCode.LOCAL_SYSTEM)
    assert caught.value.subject == str(tmp_path / "demo-cni-logs")
    assert caught.value.message.startswith("step 3")
    assert (tmp_path / "demo-cni-logs" / "management-logs-manager.log").read_text() == "said\n"


async def test_an_option_before_the_name_of_the_demo_is_a_mistake(tmp_path: Path) -> None:
    done = await run_cli("demo", "--keep", "cni", environment={"XDG_STATE_HOME": str(tmp_path)})
    assert done.code == 1
    assert "--keep belongs behind cni" in done.err
    assert not (tmp_path / "gitops-ctl").exists()


def test_the_example_declares_three_control_planes_before_two_workers() -> None:
    roles = [machine.role for machine in example_machines()]
    assert roles == ["controlplane"] * 3 + ["worker"] * 2


def test_what_the_owner_of_cilium_rolls_out_is_what_the_file_says() -> None:
    before = (EXAMPLES / VALUES_FILE).read_bytes()
    assert cilium_values(before) == CiliumValues(replacement=False, roll_out_pods=True)
    more = b"k8sServiceHost: localhost\nk8sServicePort: 7445\n"
    after = before.replace(b"kubeProxyReplacement: false\n", b"kubeProxyReplacement: true\n" + more)
    assert cilium_values(after) == CiliumValues(replacement=True, roll_out_pods=True, host="localhost", port=7445)


def test_the_first_commits_hold_this_forges_key_and_the_addresses_of_the_machines(tmp_path: Path) -> None:
    folder = GiteaFolder(tmp_path / "gitea")
    folder.keys.mkdir(parents=True)
    folder.make_keys()
    folder.ca_file.parent.mkdir()
    folder.ca_file.touch()
    remote = tmp_path / "owner" / "network.git"
    workshop = Workshop(tmp_path / "work", folder.ca_file, Login("owner", "secret"))
    workshop.folder.mkdir()
    (remote.parent / "bare").mkdir(parents=True)
    workshop.checkout.mkdir()
    workshop.git("init", "--quiet", "--bare", str(remote))
    workshop.checkout.rmdir()
    addresses = {machine.name: f"127.0.0.1:{50001 + n}" for n, machine in enumerate(example_machines())}
    root, digest = first_commits(workshop, Forge(f"file://{tmp_path}", folder), addresses=addresses)
    assert workshop.git("rev-list", "--max-parents=0", "HEAD").strip() == root
    assert digest.startswith("sha256:")
    machines = (workshop.checkout / "clusters/north/machines.yaml").read_text()
    assert all(f"address: {address}\n" in machines for address in addresses.values())
    assert "192.0.2." not in machines
    policy = (workshop.checkout / ".gitops-ctl/trust.yaml").read_text()
    assert " ".join(folder.bot_key.with_suffix(".pub").read_text().split()[:2]) in policy
    assert (
        workshop.git("ls-remote", "origin", "refs/heads/main").split()[0] == workshop.git("rev-parse", "HEAD").strip()
    )
