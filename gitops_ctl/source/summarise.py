"""From the facts of a pass to the status of a GitSource: a pure function, written once at the end.

Ready answers "is it fine"; Verified carries the verdict on the tip; Stalled says that a person is needed; SourceStale is an
alarm.  No message holds a counter that changes from pass to pass, so an unchanged source is an unchanged status.
"""

from collections.abc import Iterator
from datetime import datetime

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import Condition, cut, merge_conditions
from gitops_ctl.core.duration import to_text
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.core.redact import redact_text
from gitops_ctl.source.model import Acceptance, Facts, Refusal
from gitops_ctl.source.plan import NO_FETCH, stale_after_s

ACCEPTED = "Accepted"
IN_PROGRESS = "VerificationInProgress"
_HINT_LIMIT = 1000
_PATH_LIMIT = 4096
_RULE_LIMIT = 256


def status_of(facts: Facts, *, previous: JsonObject, generation: int, interval_s: float, now: datetime) -> JsonObject:
    """The whole status that should be stored.

    Args:
        facts: of this pass.
        previous: the stored status; its transition times are kept where nothing changed.
        generation: the generation that was read.
        interval_s: the poll interval, for the alarm's text.
        now: wall clock.
    """
    status: dict[str, JsonValue] = {
        "observedGeneration": generation,
        "conditions": merge_conditions(
            previous, wanted=conditions_of(facts, interval_s=interval_s), generation=generation, now=now
        ),
        "firstSeen": [{"tip": seen.tip, "firstSeenAt": to_rfc3339(seen.at)} for seen in facts.first_seen.tips],
    }
    if facts.requested_at:
        status["lastHandledReconcileAt"] = facts.requested_at
    if facts.observed is not None:
        status["observed"] = {"revision": facts.observed.revision, "at": to_rfc3339(facts.observed.at)}
    if facts.accepted is not None:
        status["accepted"] = _accepted(facts.accepted)
    if facts.refusal is not None and not facts.pending:
        status["rejected"] = _rejected(facts.refusal)
    return status


def _accepted(accepted: Acceptance) -> dict[str, JsonValue]:
    entry: dict[str, JsonValue] = {
        "revision": accepted.revision,
        "policyDigest": accepted.policy_digest,
        "keySetDigest": accepted.key_set_digest,
        "root": accepted.root,
        "verifierVersion": accepted.verifier_version,
        "at": to_rfc3339(accepted.at),
    }
    if accepted.tag:
        entry["tag"] = accepted.tag
    if accepted.reviews:
        entry["reviewEvidence"] = list(accepted.reviews)
    return entry


def _rejected(refusal: Refusal) -> dict[str, JsonValue]:
    return {
        "commit": refusal.commit,
        "reason": refusal.reason,
        "path": cut(refusal.path, limit=_PATH_LIMIT),
        "verb": refusal.verb,
        "rule": cut(refusal.rule, limit=_RULE_LIMIT),
        "hint": cut(redact_text(refusal.hint), limit=_HINT_LIMIT),
    }


def conditions_of(facts: Facts, *, interval_s: float) -> tuple[Condition, ...]:
    """Every condition that holds after the pass."""
    return (*_main(facts), *_verified(facts), *_stale(facts, interval_s=interval_s))


def _main(facts: Facts) -> Iterator[Condition]:
    """Ready, and Reconciling or Stalled; never both of these."""
    if facts.suspended:
        yield Condition("Ready", "True" if facts.accepted else "False", "Suspended", _suspended_text(facts))
    elif facts.error is not None:
        yield from _failed(facts.error, in_force=_in_force(facts))
    elif not facts.trusted:
        yield Condition(
            "Ready", "True", "Succeeded", "fetched; without spec.trust nothing is verified and no Sync is fed"
        )
    elif facts.verdict == ACCEPTED:
        yield Condition("Ready", "True", "Succeeded", facts.message)
    elif facts.verdict == IN_PROGRESS:
        yield Condition("Ready", "Unknown", IN_PROGRESS, "the new commits are being judged")
        yield Condition("Reconciling", "True", "Progressing", facts.message)
    elif facts.pending:
        yield Condition("Ready", "False", facts.verdict, _refused_text(facts))
        yield Condition("Reconciling", "True", "ProgressingWithRetry", "it is tried again by itself")
    else:
        yield Condition("Ready", "False", facts.verdict, _refused_text(facts))
        yield Condition("Stalled", "True", facts.verdict, "a person has to act; see Ready")


def _failed(error: GitopsError, *, in_force: str) -> Iterator[Condition]:
    text = error_text(error)
    yield Condition("Ready", "False", error.reason, f"{text}; {in_force}" if in_force else text)
    if isinstance(error, TransientError):
        yield Condition("Reconciling", "True", "ProgressingWithRetry", "it is tried again by itself")
    else:
        yield Condition("Stalled", "True", error.reason, "a person has to act; see Ready")


def error_text(error: GitopsError) -> str:
    """Subject, cause and hint in one sentence, without a secret."""
    place = f"{error.subject}: " if error.subject else ""
    hint = f" ({error.hint})" if error.hint else ""
    return redact_text(f"{place}{error.message}{hint}")


def _verified(facts: Facts) -> Iterator[Condition]:
    if not facts.trusted or not facts.verdict:
        return
    if facts.verdict == ACCEPTED:
        yield Condition("Verified", "True", ACCEPTED, facts.message)
    elif facts.pending:
        yield Condition("Verified", "Unknown", facts.verdict, "the tip is not judged yet")
    else:
        yield Condition("Verified", "False", facts.verdict, _refused_text(facts))


def _stale(facts: Facts, *, interval_s: float) -> Iterator[Condition]:
    if facts.stale_since_s is not None:
        limit = to_text(stale_after_s(interval_s))
        yield Condition("SourceStale", "True", NO_FETCH, f"no fetch has succeeded for more than {limit}")
    elif facts.old_tip:
        text = f"no newer tip was seen for more than {facts.old_tip}: nobody pushes, or the server serves an old state"
        yield Condition("SourceStale", "True", "TipTooOld", text)


def _refused_text(facts: Facts) -> str:
    found = redact_text(facts.refusal.message if facts.refusal else facts.message)
    if not facts.effects_allowed:
        return f"{found}; no accepted revision is in force: nothing is applied, and nothing is rolled back"
    in_force = _in_force(facts)
    return f"{found}; {in_force}" if in_force else found


def _in_force(facts: Facts) -> str:
    return f"{facts.accepted.revision} stays in force" if facts.accepted and facts.effects_allowed else ""


def _suspended_text(facts: Facts) -> str:
    return "suspended: nothing is fetched" + (f"; {_in_force(facts)}" if facts.accepted else "")
