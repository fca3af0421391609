"""Which blocks are asked for, with which values, and what is told about them: pure (rollouts.md, section 11.7)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.splice import Edit
from gitops_ctl.fleet.device import Check, Preflight
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.forge.content import edited
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.freeze import Frozen, freeze
from gitops_ctl.rollout.proposaldesk import document_number
from gitops_ctl.rollout.proposals import Place, Seen, approval_due, wanted_proposals
from gitops_ctl.rollout.proposaltext import told
from tests.support.rollout_planning import CACHE, NOW, ago, given, rollout
from tests.support.rollout_prepared import a_receipt

SPEC: JsonObject = {"plan": {"targetVersion": "17.18.03"}}
FILE = "rollouts/spring.yaml"


def campaign(phase: str = "AwaitingApproval", *, spec: Any = None, **plan: Any) -> CampaignState:
    tree: Any = rollout(**plan)  # type: ignore[no-untyped-call]
    frozen = freeze(given(plan=tree))  # type: ignore[no-untyped-call]
    assert isinstance(frozen, Frozen), frozen
    status: Any = {
        "phase": phase,
        "frozenPlan": frozen.to_json(created_at=NOW),
        "effectivePolicy": {"epoch": 1, "policy": frozen.snapshot.to_json(), "updatedAt": ago(0)},  # type: ignore[no-untyped-call]
    }
    found = campaign_state({**tree, "spec": {**tree["spec"], **(spec or {})}, "status": status})
    assert found is not None
    return found


def preflight(of: CampaignState, *, result: str = "Passed", size: int = 0, checks: tuple[Check, ...] = ()) -> Preflight:
    return Preflight(of.uid, of.plan_hash, NOW, "pod-uid", "revision", result, size, "17.12.4", checks)


def seen(
    of: CampaignState,
    preflights: Mapping[str, Preflight] | None = None,
    *,
    leaves: tuple[Leaf, ...] = (),
    after_s: float = 0.0,
) -> Seen:
    return Seen(of, preflights or {}, leaves, NOW + timedelta(seconds=after_s), 3600.0)


def every(of: CampaignState, **more: Any) -> dict[str, Preflight]:
    return {target.device_name: preflight(of, **more) for target in of.targets}


def place(spec: JsonObject = SPEC, *, base: str = "", document: int = 0) -> Place:
    return Place("prod", "network", FILE, document, base, spec)


def wanted(looked: Seen, at: Place | None = None) -> dict[str, Any]:
    found = wanted_proposals(looked, at or place())
    return {one.purpose.partition("/")[0]: one for one in found}


def after(looked: Seen, spec: Any, purpose: str) -> Any:
    """The spec as it stands in Git after the merge."""
    data = yaml.safe_dump({"kind": "X", "spec": spec}, sort_keys=False).encode()
    found = edited(lambda _path: (0o100644, data), wanted(looked, place(spec))[purpose].changes)
    return yaml.safe_load(found.files[FILE][1])["spec"]


def test_an_approval_is_asked_for_with_the_hash_alone() -> None:
    of = campaign()
    one = wanted(seen(of, every(of)))["rollout-approval"]
    assert one.changes == (
        (FILE, Edit(document=0, pointer="/spec/approval", op="add", after={"planHash": of.plan_hash})),
    )
    assert (one.name, one.source, one.namespace) == ("spring-approval", "network", "prod")
    assert one.purpose == "rollout-approval/prod/spring"
    assert one.subject["uid"] == of.uid


def test_the_text_shows_each_target_with_its_preflight_and_the_way_by_hand() -> None:
    of = campaign(canaries=[{"name": "c9300", "devices": ["edge-2"]}])
    bad = preflight(of, result="Failed", checks=(Check("Spool", "Fail", "full"), Check("Gnoi", "Pass", "")))
    text = wanted(seen(of, {**every(of), "edge-3": bad}))["rollout-approval"].reason
    lines = text.splitlines()
    targets = [line for line in lines if " -> 17.18.03" in line]
    assert [line.partition(" ")[0] + line.partition("edge-")[2][0] for line in targets] == [
        "canary:2",
        "wave1",
        "wave3",
    ]
    assert targets[2].endswith("preflight Failed (Spool: full)")
    assert any(of.plan_hash in line and "By hand" in line for line in lines)
    assert any(line.startswith("Budgets of this campaign: at most 2 transfers and 2 devices") for line in lines)
    assert any("epoch 1" in line for line in lines)


def text_of(of: CampaignState, **more: Any) -> str:
    return str(wanted(replace(seen(of, every(of)), **more))["rollout-approval"].reason)


def test_a_budget_of_the_campaign_is_told_apart_from_that_of_the_fleet() -> None:
    domains = [{"topologyKey": CACHE, "maxConcurrentTransfers": 1}]
    text = text_of(campaign(budgets={"maxConcurrentTransfers": 1, "maxUnavailable": 1, "domains": domains}))
    assert "Budgets of this campaign: at most 1 transfer and 1 device unavailable at a time" in text
    assert "Budgets of all campaigns of the fleet together: at most 4 transfers and 4 devices unavailable" in text
    assert f"Budget of this campaign in each {CACHE}: 1 transfer\n" in text
    assert f"Budget of all campaigns in each {CACHE}: 2 transfers\n" in text


def test_the_window_and_the_rollback_are_told_also_when_there_is_none() -> None:
    text = text_of(campaign())
    assert "Maintenance window: none; the first device is changed right after the approval" in text
    assert "Rollback: a device that comes up with another version is brought back" in text
    window = {"notBefore": "2026-12-01T22:00:00Z", "notAfter": "2026-12-02T02:00:00Z"}
    text = text_of(campaign(maintenanceWindow=window, rollbackOnFailure=False))
    assert "Maintenance window: from 2026-12-01T22:00:00Z until 2026-12-02T02:00:00Z; no device" in text
    assert "Rollback: off;" in text


def test_the_network_gate_is_told_with_what_it_asks_for() -> None:
    assert "Network gate: off" in text_of(campaign())
    gate = {
        "enabled": True,
        "requiredInterfaces": ["Te1/1/1"],
        "requireInterfacesUp": True,
        "minimumHeadroomPercent": 20,
    }
    of = replace(campaign(), plan=replace(campaign().plan, network=gate))
    assert (
        "Network gate, before and after each device: complete evidence, interfaces Te1/1/1, these interfaces up, 20 % headroom"
        in text_of(of)
    )


def test_risk_groups_are_told_with_their_devices() -> None:
    of = campaign()
    first, *others = of.targets
    grouped = replace(
        of, targets=(replace(first, risk_groups=("core",)), *(replace(one, risk_groups=()) for one in others))
    )
    lines = [line for line in text_of(grouped).splitlines() if line.startswith("Risk group")]
    assert lines == ["Risk group core: edge-1"]


def test_networks_that_are_accepted_although_they_are_not_public_are_told_with_the_devices() -> None:
    of = campaign()
    assert "not public" not in text_of(of)
    text = text_of(of, allowed={"edge-1": ("10.0.0.0/8",), "edge-2": ("10.0.0.0/8",), "edge-3": ()})
    [line] = [one for one in text.splitlines() if "not public" in one]
    assert "10.0.0.0/8" in line
    assert line.endswith("edge-1, edge-2")


def test_of_an_address_neither_a_query_nor_a_user_is_shown() -> None:
    sources = [{"name": "north", "priority": 10, "url": "https://images.example.net/cat9k.bin?sig=planted#planted"}]
    of = campaign(image={"sha256": "a" * 64, "imageFamily": "cat9k", "sources": sources})
    text = wanted(seen(of, every(of)))["rollout-approval"].reason
    assert "https://images.example.net/cat9k.bin" in text
    assert "planted" not in text


def test_a_transfer_that_takes_longer_than_the_installation_may_is_warned_of_once_the_size_is_known() -> None:
    of = campaign()
    slow = replace(of, targets=tuple(replace(target, max_bytes_per_s=1000) for target in of.targets))
    assert "TransferExceedsTimeout" not in wanted(seen(slow, every(slow)))["rollout-approval"].reason
    text = wanted(seen(slow, every(slow, size=10_000_000)))["rollout-approval"].reason
    assert "Warning: edge-1: 10000000 bytes at 1000 bytes/s take 10000 s" in text


@pytest.mark.parametrize(("after_s", "is_asked"), [(0, False), (3599, False), (3600, True)])
def test_a_missing_preflight_is_waited_for_one_interval(after_s: float, is_asked: bool) -> None:
    of = campaign()
    looked = seen(of, {"edge-1": preflight(of)}, after_s=after_s)
    assert ("rollout-approval" in wanted(looked)) is is_asked
    assert approval_due(looked) == NOW + timedelta(seconds=3600)


def test_an_approval_that_stands_in_git_is_not_asked_for_and_one_of_another_plan_is_mended() -> None:
    of = campaign()
    looked = seen(of, every(of))
    assert wanted(looked, place({**SPEC, "approval": {"planHash": of.plan_hash}})) == {}
    spec = {**SPEC, "approval": {"planHash": f"sha256:{'0' * 64}", "approvedBy": "change-approver"}}
    assert after(looked, spec, "rollout-approval")["approval"] == {"planHash": of.plan_hash}


@pytest.mark.parametrize("phase", ["Executing", "Failed", "Cancelled", "Paused"])
def test_only_a_plan_that_waits_for_it_asks_for_an_approval(phase: str) -> None:
    of = campaign(phase)
    assert wanted(seen(of, every(of))) == {}


def test_a_control_of_the_cluster_is_brought_back_without_names() -> None:
    live: Any = {"revision": 3, "pause": True, "cancel": True, "reason": "smoke", "requestedBy": "operator"}
    of = campaign("Cancelling", spec={"control": live})
    expected: Any = {"revision": 3, "pause": True, "cancel": True, "reason": "smoke"}
    assert after(seen(of), dict(SPEC), "rollout-control")["control"] == expected
    spec = {**SPEC, "control": {"revision": 2, "pause": True, "requestedBy": "network-author"}}
    assert after(seen(of), spec, "rollout-control")["control"] == expected
    assert wanted(seen(of), place({**SPEC, "control": expected})) == {}


def test_a_looser_control_of_git_asks_for_nothing() -> None:
    of = campaign("Executing", spec={"control": {"revision": 2}})
    assert wanted(seen(of), place({**SPEC, "control": {"revision": 1, "pause": True}})) == {}


def leaves(of: CampaignState, *, phase: str = "Prepared", **annotations: str) -> tuple[Leaf, ...]:
    found = []
    for target in of.targets:
        tree: Any = {
            "metadata": {
                "name": target.child_name,
                "uid": f"{target.device_name}-leaf",
                "annotations": {
                    "topology.cisco.vk/device-uid": target.device_uid,
                    "topology.cisco.vk/device-name": target.device_name,
                    **annotations,
                },
            },
            "spec": {},
            "status": {"phase": phase, "preparedReceipt": a_receipt(target.to_json(), of.plan_hash)},  # type: ignore[no-untyped-call]
        }
        found.append(leaf_of(tree))
    return tuple(found)


def test_an_activation_is_asked_for_with_every_receipt_and_without_a_window() -> None:
    of = campaign("Succeeded", strategy="PrepareOnly")
    one = wanted(seen(of, leaves=leaves(of)))["rollout-activation"]
    [(_, edit)] = one.changes
    after: Any = edit.after
    assert after["planHash"] == of.plan_hash
    assert [item["deviceUID"] for item in after["receipts"]] == [target.device_uid for target in of.targets]
    assert set(after) == {"planHash", "receipts"}
    assert "notBefore and notAfter" in one.reason


@pytest.mark.parametrize("lack", ["a leaf", "activation", "in Git"])
def test_an_activation_is_not_asked_for_while_it_means_nothing(lack: str) -> None:
    of = campaign("Succeeded", strategy="PrepareOnly")
    found = leaves(of)
    at = place()
    if lack == "a leaf":
        found = found[1:]
    elif lack == "activation":
        begun = {"topology.cisco.vk/prepared-upgrade-uid": "edge-1-leaf"}
        found = (*found, *leaves(of, phase="Pending", **begun))
    else:
        at = place({**SPEC, "activationApproval": {"planHash": of.plan_hash}})
    assert wanted(seen(of, leaves=found), at) == {}


def test_what_a_cancelled_campaign_prepared_is_offered_to_be_given_up() -> None:
    of = campaign("Cancelled", strategy="PrepareOnly")
    one = wanted(seen(of, leaves=leaves(of)[:2]))["rollout-invalidation"]
    [(_, edit)] = one.changes
    after: Any = edit.after
    assert len(after["receipts"]) == 2
    assert after["reason"]
    assert "2 devices" in one.reason


def test_a_rollout_in_a_list_and_in_a_later_document_is_edited_where_it_stands() -> None:
    text = b"---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: List\napiVersion: v1\nitems:\n"
    text += b"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n"
    documents = load(text, file=FILE).documents
    assert [document_number(text, document) for document in documents] == [1, 2]
    of = campaign()
    [(_, edit)] = wanted(seen(of, every(of)), place(base="/items/0", document=2))["rollout-approval"].changes
    assert (edit.document, edit.pointer) == (2, "/items/0/spec/approval")


def test_a_preflight_says_what_is_not_good_in_it() -> None:
    of = campaign()
    assert told(None) == "not done yet"
    assert told(preflight(of)) == "Passed"
    warned = preflight(of, result="Warned", checks=(Check("SavedConfiguration", "Warn", "differs"),))
    assert told(warned) == "Warned (SavedConfiguration: differs)"
