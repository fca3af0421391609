"""How deep a fetch goes: as deep as judging needs, and no deeper.

In scope: shallow fetch, deepening, merges that start before the last accepted commit, memory on a large history.
"""

import os
from dataclasses import replace

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.git.history import commits_between, merge_bases, missing_parents, reachable
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import ChildTransport, FetchLimits, FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from tests.support.git_repos import RepoBuilder
from tests.support.git_servers import Authority, HttpsGitServer

pytestmark = pytest.mark.peers
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def repo(tmp_path):
    return RepoBuilder(tmp_path / "srv" / "work")


@pytest.fixture
def server(tmp_path, authority):
    with HttpsGitServer(tmp_path / "srv", authority.issue(tmp_path / "tls")) as server:
        yield server


@pytest.fixture
def fetch(tmp_path, authority, server):
    """Fetch main into one copy."""
    transport = ChildTransport()

    async def run(**more):
        plain = FetchRequest(
            url=parse_url(server.url("work/.git")),
            repository=tmp_path / "copy",
            ref=Ref("branch", "main"),
            ca=authority.pem,
            limits=FetchLimits(timeout_s=60.0),
        )
        return await transport.fetch(replace(plain, **more))

    return run


@pytest.fixture
def held(tmp_path):
    """Ids of the commits in the copy that a tip reaches."""

    def look(tip):
        with ObjectStore.open(tmp_path / "copy") as store:
            return set(reachable(store, [tip]))

    return look


async def test_without_history_to_judge_the_tip_comes_alone(repo, fetch, held):
    ids = repo.line(5)
    fetched = await fetch()
    assert (fetched.tip, fetched.shallow, fetched.complete) == (ids[-1], True, True)
    assert held(fetched.tip) == {ids[-1]}
    again = await fetch(known=ids[0], shallow_only=True)
    assert held(again.tip) == {ids[-1]}


async def test_history_comes_back_to_the_root_and_stops_soon_after(repo, fetch, held):
    ids = repo.line(150)
    fetched = await fetch(known=ids[-40])
    assert (fetched.shallow, fetched.complete) == (True, True)
    assert set(ids[-40:]) <= held(fetched.tip)
    assert len(held(fetched.tip)) <= 2 * 40
    whole = await fetch(known=ids[0])
    assert (whole.complete, held(whole.tip)) == (True, set(ids))


async def test_after_the_first_fetch_only_what_is_new_comes(repo, fetch, held):
    ids = repo.line(100)
    first = await fetch(known=ids[-3])
    new = repo.line(2, start=500)
    second = await fetch(known=ids[-1])
    assert (second.tip, second.complete, second.changed) == (new[-1], True, True)
    assert second.received_bytes < first.received_bytes / 3
    assert held(second.tip) == held(first.tip) | set(new)


async def test_a_branch_that_starts_before_the_last_accepted_commit_is_completed(repo, fetch, tmp_path):
    ids = repo.line(100)
    repo.branch("feature", at=ids[5])
    repo.commit({"feature": "1"})
    repo.switch("main")
    await fetch(known=ids[-2])
    merge = repo.merge("feature")
    fetched = await fetch(known=ids[-1])
    assert (fetched.tip, fetched.complete) == (merge, True)
    with ObjectStore.open(tmp_path / "copy") as store:
        found = commits_between(store, ids[-1], merge)
        assert set(found) == {repo.head("feature"), merge}
        assert missing_parents(store, found) == ()
        assert merge_bases(store, *store.links(merge).parents) == (ids[5],)


async def test_two_branches_share_one_copy_with_different_depths(repo, fetch, held):
    ids = repo.line(80)
    repo.branch("other", at=ids[10])
    other = repo.commit({"other": "1"})
    repo.switch("main")
    await fetch(known=ids[-2])
    second = await fetch(known=ids[9], ref=Ref("branch", "other"))
    assert (second.tip, second.complete) == (other, True)
    first = await fetch(known=ids[-2])
    assert (first.changed, first.complete) == (False, True)
    assert {ids[-2], ids[-1]} <= held(ids[-1])


async def test_a_rewritten_branch_is_fetched_whole_so_that_it_can_be_told_from_a_gap(repo, fetch, held):
    ids = repo.line(60)
    await fetch(known=ids[-2])
    repo.branch("main", at=ids[20])
    forced = repo.commit({"rewritten": "1"})
    fetched = await fetch(known=ids[-1])
    assert (fetched.tip, fetched.complete) == (forced, True)
    assert held(forced) == {*ids[:21], forced}


async def test_a_start_that_is_nowhere_in_the_history_ends_with_the_whole_history(repo, fetch, held):
    ids = repo.line(70)
    fetched = await fetch(known="1" * 40)
    assert (fetched.complete, held(fetched.tip)) == (True, set(ids))


async def test_a_server_that_is_shallow_itself_is_an_error_and_never_a_short_history(repo, fetch, tmp_path):
    ids = repo.line(60)
    repo.git("clone", "--quiet", "--bare", "--depth=5", f"file://{repo.git_dir}", str(tmp_path / "srv" / "cut"))
    repo.path.rename(tmp_path / "gone")
    (tmp_path / "srv" / "work").mkdir()
    (tmp_path / "srv" / "cut").rename(tmp_path / "srv" / "work" / ".git")
    with pytest.raises(TransientError) as caught:
        await fetch(known=ids[0])
    assert caught.value.code is ErrorCode.FETCH_FAILED


def a_heavy_history(repo, *, megabytes):
    """One commit for each ten MB of content that does not compress, and a short tail; ids of the tail."""
    repo.git("config", "core.compression", "0")
    for _ in range(megabytes // 10):
        repo.commit({"blob": os.urandom(10 * MIB)})
    repo.commit({}, delete=["blob"])
    return repo.line(60)


@pytest.mark.slow
async def test_G12_a_heavy_history_is_fetched_only_as_far_as_needed_in_little_memory(repo, fetch, held, tmp_path):
    tail = a_heavy_history(repo, megabytes=100)
    limits = FetchLimits(memory_bytes=512 * MIB, timeout_s=240.0)
    fetched = await fetch(known=tail[45], limits=limits)
    assert (fetched.tip, fetched.complete) == (tail[-1], True)
    size = sum(file.stat().st_size for file in (tmp_path / "copy").rglob("*") if file.is_file())
    assert size < 10 * MIB
    whole = await fetch(known=repo.git("rev-list", "--max-parents=0", "main"), limits=limits)
    assert whole.complete


@pytest.mark.soak
async def test_G12_a_gigabyte_of_history_is_fetched_in_512_mib(repo, fetch):
    tail = a_heavy_history(repo, megabytes=1024)
    limits = FetchLimits(memory_bytes=512 * MIB, timeout_s=600.0)
    fetched = await fetch(known=tail[45], limits=limits)
    assert (fetched.tip, fetched.complete) == (tail[-1], True)
    whole = await fetch(known=repo.git("rev-list", "--max-parents=0", "main"), limits=limits)
    assert whole.complete
