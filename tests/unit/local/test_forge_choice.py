"""`up --forge`: where a Gitea runs beside the control plane, and where that cannot be."""

import os
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.binaries import Binaries
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.gitea import Gitea, GiteaFolder, _configuration
from gitops_ctl.local.state import SystemFolder, SystemState
from gitops_ctl.local.supervisor import Job
from gitops_ctl.local.system import Request, bring_up
from tests.support.cli import run_cli


class Silent:
    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        pass


async def test_a_system_that_is_up_without_a_forge_is_not_taken_for_one_with_it(tmp_path):
    folder = SystemFolder(tmp_path)
    with folder.held():
        folder.write_state(SystemState("processes", "https://127.0.0.1:1", "k", "v", os.getpid(), {}))
        with pytest.raises(BlockedError, match="up without a forge") as caught:
            await bring_up(Request(tmp_path, forge=True), progress=Silent(), clock=SystemClock())
        assert caught.value.code is ErrorCode.LOCAL_BUSY
        state = await bring_up(Request(tmp_path), progress=Silent(), clock=SystemClock())
        assert state.forge == ""


@pytest.mark.parametrize("option", [("--provider", "kind"), ("--kubeconfig", "pyproject.toml")])
async def test_a_cluster_of_somebody_else_gets_no_forge(tmp_path, option):
    done = await run_cli("up", "--forge", *option, "--directory", str(tmp_path))
    assert done.code == 1
    assert "--forge needs a system that is made of processes" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("forge", [None, Gitea(Path("/bin/gitea"), Path("/static"))])
def test_a_job_for_the_supervisor_keeps_the_forge(forge):
    binaries = Binaries(*[Path(f"/bin/{number}") for number in range(5)])
    job = Job(Path("/folder"), binaries, Options(), forge=forge)
    assert Job.from_json(job.to_json()) == job


def configured(folder: GiteaFolder, *, key: str = "/keys/instance.pub") -> dict[str, dict[str, str]]:
    text = _configuration(folder, static=Path("/static"), server={"HTTP_PORT": "3000"}, signing_key=key)
    sections: dict[str, dict[str, str]] = {"": {}}
    section = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
            sections[section] = {}
        else:
            name, _, value = line.partition(" = ")
            sections[section][name] = value
    return sections


@pytest.fixture
def folder(tmp_path: Path) -> GiteaFolder:
    made = GiteaFolder(tmp_path)
    made.make_keys()
    return made


@pytest.mark.parametrize(("user", "unsafe"), [(0, "true"), (1000, None)])
def test_only_root_says_that_it_is_root(folder, monkeypatch, user, unsafe):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert configured(folder)[""].get("I_AM_BEING_UNSAFE_RUNNING_AS_ROOT") == unsafe


def test_the_forge_listens_on_loopback_only_and_runs_nothing_that_reaches_out(folder):
    sections = configured(folder)
    assert sections["server"]["HTTP_ADDR"] == "127.0.0.1"
    assert sections["server"]["OFFLINE_MODE"] == "true"
    assert {name for name, values in sections.items() if values.get("ENABLED") == "false"} == {
        *("actions", "packages", "cron", "cron.update_checker", "mailer", "oauth2")
    }


def test_merges_are_signed_by_the_instance_or_by_nobody(folder):
    signing = configured(folder)["repository.signing"]
    assert (signing["SIGNING_KEY"], signing["MERGES"]) == ("/keys/instance.pub", "always")
    assert signing["TRUSTED_SSH_KEYS"].startswith("ssh-ed25519 ")
    unsigned = configured(folder, key="none")["repository.signing"]
    assert (unsigned["SIGNING_KEY"], "MERGES" in unsigned) == ("none", False)


def test_keys_and_secrets_are_made_once_and_only_their_owner_reads_them(folder):
    first, keys = configured(folder), {path.name: path.read_bytes() for path in folder.keys.iterdir()}
    folder.make_keys()
    assert configured(folder) == first
    assert {path.name: path.read_bytes() for path in folder.keys.iterdir()} == keys
    assert set(keys) == {"instance", "instance.pub", "bot", "bot.pub"}
    assert {path.stat().st_mode & 0o777 for path in (*folder.keys.iterdir(), folder.path / "secret")} == {0o600}


def test_an_account_counts_when_its_token_is_there(folder):
    assert not folder.knows("bot")
    folder.keep_account("bot", password="p", token="t")
    assert (folder.knows("bot"), folder.token("bot"), folder.password("bot")) == (True, "t", "p")
    assert {path.stat().st_mode & 0o777 for path in folder.accounts.iterdir()} == {0o600}
