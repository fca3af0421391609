"""Judges every commit of a range one by one, and goes on after a refusal: for people who read history (`gitops-ctl verify`).

Nothing is accepted here.  A commit above a refused one is still judged by the policy of its parent, so that one run names all
that is wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.history import first_parent_line
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, VerdictCache, judge_at
from gitops_ctl.trust.judge import Judge
from gitops_ctl.trust.lines import Line, Lines
from gitops_ctl.trust.rulebook import TrustPolicy
from gitops_ctl.trust.unsigned import explain_unsigned
from gitops_ctl.trust.verdict import Accepted, CommitRefused


@dataclass(frozen=True, slots=True)
class CommitReport:
    """One commit; exactly one of `accepted` and `refused` is set.

    Attributes:
        on_line: on the first-parent line; others were merged in.
    """

    commit: str
    subject: str
    on_line: bool
    accepted: Accepted | None
    refused: CommitRefused | None

    @property
    def verdict(self) -> str:
        return "Accepted" if self.refused is None else self.refused.reason


def survey(
    store: ObjectStore,
    *,
    request: RangeRequest,
    cache: VerdictCache,
    policy: TrustPolicy | None = None,
    first_seen: Callable[[str], datetime] | None = None,
) -> Iterator[CommitReport]:
    """Reports about the commits after the accepted one (or the root), parents first.

    Args:
        store: the objects.
        request: the range; its limit does not count.
        cache: for parsed policies and documents.
        policy: judges everything in place of the policies in the history, to try it out.
        first_seen: other moments than those of the request, for reading old history.

    Raises:
        NotFound, Refused: the range is not there, or the accepted commit does not lie on its first-parent line.
    """
    lines = Lines(store, root=request.root.commit, tip=request.tip)
    judge = judge_at(store, request=request, cache=cache, lines=lines, policy=policy)
    if first_seen is not None:
        judge.scope = replace(judge.scope, first_seen=first_seen)
    before = request.accepted or request.root.commit
    for commit in first_parent_line(store, request.tip, stop=before):
        line = lines.line_at(commit, first_parent=before)
        for member in (*line.merged, commit):
            yield _report(store, judge, member, line=line)
        before = commit


def _report(store: ObjectStore, judge: Judge, commit: str, *, line: Line) -> CommitReport:
    on_line = commit == line.tip
    subject = _subject(store, commit)
    try:
        return CommitReport(commit, subject, on_line, judge.judge(commit, line=line), None)
    except CommitRefused as error:
        # Each unsigned commit has a line of its own here; only the hint is better.
        hint = explain_unsigned(store, error, line=line).hint if error.code is ErrorCode.UNSIGNED else error.hint
        error.hint = hint
        return CommitReport(commit, subject, on_line, None, error)


def _subject(store: ObjectStore, commit: str) -> str:
    try:
        return store.commit(commit).subject
    except GitopsError:
        return ""
