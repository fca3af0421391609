"""What killed fetches leave behind, and that the next one repairs it; copies stay small."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from gitops_ctl.git.history import commits_between
from gitops_ctl.git.layout import UNFINISHED_FILE, pack_files, size_bytes
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import ChildTransport, FetchLimits, FetchRequest, Ref
from gitops_ctl.git.tree import walk_tree
from gitops_ctl.git.url import parse_url
from tests.support.git_children import error_of, fetch_processes, is_running, start_fetch, wait_for
from tests.support.git_repos import RepoBuilder
from tests.support.git_servers import Authority, Fault, HttpsGitServer

pytestmark = pytest.mark.peers
WAITS = """
import asyncio, pathlib, sys
from gitops_ctl.git.transport import ChildTransport, FetchRequest, Ref
from gitops_ctl.git.url import parse_url

async def main():
    transport = ChildTransport(keeps_spare=True)
    request = FetchRequest(url=parse_url(sys.argv[1]), repository=pathlib.Path(sys.argv[2]), ref=Ref("branch", "main"))
    try:
        await transport.resolve(request)
    except Exception:
        pass  # the authority is not known; a process waits all the same
    await asyncio.sleep(3600)

asyncio.run(main())
"""


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
def a_request(tmp_path, authority, server):
    return FetchRequest(
        url=parse_url(server.url("work/.git")),
        repository=tmp_path / "copy",
        ref=Ref("branch", "main"),
        ca=authority.pem,
        limits=FetchLimits(timeout_s=30.0),
    )


async def kill_when(transport, request, condition, *, what):
    """Start a fetch, kill its child once `condition` holds, and return the error."""
    call = asyncio.create_task(transport.fetch(request))
    await wait_for(condition, what=what)
    for child in fetch_processes():
        os.kill(child, signal.SIGKILL)
    return await error_of(call)


def temporary_files(path):
    return [file for file in path.rglob("*") if "_git2_" in file.name or file.name.startswith("tmp_")]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [15, pytest.param(100, marks=pytest.mark.soak)])
async def test_G10_killed_fetches_leave_no_temporary_packs(repo, server, a_request, tmp_path, kills):
    """The kill comes in the middle of the pack: the server goes on one byte per second."""
    repo.commit({"big": os.urandom(300_000)})
    transport = ChildTransport()
    copy = a_request.repository
    server.script(Fault(on="/git-upload-pack", after_bytes=200_000, then="crawl", times=-1))
    for number in range(kills):
        process = start_fetch(a_request, tmp_path / f"home{number}")
        asked = server.count("POST")
        await wait_for(lambda: server.count("POST") > asked and temporary_files(copy), what="a temporary pack")  # noqa: B023
        process.kill()
        process.join()
        assert len(temporary_files(copy)) <= 2
        assert size_bytes(copy) < 2_000_000
    server.faults.clear()
    assert (await transport.fetch(a_request)).tip == repo.head()
    assert temporary_files(copy) == []
    assert not (copy / UNFINISHED_FILE).exists()


@pytest.mark.parametrize("bytes_passed", [0, 30, 300, 3_000, 30_000], ids=lambda count: f"after {count} bytes")
async def test_G17_a_fetch_killed_at_any_byte_is_repaired_by_the_next(repo, server, a_request, bytes_passed):
    ids = repo.line(60)
    repo.commit({"big": os.urandom(40_000)})
    request = replace(a_request, known=ids[30])
    transport = ChildTransport()
    server.script(Fault(on="/git-upload-pack", after_bytes=bytes_passed, then="crawl", times=-1))
    await kill_when(
        transport, request, lambda: server.count("POST") and fetch_processes(), what="the pack is asked for"
    )
    server.faults.clear()
    fetched = await transport.fetch(request)
    assert (fetched.tip, fetched.complete) == (repo.head(), True)


@pytest.mark.parametrize("round_of_deepening", [1, 2, 3])
async def test_G17_a_deepening_killed_between_its_rounds_is_repaired_by_the_next(
    repo, server, a_request, round_of_deepening
):
    ids = repo.line(200)
    request = replace(a_request, known=ids[0])
    transport = ChildTransport()
    server.script(Fault(on="/git-upload-pack", hang=True, times=-1, skip=2 * round_of_deepening))
    await kill_when(transport, request, lambda: server.hanging, what="a later round")
    server.faults.clear()
    fetched = await transport.fetch(request)
    assert (fetched.tip, fetched.complete) == (ids[-1], True)
    with ObjectStore.open(request.repository) as store:
        assert commits_between(store, ids[0], ids[-1]) == tuple(ids[1:])


async def test_G17_a_pack_without_its_shallow_file_leaves_no_hole(repo, server, a_request):
    """The state between two writes of libgit2: the server must not be told that we have what lies below."""
    ids = repo.line(120)
    transport = ChildTransport()
    await transport.fetch(replace(a_request, known=ids[-5]))
    (a_request.repository / "shallow").unlink()
    (a_request.repository / UNFINISHED_FILE).touch()
    fetched = await transport.fetch(replace(a_request, known=ids[0]))
    assert fetched.complete
    with ObjectStore.open(a_request.repository) as store:
        assert commits_between(store, ids[0], ids[-1]) == tuple(ids[1:])
        assert len(list(walk_tree(store, store.links(ids[-1]).tree))) == 120


async def test_collecting_in_a_child_makes_one_pack_that_later_fetches_build_on(repo, server, a_request, tmp_path):
    cache = CloneCache(tmp_path / "cache")
    transport = ChildTransport()
    ids = repo.line(40)
    request = replace(a_request, repository=cache.path_for(a_request.url, tenant="team-a"), known=ids[20])
    for number in range(3):
        await transport.fetch(request)
        repo.line(1, start=1000 + number)
    old = request.repository
    into = tmp_path / "next"
    await transport.collect(request, keep=(), into=into)
    assert (len(pack_files(into)), len(pack_files(old)) > 1) == (1, True)
    fetched = await transport.fetch(replace(request, repository=into))
    assert (fetched.tip, fetched.complete, len(pack_files(into))) == (repo.head(), True, 2)


async def test_a_process_that_waits_takes_the_next_call_and_only_that_one(repo, server, a_request):
    transport = ChildTransport(keeps_spare=True)
    try:
        repo.commit({"a": b"1"})
        await transport.fetch(a_request)
        (first,) = await wait_for(fetch_processes, what="a process waits")
        repo.commit({"a": b"2"})
        assert (await transport.fetch(a_request)).tip == repo.head()
        assert not is_running(first)
        (second,) = await wait_for(fetch_processes, what="another one waits")
        os.kill(second, signal.SIGKILL)
        await wait_for(lambda: not is_running(second), what="it is gone")
        repo.commit({"a": b"3"})
        assert (await transport.fetch(a_request)).tip == repo.head()
    finally:
        await transport.close()
    assert fetch_processes() == []


async def test_a_process_that_waits_ends_with_its_parent(repo, a_request, server):
    repo.commit({"a": b"1"})
    parent = subprocess.Popen([sys.executable, "-c", WAITS, server.url("work/.git"), str(a_request.repository)])
    try:
        (child,) = await wait_for(lambda: fetch_processes(parent.pid), what="a process waits")
    finally:
        parent.kill()
        parent.wait()
    await wait_for(lambda: not is_running(child), what="it ends too")
