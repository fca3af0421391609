"""Small repositories of Cilium values in tests, written as one text with `=== path` before each file."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Public:
    """One row of the table: what a public repository does, and a small invented one that does the same.

    Attributes:
        repository: where the form and its quirk were seen.
        shape: letter of the form, `K` for what is refused.
        quirk: what a careless edit would get wrong.
        text: our own files with the same form and quirk.
        expected: changed lines of the one file that changes, sorted; or the word of the refusal.
        file: the one that changes.
        note: a piece of a warning or of the refusal that must be there.
    """

    repository: str
    shape: str
    quirk: str
    text: str
    expected: tuple[str, ...] | str
    file: str = ""
    note: str = ""


def require_row(row: Public) -> None:
    """Exactly the wanted lines change, or the refusal has its reason; a second run finds nothing to do."""
    repository = files(row.text)
    if isinstance(row.expected, str):
        refusal = refused(repository)
        assert refusal.reason == row.expected
        assert row.note in "\n".join((refusal.message, *refusal.candidates))
        assert "kubeProxyReplacement" in refusal.by_hand
        return
    plan = planned(repository)
    assert plan.shape == row.shape
    assert {name: tuple(sorted(lines)) for name, lines in diff(repository, plan.edits).items()} == (
        {row.file: tuple(sorted(row.expected))} if row.expected else {}
    )
    assert row.note in "\n".join(plan.warnings)
    assert planned(after(repository, plan)).edits == ()
