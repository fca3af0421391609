"""The comment and the statuses are plain texts that nothing foreign can break out of, and the same for the same report."""

from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.problem import Problem
from gitops_ctl.source.pullreport import (
    MOST_FINDINGS,
    Finding,
    Need,
    PullReport,
    Touched,
    Unaccepted,
    findings_of,
    report_from_bytes,
    report_of_error,
    report_to_bytes,
)
from gitops_ctl.source.pulltext import MARKER, MOST_CHARACTERS, check_status, comment_of
from gitops_ctl.source.verdictstatus import Verdict, verdict_of

HEAD = "a" * 40
TIP, OLD = "b" * 40, "c" * 40
NEED = Need("edit", "rule 4 (verbs edit; roles author)", ("ann", "bob"), 2, True, ("a.yaml",), 3, ("ann",))


def comment(**members: Any) -> str:
    return comment_of(PullReport(**members), head=HEAD, base_branch="main")


def test_the_comment_names_findings_with_place_hint_and_held_object() -> None:
    finding = Finding(
        "error", "GC1015 schema", "must be a string", "a.yaml:3:5 /data/v", "quote it", "ConfigMap/demo/a"
    )
    text = comment(findings=(finding,), errors=1)
    assert (
        "- **error** `GC1015 schema` at `a.yaml:3:5 /data/v`: `must be a string`. Holds `ConfigMap/demo/a`. Hint: `quote it`"
        in text
    )
    assert "1 error, 0 warnings" in text


def test_the_comment_says_how_many_who_and_who_signed_already() -> None:
    text = comment(needs=(NEED,), by_forge=True)
    assert (
        "- `edit` on `a.yaml` and 3 more: 2 of `ann`, `bob`, not who introduced what it authorises; signed already by `ann`"
        in text
    )
    assert "accepts no merge by the forge" not in text
    assert "accepts no merge by the forge" in comment(needs=(NEED,))


def test_a_verb_that_no_rule_gives_is_said_plainly() -> None:
    need = replace(NEED, rule="", persons=(), paths=("README.md",), more=0)
    assert "- `edit` on `README.md`: **no rule of the policy gives this verb here**" in comment(needs=(need,))


def test_what_it_touches_is_shown_for_trusted_heads_alone() -> None:
    touched = {"touched": (Touched("changed", "CiscoDevice/lab/edge-1"),), "touched_count": 1}
    devices = {"devices": ("CiscoDevice/lab/edge-1",), "device_count": 1}
    shown = comment(trusted=True, **touched, **devices)
    assert "- 1 device: `CiscoDevice/lab/edge-1`" in shown
    assert "- changed: `CiscoDevice/lab/edge-1`" in shown
    hidden = comment(trusted=False, **touched, **devices)
    assert "edge-1" not in hidden
    assert "comes from a fork" in hidden


def test_refused_commits_are_listed_with_their_verdict_and_hint() -> None:
    refused = Unaccepted(HEAD, "Unsigned", "the commit has no signature", "sign it")
    text = comment(refused=(refused,), refused_count=3)
    assert f"- `{HEAD}` **Unsigned**: `the commit has no signature`. Hint: `sign it`" in text
    assert "- and 2 more" in text


@pytest.mark.parametrize(
    "foreign",
    [
        "`` ``` @everyone closes #1",
        "<!-- gitops-ctl:check -->",
        "a\n## heading\n- [x](https://example.net)",
        "\u202etxet",
        "</details><script>",
    ],
)
def test_foreign_text_stays_inside_its_code_span(foreign: str) -> None:
    finding = Finding("error", "GC1015 schema", foreign, foreign, foreign, foreign)
    text = comment(findings=(finding,), errors=1, trusted=True, touched=(Touched("added", foreign),), touched_count=1)
    assert MARKER not in text
    assert "\u202e" not in text
    for line in text.splitlines():
        assert not line.startswith(("## heading", "- [x]"))
    lines = [line for line in text.splitlines() if line.startswith("- **error**")]
    assert len(lines) == 1


def test_a_secret_in_a_message_is_not_shown() -> None:
    token = "ghp_" + "a1B2" * 9
    finding = Finding("error", "GC1015 schema", f"token: {token}", "a.yaml", f"password={token}", "")
    assert token not in comment(findings=(finding,), errors=1)


def test_at_most_fifty_findings_and_the_count_of_the_rest() -> None:
    problems = [
        Problem(
            ErrorCode.SCHEMA, f"wrong {number}", "a.yaml", number + 1, severity="warning" if number < 30 else "error"
        )
        for number in range(120)
    ]
    findings, errors, warnings = findings_of(problems)
    assert (len(findings), errors, warnings) == (MOST_FINDINGS, 90, 30)
    assert {finding.severity for finding in findings} == {"error"}
    text = comment(findings=findings, errors=errors, warnings=warnings)
    assert "- and 70 more; `gitops-ctl check` shows all of them" in text


def test_the_comment_is_capped_at_whole_lines() -> None:
    finding = Finding("error", "GC1015 schema", "`x" * 250, "y" * 300, "z" * 300, "w" * 300)
    need = replace(NEED, rule="r" * 200, persons=tuple("p" * 200 + str(number) for number in range(20)))
    text = comment(findings=(finding,) * 50, errors=50, needs=(need,) * 40)
    assert len(text) + len(MARKER) + 2 <= MOST_CHARACTERS
    assert text.endswith("The rest is left out: the comment would be too long.")


def test_the_same_report_gives_the_same_text() -> None:
    report = PullReport(needs=(NEED,), trusted=True)
    again = report_from_bytes(report_to_bytes(report))
    assert again == report
    assert comment_of(report, head=HEAD, base_branch="main") == comment_of(again, head=HEAD, base_branch="main")


def test_warnings_alone_do_not_fail_the_status() -> None:
    assert check_status(PullReport(warnings=2)) == ("success", "0 errors, 2 warnings")
    state, text = check_status(PullReport(errors=1, conflicts=("a.yaml",), refused_count=1))
    assert state == "failure"
    assert text == "1 error, 0 warnings, conflicts with the base, 1 commit not accepted as they are"


def test_a_check_that_came_to_no_end_fails() -> None:
    report = report_of_error(Refused("ended after 120 s", code=ErrorCode.CHECK_ENDED))
    assert check_status(report)[0] == "failure"
    assert "`GC1028 check-ended`: `ended after 120 s`" in comment_of(report, head=HEAD, base_branch="main")


# -- the watched branch --------------------------------------------------------------------------------------------------


def source(*, accepted: str = TIP, verified: tuple[str, str] = ("True", "Accepted"), **status: Any) -> dict[str, Any]:
    condition = {"type": "Verified", "status": verified[0], "reason": verified[1]}
    facts = {"observed": {"revision": TIP}, "accepted": {"revision": accepted}, "conditions": [condition]}
    return {"spec": {"trust": {"root": {}}}, "status": {**facts, **status}}


def sync(
    name: str, *, applied: str = TIP, ready: tuple[str, str] = ("True", "Succeeded"), **spec: Any
) -> dict[str, Any]:
    status = {
        "lastAppliedRevision": applied,
        "lastAttemptedRevision": TIP,
        "conditions": [{"type": "Ready", "status": ready[0], "reason": ready[1]}],
    }
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def test_an_accepted_tip_without_syncs_is_accepted() -> None:
    assert verdict_of(source(), []) == Verdict(TIP, "success", "accepted; no Sync uses this source")


def test_a_tip_that_every_sync_applied_is_applied() -> None:
    found = verdict_of(source(), [sync("b"), sync("a")])
    assert found == Verdict(TIP, "success", "accepted and applied by Syncs a, b")


def test_a_tip_waits_for_the_syncs_that_it_names() -> None:
    syncs = [
        sync("a"),
        sync("b", applied=OLD, ready=("False", "ObjectsHeld")),
        sync("c", suspend=True),
        sync("d", applied=OLD, ready=("Unknown", "Progressing")),
        sync("e", applied=OLD, ready=("True", "Succeeded")),
    ]
    found = verdict_of(source(), syncs)
    assert found == Verdict(
        TIP,
        "pending",
        "accepted; waiting for Sync b (ObjectsHeld), c (Suspended), d (Progressing) and 1 more",
    )


def test_a_later_look_at_an_applied_revision_is_no_step_back() -> None:
    found = verdict_of(source(), [sync("a", ready=("Unknown", "Progressing"))])
    assert found == Verdict(TIP, "success", "accepted and applied by Sync a")
    failed = verdict_of(source(), [sync("a", ready=("False", "HealthCheckFailed"))])
    assert failed == Verdict(TIP, "pending", "accepted; waiting for Sync a (HealthCheckFailed)")


def test_a_refused_tip_names_verdict_rule_and_hint() -> None:
    rejected = {
        "commit": TIP,
        "reason": "PathNotAuthorised",
        "path": "clusters/a.yaml",
        "verb": "edit",
        "rule": "rule 4 (verbs edit; roles author)",
        "hint": "let an entitled person sign",
    }
    found = verdict_of(source(accepted=OLD, verified=("False", "PathNotAuthorised"), rejected=rejected), [])
    assert found == Verdict(
        TIP, "failure", "refused: PathNotAuthorised; edit clusters/a.yaml; rule 4; let an entitled person sign"
    )
    below = verdict_of(
        source(accepted=OLD, verified=("False", "Unsigned"), rejected={"commit": OLD, "reason": "Unsigned"}), []
    )
    assert below == Verdict(TIP, "failure", f"refused at {OLD[:12]}: Unsigned")


def test_a_pending_verdict_says_what_it_waits_for() -> None:
    found = verdict_of(source(accepted=OLD, verified=("Unknown", "NeedsForgeReviews")), [])
    assert found == Verdict(TIP, "pending", "waiting: NeedsForgeReviews")


def test_nothing_is_said_about_what_was_not_judged() -> None:
    untrusted = source()
    untrusted["spec"] = {}
    assert verdict_of(untrusted, []) is None
    assert verdict_of({"spec": {"trust": {"root": {}}}, "status": {"observed": {"revision": TIP}}}, []) is None
    assert verdict_of(source(observed={"revision": "main"}), []) is None
