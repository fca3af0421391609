"""Fetches from `git http-backend` behind TLS: proof of the host, credentials, faults of the server.

How deep a fetch goes: test_git_depth.py.  What a killed fetch leaves behind: test_git_crash.py.
"""

import asyncio
import base64
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, RateLimited, Refused, TransientError, Unavailable
from gitops_ctl.git.transport import ChildTransport, Credentials, FetchLimits, FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from tests.support.git_children import error_of, fetch_processes, is_running, wait_for
from tests.support.git_repos import RepoBuilder
from tests.support.git_servers import Authority, Fault, HttpsGitServer, silent_port

pytestmark = pytest.mark.peers
QUICK = FetchLimits(timeout_s=30.0)
SHORT = FetchLimits(timeout_s=1.5)


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def certificate(authority, tmp_path_factory):
    return authority.issue(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def repo(tmp_path):
    repo = RepoBuilder(tmp_path / "srv" / "work")
    repo.commit({"a.yaml": "1"})
    return repo


@pytest.fixture
def server(tmp_path, certificate, repo):
    with HttpsGitServer(tmp_path / "srv", certificate) as server:
        yield server


@pytest.fixture
def transport(tmp_path):
    (tmp_path / "scratch").mkdir()
    yield ChildTransport(scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert fetch_processes() == []


@pytest.fixture
def request_for(tmp_path, authority):
    def make(server, *, ref=Ref("branch", "main"), **more):
        url = parse_url(server.url("work/.git"))
        plain = FetchRequest(url=url, repository=tmp_path / "copy", ref=ref, ca=authority.pem, limits=QUICK)
        return replace(plain, **more)

    return make


async def test_a_first_fetch_brings_the_tip_and_a_second_one_nothing(server, transport, request_for, repo):
    assert (await transport.resolve(request_for(server))).commit == repo.head()
    first = await transport.fetch(request_for(server))
    assert (first.tip, first.tag, first.changed, first.complete) == (repo.head(), None, True, True)
    again = await transport.fetch(request_for(server))
    assert (again.tip, again.changed, again.received_bytes) == (repo.head(), False, 0)


async def test_G20_an_unchanged_ref_costs_one_small_request(server, transport, request_for):
    await transport.fetch(request_for(server))
    before = len(server.requests)
    await transport.fetch(request_for(server))
    await transport.resolve(request_for(server))
    assert server.requests[before:] == ["GET /work/.git/info/refs?service=git-upload-pack"] * 2


@pytest.mark.parametrize("name", ["basic", "bearer"])
async def test_credentials_of_both_kinds_are_accepted(tmp_path, certificate, transport, request_for, repo, name):
    users, bearer = ({"reader": "hunter2"}, "") if name == "basic" else ({}, "hunter2")
    credentials = Credentials(username="reader", password="hunter2") if users else Credentials(bearer_token="hunter2")
    with HttpsGitServer(tmp_path / "srv", certificate, users=users, bearer=bearer) as server:
        fetched = await transport.fetch(request_for(server, credentials=credentials))
    assert fetched.tip == repo.head()


async def test_G04_credentials_that_are_refused_once_are_no_lasting_error(
    tmp_path, certificate, transport, request_for, repo
):
    good = Credentials(username="reader", password="hunter2")
    with HttpsGitServer(tmp_path / "srv", certificate, users={"reader": "hunter2"}) as server:
        server.script(Fault(status=401))
        error = await error_of(transport.fetch(request_for(server, credentials=good)))
        assert isinstance(error, TransientError)
        assert (error.code, error.reason) == (ErrorCode.AUTHENTICATION_FAILED, "AuthenticationFailed")
        assert (await transport.fetch(request_for(server, credentials=good))).tip == repo.head()
        missing = await error_of(transport.fetch(request_for(server)))
        assert "names none" in missing.message
        wrong = await error_of(transport.fetch(request_for(server, credentials=replace(good, password="other"))))
        assert "refuses the credentials" in wrong.message


@pytest.mark.parametrize("on", ["info/refs", "git-upload-pack"])
@pytest.mark.parametrize("status", [500, 502, 503])
async def test_G04_a_server_error_is_tried_again_and_clears(server, transport, request_for, repo, on, status):
    server.script(Fault(on=f"/work/.git/{on}", status=status))
    error = await error_of(transport.fetch(request_for(server)))
    assert isinstance(error, Unavailable)
    assert (error.code, str(status) in error.message) == (ErrorCode.FETCH_FAILED, True)
    assert (await transport.fetch(request_for(server))).tip == repo.head()


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Date": "Thu, 01 Jan 2026 00:00:00 GMT", "Retry-After": "Thu, 01 Jan 2026 00:02:00 GMT"}, 120.0),
        ({"Retry-After": "99999999"}, 86400.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
    ids=["seconds", "date", "too long", "nonsense", "none"],
)
async def test_G20_the_wait_that_a_server_asks_for_is_passed_on(server, transport, request_for, headers, wait):
    server.script(
        Fault(on="info/refs", status=429, headers=headers), Fault(on="info/refs", status=503, headers=headers)
    )
    for kind in (RateLimited, Unavailable):
        error = await error_of(transport.resolve(request_for(server)))
        assert isinstance(error, kind)
        assert error.retry_after_s == wait


async def test_a_server_under_another_ca_is_refused(server, transport, request_for):
    for ca in (Authority().pem, None):
        error = await error_of(transport.fetch(request_for(server, ca=ca)))
        assert isinstance(error, TransientError)
        assert (error.code, error.reason) == (ErrorCode.CERTIFICATE_REFUSED, "CertificateRefused")
        assert "issuer" in error.message or "self-signed" in error.message
    assert server.requests == []


@pytest.mark.parametrize(
    ("made", "words"),
    [({"expired": True}, "expired"), ({"host": "other.example.net"}, "Hostname mismatch")],
    ids=["expired", "another host"],
)
async def test_a_certificate_that_is_not_the_hosts_own_is_refused(
    tmp_path, authority, transport, request_for, made, words
):
    with HttpsGitServer(tmp_path / "srv", authority.issue(tmp_path / "tls", **made)) as server:
        error = await error_of(transport.fetch(request_for(server)))
    assert (error.code, words in error.message) == (ErrorCode.CERTIFICATE_REFUSED, True)


async def test_a_ca_that_is_no_certificate_is_said_so(server, transport, request_for):
    error = await error_of(transport.fetch(request_for(server, ca=b"nothing")))
    assert (error.code, "no certificate" in error.message) == (ErrorCode.CERTIFICATE_REFUSED, True)


@pytest.mark.parametrize("on", ["info/refs", "git-upload-pack"])
async def test_a_redirect_is_refused_and_the_credentials_stay_here(
    tmp_path, certificate, transport, request_for, repo, on
):
    with HttpsGitServer(tmp_path / "srv", certificate) as other:
        with HttpsGitServer(tmp_path / "srv", certificate, users={"u": "hunter2"}) as server:
            place = other.url("work/.git/info/refs?service=git-upload-pack")
            server.script(Fault(on=f"/work/.git/{on}", status=302, headers={"Location": place}, times=-1))
            request = request_for(server, credentials=Credentials(username="u", password="hunter2"))
            error = await error_of(transport.fetch(request))
        assert other.requests == []
    assert isinstance(error, Refused)
    assert error.code is ErrorCode.URL_REFUSED


async def test_a_place_that_is_no_repository_is_said_so(server, transport, request_for):
    error = await error_of(transport.fetch(request_for(server, url=parse_url(server.url("nothing")))))
    assert (error.code, "no repository" in error.message) == (ErrorCode.FETCH_FAILED, True)


async def test_G05_a_deleted_branch_is_never_read_from_the_copy(server, transport, request_for, repo):
    repo.branch("feature")
    repo.commit({"b.yaml": "1"})
    feature = request_for(server, ref=Ref("branch", "feature"))
    await transport.fetch(feature)
    repo.switch("main")
    repo.git("branch", "-D", "feature")
    assert (await transport.resolve(feature)).commit is None
    error = await error_of(transport.fetch(feature))
    assert isinstance(error, NotFound)
    assert (error.code, error.reason) == (ErrorCode.REF_NOT_FOUND, "RefNotFound")
    repo.branch("feature")
    assert (await transport.fetch(feature)).tip == repo.head()


async def test_G06_a_moved_tag_is_reported_with_its_new_id_and_blocks_no_branch(server, transport, request_for, repo):
    tag = request_for(server, ref=Ref("tag", "v1"))
    first_tag, first = repo.tag("v1"), repo.head()
    fetched = await transport.fetch(tag)
    assert (fetched.tip, fetched.tag) == (first, first_tag)
    second = repo.commit({"a.yaml": "2"})
    second_tag = repo.tag("v1")
    assert (await transport.fetch(request_for(server))).tip == second
    resolved = await transport.resolve(tag)
    assert (resolved.commit, resolved.tag) == (second, second_tag)
    fetched = await transport.fetch(tag)
    assert (fetched.tip, fetched.tag, fetched.changed) == (second, second_tag, True)


async def test_a_tag_object_that_is_replaced_on_the_same_commit_is_a_change(server, transport, request_for, repo):
    tag = request_for(server, ref=Ref("tag", "v1"))
    repo.tag("v1")
    await transport.fetch(tag)
    replaced = repo.tag("v1")
    fetched = await transport.fetch(tag)
    assert (fetched.tip, fetched.tag, fetched.changed) == (repo.head(), replaced, True)
    repo.tag("v1", annotated=False)
    lightweight = await transport.fetch(tag)
    assert (lightweight.tip, lightweight.tag, lightweight.changed) == (repo.head(), None, True)


async def test_a_tag_of_something_else_than_a_commit_is_refused(server, transport, request_for, repo):
    repo.tag("tree", target=repo.tree())
    error = await error_of(transport.fetch(request_for(server, ref=Ref("tag", "tree"))))
    assert isinstance(error, Refused)
    assert "names a tree" in error.message


@pytest.mark.parametrize(
    "fault",
    [
        Fault(on="info/refs", hang=True),
        Fault(on="/git-upload-pack", hang=True),
        Fault(on="info/refs", after_bytes=50, then="crawl"),
        Fault(on="/git-upload-pack", after_bytes=80, then="crawl", times=-1),
    ],
    ids=["silent list", "silent pack", "crawling list", "crawling pack"],
)
async def test_G13_a_server_that_never_ends_is_left_at_the_deadline(server, transport, request_for, repo, fault):
    server.script(fault)
    call = asyncio.create_task(transport.fetch(request_for(server, limits=SHORT)))
    (child,) = await wait_for(fetch_processes, what="the child starts")
    assert os.getpgid(child) == child
    error = await error_of(call)
    assert isinstance(error, TransientError)
    assert (error.code, "within 1.5 s" in error.message) == (ErrorCode.FETCH_TIMEOUT, True)
    assert not is_running(child)
    server.faults.clear()
    assert (await transport.fetch(request_for(server))).tip == repo.head()


async def test_G13_a_port_that_accepts_and_says_nothing_is_left_at_the_deadline(transport, request_for, server):
    with silent_port() as port:
        url = parse_url(f"https://localhost:{port}/work")
        error = await error_of(transport.resolve(request_for(server, url=url, limits=SHORT)))
    assert error.code is ErrorCode.FETCH_TIMEOUT


async def test_G13_a_cancelled_fetch_leaves_no_process(server, transport, request_for):
    server.script(Fault(on="info/refs", hang=True))
    call = asyncio.create_task(transport.fetch(request_for(server)))
    (child,) = await wait_for(fetch_processes, what="the child starts")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not is_running(child)


async def test_a_killed_manager_takes_its_fetch_along(server, authority, tmp_path):
    program = (
        "import asyncio, pathlib, sys\n"
        "from gitops_ctl.git.transport import *\nfrom gitops_ctl.git.url import parse_url\n"
        "r = FetchRequest(url=parse_url(sys.argv[1]), repository=pathlib.Path(sys.argv[2]), ref=Ref('branch', 'main'),"
        " ca=pathlib.Path(sys.argv[3]).read_bytes())\n"
        "asyncio.run(ChildTransport(scratch=pathlib.Path(sys.argv[4])).fetch(r))\n"
    )
    server.script(Fault(on="info/refs", hang=True))
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    arguments = [server.url("work/.git"), str(tmp_path / "copy"), str(ca), str(tmp_path)]
    manager = subprocess.Popen([sys.executable, "-c", program, *arguments], start_new_session=True)
    try:
        await wait_for(lambda: server.count("info/refs"), what="the child asks the server")
        (child,) = fetch_processes(manager.pid)
        manager.kill()
        await wait_for(lambda: not is_running(child), what="the child dies with the manager")
    finally:
        manager.kill()
        manager.wait()


async def test_secrets_are_in_no_argument_no_environment_and_no_message(
    tmp_path, certificate, transport, request_for, repo
):
    secret = "canary-4711"
    basic = base64.b64encode(f"reader:{secret}".encode()).decode()
    request_parts = Credentials(username="reader", password=secret)
    with HttpsGitServer(tmp_path / "srv", certificate, users={"reader": "other"}) as server:
        server.script(
            Fault(on="info/refs", hang=True),
            Fault(on="info/refs", status=302, headers={"Location": f"https://reader:{secret}@h/"}),
        )
        request = request_for(server, credentials=request_parts)
        call = asyncio.create_task(transport.fetch(request))
        await wait_for(lambda: server.count("info/refs"), what="the child asks the server")
        (child,) = fetch_processes()
        seen = Path(f"/proc/{child}/cmdline").read_bytes() + Path(f"/proc/{child}/environ").read_bytes()
        assert b"HTTP_PROXY" not in seen.upper()
        os.kill(child, signal.SIGKILL)
        texts = [seen.decode(), str(await error_of(call)), repr(request)]
        for _ in range(2):
            error = await error_of(transport.fetch(request))
            texts += [error.message, error.subject, error.hint]
    for text in texts:
        assert secret not in text
        assert basic not in text


async def test_a_pack_that_is_cut_off_is_not_used_and_the_next_fetch_repairs_it(server, transport, request_for, repo):
    repo.commit({"big": os.urandom(200_000).hex()})
    for bytes_passed in (0, 40, 5_000, 100_000):
        server.script(Fault(on="/git-upload-pack", after_bytes=bytes_passed, times=-1))
        error = await error_of(transport.fetch(request_for(server)))
        assert isinstance(error, TransientError)
        assert error.code is ErrorCode.FETCH_FAILED
        server.faults.clear()
    assert (await transport.fetch(request_for(server))).tip == repo.head()


@pytest.mark.parametrize(
    ("limits", "words"),
    [(replace(QUICK, bytes=100_000), "100000 bytes"), (replace(QUICK, objects=2), "2 objects")],
    ids=["bytes", "objects"],
)
async def test_a_fetch_stops_at_its_limits(server, transport, request_for, repo, limits, words):
    repo.commit({"big": os.urandom(400_000)})
    error = await error_of(transport.fetch(request_for(server, limits=limits)))
    assert (error.code, error.reason) == (ErrorCode.FETCH_TOO_LARGE, "FetchTooLarge")
    assert words in error.message
    assert (await transport.fetch(request_for(server))).tip == repo.head()


async def test_a_fetch_that_needs_more_memory_than_it_may_have_is_ended(server, transport, request_for, repo):
    large = os.urandom(60 * 1024**2)
    repo.commit({"large": large})
    repo.commit({"large": b"first" + large})
    repo.git("repack", "-adq", config=["core.compression=0"])
    limits = replace(QUICK, memory_bytes=160 * 1024**2)
    error = await error_of(transport.fetch(request_for(server, known=repo.head("HEAD~2"), limits=limits)))
    assert isinstance(error, TransientError)
    assert error.code is ErrorCode.FETCH_TOO_LARGE


async def test_two_fetches_into_one_copy_wait_for_each_other(server, transport, request_for, repo):
    repo.branch("other")
    repo.commit({"b": "1"})
    other = request_for(server, ref=Ref("branch", "other"))
    first, second = await asyncio.gather(transport.fetch(request_for(server)), transport.fetch(other))
    assert (first.tip, second.tip) == (repo.head("main"), repo.head("other"))
