"""The order of a whole run: what is long first where everything is built, what needs nothing first where it is not."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import whole_run

ROOT = Path(__file__).parents[3]
FAST, SHORT, LONG = "tests/unit/tools/test_whole_run.py", "tests/cluster/test_crds.py", whole_run.LONGEST[0]


@dataclass(eq=False)
class Item:
    """As much of a test as the order looks at."""

    nodeid: str
    markers: tuple[str, ...] = ()
    fixturenames: tuple[str, ...] = ()

    def get_closest_marker(self, name: str) -> bool:
        return name in self.markers

    def iter_markers(self, name: str) -> tuple[str, ...]:
        return ()


@dataclass
class Config:
    """Of a worker that was told whether everything is built."""

    workerinput: dict[str, Any] = field(default_factory=dict)


def ordered(*, built: bool) -> list[str]:
    items: Any = [
        Item(f"{FAST}::test_a"),
        Item(f"{SHORT}::test_b", ("cluster",)),
        Item(f"{LONG}::test_c", ("cluster",), ("target_world",)),
    ]
    config: Any = Config({"components_are_built": built})
    whole_run.pytest_collection_modifyitems(config, items)
    return [item.nodeid.partition("::")[0] for item in items]


def test_what_takes_long_begins_first_where_everything_is_built() -> None:
    assert ordered(built=True) == [LONG, SHORT, FAST]


def test_what_needs_no_component_runs_while_they_are_built() -> None:
    assert ordered(built=False) == [FAST, LONG, SHORT]


@pytest.mark.parametrize(
    "file",
    sorted({*whole_run.LONGEST, *" ".join((whole_run.TURNS | whole_run.NOT_BESIDE_EACH_OTHER).values()).split()}),
)
def test_a_file_that_the_order_names_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


def test_files_that_take_turns_are_as_long_as_the_longest_of_them() -> None:
    first: Any = Item("tests/cluster/test_switch_worker_observes.py::test_a")
    assert whole_run._length(first) == 0
