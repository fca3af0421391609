"""What may be deleted: sorting of entries, guards and their digest.  Deleting itself is tested on a real server."""

import hashlib
from collections.abc import Mapping

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.model import UNSEEN, DesiredState, Entry, Held, Seen, View
from gitops_ctl.sync.order import Deletion
from gitops_ctl.sync.prune import (
    PruneFacts,
    PruneSpec,
    candidates,
    guard,
    hidden_entries,
    ignored_entries,
    propagation_of,
    set_digest,
    survivors,
    waiting_for,
)
from tests.support.sync import OTHER, OWNER, config_map, desired, entry, state_of

BROKEN = Held(ObjectId("", "File", "", "bad.yaml"), ErrorCode.YAML_SYNTAX, "no YAML", "bad.yaml", 1)


def stale(name: str, *, kind: str = "ConfigMap", group: str = "", uid: str = "") -> Entry:
    return Entry(ObjectId(group, kind, "lab", name), "v1", uid or f"uid-{name}", "sha256:d", "sha256:live")


def live(found: Entry, **changes: object) -> View:
    members = {"uid": found.uid, "version": "1", "digest": "sha256:live", "owner": OWNER.mark(found.id), **changes}
    return View(**members)  # type: ignore[arg-type]


def sort(shown: Mapping[Entry, Seen], *, listed: frozenset[ObjectId] = frozenset(), **more: object):  # type: ignore[no-untyped-def]
    seen = {item.id: value for item, value in shown.items()}
    facts = PruneFacts(OWNER, lambda item: seen[item.id], lambda item: item in listed, **more)  # type: ignore[arg-type]
    return survivors(shown, facts=facts)


def test_only_entries_that_nothing_in_git_stands_behind_are_candidates() -> None:
    one = desired()
    gone, hidden, broken = stale("gone"), stale("hidden"), stale("broken")
    state = DesiredState({one.id: one}, hidden=frozenset({hidden.id}), broken_files={"bad.yaml": BROKEN})
    entries = [entry(one), gone, hidden, Entry(broken.id, "v1", "u", file="bad.yaml")]
    assert candidates(state, entries) == (gone,)
    assert hidden_entries(state, {item.id: item for item in entries}) == (hidden.id,)


def test_an_ignored_object_is_listed_and_never_pruned() -> None:
    state = state_of(config_map(annotations={"gitops-ctl.dev/apply": "Ignore"}))
    (item,) = state.objects
    held = {item: Entry(item, "v1", "u")}
    assert candidates(state, held.values()) == ()
    assert ignored_entries(state, held) == (item,)


def test_each_entry_has_one_fate() -> None:
    doomed, gone, taken, kept, blind, going = (
        stale(name) for name in ("doomed", "gone", "taken", "kept", "blind", "going")
    )
    found = sort(
        {
            doomed: live(doomed),
            gone: None,
            taken: live(taken, owner=OTHER.mark(taken.id)),
            kept: live(kept, prune_disabled=True),
            blind: UNSEEN,
            going: live(going, terminating=True),
        }
    )
    assert [item.entry for item in found.doomed] == [doomed]
    assert set(found.released) == {gone.id, taken.id}
    assert found.kept == {kept.id: "its annotation disables prune"}
    assert found.unknown == (blind.id,)
    assert found.terminating == (going.id,)


def test_an_entry_whose_apply_nobody_saw_is_ours_only_by_our_mark() -> None:
    mine, plain, theirs = (Entry(stale(name).id, "v1") for name in ("mine", "plain", "theirs"))
    shown = {
        mine: live(mine, uid="u1"),
        plain: live(plain, uid="u2", owner=""),
        theirs: live(theirs, uid="u3", owner=OTHER.mark(theirs.id)),
    }
    found = sort(shown)
    assert [item.entry for item in found.doomed] == [mine]
    assert set(found.released) == {plain.id, theirs.id}


def test_D08_without_prune_everything_is_kept_and_says_so() -> None:
    item = stale("a")
    assert sort({item: live(item)}, enabled=False).kept == {item.id: "spec.prune.enabled is not set"}


def test_R07_what_another_unit_lists_is_let_go_once_that_one_has_taken_it_over() -> None:
    item = stale("shared")
    listed = frozenset({item.id})
    waiting = sort({item: live(item)}, listed=listed)
    assert (waiting.doomed, waiting.released) == ((), ()), "our mark is still on it: it stays in our inventory"
    assert waiting.kept == {item.id: "another Sync asks for it and has not taken it over yet"}
    assert sort({item: live(item, owner=OTHER.mark(item.id))}, listed=listed).released == (item.id,)


def test_R11_one_uid_under_two_groups_is_one_object() -> None:
    old = stale("web", kind="Ingress", group="extensions", uid="same")
    assert sort({old: live(old)}, live_uids=frozenset({"same"})).released == (old.id,)


def test_an_object_that_somebody_made_anew_is_not_ours_unless_it_carries_our_mark() -> None:
    item = stale("a")
    assert sort({item: live(item, uid="new", owner="")}).released == (item.id,)
    assert [one.entry for one in sort({item: live(item, uid="new")}).doomed] == [item]


def _set(count: int) -> tuple[Deletion, ...]:
    return tuple(Deletion(stale(f"n{number}")) for number in range(count))


@pytest.mark.parametrize(
    ("doomed", "remaining", "total", "spec", "blocked"),
    [
        pytest.param(0, 0, 0, PruneSpec(), False, id="nothing goes"),
        pytest.param(5, 1, 6, PruneSpec(), False, id="five are few"),
        pytest.param(6, 18, 24, PruneSpec(), False, id="a quarter"),
        pytest.param(6, 17, 23, PruneSpec(), True, id="R02 more than a quarter"),
        pytest.param(6, 17, 23, PruneSpec(max_percent=30), False, id="R02 a higher limit"),
        pytest.param(1, 0, 1, PruneSpec(), True, id="R01 the last document"),
        pytest.param(1, 0, 1, PruneSpec(allow_empty=True), False, id="R01 allowed to be empty"),
        pytest.param(6, 0, 6, PruneSpec(allow_empty=True), True, id="allowEmpty does not lift the share"),
    ],
)
def test_the_guard(doomed: int, remaining: int, total: int, spec: PruneSpec, blocked: bool) -> None:
    assert bool(guard(_set(doomed), remaining=remaining, total=total, spec=spec).message) is blocked


def test_R02_a_consent_fits_exactly_one_set() -> None:
    found = _set(8)
    spec = PruneSpec(consent=set_digest(found))
    judged = guard(found, remaining=1, total=9, spec=spec)
    assert judged.consented
    assert not judged.message
    assert guard(found[1:], remaining=1, total=8, spec=spec).message


def test_the_message_names_objects_digest_and_the_way_out() -> None:
    found = _set(12)
    judged = guard(found, remaining=0, total=12, spec=PruneSpec())
    assert "ConfigMap/lab/n0" in judged.message
    assert "and 2 more" in judged.message
    assert f"gitops-ctl.dev/allow-prune: {judged.digest}" in judged.message


def test_the_digest_is_over_sorted_lines_with_uids() -> None:
    text = "/ConfigMap/lab/n0/uid-n0\n/ConfigMap/lab/n1/uid-n1\n"
    assert set_digest(reversed(_set(2))) == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize(
    ("kind", "asked", "expected"),
    [
        ("Deployment.apps", "", "Foreground"),
        ("CronJob.batch", "", "Foreground"),
        ("CiscoDevice.cisco.vk", "", "Foreground"),
        ("ConfigMap", "", "Background"),
        ("Namespace", "", "Background"),
        ("Deployment.apps", "Orphan", "Orphan"),
        ("ConfigMap", "Foreground", "Foreground"),
    ],
)
def test_R10_propagation_is_chosen_per_kind_and_by_annotation(kind: str, asked: str, expected: str) -> None:
    name, _, group = kind.partition(".")
    item = stale("x", kind=name, group=group)
    assert propagation_of(item, live(item, propagation=asked)) == expected


def test_R11_only_what_depends_on_an_object_of_unknown_fate_waits_with_its_removal() -> None:
    lost = desired(config_map("settings", annotations={"gitops-ctl.dev/depends-on": "Secret/lab/key"}))
    kinds = {
        "same name, other group": ObjectId("example.net", "ConfigMap", "lab", "settings"),
        "needed": ObjectId("", "Secret", "lab", "key"),
        "its namespace": ObjectId("", "Namespace", "", "lab"),
        "another namespace": ObjectId("", "Namespace", "", "other"),
        "another object": ObjectId("", "ConfigMap", "lab", "other"),
        "same name elsewhere": ObjectId("", "ConfigMap", "other", "settings"),
    }
    entries = [Entry(identity, "v1", "uid") for identity in kinds.values()]
    waits = waiting_for(entries, unsure=[lost])
    assert [name for name, identity in kinds.items() if identity in waits] == [
        "same name, other group",
        "needed",
        "its namespace",
    ]
    assert waiting_for(entries, unsure=[]) == frozenset()
