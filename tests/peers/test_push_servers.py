"""Pushes to real servers from a shallow copy: over ssh, and over https with a private authority (forges.md, sections 9.7 and 14)."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.git.pushing import LeaseLost, PushRequest
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import ChildTransport, Credentials, FetchLimits, FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from gitops_ctl.git.writing import Identity, borrow_objects, commit_files
from tests.support.git_bare import BareRemote
from tests.support.git_children import error_of
from tests.support.git_keys import SshKey
from tests.support.git_servers import Authority, HttpsGitServer, SshGitServer

pytestmark = pytest.mark.peers
OURS = "gitops-ctl/taloscluster-site-1-0123456789abcdef"
AT = datetime(2026, 11, 30, 8, tzinfo=UTC)
WORD = "planted-push-password"


@pytest.fixture
def remote(tmp_path: Path) -> BareRemote:
    made = BareRemote(tmp_path)
    for number in range(40):
        made.person.commit({"a.yaml": f"x: {number}\n", "b.yaml": "y: 1\n"})
    made.person.git("push", "--quiet", "origin", "main")
    made.git("config", "http.receivepack", "true")
    return made


async def prepared(request: FetchRequest, folder: Path, *, content: str = "x: new\n") -> PushRequest:
    """The tip alone is fetched, and one commit is made on it."""
    fetched = await ChildTransport().fetch(replace(request, shallow_only=True))
    assert fetched.shallow
    desk = borrow_objects(folder / f"desk-{abs(hash(content))}", of=request.repository)
    with ObjectStore.open(desk) as store:
        robot = Identity("gitops-ctl", "gitops-ctl@example.net")
        changes = {"a.yaml": content.encode()}
        commit = commit_files(store, base=fetched.tip, changes=changes, message="m\n", author=robot, at=AT, signer=None)
    here = replace(request, repository=desk)
    return PushRequest(here, f"{commit}:refs/heads/{OURS}", None, fetched.tip, ("a.yaml",))


async def pushed_and_rebuilt(request: FetchRequest, remote: BareRemote, folder: Path) -> None:
    first = await prepared(request, folder)
    await ChildTransport().push(first)
    assert remote.head(OURS) == first.commit
    assert remote.git("rev-list", "--count", f"main..{OURS}") == "1"
    assert remote.git("diff", "--name-only", "main", OURS) == "a.yaml"
    second = replace(await prepared(request, folder, content="x: newer\n"), expected=first.commit)
    await ChildTransport().push(second)
    assert remote.head(OURS) == second.commit
    lost = await error_of(ChildTransport().push(replace(second, expected=first.commit)))
    assert isinstance(lost, LeaseLost)
    assert remote.git("fsck", "--strict", "--no-dangling") == ""


async def test_P02_a_push_over_ssh_from_a_shallow_copy_brings_one_commit_and_no_history(
    tmp_path: Path, remote: BareRemote
):
    host, user, stranger = (SshKey.generate(tmp_path / "keys", name=name) for name in ("host", "user", "stranger"))
    with SshGitServer(tmp_path / "sshd", host_key=host, allowed=(user,)) as server:
        request = FetchRequest(
            url=parse_url(server.url(remote.path)),
            repository=tmp_path / "copy",
            ref=Ref("branch", "main"),
            credentials=Credentials(ssh_private_key=user.path.read_text()),
            known_hosts=server.known_hosts,
            limits=FetchLimits(timeout_s=30),
        )
        await pushed_and_rebuilt(request, remote, tmp_path)
        push = await prepared(request, tmp_path, content="x: mine\n")
        unknown = replace(push.remote, credentials=Credentials(ssh_private_key=stranger.path.read_text()))
        error = await error_of(ChildTransport().push(replace(push, remote=unknown)))
        assert error.code is ErrorCode.AUTHENTICATION_FAILED  # type: ignore[attr-defined]
        other = f"[127.0.0.1]:{server.port} {stranger.public}\n".encode()
        error = await error_of(ChildTransport().push(replace(push, remote=replace(push.remote, known_hosts=other))))
        assert error.code is ErrorCode.HOST_KEY_REFUSED  # type: ignore[attr-defined]


async def test_P02_a_push_over_https_with_a_private_authority_from_a_shallow_copy(tmp_path: Path, remote: BareRemote):
    authority = Authority()
    with HttpsGitServer(tmp_path, authority.issue(tmp_path / "tls"), users={"bot": WORD}) as server:
        request = FetchRequest(
            url=parse_url(server.url(remote.path.name)),
            repository=tmp_path / "copy",
            ref=Ref("branch", "main"),
            credentials=Credentials(username="bot", password=WORD),
            ca=authority.pem,
            limits=FetchLimits(timeout_s=30),
        )
        await pushed_and_rebuilt(request, remote, tmp_path)
        push = await prepared(request, tmp_path, content="x: mine\n")
        for change, code in (
            ({"credentials": Credentials(username="bot", password="wrong")}, ErrorCode.AUTHENTICATION_FAILED),
            ({"ca": Authority("another CA").pem}, ErrorCode.CERTIFICATE_REFUSED),
        ):
            error = await error_of(ChildTransport().push(replace(push, remote=replace(push.remote, **change))))  # type: ignore[arg-type]
            assert error.code is code, error  # type: ignore[attr-defined]
            assert WORD not in str(error)
