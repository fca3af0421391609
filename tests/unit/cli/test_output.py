"""Tables for people, JSON and YAML for programs."""

import io
import json

import pytest
import yaml

from gitops_ctl.cli.output import Format, Result, Table, is_coloured, table_text, write_result

TABLE = Table(("NAME", "READY", "MESSAGE"), (("site-a", "True", "fine"), ("b", "False", "x" * 30)), wide_from=2)
RESULT = Result("Things", {"items": [{"name": "site-a", "note": "ü"}]}, TABLE, ("gsync/site-a", "gsync/b"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(form: Format) -> str:
    stream = io.StringIO()
    write_result(RESULT, form=form, stream=stream)
    return stream.getvalue()


def test_the_table_leaves_wide_columns_out_and_wide_shows_them() -> None:
    assert written(Format.TABLE) == "NAME     READY\nsite-a   True\nb        False\n"
    assert written(Format.WIDE).splitlines()[1] == "site-a   True    fine"


def test_json_carries_version_and_kind_and_keeps_the_text() -> None:
    text = written(Format.JSON)
    assert json.loads(text) == {
        "apiVersion": "cli.gitops-ctl.dev/v1",
        "kind": "Things",
        "items": [{"name": "site-a", "note": "ü"}],
    }
    assert "ü" in text


@pytest.mark.parametrize("mark", ["\x85", "\x9b", "\x7f", "\u202e", "\u2028", "\U000e0001"], ids=ascii)
@pytest.mark.parametrize("form", [Format.JSON, Format.YAML])
def test_no_form_for_programs_has_a_mark_that_moves_a_cursor_or_turns_a_line(mark: str, form: Format) -> None:
    stream = io.StringIO()
    write_result(Result("Things", {"note": f"ü{mark}x"}, TABLE), form=form, stream=stream)
    text = stream.getvalue()
    assert text.replace("\n", "").isprintable()
    read = json.loads(text) if form is Format.JSON else yaml.safe_load(text)
    assert read["note"] == f"ü{mark}x"


def test_yaml_says_the_same_as_json() -> None:
    assert written(Format.YAML) == (
        "apiVersion: cli.gitops-ctl.dev/v1\nkind: Things\nitems:\n- name: site-a\n  note: ü\n"
    )


def test_names_are_one_per_line() -> None:
    assert written(Format.NAME) == "gsync/site-a\ngsync/b\n"


def test_a_line_is_cut_at_the_width_of_the_terminal_only() -> None:
    table = Table(("MESSAGE",), (("x" * 30,),))
    assert table_text(table, wide=False, width=10).splitlines()[1] == "x" * 9 + "…"
    assert table_text(table, wide=False, width=None).splitlines()[1] == "x" * 30
    assert table_text(table, wide=True, width=10).splitlines()[1] == "x" * 30


STATUS = Table(
    ("NAME", "REASON", "REVISION", "SINCE", "MESSAGE"),
    (
        (
            "site",
            "ObjectsHeld",
            "b" * 12,
            "2026-11-30T08:00:00Z",
            "3 of 40 objects are held, the first one is ConfigMap a",
        ),
    ),
    yields=("SINCE", "REVISION"),
)


def test_a_narrow_terminal_goes_without_the_columns_that_yield_before_the_message_is_lost() -> None:
    whole = table_text(STATUS, wide=False, width=None)
    assert table_text(STATUS, wide=False, width=200) == whole == table_text(STATUS, wide=True, width=40)
    assert table_text(STATUS, wide=False, width=60).splitlines() == [
        "NAME   REASON        REVISION       MESSAGE",
        "site   ObjectsHeld   bbbbbbbbbbbb   3 of 40 objects are hel…",
    ]


def test_where_that_is_not_enough_the_message_stands_below_its_row_as_a_whole() -> None:
    assert table_text(STATUS, wide=False, width=30).splitlines() == [
        "NAME   REASON",
        "site   ObjectsHeld",
        "  3 of 40 objects are held,",
        "  the first one is ConfigMap a",
    ]


def test_foreign_text_cannot_move_the_cursor_or_add_a_row() -> None:
    table = Table(("MESSAGE",), (("one\x1b[2J\ntwo",),))
    assert table_text(table, wide=True, width=None) == "MESSAGE\none [2J two\n"


def test_an_empty_table_still_has_its_heading() -> None:
    assert table_text(Table(("NAME", "READY"), ()), wide=False, width=None) == "NAME   READY\n"


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_coloured(Terminal())
    assert not is_coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured(Terminal())
