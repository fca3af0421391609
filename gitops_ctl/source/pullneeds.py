"""What the trust policy says about a pull request before it is merged (forges.md, section 11.3; gitops.md, sections 4.3 and 4.4).

Two questions: which verbs the merge needs and who holds them, and whether the commits that it brings in would be accepted as they are.
Every commit is judged by the policy of the accepted base alone: a policy in the head judges nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.git.store import ObjectStore
from gitops_ctl.source.pullreport import MOST_PATHS, MOST_REFUSED, Need, Unaccepted
from gitops_ctl.trust.chain import RangeRequest, VerdictCache, judge_at
from gitops_ctl.trust.changes import Change
from gitops_ctl.trust.judge import Judge
from gitops_ctl.trust.keys import OwnerKind
from gitops_ctl.trust.lines import Line, Lines
from gitops_ctl.trust.rulebook import PolicyRule, TrustPolicy
from gitops_ctl.trust.verdict import CommitRefused

MOST_JUDGED: Final = 500
"""Commits of one head that are judged one by one."""


@dataclass(slots=True)
class Brought:
    """The commits that a merge would bring in.

    Attributes:
        allowed: (rule, verb) to the persons whose commits the rule accepts.
        signed: people of the policy signed all of them.
    """

    commits: int = 0
    proposed: int = 0
    signed: bool = True
    refused_count: int = 0
    refused: list[Unaccepted] = field(default_factory=list)
    allowed: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)


def brought_in(store: ObjectStore, *, request: RangeRequest, policy: TrustPolicy) -> Brought:
    """Judge what the merge at `request.tip` brings in beside its first parent, which is accepted.

    Raises:
        NotFound: a part of the history is missing.
    """
    assert request.accepted is not None
    lines = Lines(store, root=request.root.commit, tip=request.tip)
    judge = judge_at(store, request=request, cache=VerdictCache(), lines=lines, policy=policy)
    line = lines.line_at(request.tip, first_parent=request.accepted)
    found = Brought(commits=len(line.merged))
    for commit in line.merged[:MOST_JUDGED]:
        _look_at(store, commit, judge=judge, line=line, policy=policy, found=found)
    found.signed = found.signed and len(line.merged) <= MOST_JUDGED
    return found


def _look_at(store: ObjectStore, commit: str, *, judge: Judge, line: Line, policy: TrustPolicy, found: Brought) -> None:
    owner = _owner(store, commit, judge=judge, policy=policy)
    found.signed = found.signed and owner is OwnerKind.PERSON
    if owner is OwnerKind.PROPOSER:
        # Whoever merges is judged for it, and nobody has merged yet.
        found.proposed += 1
        return
    try:
        accepted = judge.judge(commit, line=line)
    except CommitRefused as error:
        found.refused_count += 1
        if len(found.refused) < MOST_REFUSED:
            found.refused.append(Unaccepted(commit, error.reason, error.message, error.hint))
        return
    for decision in accepted.decisions:
        known = found.allowed.setdefault((decision.rule, decision.change.verb), {})
        known.update(dict.fromkeys(decision.persons))


def _owner(store: ObjectStore, commit: str, *, judge: Judge, policy: TrustPolicy) -> OwnerKind | None:
    try:
        return judge.signer(store.commit(commit), policy=policy).key.owner.kind
    except CommitRefused:
        return None


def needs_of(
    changes: Iterable[Change], *, policy: TrustPolicy, allowed: Mapping[tuple[str, str], Iterable[str]]
) -> tuple[Need, ...]:
    """The verbs that the changes need, by rule; the merge itself comes first."""
    paths: dict[tuple[int, str], dict[str, None]] = {}
    rules: dict[int, PolicyRule | None] = {}
    for change in changes:
        rule = policy.rule_for(path=change.path, verb=change.verb, kind=change.kind)
        number = rule.number if rule is not None else 0
        rules[number] = rule
        paths.setdefault((number, change.verb), {})[change.path] = None
    merge = _need("merge", policy.merge_rule(), (), policy=policy, allowed=allowed)
    return (
        merge,
        *(
            _need(verb, rules[number], tuple(found), policy=policy, allowed=allowed)
            for (number, verb), found in sorted(paths.items(), key=lambda item: item[0])
        ),
    )


def _need(
    verb: str,
    rule: PolicyRule | None,
    paths: tuple[str, ...],
    *,
    policy: TrustPolicy,
    allowed: Mapping[tuple[str, str], Iterable[str]],
) -> Need:
    shown, more = paths[:MOST_PATHS], max(0, len(paths) - MOST_PATHS)
    if rule is None:
        return Need(verb, "", (), 1, False, shown, more)
    members = sorted({person for role in rule.roles for person in policy.roles.get(role, ())})
    judged = tuple(allowed.get((str(rule), verb), ()))
    return Need(verb, str(rule), tuple(members), rule.threshold, rule.is_distinct(verb), shown, more, judged)
