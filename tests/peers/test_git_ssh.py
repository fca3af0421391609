"""Fetches from openssh's sshd: host keys, key kinds, rotation, faults of the server.

What does not depend on the transport is tested over https: test_git_https.py.
"""

import os
import subprocess
from dataclasses import replace

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, TransientError
from gitops_ctl.git.transport import ChildTransport, Credentials, FetchLimits, FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from tests.support.git_children import error_of, fetch_processes
from tests.support.git_keys import SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.git_servers import SshGitServer

pytestmark = pytest.mark.peers
QUICK = FetchLimits(timeout_s=30.0)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Host and user keys by name."""
    place = tmp_path_factory.mktemp("keys")
    made = {name: SshKey.generate(place, name=name) for name in ("host", "host2", "user", "user2", "stranger")}
    made["rsa"] = SshKey.generate(place, name="rsa", type="rsa", bits=3072)
    made["ecdsa"] = SshKey.generate(place, name="ecdsa", type="ecdsa", bits=256)
    return made


@pytest.fixture
def repo(tmp_path):
    repo = RepoBuilder(tmp_path / "work")
    repo.commit({"a.yaml": "1"})
    return repo


@pytest.fixture
def server(tmp_path, keys):
    allowed = tuple(keys[name] for name in ("user", "rsa", "ecdsa"))
    with SshGitServer(tmp_path / "sshd", host_key=keys["host"], allowed=allowed) as server:
        yield server


@pytest.fixture
def transport():
    yield ChildTransport()
    assert fetch_processes() == []


@pytest.fixture
def request_for(tmp_path, keys, repo):
    def make(server, *, key="user", **more):
        plain = FetchRequest(
            url=parse_url(server.url(repo.path)),
            repository=tmp_path / "copy",
            ref=Ref("branch", "main"),
            credentials=Credentials(ssh_private_key=keys[key].path.read_text()),
            known_hosts=server.known_hosts,
            limits=QUICK,
        )
        return replace(plain, **more)

    return make


@pytest.mark.parametrize("key", ["user", "rsa", "ecdsa"])
async def test_keys_of_each_kind_fetch(server, transport, request_for, repo, key):
    assert (await transport.resolve(request_for(server, key=key))).commit == repo.head()
    fetched = await transport.fetch(request_for(server, key=key))
    assert (fetched.tip, fetched.complete) == (repo.head(), True)


async def test_a_key_with_a_passphrase_needs_it(server, transport, request_for, repo, keys, tmp_path):
    locked = tmp_path / "locked"
    locked.write_bytes(keys["user"].path.read_bytes())
    locked.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(locked)], check=True)
    key = Credentials(ssh_private_key=locked.read_text(), passphrase="open sesame")
    assert (await transport.fetch(request_for(server, credentials=key))).tip == repo.head()
    error = await error_of(transport.fetch(request_for(server, credentials=replace(key, passphrase="wrong"))))
    assert error.code is ErrorCode.AUTHENTICATION_FAILED
    assert "sesame" not in str(error)


@pytest.mark.parametrize("known", ["wrong key", "another host", "another port"])
async def test_a_host_that_known_hosts_does_not_prove_is_refused(server, transport, request_for, keys, known):
    lines = {
        "wrong key": server.known_hosts.replace(keys["host"].public.encode(), keys["host2"].public.encode()),
        "another host": b"[192.0.2.1]:22 " + keys["host"].public.encode(),
        "another port": f"[127.0.0.1]:1 {keys['host'].public}".encode(),
    }
    error = await error_of(transport.fetch(request_for(server, known_hosts=lines[known])))
    assert isinstance(error, TransientError)
    assert (error.code, error.reason) == (ErrorCode.HOST_KEY_REFUSED, "HostKeyRefused")


@pytest.mark.parametrize(
    ("missing", "code"),
    [({"known_hosts": None}, ErrorCode.HOST_KEY_REFUSED), ({"credentials": None}, ErrorCode.CREDENTIALS_MISSING)],
    ids=["known hosts", "key"],
)
async def test_without_known_hosts_or_key_nothing_is_contacted(server, transport, request_for, missing, code):
    error = await error_of(transport.fetch(request_for(server, **missing)))
    assert isinstance(error, NotFound)
    assert error.code is code


@pytest.mark.parametrize("key", ["stranger", "nonsense"])
async def test_a_key_that_is_not_allowed_is_tried_once_and_refused(server, transport, request_for, keys, key):
    text = keys["stranger"].path.read_text() if key == "stranger" else "no key at all"
    error = await error_of(transport.fetch(request_for(server, credentials=Credentials(ssh_private_key=text))))
    assert isinstance(error, TransientError)
    assert error.code is ErrorCode.AUTHENTICATION_FAILED


async def test_a_rotated_user_key_takes_over_without_a_restart(server, transport, request_for, repo, keys):
    await transport.fetch(request_for(server))
    tip = repo.commit({"a.yaml": "2"})
    server.allow(keys["user2"])
    error = await error_of(transport.fetch(request_for(server)))
    assert error.code is ErrorCode.AUTHENTICATION_FAILED
    assert (await transport.fetch(request_for(server, key="user2"))).tip == tip


async def test_a_rotated_host_key_is_accepted_as_soon_as_known_hosts_lists_it(
    tmp_path, transport, request_for, repo, keys
):
    with SshGitServer(tmp_path / "new", host_key=keys["host2"], allowed=(keys["user"],)) as server:
        old = f"[127.0.0.1]:{server.port} {keys['host'].public}\n".encode()
        error = await error_of(transport.fetch(request_for(server, known_hosts=old)))
        assert error.code is ErrorCode.HOST_KEY_REFUSED
        both = old + server.known_hosts
        assert (await transport.fetch(request_for(server, known_hosts=both))).tip == repo.head()


async def test_a_place_that_is_no_repository_is_said_in_the_servers_words(server, transport, request_for, tmp_path):
    error = await error_of(transport.fetch(request_for(server, url=parse_url(server.url(tmp_path / "nothing")))))
    assert isinstance(error, TransientError)
    assert error.code in (ErrorCode.FETCH_FAILED, ErrorCode.AUTHENTICATION_FAILED)


async def test_G13_an_ssh_server_that_says_nothing_is_left_at_the_deadline(tmp_path, transport, request_for, keys):
    silent = tmp_path / "silent.sh"
    silent.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    silent.chmod(0o755)
    with SshGitServer(
        tmp_path / "silent", host_key=keys["host"], allowed=(keys["user"],), command=str(silent)
    ) as server:
        error = await error_of(transport.fetch(request_for(server, limits=FetchLimits(timeout_s=2.0))))
    assert error.code is ErrorCode.FETCH_TIMEOUT


@pytest.mark.parametrize("length", [10, 400, 50_000])
async def test_an_ssh_server_that_cuts_its_answer_off_is_left_at_the_deadline_at_the_latest(
    tmp_path, request_for, repo, keys, length
):
    """libgit2 goes on waiting for some answers whose connection has ended; the deadline is what ends it."""
    transport = ChildTransport()
    repo.commit({"big": os.urandom(100_000).hex()})
    cut = tmp_path / "cut.sh"
    cut.write_text(f'#!/bin/sh\neval "$SSH_ORIGINAL_COMMAND" | (head -c {length}; kill -9 $PPID)\n')
    cut.chmod(0o755)
    with SshGitServer(tmp_path / "cut", host_key=keys["host"], allowed=(keys["user"],), command=str(cut)) as server:
        error = await error_of(transport.fetch(request_for(server, limits=FetchLimits(timeout_s=3.0))))
    assert isinstance(error, TransientError)
    assert error.code in (ErrorCode.FETCH_FAILED, ErrorCode.FETCH_TIMEOUT)
    with SshGitServer(tmp_path / "whole", host_key=keys["host"], allowed=(keys["user"],)) as server:
        assert (await transport.fetch(request_for(server))).tip == repo.head()
    assert fetch_processes() == []


async def test_an_ssh_server_that_sends_too_much_is_left(server, transport, request_for, repo):
    repo.commit({"big": os.urandom(400_000)})
    error = await error_of(transport.fetch(request_for(server, limits=replace(QUICK, bytes=100_000))))
    assert error.code is ErrorCode.FETCH_TOO_LARGE


async def test_history_is_deepened_over_ssh_too(server, transport, request_for, repo):
    root = repo.head()
    for number in range(60):
        repo.commit({"a.yaml": str(number)})
    fetched = await transport.fetch(request_for(server, known=root))
    assert (fetched.tip, fetched.complete) == (repo.head(), True)
