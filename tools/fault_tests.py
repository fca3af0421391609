"""A pytest plug-in that leaves only the tests of faults and promises: names that begin with an id, or with `test_promise_NN`."""

import re
from collections.abc import Iterator

import pytest

_FAULT = re.compile(r"test((?:_[A-Z]\d{2})+)(?:_|$)")
_PROMISE = re.compile(r"test_promise_(\d{2})(?:_|$)")


def ids_in(name: str) -> Iterator[str]:
    """Ids that a test name stands for: `test_S12_S15_…` is for two, `test_promise_07_…` for promise 7."""
    if found := _FAULT.match(name):
        yield from found[1].strip("_").split("_")
    if found := _PROMISE.match(name):
        yield f"promise {int(found[1])}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect every other test."""
    kept = [item for item in items if any(ids_in(item.name))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
