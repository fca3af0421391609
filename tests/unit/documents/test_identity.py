"""Identity members that Git leaves out: filled, compared, kept (gitops.md, section 4.6; rollouts, "Identity members")."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.identity import (
    TO_COME,
    IdentityMember,
    Introducer,
    fill_identity,
    has_identity,
    historic_flaw,
    register_identity,
    uncommitted,
)
from gitops_ctl.documents.shape import Flaw


@dataclass(frozen=True)
class Somebody:
    kubernetes_user: str
    commit: str = "c" * 40
    at: datetime = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


ANN, BOB = Somebody("ann@example.net"), Somebody("bob@example.net", "b" * 40, datetime(2026, 12, 1, tzinfo=UTC))
PLAN, APPROVAL, CONTROL = "/spec/plan", "/spec/approval", "/spec/control"


def rollout(**spec: object) -> Any:
    return {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareRollout",
        "metadata": {"name": "r", "namespace": "demo"},
        "spec": spec,
    }


def by(**known: Somebody) -> Any:
    """Introducers by the last step of their block."""

    def of(pointer: str) -> Introducer | None:
        return known.get(pointer.rpartition("/")[2])

    return of


def fill(tree: Any, *, live: Any = None, **known: Somebody) -> Any:
    found = fill_identity(tree, provenance=by(**known), live=live)
    assert not isinstance(found, Flaw), found
    return found["spec"]


def flaw(tree: Any, *, live: Any = None, **known: Somebody) -> Flaw:
    found = fill_identity(tree, provenance=by(**known), live=live)
    assert isinstance(found, Flaw)
    return found


def test_names_and_times_come_from_whoever_introduced_each_block() -> None:
    tree = rollout(plan={"image": "x"}, approval={"planHash": "h"})
    spec = fill(tree, plan=ANN, approval=BOB)
    assert spec["plan"] == {"image": "x", "requestedBy": "ann@example.net", "requestedAt": "2026-11-30T08:00:00Z"}
    assert spec["approval"] == {
        "planHash": "h",
        "approvedBy": "bob@example.net",
        "approvedAt": "2026-12-01T00:00:00Z",
    }
    assert tree["spec"]["plan"] == {"image": "x"}, "the document of Git stays as it is"


def test_each_pass_gives_the_same_document() -> None:
    tree = rollout(plan={"image": "x"})
    first = fill_identity(tree, provenance=by(plan=ANN), live=None)
    again = fill_identity(tree, provenance=by(plan=ANN), live=first)  # type: ignore[arg-type]
    assert first == again


def test_a_written_name_must_be_the_introducers() -> None:
    found = flaw(rollout(plan={"requestedBy": "bob@example.net"}), plan=ANN)
    assert (found.code, found.pointer) == (ErrorCode.IDENTITY_MISMATCH, "/spec/plan/requestedBy")
    assert f"names 'bob@example.net', and the commit {ANN.commit} introduced the block for" in found.message
    assert "write ann@example.net, or leave requestedBy out" in found.hint


def test_a_right_name_and_any_written_time_are_kept() -> None:
    written = {"requestedBy": "ann@example.net", "requestedAt": "2020-01-01T00:00:00Z"}
    assert fill(rollout(plan=written), plan=ANN)["plan"] == written


def test_what_the_cluster_has_stored_stays_for_the_life_of_the_object() -> None:
    live = rollout(plan={"requestedBy": "old@example.net", "requestedAt": "2019-01-01T00:00:00Z"})
    found = fill(rollout(plan={"image": "x"}), live=live, plan=ANN)["plan"]
    assert (found["requestedBy"], found["requestedAt"]) == ("old@example.net", "2019-01-01T00:00:00Z")


def test_in_control_nobody_is_named_before_something_is_asked_for() -> None:
    assert fill(rollout(control={"revision": 0}), control=ANN)["control"] == {"revision": 0}
    assert fill(rollout(control={"revision": 1}), control=ANN)["control"]["requestedBy"] == "ann@example.net"


def test_in_control_the_stored_values_stay_while_the_revision_is_the_same() -> None:
    live = rollout(control={"revision": 3, "requestedBy": "old@example.net", "requestedAt": "2019-01-01T00:00:00Z"})
    same = fill(rollout(control={"revision": 3, "pause": True}), live=live, control=ANN)["control"]
    later = fill(rollout(control={"revision": 4, "pause": False}), live=live, control=ANN)["control"]
    assert same["requestedBy"] == "old@example.net"
    assert (later["requestedBy"], later["requestedAt"]) == ("ann@example.net", "2026-11-30T08:00:00Z")


def test_what_nobody_introduced_is_nobodys_unless_it_is_stored() -> None:
    found = flaw(rollout(plan={"image": "x"}))
    assert found.code is ErrorCode.IDENTITY_MISMATCH
    assert "nobody introduced /spec/plan since the pinned root" in found.message
    live = rollout(plan={"requestedBy": "ann@example.net", "requestedAt": "2019-01-01T00:00:00Z"})
    assert fill(rollout(plan={"image": "x"}), live=live)["plan"]["requestedBy"] == "ann@example.net"
    stranger = flaw(rollout(plan={"requestedBy": "eve@example.net"}), live=live)
    assert "and the cluster stores 'ann@example.net'" in stranger.message


@pytest.mark.parametrize("tree", [rollout(), rollout(plan="text"), rollout(plan=["a"])])
def test_without_a_block_nothing_is_filled(tree: Any) -> None:
    assert fill_identity(tree, provenance=by(), live=None) == tree


def test_other_kinds_are_left_alone() -> None:
    tree: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}
    assert fill_identity(tree, provenance=by(), live=None) is tree
    assert has_identity(GroupKind("ops.cisco.vk", "IOSXESoftwareRollout"))
    assert not has_identity(GroupKind("", "ConfigMap"))


def uncommitted_plan(tree: Any, *, live: Any = None) -> Any:
    found = fill_identity(tree, provenance=uncommitted(datetime(2026, 12, 2, tzinfo=UTC)), live=live)
    assert not isinstance(found, Flaw)
    return found["spec"]["plan"]


def test_in_a_checkout_a_name_is_what_the_cluster_stores_else_what_is_written_else_whoever_will_sign() -> None:
    stored = {"requestedBy": "ann@example.net", "requestedAt": "2019-01-01T00:00:00Z"}
    written = {"requestedBy": "bob@example.net", "requestedAt": "2020-01-01T00:00:00Z"}
    assert uncommitted_plan(rollout(plan={}), live=rollout(plan=stored)) == stored
    assert uncommitted_plan(rollout(plan=written), live=rollout(plan=stored)) == stored
    assert uncommitted_plan(rollout(plan=written)) == written
    assert uncommitted_plan(rollout(plan={})) == {"requestedBy": TO_COME, "requestedAt": "2026-12-02T00:00:00Z"}


def test_a_kind_is_taught_once() -> None:
    with pytest.raises(RuntimeError, match="registered twice"):
        register_identity(GroupKind("ops.cisco.vk", "IOSXESoftwareRollout"), (IdentityMember("/spec", "by"),))


@pytest.mark.parametrize("block", ["approval", "activationApproval"])
def test_history_is_no_request(block: str) -> None:
    tree = rollout(plan={}, **{block: {"planHash": "h"}})
    found = historic_flaw(tree, live=None)
    assert found is not None
    assert (found.code, found.pointer) == (ErrorCode.HISTORIC_ROLLOUT, f"/spec/{block}")
    assert f"already carries /spec/{block}" in found.message
    assert historic_flaw(tree, live=rollout(plan={})) is None
    assert historic_flaw(rollout(plan={}), live=None) is None
