"""Small repositories of Cilium values in tests, written as one text with `=== path` before each file."""

from collections.abc import Sequence

import pytest

from gitops_ctl.cni.values import Locator, ValuesPlan, ValuesRefused, Wanted, plan_values
from gitops_ctl.documents.splice import Edit, splice
from tests.support.splice import changed_lines, text

REPLACED = Wanted("replaced")
ENABLED = Wanted("enabled")


def files(block: str) -> dict[str, bytes]:
    """The files of a repository; the first `===` line begins the first one."""
    found: dict[str, bytes] = {}
    for part in text(block).split("=== ")[1:]:
        path, _, body = part.partition("\n")
        found[path.strip()] = body.encode()
    return found


def planned(repository: dict[str, bytes], wanted: Wanted = REPLACED, **locator: object) -> ValuesPlan:
    return plan_values(repository, locator=Locator(**locator) if locator else None, wanted=wanted)


def refused(repository: dict[str, bytes], wanted: Wanted = REPLACED, **locator: object) -> ValuesRefused:
    with pytest.raises(ValuesRefused) as caught:
        planned(repository, wanted, **locator)
    return caught.value


def diff(repository: dict[str, bytes], edits: Sequence[tuple[str, Edit]]) -> dict[str, list[str]]:
    """Changed lines of each file that changes, without their indentation after the sign."""
    found = {}
    for file in dict.fromkeys(file for file, _ in edits):
        fresh = splice(repository[file], [edit for name, edit in edits if name == file])
        found[file] = changed_lines(repository[file].decode(), fresh.decode())
    return found


def after(repository: dict[str, bytes], plan: ValuesPlan) -> dict[str, bytes]:
    """The repository with the edits made."""
    fresh = dict(repository)
    for file, edit in plan.edits:
        fresh[file] = splice(fresh[file], [edit])
    return fresh
