"""What `diff` says about an object, and its exit codes.  Out of scope: asking a server (tests/cluster/test_cli_diff.py)."""

import io

import pytest

from gitops_ctl.cli.comparison import (
    Action,
    Comparison,
    Item,
    Removals,
    compared_item,
    differing,
    in_order,
    waiting_items,
)
from gitops_ctl.cli.diff import detail_lines, lacks_rights, result_of
from gitops_ctl.cli.output import Format, write_result
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.core.redact import REDACTED
from gitops_ctl.sync.desired import UnitSpec
from gitops_ctl.sync.diff import Difference
from gitops_ctl.sync.model import DesiredState, Held
from tests.support.sync import OWNER, config_map, desired, entry, state_of

KEY = NamespacedName("team", "site")
NAME = ObjectId("", "ConfigMap", "lab", "a")
LIVE: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "uid": "1"},
    "data": {"key": "1"},
}


def item(action: Action, name: str = "a", **more: object) -> Item:
    return Item(ObjectId("", "ConfigMap", "lab", name), action, **more)  # type: ignore[arg-type]


def test_an_object_that_is_not_there_is_created_one_that_differs_is_changed_the_rest_is_the_same() -> None:
    wanted = desired()
    assert compared_item(wanted, None, LIVE).action is Action.CREATE
    assert compared_item(wanted, LIVE, LIVE).action is Action.SAME
    changed = compared_item(wanted, LIVE, {**LIVE, "data": {"key": "2"}})
    assert (changed.action, changed.changes) == (Action.CHANGE, (Difference("/data/key", "1", "2"),))
    assert changed.place == "site.yaml:2"


def test_the_marks_that_name_an_introducer_are_no_difference() -> None:
    marks: JsonObject = {
        "gitops-ctl.dev/introduced-by": "consent=a",
        "gitops-ctl.dev/introduced-commit": "consent=c",
        "x": "y",
    }
    live: JsonObject = {**LIVE, "metadata": {"name": "a", "annotations": marks}}
    assert differing(live, {**LIVE, "metadata": {"name": "a", "annotations": {"x": "y"}}}) == ()


def test_a_secret_shows_which_keys_differ_and_no_value() -> None:
    live: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"same": "b25l", "other": "b25l"}}
    found = differing(live, {**live, "data": {"same": "b25l", "other": "dHdv", "new": "dHdv"}})
    assert sorted(change.pointer for change in found) == ["/data/new", "/data/other"]
    assert "b25l" not in repr(found)
    assert "dHdv" not in repr(found)


def test_members_with_secret_names_show_that_they_differ_and_no_value() -> None:
    live: JsonObject = {"apiVersion": "lab.example.net/v1", "kind": "Port", "metadata": {}, "spec": {"password": "one"}}
    (found,) = differing(live, {**live, "spec": {"password": "two"}})
    assert (found.pointer, found.live, found.wanted) == ("/spec/password", REDACTED, REDACTED)


def test_what_kubectl_keeps_of_the_object_is_not_shown() -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    live: JsonObject = {"kind": "Secret", "metadata": {"annotations": {name: "one", "x": "y"}}}
    (found,) = differing(live, {"kind": "Secret", "metadata": {"annotations": {name: "two", "x": "y"}}})
    assert (found.live, found.wanted) == (REDACTED, REDACTED)


def test_status_and_server_metadata_are_no_difference() -> None:
    live: JsonObject = {**LIVE, "status": {"phase": "Bound"}}
    assert differing(live, {**LIVE, "metadata": {"name": "a", "uid": "2", "resourceVersion": "9"}}) == ()


def test_objects_of_a_file_that_cannot_be_read_are_held_with_the_reason_of_the_file() -> None:
    known = desired()
    broken = Held(ObjectId("", "File", "", "site.yaml"), ErrorCode.YAML_SYNTAX, "no YAML", "site.yaml", 3)
    state = DesiredState({}, broken_files={"site.yaml": broken}, complete=False)
    (found,) = waiting_items(state, {known.id: entry(known)})
    assert (found.object, found.action, found.reason, found.place) == (
        NAME,
        Action.HELD,
        "DocumentInvalid",
        "site.yaml:3",
    )


def test_hold_unit_holds_everything_while_one_document_has_an_error() -> None:
    text = config_map("a") + config_map("b", annotations={"gitops-ctl.dev/apply": "Nonsense"})
    state = state_of(text, unit=UnitSpec(OWNER, hold_unit=True))
    assert {found.object.name: found.reason for found in waiting_items(state, {})} == {
        "a": "ObjectsHeld",
        "b": "DocumentInvalid",
    }


def test_mode_ignore_and_ignored_files_are_kept() -> None:
    hidden = ObjectId("", "ConfigMap", "lab", "h")
    state = state_of(config_map(annotations={"gitops-ctl.dev/apply": "Ignore"}), hidden_ids=[hidden])
    memory = {hidden: entry(desired(config_map("h")))}
    assert [(found.object.name, found.action) for found in waiting_items(state, memory)] == [
        ("a", Action.KEPT),
        ("h", Action.KEPT),
    ]


@pytest.mark.parametrize(
    ("actions", "blocked", "code"),
    [
        ([], "", 0),
        ([Action.SAME, Action.KEPT], "", 0),
        ([Action.SAME, Action.CREATE], "", 2),
        ([Action.CHANGE], "", 2),
        ([Action.RECREATE], "", 2),
        ([Action.PRUNE, Action.HELD], "", 2),
        ([Action.HELD], "", 1),
        ([Action.UNKNOWN], "", 1),
        ([Action.KEPT], "no document is left", 1),
    ],
)
def test_exit_codes(actions: list[Action], blocked: str, code: int) -> None:
    found = Comparison(KEY, tuple(map(item, actions)), Removals(blocked=blocked))
    assert found.exit_code == code


def test_a_missing_right_of_the_person_is_told_apart_from_what_a_sync_meets() -> None:
    unknown = item(Action.UNKNOWN, reason=ErrorCode.FORBIDDEN.reason)
    assert lacks_rights(Comparison(KEY, (item(Action.SAME), unknown)))
    held = item(Action.HELD, reason=ErrorCode.FORBIDDEN.reason)
    assert not lacks_rights(Comparison(KEY, (held, item(Action.UNKNOWN, reason="DependencyNotReady"))))


def test_what_changes_comes_first_then_what_waits() -> None:
    found = in_order([item(Action.SAME), item(Action.HELD), item(Action.CREATE, "b"), item(Action.CREATE, "a")])
    assert [(one.action.value, one.object.name) for one in found] == [
        ("create", "a"),
        ("create", "b"),
        ("held", "a"),
        ("same", "a"),
    ]


SHOWN = Comparison(
    KEY,
    in_order(
        [
            item(Action.CHANGE, "a", file="a.yaml", line=2, changes=(Difference("/data/key", None, "1"),)),
            item(
                Action.HELD, "b", file="b.yaml", line=7, reason="FieldConflict", message="would take .data of kubectl"
            ),
            item(Action.PRUNE, "c"),
            item(Action.SAME, "d", file="d.yaml", line=1),
        ]
    ),
    Removals((), "sha256:" + "0" * 64, ""),
)


def test_the_text_for_people() -> None:
    stream = io.StringIO()
    write_result(result_of(SHOWN), form=Format.TABLE, stream=stream)
    assert stream.getvalue() + "\n".join(detail_lines(SHOWN)) == (
        "ACTION   OBJECT            PLACE      REASON\n"
        "change   ConfigMap/lab/a   a.yaml:2\n"
        "prune    ConfigMap/lab/c\n"
        "held     ConfigMap/lab/b   b.yaml:7   FieldConflict: would take .data of kubectl\n"
        "\n"
        "ConfigMap/lab/a\n"
        "  /data/key: (nothing) -> '1'\n"
        "\n"
        f"set to prune: sha256:{'0' * 64}\n"
        "\n"
        "team/site: 1 change, 1 prune, 1 held, 1 same"
    )


def test_names_are_those_of_what_changes() -> None:
    assert result_of(SHOWN).names == ("ConfigMap/lab/a", "ConfigMap/lab/c")


def test_the_data_for_programs() -> None:
    data = result_of(SHOWN).data
    assert data["counts"] == {"change": 1, "prune": 1, "held": 1, "same": 1}
    assert data["prune"] == {"digest": "sha256:" + "0" * 64, "blocked": ""}
    assert data["items"][0] == {  # type: ignore[index]
        "action": "change",
        "object": "ConfigMap/lab/a",
        "file": "a.yaml",
        "line": 2,
        "reason": "",
        "message": "",
        "changes": [{"pointer": "/data/key", "live": None, "wanted": "1"}],
    }
