"""Tables for people, JSON and YAML for programs."""

import io
import json

import pytest

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
