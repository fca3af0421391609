"""What a command writes: tables for people, JSON and YAML for programs, and errors in one form.

Results go to stdout, everything else to stderr.  JSON carries a version, so that a script notices when its meaning changes.
"""

import enum
import errno
import json
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO, TypeVar

import click

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError
from gitops_ctl.core.jsonvalue import JsonObject

API_VERSION = "cli.gitops-ctl.dev/v1"
_GAP = "   "
_CUT = "…"
_LEAST = 20
"""Of the last column, before others yield to it."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS)
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


class Format(enum.Enum):
    """Values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns.

    Attributes:
        wide_from: columns from there on are shown with `-o wide` only, 0 shows all.
        yields: columns that a terminal goes without when it is too narrow for the last one, in this order; where that is not
            enough the last one stands below its row.  Empty: lines are cut.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide_from: int = 0
    yields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One answer in all its forms: `kind` and `data` for programs, `table` for people, `names` for `xargs`."""

    kind: str
    data: JsonObject
    table: Table
    names: tuple[str, ...] = ()


def output_option(function: _FunctionT) -> _FunctionT:
    """Add `-o/--output`; the command gets `output: Format`."""

    def parsed(_context: click.Context, _parameter: click.Parameter, value: str) -> Format:
        return Format(value)

    choices = click.Choice([form.value for form in Format])
    option = click.option(
        "-o",
        "--output",
        type=choices,
        default=Format.TABLE.value,
        callback=parsed,
        show_default=True,
        help="Form of output.",
    )
    return option(function)


def write_result(result: Result, *, form: Format, stream: TextIO | None = None) -> None:
    """Write a result to stdout, or to `stream`, in the form that was asked for."""
    out = stream or sys.stdout
    match form:
        case Format.JSON:
            tree = {"apiVersion": API_VERSION, "kind": result.kind, **result.data}
            out.write(json_text(tree))
        case Format.YAML:
            out.write(_yaml_text({"apiVersion": API_VERSION, "kind": result.kind, **result.data}))
        case Format.NAME:
            out.writelines(f"{name}\n" for name in result.names)
        case Format.TABLE | Format.WIDE:
            out.write(table_text(result.table, wide=form is Format.WIDE, width=_width(out)))


def json_text(tree: object) -> str:
    """A tree of plain values as indented JSON.  What is not printable is escaped, also where JSON itself would not ask for it: people read it too."""
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    if not _is_readable(text):
        text = "\n".join(map(_escaped, text.split("\n")))
    return f"{text}\n"


def _yaml_text(tree: object) -> str:
    import yaml  # noqa: PLC0415 - only this form needs it

    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return text if _is_readable(text) else str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=False))


def _is_readable(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    # JSON itself leaves DEL as it is.
    escapes = {ord(mark): json.dumps(mark)[1:-1] for mark in set(line) if not mark.isprintable()}
    return line.translate({**escapes, 0x7F: "\\u007f"})


def table_text(table: Table, *, wide: bool, width: int | None) -> str:
    """The table as text; it is made to fit `width`, unless `wide` or `width` is None."""
    shown = len(table.columns) if wide or not table.wide_from else table.wide_from
    lines = [tuple(clean(cell) for cell in row[:shown]) for row in (table.columns, *table.rows)]
    limit = None if wide else width
    if limit is None or not table.yields:
        return "".join(_rows(lines, limit))
    for name in table.yields:
        if _fits(lines, limit):
            break
        place = lines[0].index(name)
        lines = [(*line[:place], *line[place + 1 :]) for line in lines]
    return _folded(lines, limit) if not _fits(lines, limit) else "".join(_rows(lines, limit))


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _fits(lines: Sequence[Sequence[str]], limit: int) -> bool:
    """Whether enough of the last column is seen."""
    *before, last = _widths(lines)
    return sum(before) + len(_GAP) * len(before) + min(last, _LEAST) <= limit


def _rows(lines: Sequence[Sequence[str]], limit: int | None) -> list[str]:
    widths = _widths(lines)
    return [_line(line, widths, limit) + "\n" for line in lines]


def _folded(lines: Sequence[Sequence[str]], limit: int) -> str:
    """With the last cell of each row below it, over as many lines as it takes."""
    text = ""
    for row, line in zip(_rows([line[:-1] for line in lines], limit), lines, strict=True):
        below = textwrap.wrap(line[-1], max(_LEAST, limit - 2)) if line is not lines[0] else []
        text += row + "".join(f"  {part}\n" for part in below)
    return text


def clean(text: str) -> str:
    """Foreign text without control characters, so that it cannot move the cursor or end the line."""
    return "".join(character if character.isprintable() else " " for character in text)


def error_text(error: GitopsError, *, coloured: bool = False) -> str:
    """Code, cause, place and hint, in this order."""
    return _error_form(error.code, error.message, place=error.subject, hint=error.hint, coloured=coloured)


def report_error(error: GitopsError) -> None:
    """Write an error of ours to stderr."""
    _to_stderr(error_text(error, coloured=is_coloured(sys.stderr)))


def report_usage(error: click.ClickException) -> None:
    """Write a mistake in the arguments to stderr."""
    context = getattr(error, "ctx", None)
    command = context.command_path if isinstance(context, click.Context) else "gitops-ctl"
    text = _error_form(
        ErrorCode.USAGE,
        error.format_message(),
        place="",
        hint=f"see `{command} --help`",
        coloured=is_coloured(sys.stderr),
    )
    _to_stderr(text)


def report_machine(error: OSError) -> None:
    """Write to stderr that a file or folder of this machine cannot be used; whatever else went wrong there is a bug of ours."""
    place = str(error.filename or "")
    if error.errno in _NO_SPACE:
        report_error(BlockedError(str(error.strerror), code=ErrorCode.DISK_SHORT, subject=place))
    elif error.errno in _NO_ACCESS and place:
        hint = "give this user access, or set XDG_STATE_HOME and XDG_CACHE_HOME to folders that can be written"
        report_error(BlockedError(str(error.strerror), code=ErrorCode.LOCAL_SYSTEM, subject=place, hint=hint))
    else:
        report_internal(error)


def report_internal(error: Exception) -> None:
    """Write a bug of ours to stderr; the traceback follows when GITOPS_CTL_TRACEBACK is set."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = _error_form(
        ErrorCode.INTERNAL,
        f"{type(error).__name__}: {error}",
        place=f"{frame.filename}:{frame.lineno}",
        hint="run it again with GITOPS_CTL_TRACEBACK=1 and report what it prints",
        coloured=is_coloured(sys.stderr),
    )
    _to_stderr(text)
    if os.environ.get("GITOPS_CTL_TRACEBACK"):
        traceback.print_exception(error)


def is_coloured(stream: TextIO) -> bool:
    """Whether colour may be written: only to a terminal, and not when NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _error_form(code: ErrorCode, message: str, *, place: str, hint: str, coloured: bool) -> str:
    head = f"error {code.label} {code.slug}"
    lines = [click.style(head, fg="red", bold=True) if coloured else head]
    lines += [f"  {clean(line)}" for line in message.splitlines() or [""]]
    if place:
        lines.append(f"  place: {clean(place)}")
    if hint:
        lines.append(f"  hint:  {clean(hint)}")
    return "\n".join(lines) + "\n"


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _width(stream: TextIO) -> int | None:
    """Columns of the terminal, None when there is none: a pipe gets whole lines."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _line(cells: Sequence[str], widths: Sequence[int], limit: int | None) -> str:
    text = _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    if limit is not None and len(text) > limit:
        return text[: max(0, limit - 1)] + _CUT
    return text
