"""Whether a rule lets the judged persons make a change (gitops.md, sections 4.3 step 6, 4.4 and 4.6).

The first rule that matches (path, verb, kind) decides; none is a refusal.  A judged person must hold a role of the rule;
counted are these persons and those who consented beforehand, each once and each with a role.  Pure: what needs history is
asked through `Asks`.
"""

from dataclasses import dataclass
from typing import Protocol

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.trust.changes import Change
from gitops_ctl.trust.rulebook import PolicyRule, TrustPolicy
from gitops_ctl.trust.verbs import CONSENT_KIND
from gitops_ctl.trust.verdict import CommitRefused, Decision, Where

FORGE_GATED = frozenset({"trust", "policy", "approve", "activate", "recover", "consent"})
"""Verbs that a forge's merge carries only when `merges.allowVerbs` lists them."""


@dataclass(frozen=True, slots=True)
class View:
    """One policy that must allow a commit, with the persons whom it judges.

    Attributes:
        persons: the signer, or the reviewers of a forge's merge, the earliest first.
        by_reviews: whether they are reviewers.
        head: what they reviewed.
    """

    policy: TrustPolicy
    persons: tuple[str, ...]
    by_reviews: bool = False
    head: str = ""


@dataclass(frozen=True, slots=True)
class Authors:
    """Who introduced what a change authorises.

    Attributes:
        of_fields: whether the kind names such fields; otherwise the signer of the change is its author.
        unknown: a field that nobody introduced since the pinned root.
    """

    persons: frozenset[str]
    of_fields: bool
    unknown: bool = False


class Asks(Protocol):
    """What a rule may need to know beyond the change itself."""

    def consenters(self, change: Change) -> frozenset[str]: ...

    def authors(self, change: Change) -> Authors: ...


def authorise(change: Change, *, view: View, asks: Asks, commit: str) -> Decision:
    """The rule that allows the change.

    Raises:
        CommitRefused: PATH_NOT_AUTHORISED; the message says which condition failed.
    """
    rule = view.policy.rule_for(path=change.path, verb=change.verb, kind=change.kind)
    refused = _Refusals(change, view=view, rule=rule, commit=commit)
    if rule is None:
        raise refused.because("no rule of the policy gives this verb here")
    if view.by_reviews and change.verb in FORGE_GATED and not is_carried(view.policy, change.verb):
        raise refused.because(f"a merge by the forge may carry {change.verb} only when merges.allowVerbs lists it")
    able = [person for person in view.persons if view.policy.holds_role(person, rule.roles)]
    if not able:
        hint = _review_hint(view, rule) if view.by_reviews else ""
        raise refused.because(f"{rule} gives it to others: {_members(view.policy, rule)}", hint=hint)
    authors = asks.authors(change) if rule.is_distinct(change.verb) and not _is_held_instead(change) else None
    if authors is not None:
        able = _distinct(able, authors=authors, refused=refused)
    counted = dict.fromkeys(able)
    if len(counted) < rule.threshold:
        agreed = sorted(name for name in asks.consenters(change) if view.policy.holds_role(name, rule.roles))
        counted |= dict.fromkeys(name for name in agreed if authors is None or name not in authors.persons)
    if len(counted) < rule.threshold:
        raise refused.because(
            f"{rule} needs {rule.threshold} persons, counted are {len(counted)} ({', '.join(counted) or 'nobody'})",
            hint=_review_hint(view, rule) if view.by_reviews else _consent_hint(change, rule),
        )
    return Decision(change, str(rule), tuple(counted))


def authorise_merge(*, view: View, commit: str) -> Decision:
    """The rule that allows the merge itself, asked once for the whole tree.

    Raises:
        CommitRefused: PATH_NOT_AUTHORISED.
    """
    rule = view.policy.merge_rule()
    change = Change("", "merge", None, None, (), "")
    refused = _Refusals(change, view=view, rule=rule, commit=commit)
    if rule is None:
        raise refused.because("no rule of the policy gives the verb merge")
    able = tuple(person for person in view.persons if view.policy.holds_role(person, rule.roles))
    if len(able) < rule.threshold:
        raise refused.because(f"{rule} gives it to {rule.threshold} or more of: {_members(view.policy, rule)}")
    return Decision(change, str(rule), able)


def is_carried(policy: TrustPolicy, verb: str) -> bool:
    """Whether a forge's merge may carry one of the gated verbs."""
    return policy.merges is not None and verb in policy.merges.allow_verbs


def _distinct(able: list[str], *, authors: Authors, refused: "_Refusals") -> list[str]:
    """Who is left when the authors are not counted."""
    if authors.unknown:
        raise refused.because(
            "nobody introduced what it authorises since the pinned root, so nobody is known to be distinct from its author",
            hint="commit the authorised field anew",
        )
    left = [person for person in able if person not in authors.persons]
    if authors.of_fields and not left:
        raise refused.because(
            f"{', '.join(sorted(authors.persons))} introduced what it authorises, and the rule asks for somebody else",
            hint="let another entitled person sign",
        )
    return left


def _members(policy: TrustPolicy, rule: PolicyRule) -> str:
    names = sorted({name for role in rule.roles for name in policy.roles.get(role, ())})
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "nobody"


def _is_held_instead(change: Change) -> bool:
    """Whether a missing distinctness holds the object, not the commit: a consent may come before what it speaks about."""
    return change.verb == "consent" and change.kind != CONSENT_KIND


def _review_hint(view: View, rule: PolicyRule) -> str:
    return f"let {rule.threshold} of the roles {', '.join(rule.roles)} approve the pull request at exactly {view.head}"


def _consent_hint(change: Change, rule: PolicyRule) -> str:
    return (
        f"let another person of {', '.join(rule.roles)} first commit a Consent with verb {change.verb}, "
        f"path {change.path} and blob {change.blob}"
    )


@dataclass(frozen=True, slots=True)
class _Refusals:
    """Builds refusals about one change."""

    change: Change
    view: View
    rule: PolicyRule | None
    commit: str

    def because(self, reason: str, *, hint: str = "") -> CommitRefused:
        who = ", ".join(self.view.persons) or "nobody"
        place = f" on {self.change.path}" if self.change.path else ""
        kind = f" ({self.change.kind})" if self.change.kind else ""
        reviewed = f" by reviews of {self.view.head}" if self.view.by_reviews else ""
        return CommitRefused(
            f"{who} may not {self.change.verb}{place}{kind}{reviewed}: {reason}",
            code=ErrorCode.PATH_NOT_AUTHORISED,
            commit=self.commit,
            hint=hint,
            where=Where(path=self.change.path, verb=self.change.verb, rule=str(self.rule or "no rule"), person=who),
        )
