"""When a Sync that waits counts a rollout as done (rollouts.md, section 3.5)."""

from typing import Any

import pytest

import gitops_ctl.cli.rolloutrules  # noqa: F401 - registers what is tried here
from gitops_ctl.sync.health import health_of
from gitops_ctl.sync.model import HealthStatus
from tests.support.api import a_condition, with_status
from tests.support.api_rollouts import a_rollout


def rollout(**status: Any) -> Any:
    tree = a_rollout()
    tree["metadata"] |= {"generation": 1, "creationTimestamp": "2026-11-30T08:00:00Z"}
    return with_status(tree, **status) if status else tree


NOT_READY = [a_condition(status="False", reason="Executing")]


@pytest.mark.parametrize(
    "phase", ["AwaitingApproval", "Paused", "Executing", "Soaking", "Cancelling", "Succeeded", "Cancelled"]
)
def test_a_campaign_that_was_taken_up_is_current_although_it_is_not_ready(phase: str):
    assert health_of(rollout(phase=phase, observedGeneration=1, conditions=NOT_READY)).status is HealthStatus.CURRENT


def test_a_failed_campaign_is_failed_with_its_message():
    found = health_of(rollout(phase="Failed", message="no device matches", conditions=NOT_READY))
    assert (found.status, found.message) == (HealthStatus.FAILED, "no device matches")
    assert health_of(rollout(phase="Failed")).message == "the campaign failed"


def test_a_campaign_that_nobody_looked_at_is_in_progress():
    assert health_of(rollout()).status is HealthStatus.IN_PROGRESS
    assert health_of(rollout(phase="Executing", observedGeneration=2)).status is HealthStatus.IN_PROGRESS
