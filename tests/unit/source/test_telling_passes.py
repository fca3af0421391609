"""What a forge is told, when, and how often: the rules of forges.md, section 11.3, and the last rows of section 18."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli.pullcheck import MODULE, pull_child
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, InternalError, TransientError
from gitops_ctl.forge.errors import ForbiddenOrMissing, RepositoryUnavailable, TokenRejected, Unavailable
from gitops_ctl.forge.marker import Marker, marker_line
from gitops_ctl.git.fetching import Fetched, FetchRequest, Ref
from gitops_ctl.scheduling.options import Options
from gitops_ctl.source.judging import holds
from gitops_ctl.source.pullchild import PullChild
from gitops_ctl.source.pullheads import head_ref
from gitops_ctl.source.pullreport import Order, PullReport
from gitops_ctl.source.pulltelling import CHECKS_PER_PASS, MOST_PULLS
from gitops_ctl.source.pulltext import MARKER
from tests.support.proposals import LocalGit
from tests.support.telling_forge import HERE, KEY, TOKEN, DirectCheck, Office
from tests.support.trust import config_map

GOOD = {"clusters/b.yaml": config_map("b")}
BROKEN = {"clusters/b.yaml": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"v": 1}}'}
INVENTORY = """\
apiVersion: worker.gpustack.ai/v1alpha1
kind: TopologySource
metadata: {name: hall-7}
spec:
  nodeSelector: {}
  levels: [topology.gpustack.ai/zone]
  configMap: {configMapRef: {namespace: inventories, name: hall-7}, key: snapshot.yaml, maxStaleness: 1h}
"""
LONG = "".join(f"  k{number}: v{number}\n" for number in range(200_000))
MARK = marker_line(Marker("cni/site-1/replaced", "op-1", f"sha256:{'0' * 64}", "a" * 40, "b" * 40))


@pytest.fixture
async def office(tmp_path: Path) -> Office:
    return await Office.make(tmp_path)


def refusing(*calls: str, error: type[GitopsError] = ForbiddenOrMissing) -> Callable[[str], GitopsError | None]:
    return lambda call: error(f"{call}: the token needs another right") if call in calls else None


def checks(office: Office) -> int:
    assert isinstance(office.check, DirectCheck)
    return len(office.check.orders)


# -- the watched branch --------------------------------------------------------------------------------------------------


async def test_the_accepted_tip_gets_one_status_and_an_unchanged_one_is_not_sent_again(office: Office) -> None:
    await office.tell()
    assert office.verdict == ("success", "accepted; no Sync uses this source")
    office.passes(3600)
    await office.tell()
    assert office.forge.calls["set_status"] == 1


async def test_a_restarted_process_sends_nothing_that_stands_there(office: Office) -> None:
    office.pull(1, GOOD, signer=office.team["ann"])
    await office.tell()
    before = list(office.forge.writes)
    assert len(before) == 3
    office.restart()
    office.passes(120)
    await office.tell()
    assert office.forge.writes == before


async def test_a_status_follows_the_syncs_at_most_once_in_ten_seconds(office: Office) -> None:
    sync: dict[str, Any] = {"metadata": {"name": "site"}, "spec": {}, "status": {}}
    office.syncs = [sync]
    await office.tell()
    assert office.verdict == ("pending", "accepted; waiting for Sync site (Progressing)")
    applied = {
        **sync,
        "status": {"lastAppliedRevision": office.root, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    office.syncs = [applied]
    office.passes(4)
    assert await office.tell() == pytest.approx(6)
    assert office.verdict == ("pending", "accepted; waiting for Sync site (Progressing)")
    office.passes(6)
    await office.tell()
    assert office.verdict == ("success", "accepted and applied by Sync site")


async def test_a_refused_tip_fails_with_verdict_rule_and_hint(office: Office) -> None:
    tip = office.remote.commit(GOOD)
    rejected = {"commit": tip, "reason": "Unsigned", "path": "", "verb": "", "rule": "", "hint": "sign it"}
    office.status = {
        **office.status,
        "observed": {"revision": tip, "at": "2026-11-30T08:00:00Z"},
        "rejected": rejected,
        "conditions": [{**office.status["conditions"][0], "status": "False", "reason": "Unsigned"}],
    }
    await office.tell()
    assert office.verdict == ("failure", "refused: Unsigned; sign it")


# -- pull requests -------------------------------------------------------------------------------------------------------


async def test_each_pull_request_gets_one_comment_and_one_status(office: Office) -> None:
    head = office.pull(1, BROKEN, signer=office.team["ann"])
    await office.tell()
    assert office.status_of(head) == ("failure", "1 error, 0 warnings")
    comment = office.forge.comments[1]
    assert comment.endswith(MARKER)
    assert "clusters/b.yaml:1" in comment
    assert "`edit` on `clusters/b.yaml`: one of `ann`" in comment


async def test_one_check_for_each_head(office: Office) -> None:
    office.pull(1, GOOD, signer=office.team["ann"])
    for _ in range(5):
        await office.tell()
        office.passes(61)
    assert checks(office) == 1
    assert office.forge.calls["put_comment"] == 1
    office.pull(1, BROKEN, signer=office.team["ann"])
    await office.tell()
    assert checks(office) == 2


async def test_the_comment_is_updated_in_place_at_most_once_in_a_minute(office: Office) -> None:
    office.pace = replace(office.pace, poll_s=10)
    office.restart()
    office.pull(1, GOOD, signer=office.team["ann"])
    await office.tell()
    first = office.forge.comments[1]
    office.passes(20)
    head = office.pull(1, BROKEN, signer=office.team["ann"])
    assert await office.tell() == pytest.approx(10)
    assert office.status_of(head) is not None, "the status does not wait"
    assert office.forge.comments[1] == first
    office.passes(40)
    await office.tell()
    assert head in office.forge.comments[1]
    assert office.forge.writes.count("comment 1") == 2
    assert len(office.forge.comments) == 1


async def test_our_own_proposals_get_no_comment(office: Office) -> None:
    head = office.pull(1, GOOD, branch="gitops-ctl/taloscluster-site-1-0123456789abcdef", body=f"text\n\n{MARK}\n")
    await office.tell()
    assert office.forge.comments == {}
    assert office.status_of(head) is not None


@pytest.mark.parametrize(
    "lies", [{"body": MARK}, {"branch": "gitops-ctl/x"}, {"branch": "gitops-ctl/x", "body": MARK, "fork": True}]
)
async def test_somebody_elses_is_not_taken_for_ours(office: Office, lies: dict[str, Any]) -> None:
    office.pull(1, GOOD, **lies)
    await office.tell()
    assert 1 in office.forge.comments


async def test_a_fork_is_checked_and_what_it_would_change_is_left_out(office: Office) -> None:
    office.pull(1, GOOD, signer=office.team["ann"], fork=True)
    office.pull(2, GOOD, signer=office.team["ann"])
    await office.tell()
    assert "What it touches" not in office.forge.comments[1]
    assert "comes from a fork" in office.forge.comments[1]
    assert "- added: `ConfigMap/demo/b`" in office.forge.comments[2]


async def test_the_newest_fifty_and_a_few_checks_in_one_pass(office: Office) -> None:
    office.check = DirectCheck(answer=PullReport(trusted=True))
    office.restart()
    head = office.pull(1, GOOD)
    one = office.forge.pulls[0]
    office.remote.person.git("push", "--quiet", "origin", *(f"{head}:refs/pull/{n}/head" for n in range(2, 61)))
    office.forge.pulls = [replace(one, number=number) for number in range(1, 61)]
    assert await office.tell() == 0
    assert checks(office) == CHECKS_PER_PASS
    while await office.tell() == 0:
        pass
    assert checks(office) == MOST_PULLS


async def test_no_secret_but_the_token_is_read_and_none_is_written(office: Office) -> None:
    office.pull(1, BROKEN)
    await office.tell()
    assert set(office.api.read) == {"/api/v1/namespaces/team-a/secrets/forge"}
    assert isinstance(office.check, DirectCheck)
    texts = [str(office.forge.statuses), *office.forge.comments.values(), repr(office.check.orders)]
    assert not any(TOKEN in text for text in texts)


# -- off -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {"forge": None},
        {"trust": None},
        {"suspend": True},
        {"forge": {"provider": "gitea", "baseURL": "https://git.example.net", "project": "net/fabric"}},
    ],
)
async def test_it_is_off_without_forge_token_or_trust(office: Office, spec: dict[str, Any]) -> None:
    office.pull(1, GOOD)
    office.spec = spec
    assert await office.tell() is None
    assert not office.forge.calls
    assert office.api.read == []


async def test_without_an_accepted_base_there_is_no_check(office: Office) -> None:
    office.pull(1, GOOD)
    office.revisions.withdraw(KEY, reason="SourceNotAccepted")
    await office.tell()
    assert office.forge.calls["list_open"] == 0


# -- refusals and faults -------------------------------------------------------------------------------------------------


async def test_a_refused_comment_is_told_once_per_repository_and_the_check_goes_on(office: Office) -> None:
    office.forge.fails = refusing("put_comment")
    heads = [office.pull(number, GOOD) for number in (1, 2)]
    await office.tell()
    for _ in range(3):
        office.passes(61)
        await office.tell()
    assert len(office.events.told) == 1
    reason, note = office.events.told[0]
    assert reason == "ForbiddenOrMissing"
    assert "comments" in note
    assert "right" in note
    assert all(office.status_of(head) is not None for head in heads)
    assert office.forge.calls["put_comment"] == 2, "tried again after an hour"
    office.forge.fails = lambda _call: None
    office.passes(3600)
    await office.tell()
    assert len(office.forge.comments) == 2


async def test_a_refused_status_is_told_once_and_comments_go_on(office: Office) -> None:
    office.forge.fails = refusing("set_status")
    office.pull(1, GOOD)
    await office.tell()
    office.passes(61)
    await office.tell()
    assert [reason for reason, _ in office.events.told] == ["ForbiddenOrMissing"]
    assert 1 in office.forge.comments


async def test_a_rejected_token_is_not_tried_again_until_it_changes(office: Office) -> None:
    office.forge.fails = refusing("set_status", error=TokenRejected)
    await office.tell()
    office.passes(7200)
    await office.tell()
    assert office.forge.calls["set_status"] == 1
    assert [reason for reason, _ in office.events.told] == ["TokenRejected"]
    office.forge.fails = lambda _call: None
    office.api.token = "another-one-for-tests"
    await office.tell()
    assert office.verdict is not None


async def test_a_forge_that_is_down_loses_nothing(office: Office) -> None:
    head = office.pull(1, GOOD)
    office.forge.fails = refusing("put_comment", "set_status", "list_open", error=Unavailable)
    with pytest.raises(Unavailable):
        await office.tell()
    office.forge.fails = lambda _call: None
    await office.tell()
    assert office.verdict is not None
    assert office.status_of(head) is not None
    assert 1 in office.forge.comments


async def test_a_head_that_moves_meanwhile_is_looked_at_again(office: Office) -> None:
    office.pull(1, GOOD)
    office.forge.pulls = [replace(pr, head=replace(pr.head, sha="1" * 40)) for pr in office.forge.pulls]
    await office.tell()
    assert office.forge.comments == {}
    assert checks(office) == 0
    head = office.remote.git("rev-parse", "refs/pull/1/head")
    office.forge.pulls = [replace(pr, head=replace(pr.head, sha=head)) for pr in office.forge.pulls]
    office.passes(61)
    await office.tell()
    assert head in office.forge.comments[1]


class Failing(LocalGit):
    """Fetches of heads fail."""

    def __init__(self, error: GitopsError) -> None:
        super().__init__()
        self.error = error
        self.tried = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        if request.ref.kind == "pull":
            self.tried += 1
            raise self.error
        return await super().fetch(request)


async def test_a_head_beyond_the_limits_of_a_fetch_is_a_finding(office: Office) -> None:
    office.git = Failing(TransientError("more than 524288000 bytes", code=ErrorCode.FETCH_TOO_LARGE))
    office.restart()
    head = office.pull(1, GOOD)
    await office.tell()
    assert office.status_of(head) == ("failure", "1 error, 0 warnings")
    assert "fetch-too-large" in office.forge.comments[1]


async def test_a_head_that_cannot_be_fetched_is_tried_again_with_a_backoff_and_delays_no_other(office: Office) -> None:
    git = Failing(TransientError("no answer", code=ErrorCode.FETCH_TIMEOUT))
    office.git = git
    office.restart()
    office.pull(1, GOOD)
    for _ in range(10):
        await office.tell()
        office.passes(61)
    assert office.verdict is not None
    assert git.tried == 4, "after 0, 1, 3 and 7 minutes"
    assert office.forge.comments == {}


class Broken:
    """A check that ends by a bug of ours."""

    async def check(self, order: Order) -> PullReport:
        raise InternalError("the process that checks a pull request ended with code 1")


async def test_a_bug_in_the_check_says_nothing_about_the_head(office: Office) -> None:
    office.check = Broken()
    office.restart()
    head = office.pull(1, GOOD)
    await office.tell()
    assert office.verdict is not None
    assert office.status_of(head) is None
    assert office.forge.comments == {}


async def test_nothing_of_a_head_is_left_behind(office: Office) -> None:
    head = office.pull(1, GOOD)
    await office.tell()
    assert isinstance(office.check, DirectCheck)
    assert not Path(office.check.orders[0].repository).exists()
    revision = office.revisions.get(KEY)
    assert revision is not None
    assert not holds(revision.store_path, head)
    assert office.remote.git("rev-parse", "refs/pull/1/head") == head


def test_each_forge_has_its_own_name_for_a_head() -> None:
    assert head_ref("gitea", 7) == Ref("pull", "pull/7/head")
    assert head_ref("github", 7).full == "refs/pull/7/head"
    assert head_ref("gitlab", 7).full == "refs/merge-requests/7/head"


# -- the process that checks ---------------------------------------------------------------------------------------------


async def test_the_check_runs_in_a_process_of_its_own(office: Office) -> None:
    office.check = PullChild(MODULE)
    office.restart()
    head = office.pull(1, BROKEN, signer=office.team["ann"])
    await office.tell()
    assert office.status_of(head) == ("failure", "1 error, 0 warnings")


@pytest.mark.parametrize(
    ("namespace", "verdict"), [("inventories", "success"), ("gpustack-system", "failure")], ids=["its own", "another"]
)
async def test_a_head_is_judged_by_the_options_of_this_manager(office: Office, namespace: str, verdict: str) -> None:
    office.check = pull_child(Options(worker_namespace=namespace))
    office.restart()
    head = office.pull(1, {"clusters/source.yaml": INVENTORY}, signer=office.team["ann"])
    await office.tell()
    status = office.status_of(head)
    assert status is not None
    assert status[0] == verdict


@pytest.mark.parametrize(("seconds", "memory"), [(0.05, 1536 * 2**20), (60.0, 100 * 2**20)])
async def test_a_check_that_reaches_a_bound_is_a_finding(office: Office, seconds: float, memory: int) -> None:
    office.check = PullChild(MODULE, deadline_s=seconds, memory_bytes=memory)
    office.restart()
    head = office.pull(1, {f"clusters/{n}.yaml": f"data:\n{LONG}" for n in range(3)})
    await office.tell()
    assert office.status_of(head) == ("failure", "1 error, 0 warnings")
    assert "check-ended" in office.forge.comments[1]


@pytest.mark.parametrize("what", ["archived", "moved"])
async def test_a_project_that_is_not_to_be_had_is_told_once_and_nothing_is_sent_to_it(
    office: Office, what: str
) -> None:
    head = office.pull(1, GOOD)
    if what == "archived":
        office.forge.project = replace(office.forge.project, archived=True)
    else:
        office.forge.fails = refusing("repo", error=RepositoryUnavailable)
    assert await office.tell() == office.pace.poll_s
    office.passes(61)
    await office.tell()
    assert [reason for reason, _ in office.events.told] == ["RepositoryUnavailable"]
    assert not office.forge.calls
    office.forge.project, office.forge.fails = HERE, lambda _call: None
    office.passes(61)
    await office.tell()
    assert office.verdict is not None
    assert office.status_of(head) is not None


async def test_pull_requests_of_another_repository_are_not_looked_at(office: Office) -> None:
    office.pull(1, GOOD)
    office.forge.project = replace(HERE, id="7")
    await office.tell()
    assert checks(office) == 0
    ((reason, note),) = office.events.told
    assert reason == "RepositoryUnavailable"
    assert "repository 7" in note
    assert 1 not in office.forge.comments
