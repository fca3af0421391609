"""From facts to a status: which reason decides, which conditions stand beside it, and that nothing new is said in vain."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitops_ctl.api.gitops import parse_sync
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.kube.statuswriter import status_patch
from gitops_ctl.sync.model import Held
from gitops_ctl.sync.summarise import Drifted, Outcome, PruneReport, status_of

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
COMMIT = "a" * 40
ITEM = ObjectId("", "ConfigMap", "lab", "a")
HELD = Held(ITEM, ErrorCode.FIELD_CONFLICT, "would take .data.key of somebody", "a.yaml", 3)
DONE: dict[str, Any] = {"revision": COMMIT, "complete": True, "objects": 2}


def status(outcome: Outcome, *, previous: Any = None, now: datetime = NOW) -> Any:
    return status_of(outcome, name="site", previous=previous or {}, generation=4, now=now)


def ready(outcome: Outcome) -> tuple[str, str]:
    found: Any = condition_of(status(outcome), "Ready")
    return found["status"], found["reason"]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(**DONE), ("True", "Succeeded")),
        (Outcome(problem=(ErrorCode.SOURCE_NOT_TRUSTED, "no root")), ("False", "SourceNotTrusted")),
        (Outcome(suspended=True), ("False", "Suspended")),
        (Outcome(**DONE, held=[HELD], prune_blocked="too many"), ("False", "ObjectsHeld")),
        (Outcome(**DONE, prune_failed={ITEM: "denied"}, prune_blocked="x"), ("False", "PruneFailed")),
        (Outcome(**DONE, prune_blocked="too many"), ("False", "PruneBlocked")),
        (Outcome(**DONE, failed={ITEM: "crashes"}), ("False", "HealthCheckFailed")),
        (Outcome(**DONE, waiting={ITEM: "0 of 1 replicas"}), ("Unknown", "Progressing")),
        (Outcome(revision=COMMIT, objects=2), ("Unknown", "Progressing")),
        (Outcome(revision=COMMIT, progress="applying"), ("Unknown", "Progressing")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_the_first_thing_that_stands_against_it_decides_ready(outcome: Outcome, expected: tuple[str, str]) -> None:
    assert ready(outcome) == expected


@pytest.mark.parametrize(
    ("outcome", "reconciling", "stalled"),
    [
        (Outcome(**DONE), None, None),
        (Outcome(**DONE, held=[HELD]), None, "ObjectsHeld"),
        (Outcome(**DONE, held=[HELD], retrying=True), "ProgressingWithRetry", None),
        (Outcome(**DONE, prune_blocked="x"), None, "PruneBlocked"),
        (Outcome(**DONE, prune_failed={ITEM: "x"}), "ProgressingWithRetry", None),
        (Outcome(problem=(ErrorCode.CLUSTER_UNREACHABLE, "x")), "ProgressingWithRetry", None),
        (Outcome(problem=(ErrorCode.SOURCE_NOT_TRUSTED, "x")), None, "SourceNotTrusted"),
        (Outcome(problem=(ErrorCode.DEPENDENCY_NOT_READY, "x")), "ProgressingWithRetry", None),
        (Outcome(problem=(ErrorCode.DEPENDENCY_NOT_READY, "x"), endless=True), None, "DependencyNotReady"),
        (Outcome(**DONE, waiting={ITEM: "x"}), "Progressing", None),
        (Outcome(suspended=True), None, None),
    ],
)
def test_reconciling_and_stalled_are_never_both_there(
    outcome: Outcome, reconciling: str | None, stalled: str | None
) -> None:
    found = {item["type"]: item["reason"] for item in status(outcome)["conditions"]}
    assert (found.get("Reconciling"), found.get("Stalled")) == (reconciling, stalled)


def test_a_status_fits_the_model_of_the_kind() -> None:
    outcome = Outcome(
        **DONE,
        held=[HELD],
        drift=[Drifted(ITEM, missing=False, pointers=("/data/key",), manager="kubectl-edit")],
        reported=True,
        fights={ITEM: "autoscaler"},
        kept={ITEM: "its annotation disables prune"},
        pruned=PruneReport("sha256:" + "0" * 64, 3, "c" * 40),
        checked=True,
        requested="now",
        shards=1,
        entries=2,
    )
    spec = {"sourceRef": {"name": "network"}, "serviceAccountName": "applier"}
    meta = {"name": "site", "namespace": "team"}
    tree = {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "Sync", "metadata": meta, "spec": spec}
    parsed = parse_sync({**tree, "status": status(outcome)}).status
    assert parsed.held[0].reason == "FieldConflict"
    assert {item.type for item in parsed.conditions} >= {"Drifted", "Fighting", "Healthy"}
    assert parsed.last_applied_revision is None


def test_R15_the_same_facts_later_give_the_same_status() -> None:
    outcome = Outcome(**DONE, held=[HELD], drift=[Drifted(ITEM, missing=True)])
    first = status(outcome)
    assert status_patch(first, status(outcome, previous=first, now=NOW + timedelta(hours=1))) is None


def test_what_a_pass_did_not_look_at_is_taken_over() -> None:
    before = status(Outcome(**DONE, held=[HELD], requested="now"))
    after = status(Outcome(problem=(ErrorCode.SOURCE_NOT_FOUND, "gone")), previous=before)
    for member in ("held", "counts", "inventory", "lastAttemptedRevision", "lastHandledReconcileAt"):
        assert after[member] == before[member]


def test_the_generation_is_observed_when_ready_has_an_answer() -> None:
    assert status(Outcome(**DONE))["observedGeneration"] == 4
    assert status(Outcome(revision=COMMIT), previous={"observedGeneration": 3})["observedGeneration"] == 3


def test_R14_lists_and_messages_are_cut_and_say_how_many_there_are() -> None:
    many = [
        Held(ObjectId("", "ConfigMap", "lab", f"n{number:03}"), ErrorCode.APPLY_REFUSED, "x" * 5000)
        for number in range(300)
    ]
    found = status(Outcome(**DONE, held=many))
    assert (len(found["held"]), found["counts"]["held"]) == (50, 300)
    assert max(len(item["message"]) for item in found["conditions"]) <= 2000


def test_secrets_in_foreign_texts_do_not_reach_the_status() -> None:
    leaking = Held(ITEM, ErrorCode.APPLY_REFUSED, "password=hunter22 is wrong")
    assert "hunter22" not in str(status(Outcome(**DONE, held=[leaking], prune_failed={ITEM: "token: abcdef123"})))


def test_a_drifted_object_says_how_many_fields_are_not_listed() -> None:
    many = Drifted(ITEM, missing=False, pointers=tuple(f"/data/{number}" for number in range(27)))
    few = Drifted(ITEM, missing=False, pointers=("/data/1",))
    for drifted, shown, more in ((many, 20, 7), (few, 1, None)):
        (entry,) = status(Outcome(**DONE, drift=[drifted]))["drift"]
        assert (len(entry["pointers"]), entry.get("more")) == (shown, more)


@pytest.mark.parametrize(("count", "told"), [(0, "0 objects"), (1, "1 object"), (2, "2 objects")])
def test_one_object_is_no_plural(count: int, told: str) -> None:
    found: Any = condition_of(status(Outcome(revision=COMMIT, complete=True, objects=count)), "Ready")
    assert found["message"] == f"applied {told} at {COMMIT}"


def test_a_kind_that_may_not_be_watched_is_named_with_what_helps() -> None:
    found: Any = condition_of(status(Outcome(**DONE, troubles=("Zone.example.net: forbidden",))), "Ready")
    assert "not watched: Zone.example.net: forbidden" in found["message"]
    assert "`informers`" in found["message"]


def test_a_suspended_sync_says_how_old_its_lists_are() -> None:
    before = status(Outcome(**DONE, held=[HELD]))
    after = status(Outcome(suspended=True), previous=before)
    found: Any = condition_of(after, "Ready")
    assert after["held"] == before["held"]
    assert "those of the last pass" in found["message"]
