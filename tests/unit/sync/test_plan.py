"""Decisions about single objects.  One table: what the cluster shows against what the inventory remembers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.model import UNSEEN, Apply, Desired, DesiredState, Entry, Held, Seen, Why
from gitops_ctl.sync.plan import Drift, Facts, decide, plan
from tests.support.sync import OTHER, config_map, desired, entry, state_of, view

ONE = desired()


def facts(
    found: Desired = ONE, *, seen: Seen = None, entries: Mapping[ObjectId, Entry] | None = None, **more: Any
) -> Facts:
    held = {found.id: entry(found)} if entries is None else entries
    listed = more.pop("listed", True)
    return Facts(DesiredState({found.id: found}), held, lambda _: seen, lambda _owner, _item: listed, **more)


def why(found: object) -> Why | None:
    return found.why if isinstance(found, Apply) else None


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(view(ONE), None, id="as applied"),
        pytest.param(UNSEEN, None, id="cannot be seen"),
        pytest.param(None, Why.MISSING, id="gone"),
        pytest.param(view(ONE, uid="other"), Why.REPLACED, id="another object of that name"),
        pytest.param(view(ONE, digest="sha256:else"), Why.DRIFTED, id="a declared field changed"),
        pytest.param(view(ONE, owner=""), Why.DRIFTED, id="S20 our mark was stripped"),
    ],
)
def test_an_applied_object_is_repaired_exactly_when_it_differs(seen: Seen, expected: Why | None) -> None:
    found = decide(ONE, facts(seen=seen))
    assert why(found) is expected
    if isinstance(found, Apply):
        assert found.was_ours


@pytest.mark.parametrize("seen", [None, view(ONE, digest="sha256:else")], ids=["gone", "changed"])
def test_in_report_mode_drift_is_found_and_nothing_is_sent(seen: Seen) -> None:
    assert decide(ONE, facts(seen=seen, correct=False)) == Drift(ONE, missing=seen is None)


def test_a_changed_document_is_applied_and_a_conflict_in_it_is_not_assumed_to_be_ours() -> None:
    found = decide(ONE, facts(seen=view(ONE), entries={ONE.id: entry(ONE, declared="sha256:before")}))
    assert why(found) is Why.CHANGED
    assert isinstance(found, Apply)
    assert not found.was_ours


def test_R05_an_entry_that_nobody_has_seen_yet_is_applied_again() -> None:
    unfinished = entry(ONE, uid="", applied="")
    assert why(decide(ONE, facts(seen=None, entries={ONE.id: unfinished}))) is Why.NEW


def test_H19_an_unseen_new_object_is_looked_at_before_it_is_applied() -> None:
    found = decide(ONE, facts(seen=UNSEEN, entries={}))
    assert isinstance(found, Apply)
    assert found.look_first


def test_R12_an_object_of_another_owner_waits_while_that_one_lists_it() -> None:
    foreign = view(ONE, owner=OTHER.mark(ONE.id))
    waiting = decide(ONE, facts(seen=foreign, entries={}))
    assert isinstance(waiting, Held)
    assert waiting.why == "OwnedElsewhere"
    assert "team/other" in waiting.message


def test_R03_an_object_that_its_owner_let_go_is_adopted() -> None:
    foreign = view(ONE, owner=OTHER.mark(ONE.id))
    assert why(decide(ONE, facts(seen=foreign, entries={}, listed=False))) is Why.NEW


def test_a_mark_that_names_another_object_owns_nothing() -> None:
    copied = view(ONE, owner=OTHER.mark(ONE.id._replace(name="origin")))
    assert why(decide(ONE, facts(seen=copied, entries={}))) is Why.NEW


@pytest.mark.parametrize("mode", ["Ignore", "IfNotPresent"])
def test_modes_leave_a_present_object_alone(mode: str) -> None:
    found = desired(config_map(annotations={"gitops-ctl.dev/apply": mode}))
    assert decide(found, facts(found, seen=view(found, digest="sha256:else"))) is None


def test_ignore_never_creates() -> None:
    found = desired(config_map(annotations={"gitops-ctl.dev/apply": "Ignore"}))
    assert decide(found, facts(found, seen=None, entries={})) is None


def test_an_object_that_is_being_deleted_is_waited_for() -> None:
    going = decide(ONE, facts(seen=view(ONE, terminating=True)))
    assert isinstance(going, Held)
    assert going.why == "DependencyNotReady"


def test_a_held_unit_gets_no_action() -> None:
    state = replace(state_of(config_map()), unit_held=True)
    planned = plan(Facts(state, {}, lambda _: None, lambda _owner, _item: False))
    assert planned.applies == ()


def test_promise_02_repairs_are_counted_as_drift_and_changes_are_not() -> None:
    two = desired(config_map("b"))
    state = DesiredState({ONE.id: ONE, two.id: two})
    entries = {ONE.id: entry(ONE), two.id: entry(two, declared="sha256:before")}
    seen = {ONE.id: view(ONE, digest="sha256:edited"), two.id: view(two)}
    planned = plan(Facts(state, entries, lambda found: seen[found.id], lambda _owner, _item: False))
    assert [item.id.name for item in planned.applies] == ["a", "b"]
    assert [item.desired.id.name for item in planned.drift] == ["a"]


def test_a_file_that_cannot_be_read_holds_what_came_from_it_or_stands_for_itself() -> None:
    state = state_of("---\nkind: [\n", file="bad.yaml")
    known = entry(ONE, file="bad.yaml")
    for entries, expected in (({ONE.id: known}, ONE.id), ({}, ObjectId("", "File", "", "bad.yaml"))):
        planned = plan(Facts(state, entries, lambda _: None, lambda _owner, _item: False))
        assert [(item.id, item.why, item.file) for item in planned.held] == [(expected, "DocumentInvalid", "bad.yaml")]
