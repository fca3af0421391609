"""A proposer with an address that is nobody's, on a real Gitea whose instance trusts the key (forges.md, sections 13 and 21)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gitea import GiteaHandle
from tests.support.proposal_gitea import GiteaDesk, gitea_desk

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]

STRANGER = "nobodys-address@example.net"


@pytest.fixture
async def desk(gitea: GiteaHandle, tmp_path: Path) -> AsyncIterator[GiteaDesk]:
    async with gitea_desk(gitea, tmp_path) as made:
        yield made


async def test_the_key_decides_where_the_instance_trusts_it_and_the_commit_is_nobodys(desk: GiteaDesk):
    """Other forges show such a commit as unverified; what we say about it stays the same, since our own judgement counts."""
    path = desk.path("gitsources", "network")
    await desk.admin.patch_merge(path, {"spec": {"proposer": {"email": STRANGER}}})
    await desk.protect("gitops-ctl/**", enable_push=True, require_signed_commits=True)
    status = await desk.opened()
    commit = desk.repo.api("GET", f"/git/commits/{status['headCommit']}").body
    assert commit["commit"]["committer"]["email"] == STRANGER
    assert commit["commit"]["verification"]["verified"] is True
    assert commit["committer"] is None, "no account has this address"
    assert desk.repo.pull(status["number"])["user"]["login"] == "bot"
