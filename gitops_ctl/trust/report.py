"""Reports about commits in the forms that the command line writes: rows for people, JSON for programs."""

from collections.abc import Sequence

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.survey import CommitReport
from gitops_ctl.trust.verdict import Decision

COLUMNS = ("COMMIT", "VERDICT", "WHO", "CHANGES", "RULES OR REASON")
_SHOWN = 3


def to_json(report: CommitReport) -> JsonObject:
    """Commit, verdict, who signed, who is judged, each change with its rule, or the refusal."""
    tree: dict[str, object] = {
        "commit": report.commit,
        "subject": report.subject,
        "firstParentLine": report.on_line,
        "verdict": report.verdict,
    }
    if report.accepted is not None:
        accepted = report.accepted
        tree |= {
            "signer": str(accepted.owner),
            "key": accepted.fingerprint,
            "judged": list(accepted.persons),
            "changes": [_change(decision) for decision in accepted.decisions],
        }
    if report.refused is not None:
        where = report.refused.where
        tree["refusal"] = {
            "message": report.refused.message,
            "code": report.refused.code.label,
            "hint": report.refused.hint,
            "pending": report.refused.is_pending,
            "path": where.path,
            "verb": where.verb,
            "rule": where.rule,
            "person": where.person,
            "key": where.key_seen,
            "merge": where.merge,
            "head": where.head,
        }
    return tree  # type: ignore[return-value]  # built of JSON values only


def to_row(report: CommitReport) -> tuple[str, ...]:
    """One line of the table."""
    mark = report.commit[:12] if report.on_line else f"  {report.commit[:12]}"
    if report.refused is not None:
        where = report.refused.where
        change = f"{where.verb} {where.path}".strip()
        return (mark, report.verdict, where.person or where.key_seen, change, report.refused.message)
    accepted = report.accepted
    assert accepted is not None
    who = str(accepted.owner)
    judged = ", ".join(accepted.persons)
    if judged and judged != who:
        who = f"{judged} ({who})"
    changes = [f"{decision.change.verb} {decision.change.path}".strip() for decision in accepted.decisions]
    rules = list(dict.fromkeys(decision.rule.split(" (")[0] for decision in accepted.decisions))
    return (mark, report.verdict, who, _cut(changes) or "no change", ", ".join(rules))


def _change(decision: Decision) -> JsonObject:
    change = decision.change
    return {
        "path": change.path,
        "verb": change.verb,
        "kind": str(change.kind) if change.kind else "",
        "object": str(change.object) if change.object else "",
        "rule": decision.rule,
        "persons": list(decision.persons),
    }


def _cut(entries: Sequence[str]) -> str:
    more = len(entries) - _SHOWN
    return ", ".join(entries[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
