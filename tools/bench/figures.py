"""What a benchmark says: figures with their reference and target, as a table and as JSON.

Ratios are what lasts, since both sides ran on the same machine in the same minutes; times are shown beside them.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Target:
    """The bound that a figure is held against: `at_most` or `at_least`, of the value or of its ratio to the reference."""

    bound: float
    at_least: bool = False
    of_ratio: bool = False

    def met(self, value: float, ratio: float | None) -> bool | None:
        found = ratio if self.of_ratio else value
        if found is None:
            return None
        return found >= self.bound if self.at_least else found <= self.bound

    def __str__(self) -> str:
        number = f"{self.bound:.0%} of it" if self.of_ratio and self.bound < 2 else f"{self.bound:g}"
        number += "x" if self.of_ratio and self.bound >= 2 else ""
        return f"{'>=' if self.at_least else '<='} {number}"


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        ours, reference: one value a round, in `unit`; the reference is empty where only a bound was asked for.
        against: what the reference is.
        inverse: the ratio is reference/ours: for times, where less is better.
        note: how to read it, in a few words.
    """

    name: str
    unit: str
    ours: tuple[float, ...]
    reference: tuple[float, ...] = ()
    against: str = ""
    inverse: bool = False
    target: Target | None = None
    note: str = ""

    @property
    def value(self) -> float:
        return statistics.median(self.ours)

    @property
    def reference_value(self) -> float | None:
        return statistics.median(self.reference) if self.reference else None

    @property
    def ratio(self) -> float | None:
        """Median of the ratios of the rounds, since a slow minute of the machine hits both sides of one round."""
        if not self.reference:
            return None
        pairs = zip(self.ours, self.reference, strict=True) if len(self.ours) == len(self.reference) else ()
        ratios = [_ratio(ours, other, inverse=self.inverse) for ours, other in pairs]
        if not ratios:
            return _ratio(self.value, statistics.median(self.reference), inverse=self.inverse)
        return statistics.median(ratios)

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.value, self.ratio)

    def to_json(self) -> dict[str, object]:
        return {
            **asdict(self),
            "value": self.value,
            "referenceValue": self.reference_value,
            "ratio": self.ratio,
            "target": None if self.target is None else str(self.target),
            "met": self.met,
        }


def _ratio(ours: float, reference: float, *, inverse: bool) -> float:
    above, below = (reference, ours) if inverse else (ours, reference)
    return above / below if below else float("inf")


@dataclass
class Report:
    """All figures of a run, counts that say how they came about, and benchmarks that did not end."""

    figures: list[Figure] = field(default_factory=list)
    counts: dict[str, object] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, *figures: Figure) -> None:
        self.figures.extend(figures)

    def to_json(self) -> dict[str, object]:
        figures = [figure.to_json() for figure in self.figures]
        return {"figures": figures, "counts": self.counts, "failed": self.failed}


HEADER = ("figure", "ours", "reference", "ratio", "target", "met")


def rows_of(figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """The cells of the table."""
    return [
        (
            f"{figure.name} ({figure.note})" if figure.note else figure.name,
            _number(figure.value, figure.unit) + _spread(figure.ours),
            "" if (other := figure.reference_value) is None else f"{_number(other, figure.unit)}, {figure.against}",
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            "" if figure.target is None else str(figure.target),
            {None: "", True: "yes", False: "NO"}[figure.met],
        )
        for figure in figures
    ]


def _number(value: float, unit: str) -> str:
    digits = f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def _spread(values: Sequence[float]) -> str:
    return f" ({min(values):.3g} to {max(values):.3g})" if len(values) > 1 and max(values) > min(values) else ""


def table(figures: Iterable[Figure]) -> str:
    """The table as Markdown, so that it can go into the documentation as it is."""
    rows = [HEADER, *rows_of(figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
