"""What a merge by a forge must satisfy when it brings in proposed changes (gitops.md, section 4.6; forges.md, section 11.2).

What no review can allow is refused at once; what reviews could allow waits for them.  Offline nobody can read them, so the
requirements are told in words.
"""

from collections.abc import Collection, Iterable

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.trust.authority import FORGE_GATED, View, is_carried
from gitops_ctl.trust.changes import Change
from gitops_ctl.trust.reviews import ReviewEvidence, uncounted
from gitops_ctl.trust.rulebook import TrustPolicy
from gitops_ctl.trust.verdict import CommitRefused, Where

_SHOWN = 5


def needs_reviews(views: Iterable[View], *, changes: Collection[Change], commit: str, merge: str) -> CommitRefused:
    """The verdict while the reviews are not known: pending, unless no review could help.

    Args:
        views: policies that must allow the commit; nobody is judged by them yet.
        changes: of the proposer's commit.
        commit: that is judged.
        merge: of the forge, which brings it in.
    """
    wanted: dict[str, None] = {}
    head = ""
    for view in views:
        head = view.head
        for change in changes:
            refused = _never(change, view=view, commit=commit)
            if refused is not None:
                return refused
        wanted[f"{_reviewers(view.policy)} of {head}"] = None
        wanted |= dict.fromkeys(_rules(changes, policy=view.policy))
    return CommitRefused(
        f"the forge's merge {merge} brings it in: needs forge reviews: {'; '.join(wanted)}",
        code=ErrorCode.NEEDS_FORGE_REVIEWS,
        commit=commit,
        hint="the source reads them at the forge that spec.forge names; offline they cannot be told",
        where=Where(merge=merge, head=head),
    )


def not_enough(view: View, *, evidence: ReviewEvidence | None, commit: str, needed: int) -> CommitRefused:
    """The refusal when fewer reviewers count than the policy asks for."""
    left_out = uncounted(evidence, policy=view.policy, head=view.head) if evidence else ()
    seen = f"; not counted: {'; '.join(left_out[:_SHOWN])}" if left_out else ""
    pull = f"pull request {evidence.number}" if evidence and evidence.number else "the pull request"
    return CommitRefused(
        f"{_reviewers(view.policy)} of {view.head} are needed, "
        f"counted are {len(view.persons)} ({', '.join(view.persons) or 'nobody'}){seen}",
        code=ErrorCode.PATH_NOT_AUTHORISED,
        commit=commit,
        hint=f"let {needed - len(view.persons)} more of them approve {pull} at exactly {view.head}, "
        "or merge on a workstation with a signed commit",
        where=Where(verb="merge", rule="merges.requireReviews"),
    )


def _never(change: Change, *, view: View, commit: str) -> CommitRefused | None:
    if change.verb not in FORGE_GATED or is_carried(view.policy, change.verb):
        return None
    return CommitRefused(
        f"a merge by the forge may carry {change.verb} on {change.path} only when merges.allowVerbs lists it",
        code=ErrorCode.PATH_NOT_AUTHORISED,
        commit=commit,
        hint="let an entitled person merge on a workstation, with a signed merge commit",
        where=Where(path=change.path, verb=change.verb, rule="merges.allowVerbs"),
    )


def _reviewers(policy: TrustPolicy) -> str:
    needed = policy.merges.require_reviews if policy.merges else 1
    roles = policy.merges.reviewer_roles if policy.merges else ()
    return f"{needed} approving reviews by persons" + (f" in {' or '.join(roles)}" if roles else "")


def _rules(changes: Collection[Change], *, policy: TrustPolicy) -> tuple[str, ...]:
    """For each rule that will be asked: what it is asked about, and whom it wants among the reviewers."""
    found: dict[str, list[str]] = {}
    for change in changes:
        rule = policy.rule_for(path=change.path, verb=change.verb, kind=change.kind)
        if rule is None:
            wanted = "no rule gives it"
        else:
            distinct = ", not the author" if rule.is_distinct(change.verb) else ""
            wanted = f"{rule.threshold} of the roles {', '.join(rule.roles)} (rule {rule.number}{distinct})"
        found.setdefault(wanted, []).append(f"{change.verb} {change.path}")
    return tuple(
        f"{', '.join(what[:_SHOWN])}{f' and {len(what) - _SHOWN} more' if len(what) > _SHOWN else ''}: {wanted}"
        for wanted, what in found.items()
    )
