"""What Git has of a rollout's blocks, and what follows from it for the cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.loader import load
from gitops_ctl.rollout.approval import ApprovalState, judge_approval
from gitops_ctl.rollout.gitauthority import APPROVAL, CONTROL, GitAuthority, block_of
from gitops_ctl.trust.declared import Declared
from gitops_ctl.trust.provenance import AcceptedRevision, Provenance
from tests.support.rollout_authority import by

HASH = f"sha256:{'a' * 64}"
TREE: Any = {
    "apiVersion": "ops.cisco.vk/v1alpha1",
    "kind": "IOSXESoftwareRollout",
    "metadata": {"name": "spring", "namespace": "prod"},
    "spec": {"approval": {"planHash": HASH}, "control": {"revision": 1, "pause": True}},
}
LIVE: Any = {"spec": TREE["spec"], "status": {"frozenPlan": {"hash": HASH}}}


def declared(**provenance: Any) -> Declared:
    """The document of the accepted revision; `provenance` is by pointer."""
    loaded = load(yaml.safe_dump(TREE).encode(), file="rollouts/spring.yaml")
    (document,) = loaded.documents
    fields = {(document.id, pointer): who for pointer, who in provenance.get("fields", {}).items()}
    void = {(document.id, pointer): why for pointer, why in provenance.get("void", {}).items()}
    lost = frozenset((document.id, pointer) for pointer in provenance.get("lost", ()))
    revision = AcceptedRevision(
        source=NamespacedName("flux", "network"),
        uid="source-uid",
        url="https://git.example.net/network",
        ref="refs/heads/main",
        commit="c0ffee" * 6,
        tree="",
        store_path=Path("store"),
        provenance=Provenance(fields=fields, void=void, lost=lost),
        generation=1,
        trusted=True,
        effects_allowed=True,
    )
    return Declared(document, revision)


def test_a_block_has_its_value_and_who_introduced_it() -> None:
    found = declared(fields={"/spec/approval": by("approve")})
    approval, control = block_of(found, APPROVAL), block_of(found, CONTROL)
    assert approval.declared == {"planHash": HASH}
    assert approval.introduced == by("approve")
    assert (control.declared, control.introduced) == ({"revision": 1, "pause": True}, None)
    assert judge_approval(LIVE, approval).state is ApprovalState.APPROVED


def test_without_a_document_it_is_said_why_and_nothing_is_proven() -> None:
    block = block_of(Declared(why="no Sync applied this IOSXESoftwareRollout"), APPROVAL)
    assert block.known
    found = judge_approval(LIVE, block)
    assert (found.state, found.reason) == (ApprovalState.REQUIRED, "NotFromGit")
    assert found.message.endswith("no Sync applied this IOSXESoftwareRollout")


def test_a_refused_commit_halts_and_ends_nothing() -> None:
    block = block_of(Declared(why="the accepted commit itself is refused now", is_refused=True), APPROVAL)
    assert block.halted
    taken: Any = {"planHash": HASH, "valid": True, "reason": "ExactPlanApproved", "person": "change-approver"}
    assert (
        judge_approval({**LIVE, "status": {**LIVE["status"], "approval": taken}}, block).state is ApprovalState.APPROVED
    )


def test_before_anybody_looked_nothing_is_known() -> None:
    assert not block_of(Declared(), APPROVAL).known


@pytest.mark.parametrize("lost", [False, True], ids=["since a new root", "a revoked key"])
def test_only_a_revocation_ends_what_was_taken_up(lost: bool) -> None:
    pointers = ("/spec/approval",)
    found = declared(void={"/spec/approval": "it authorises nothing any more"}, lost=pointers if lost else ())
    block = block_of(found, APPROVAL)
    assert block.revoked is lost
    taken: Any = {"planHash": HASH, "valid": True, "reason": "ExactPlanApproved", "person": "change-approver"}
    live = {**LIVE, "status": {**LIVE["status"], "approval": taken}}
    expected = ApprovalState.REQUIRED if lost else ApprovalState.APPROVED
    assert judge_approval(live, block).state is expected


class Reader:
    """What the accepted revision has; the same for every object."""

    def __init__(self, found: Declared) -> None:
        self.found = found

    async def of(self, _tree: Any) -> Declared:
        return self.found


TAKEN: Any = {
    **{"planHash": HASH, "valid": True, "reason": "ExactPlanApproved", "person": "change-approver"},
    **{"commit": "c0ffee" * 6, "validatedAt": "2026-11-02T12:00:00Z"},
}
RUNNING: Any = {
    "metadata": {"uid": "rollout-uid"},
    "spec": TREE["spec"],
    "status": {"frozenPlan": {"hash": HASH}, "approval": TAKEN},
}


@pytest.mark.parametrize("is_withdrawn", [True, False], ids=["revoked since", "not revoked"])
async def test_an_approval_below_a_new_root_ends_when_its_person_is_revoked(is_withdrawn: bool) -> None:
    asked: list[Any] = []

    def withdrawn(_revision: Any, taken: Any) -> bool:
        asked.append(taken)
        return is_withdrawn

    found = declared(void={"/spec/approval": "it stands there since the pinned root, so nobody introduced it"})
    authority = GitAuthority(Reader(found), withdrawn=withdrawn)  # type: ignore[arg-type]
    for _ in range(3):
        block = (await authority.of(RUNNING)).approval
    assert block.revoked is is_withdrawn
    assert [(one.commit, one.person) for one in asked] == [("c0ffee" * 6, "change-approver")]
    expected = ApprovalState.REQUIRED if is_withdrawn else ApprovalState.APPROVED
    assert judge_approval(RUNNING, block).state is expected


async def test_an_approval_whose_commit_is_judged_needs_no_second_look() -> None:
    def withdrawn(_revision: Any, _taken: Any) -> bool:
        raise AssertionError("nobody asks")

    found = declared(fields={"/spec/approval": by("approve")})
    block = (await GitAuthority(Reader(found), withdrawn=withdrawn).of(RUNNING)).approval  # type: ignore[arg-type]
    assert not block.revoked


@pytest.mark.parametrize("is_withdrawn", [True, False], ids=["revoked since", "not revoked"])
async def test_an_activation_below_a_new_root_ends_when_its_person_is_revoked(is_withdrawn: bool) -> None:
    asked: list[Any] = []

    def withdrawn(_revision: Any, taken: Any) -> bool:
        asked.append(taken)
        return is_withdrawn and taken.person == "window-owner"

    found = declared(
        void={"/spec/activationApproval": "it stands there since the pinned root, so nobody introduced it"}
    )
    activation = {**TAKEN, "reason": "ActivationAuthorized", "person": "window-owner", "commit": "d0ffee" * 6}
    running = {**RUNNING, "status": {**RUNNING["status"], "activation": activation}}
    authority = GitAuthority(Reader(found), withdrawn=withdrawn)  # type: ignore[arg-type]
    for _ in range(3):
        blocks = await authority.of(running)
    assert blocks.activation.revoked is is_withdrawn
    assert not blocks.approval.revoked
    assert sorted((one.commit[:6], one.person) for one in asked) == [
        ("c0ffee", "change-approver"),
        ("d0ffee", "window-owner"),
    ]
