"""What is pushed, and what never is: refspecs, leases, and the size of a change (forges.md, section 9.7; faults P02, P03, P07, P09)."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError, Refused, TransientError
from gitops_ctl.git.fetching import FetchRequest, Ref
from gitops_ctl.git.push_child import push
from gitops_ctl.git.pushing import LeaseLost, Pushed, PushRefused, PushRequest, result_of
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.git.url import parse_url
from gitops_ctl.git.writing import Identity, borrow_objects, commit_files
from tests.support.git_bare import BareRemote

AT = datetime(2026, 11, 30, 8, tzinfo=UTC)
ROBOT = Identity("gitops-ctl", "gitops-ctl@example.net")
OURS = "gitops-ctl/taloscluster-site-1-0123456789abcdef"


@pytest.fixture
def remote(tmp_path: Path) -> BareRemote:
    repo = BareRemote(tmp_path)
    repo.commit({"a.yaml": "x: 1\n", "dir/b.yaml": "y: 1\n"})
    return repo


class Desk:
    """A place to write commits on the tip of a remote, as the proposals controller has one."""

    def __init__(self, remote: BareRemote, place: Path) -> None:
        self.remote = remote
        self.place = borrow_objects(place, of=remote.path)
        self.base = remote.head("main")

    def commit(self, **files: str | None) -> str:
        changes = {name.replace("__", "/") + ".yaml": data and data.encode() for name, data in files.items()}
        with ObjectStore.open(self.place) as store:
            return commit_files(store, base=self.base, changes=changes, message="m\n", author=ROBOT, at=AT, signer=None)

    def request(
        self, commit: str, *, expected: str | None = None, branch: str = OURS, files: tuple[str, ...] = ("a.yaml",)
    ):
        url = parse_url(self.remote.url, allow_file=True)
        fetch = FetchRequest(url, self.place, Ref("branch", "main"))
        return PushRequest(fetch, f"{commit}:refs/heads/{branch}", expected, self.base, files)


@pytest.fixture
def desk(remote: BareRemote, tmp_path: Path) -> Desk:
    return Desk(remote, tmp_path / "desk")


def pushed(request: PushRequest) -> Pushed:
    return result_of(push(request), request)


def test_a_commit_is_pushed_to_a_new_branch_and_only_that_branch_moves(desk: Desk, remote: BareRemote):
    commit = desk.commit(a="x: 2\n")
    assert pushed(desk.request(commit)) == Pushed(commit, OURS)
    assert remote.head(OURS) == commit
    assert remote.refs() == [f"refs/heads/{OURS}", "refs/heads/main"]
    assert remote.git("diff", "--name-only", "main", OURS) == "a.yaml"


@pytest.mark.parametrize(
    ("refspec", "told"),
    [
        ("+{commit}:refs/heads/x", "it would force"),
        (":refs/heads/x", "without a source it would delete"),
        ("{commit}:refs/heads/main", "the base branch"),
        ("{commit}", "without a source"),
        ("HEAD:refs/heads/x", "not one whole commit id"),
        ("{commit}:refs/tags/x", "no branch"),
        ("{commit}:refs/notes/commits", "no branch"),
        ("{commit}:refs/heads/a..b", "cannot be the name"),
        ("{commit}:refs/heads/*", "cannot be the name"),
    ],
)
def test_P03_a_refspec_that_forces_deletes_or_aims_at_the_base_is_refused(
    desk: Desk, remote: BareRemote, refspec: str, told: str
):
    commit = desk.commit(a="x: 2\n")
    request = replace(desk.request(commit), refspec=refspec.format(commit=commit))
    with pytest.raises(Refused, match=told) as error:
        push(request)
    assert error.value.code is ErrorCode.REFSPEC_REFUSED
    assert remote.refs() == ["refs/heads/main"]


def test_P02_a_commit_that_changes_more_than_our_files_is_never_sent(desk: Desk, remote: BareRemote):
    commit = desk.commit(a="x: 2\n", dir__b="y: 2\n")
    with pytest.raises(InternalError, match=r"changes \['dir/b.yaml'\]"):
        push(desk.request(commit))
    assert remote.git("branch", "--list", OURS) == ""


def test_P02_a_commit_on_another_parent_than_the_fetched_base_is_never_sent(desk: Desk, remote: BareRemote):
    commit = desk.commit(a="x: 2\n")
    remote.commit({"a.yaml": "x: 3\n"})
    with pytest.raises(InternalError, match="does not stand on"):
        push(replace(desk.request(commit), base=remote.head("main")))


def test_P09_a_branch_that_a_person_moved_is_not_overwritten(desk: Desk, remote: BareRemote):
    first = desk.commit(a="x: 2\n")
    pushed(desk.request(first))
    person = remote.commit_on(OURS, {"a.yaml": "x: 9\n"})
    with pytest.raises(LeaseLost, match="nothing was pushed") as error:
        pushed(desk.request(desk.commit(a="x: 4\n"), expected=first))
    assert error.value.found == person
    assert remote.head(OURS) == person


def test_P07_two_writers_meet_on_one_branch_and_the_second_is_told_whose_it_is(
    desk: Desk, remote: BareRemote, tmp_path: Path
):
    other = Desk(remote, tmp_path / "other")
    mine, theirs = desk.commit(a="x: 2\n"), other.commit(a="x: 3\n")
    pushed(other.request(theirs))
    with pytest.raises(LeaseLost) as error:
        pushed(desk.request(mine))
    assert error.value.found == theirs
    assert remote.head(OURS) == theirs
    assert remote.refs() == [f"refs/heads/{OURS}", "refs/heads/main"]


def test_our_own_branch_is_rebuilt_under_its_lease_although_that_is_no_fast_forward(desk: Desk, remote: BareRemote):
    first = desk.commit(a="x: 2\n")
    pushed(desk.request(first))
    second = desk.commit(a="x: 3\n")
    pushed(desk.request(second, expected=first))
    assert remote.head(OURS) == second
    assert remote.git("rev-list", "--count", f"main..{OURS}") == "1"


def test_a_lease_on_a_branch_that_is_gone_is_lost(desk: Desk):
    commit = desk.commit(a="x: 2\n")
    with pytest.raises(LeaseLost, match="is at nothing") as error:
        pushed(desk.request(commit, expected="1" * 40))
    assert error.value.found == ""


async def test_the_push_of_the_product_runs_in_a_child_process(desk: Desk, remote: BareRemote):
    commit = desk.commit(a="x: 2\n")
    assert await ChildTransport().push(desk.request(commit)) == Pushed(commit, OURS)
    assert remote.head(OURS) == commit
    with pytest.raises(LeaseLost):
        await ChildTransport().push(desk.request(commit))


def test_what_the_server_says_is_shown_without_a_secret(desk: Desk):
    request = desk.request(desk.commit(a="x: 2\n"))
    with pytest.raises(PushRefused, match="pre-receive hook declined") as error:
        result_of({"refused": "pre-receive hook declined; token=abcdefgh12345678abcdefgh"}, request)
    assert "abcdefgh12345678" not in error.value.message


def test_a_server_that_is_not_there_is_tried_again(desk: Desk, tmp_path: Path):
    request = desk.request(desk.commit(a="x: 2\n"))
    gone = replace(request.remote, url=parse_url(f"file://{tmp_path}/nothing", allow_file=True))
    with pytest.raises(TransientError, match="the push to") as error:
        push(replace(request, remote=gone))
    assert error.value.code is ErrorCode.PUSH_FAILED
