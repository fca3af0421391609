"""Declared, recorded and seen identity, and who loses when two devices claim one chassis (rollouts.md, section 5.4)."""

from typing import Any

import pytest

from gitops_ctl.topology.findings import Reason
from gitops_ctl.topology.identity_plan import Claim, agreement_problem, declaration_problem, rival_problem
from tests.support.topology_devices import bound, device, node


def claim(name: str, *, identity: str = "FOC2401L0AA", **more: Any) -> Claim:
    tree = device(name, uid=f"uid-{name}", **more)
    tree["spec"]["physicalIdentity"] = identity
    return Claim.of(tree)


@pytest.mark.parametrize("text", ["", " FOC1", "FOC1 ", "-FOC1", "FOC é", "x" * 129])
def test_an_identity_without_canonical_form_is_refused(text: str) -> None:
    tree = device()
    tree["spec"]["physicalIdentity"] = text
    found = declaration_problem(tree)
    assert found is not None
    assert found.reason is Reason.IDENTITY_INVALID


def test_an_identity_that_differs_from_the_recorded_one_is_refused() -> None:
    tree = bound(device())
    tree["spec"]["physicalIdentity"] = "FOC-other"
    found = declaration_problem(tree)
    assert found is not None
    assert found.reason is Reason.IDENTITY_CHANGED
    assert "foc-access-1" in found.message
    assert "foc-other" in found.message


def test_case_makes_no_other_identity() -> None:
    tree = bound(device())
    tree["spec"]["physicalIdentity"] = "foc-ACCESS-1"
    assert declaration_problem(tree) is None


def test_a_name_that_is_too_long_for_a_node_is_refused() -> None:
    found = declaration_problem(device("a" * 64))
    assert found is not None
    assert found.reason is Reason.NODE_NAME_INVALID
    short = device("a" * 64)
    short["spec"]["nodeName"] = "a"
    assert declaration_problem(short) is None


def test_of_two_claims_to_one_chassis_the_younger_loses_and_both_are_named() -> None:
    old = claim("one", identity="FOC2401L0AA", creationTimestamp="2026-01-01T00:00:00Z")
    young = claim("two", identity="foc2401l0aa", creationTimestamp="2026-01-02T00:00:00Z")
    assert rival_problem(old, [old, young]) is None
    found = rival_problem(young, [old, young])
    assert found is not None
    assert found.reason is Reason.IDENTITY_DUPLICATE
    assert "campus/one" in found.message
    assert "campus/two" in found.message


def test_a_device_that_is_bound_never_loses_to_one_that_is_not() -> None:
    tree = bound(device("two", uid="uid-two", creationTimestamp="2026-01-02T00:00:00Z"))
    tree["spec"]["physicalIdentity"] = "FOC2401L0AA"
    held, old = Claim.of(tree), claim("one", creationTimestamp="2026-01-01T00:00:00Z")
    assert rival_problem(held, [held, old]) is None
    assert rival_problem(old, [held, old]) is not None


def test_equal_ages_are_decided_by_name() -> None:
    one, two = claim("one"), claim("two")
    assert rival_problem(one, [two, one]) is None
    assert rival_problem(two, [two, one]) is not None


def test_a_retired_device_does_not_count() -> None:
    retired = device("one", uid="uid-one", status={"retired": {"rolloutName": "r"}})
    retired["spec"]["physicalIdentity"] = "FOC2401L0AA"
    again = claim("two", creationTimestamp="2026-02-01T00:00:00Z")
    assert rival_problem(again, [Claim.of(retired), again]) is None


def test_two_devices_do_not_share_a_node_name() -> None:
    one = claim("one", identity="FOC1")
    other = device("two", uid="uid-two")
    other["spec"] |= {"nodeName": "one", "physicalIdentity": "FOC2"}
    found = rival_problem(Claim.of(other), [one, Claim.of(other)])
    assert found is not None
    assert found.reason is Reason.NODE_OCCUPIED


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        ({"machineID": "foc-access-1"}, ""),
        ({"systemUUID": "FOC-ACCESS-1"}, ""),
        ({"machineID": "foc-access-1", "systemUUID": "FOC-access-1"}, ""),
        ({}, "not reported"),
        ({"machineID": "foc-access-1", "systemUUID": "foc-other"}, "differ"),
        ({"machineID": "foc-other"}, "foc-other"),
        ({"machineID": "foc access"}, "no physical identity"),
    ],
    ids=["machine", "system", "both", "silent", "differ", "other", "malformed"],
)
def test_declaration_record_and_node_have_to_agree(info: dict[str, str], problem: str) -> None:
    seen = {**node(), "status": {"nodeInfo": info}}
    found = agreement_problem(bound(device()), seen)
    assert problem in found if problem else found == ""


def test_nothing_agrees_before_an_identity_is_recorded() -> None:
    assert agreement_problem(device(), {**node(), "status": {"nodeInfo": {"machineID": "foc-access-1"}}})
