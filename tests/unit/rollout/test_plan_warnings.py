"""What a person is told about a plan before approving it."""

import pytest

from gitops_ctl.rollout.planned import plan_of
from gitops_ctl.rollout.warnings import (
    WarningReason,
    differing_segment,
    plan_warnings,
    transfer_warning,
    version_warnings,
)


@pytest.mark.parametrize(
    ("target", "running", "place"),
    [
        ("17.18.3", "17.18.03.0.5496.1776157760", 3),
        ("17.18.03", "17.18.03.0.5496.1776157760", 0),
        ("17.18.03", "17.12.04.0", 0),
        ("17.18.3", "17.12.04.0", 3),
        ("17.18.03", "17.9.4", 3),
        ("17.09.04", "17.9.4", 2),
        ("17.09.04a", "17.09.4a", 3),
        ("17.18.3", "17.12.15", 0),
        ("17.18.13", "17.12.4", 0),
        ("17.18", "17.18.03", 0),
        ("17.18.03", "", 0),
        ("17.18.3", "IOS-XE.17.x", 0),
    ],
)
def test_only_a_leading_zero_of_one_side_is_another_style(target, running, place):
    assert differing_segment(target, running) == place


def test_a_device_that_writes_versions_otherwise_is_named():
    (found,) = version_warnings("17.18.3", {"edge-1": "17.18.03.0", "edge-2": "17.18.3.0"})
    assert (found.reason, found.device) == (WarningReason.VERSION_STYLE, "edge-1")
    assert "segment 3" in str(found)


def test_a_soak_of_zero_is_said_to_be_the_default():
    plan = plan_of({"health": {"canarySoakSeconds": 0, "waveSoakSeconds": 0}})
    assert [str(one) for one in plan_warnings(plan, policy_freshness_s=300)] == [
        "health.canarySoakSeconds is 0, which counts as unset: 600 s are waited; write 1 for no wait (SoakZeroUsesDefault)",
        "health.waveSoakSeconds is 0, which counts as unset: 300 s are waited; write 1 for no wait (SoakZeroUsesDefault)",
    ]


@pytest.mark.parametrize(("age", "told"), [(300, False), (301, True), (86400, True)])
def test_an_age_above_the_policys_freshness_has_no_effect_and_is_told(age, told):
    plan = plan_of({"health": {"maxObservationAgeSeconds": age}})
    reasons = [one.reason for one in plan_warnings(plan, policy_freshness_s=300)]
    assert reasons == ([WarningReason.AGE_WITHOUT_EFFECT] if told else [])


@pytest.mark.parametrize(
    ("size", "rate", "told"),
    [(36_000, 10, False), (36_001, 10, True), (0, 10, False), (10**12, 0, False)],
    ids=["just fits", "a byte too much", "size unknown", "not paced"],
)
def test_a_paced_image_that_outlasts_the_installation_is_told(size, rate, told):
    found = transfer_warning("edge-1", size=size, rate=rate, install_timeout_s=3600)
    assert (found is not None) is told
    if found is not None:
        assert "take 3601 s, and installTimeoutSeconds is 3600" in found.message
