"""What is kept of our own objects, and which changes a person made."""

from gitops_ctl.api.git_source import GitSourceStatus
from gitops_ctl.api.sync import SyncStatus
from gitops_ctl.api.watched import asked_of, request_of


def _asked(value: str) -> dict[str, object]:
    return {"metadata": {"uid": "u", "annotations": {"gitops-ctl.dev/requested-at": value}}}


def test_a_request_of_any_length_can_be_answered_in_both_statuses():
    answer = request_of(_asked("x" * 200_000))
    for status in (GitSourceStatus, SyncStatus):
        assert status(last_handled_reconcile_at=answer).last_handled_reconcile_at == answer
    assert request_of(_asked("2026-11-30T08:00:00Z")) == "2026-11-30T08:00:00Z"
    assert request_of({"metadata": {}}) == ""


def test_a_new_request_is_a_change_by_a_person():
    assert asked_of(_asked("a")) != asked_of(_asked("b"))
