"""Physical identity and derived identifiers (rollouts.md, 5.4, 6.3, 8.2)."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet.forms import is_subdomain
from gitops_ctl.fleet.identity import (
    activation_child_name,
    canonical_identity,
    child_name,
    device_identity_hash,
    device_key,
    mutation_lease_name,
    observed_identity,
    reservation_id,
)
from tests.support.fleet_vectors import published_hash, vector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("FOC2416U0MV", "foc2416u0mv"),
        ("a", "a"),
        ("9", "9"),
        ("A.b_C:d/E-9", "a.b_c:d/e-9"),
        ("X" * 128, "x" * 128),
    ],
    ids=lambda text: text[:12],
)
def test_the_canonical_form_is_the_lower_case_one(text, canonical):
    assert canonical_identity(text) == canonical


@pytest.mark.parametrize(
    "text",
    ["", " a", "a ", "a b", "-a", "a-", ".a", "a/", "x" * 129, "ä", "a\n", "a\u2028", "\u212a", "a,b", "a\0b"],
    ids=repr,
)
def test_another_form_is_refused_and_nothing_is_trimmed(text):
    with pytest.raises(Refused, match="is no physical identity") as refused:
        canonical_identity(text)
    assert refused.value.code is ErrorCode.PHYSICAL_IDENTITY_INVALID
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("machine_id", "system_uuid"), [("FOC1", ""), ("", "foc1"), ("FOC1", "foc1"), ("foc1", "FOC1")]
)
def test_a_node_proves_its_chassis_by_one_member_or_by_two_that_agree(machine_id, system_uuid):
    assert observed_identity(machine_id, system_uuid) == "foc1"


@pytest.mark.parametrize(
    ("machine_id", "system_uuid", "why"),
    [
        ("", "", "no machineID and no systemUUID"),
        ("foc1", "foc2", "differ"),
        ("foc1", "foc1 ", "is no physical identity"),
        (" ", "foc1", "is no physical identity"),
    ],
)
def test_a_node_that_contradicts_itself_proves_nothing(machine_id, system_uuid, why):
    with pytest.raises(Refused, match=why):
        observed_identity(machine_id, system_uuid)


def test_the_identity_hash_is_that_of_the_published_device():
    assert device_identity_hash(canonical_identity("FOC2416U0MV")) == published_hash("device-identity-hash")


def test_the_device_key_begins_the_published_lease_name():
    published = vector("device-key")
    namespace, name = published["input"].split("\0")
    assert device_key(namespace, name) == published["device_key"]
    (lease_name,) = published["published"]
    assert lease_name.startswith(f"{published['device_key']}-device-disruptive-mutation-")
    assert mutation_lease_name(namespace, name)[:-8] == lease_name[:-8]


def test_the_suffix_of_the_mutation_lease_is_that_of_namespace_name_and_purpose():
    digest = hashlib.sha256(b"fleet\0switch-1\0device-disruptive-mutation").hexdigest()
    assert mutation_lease_name("fleet", "switch-1").endswith(f"-device-disruptive-mutation-{digest[:8]}")
    assert is_subdomain(mutation_lease_name("n" * 63, "d" * 253))


def test_reservation_and_child_are_those_of_the_published_campaign():
    published = vector("reservation-id-and-child-name")
    found = reservation_id(*published["input"].split("/"))
    assert found == published["reservation_id"]
    assert child_name(published["rollout_name"], published["device_name"], found) == published["child_name"]


@pytest.mark.parametrize(
    ("rollout", "device", "expected"),
    [
        ("r", "d", "r-d-01234567"),
        ("r" * 200, "d" * 100, f"{'r' * 200}-{'d' * 43}-01234567"),
        ("r" * 242, "d" * 9, f"{'r' * 242}-d-01234567"),
        ("r" * 243, "d", f"{'r' * 243}-01234567"),
        (f"{'r' * 241}.-.", "d", f"{'r' * 241}-01234567"),
    ],
    ids=("short", "cut", "cut in the device", "cut at the dash", "trailing dots and dashes"),
)
def test_a_child_name_is_cut_before_its_suffix_and_trimmed(rollout, device, expected):
    found = child_name(rollout, device, "0123456789abcdef0123456789abcdef")
    assert found == expected
    assert len(found) <= 253


def test_an_activation_leaf_is_named_after_the_leaf_that_prepared():
    suffix = hashlib.sha256(b"r-d-01234567").hexdigest()[:8]
    assert activation_child_name("r-d-01234567") == f"r-d-01234567-activate-{suffix}"
    assert len(activation_child_name("p" * 253)) == 253


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True).filter(is_subdomain)


@pytest.mark.property
@settings(max_examples=40)
@given(NAMES, NAMES, st.uuids(), st.uuids())
def test_names_of_leaves_are_always_names_of_objects(rollout, device, rollout_uid, device_uid):
    name = child_name(rollout, device, reservation_id(str(rollout_uid), str(device_uid)))
    assert is_subdomain(name)
    assert is_subdomain(activation_child_name(name))
