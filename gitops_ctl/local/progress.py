"""How a long build tells what it does: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from gitops_ctl.core.clock import Clock, SystemClock


class Progress(Protocol):
    """Gets each step of one piece of work."""

    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        """`text` says what is being done now; `total` is 0 while it is not known."""
        ...


class LineProgress:
    """A line when the text changes, and one every `interval_s` while a count goes on."""

    def __init__(self, stream: TextIO, *, clock: Clock | None = None, interval_s: float = 15.0) -> None:
        self._stream = stream
        self._clock = clock or SystemClock()
        self._interval_s = interval_s
        self._text = ""
        self._written_s = 0.0

    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        now_s = self._clock.boot_s()
        if text == self._text and now_s - self._written_s < self._interval_s:
            return
        self._text, self._written_s = text, now_s
        count = _count(done, total)
        print(f"{text} ({count})" if count else text, file=self._stream, flush=True)


@contextmanager
def progress_for(stream: TextIO) -> Iterator[Progress]:
    """The progress display that suits the stream."""
    if not stream.isatty():
        yield LineProgress(stream)
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, only for terminals
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("", total=None, count="")

        class _Shown:
            def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
                bar.update(task, description=text, completed=done, total=total or None, count=_count(done, total))

        yield _Shown()


def _count(done: int, total: int) -> str:
    return f"{done} of {total}" if total else str(done) if done else ""


def stderr_progress() -> Progress:
    """Plain lines on stderr, for callers that run in the background."""
    return LineProgress(sys.stderr)
