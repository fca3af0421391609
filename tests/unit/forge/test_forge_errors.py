"""Errors of a forge carry the retry decision in their type, and the tree in the docstring is the tree of the classes (forges.md, section 18)."""

import re

import pytest

from gitops_ctl.core.errors import BlockedError, GitopsError, TerminalError, TransientError
from gitops_ctl.forge import errors

NAMES = list(errors.__all__)


def drawn() -> dict[str, str]:
    """Name to the name above it, as the docstring draws them."""
    parents: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │├└─]*)(\w+)(?:\s{2,}|$)", line)
        if found and (found[2] == "GitopsError" or "──" in found[1]):
            depth = len(found[1]) // 5
            above[depth:] = [found[2]]
            if depth:
                parents[found[2]] = above[depth - 1]
    return parents


def test_the_tree_is_drawn_as_it_is():
    parents = drawn()
    assert set(NAMES) <= set(parents)
    known = {name: getattr(errors, name, None) or globals()[name] for name in parents}
    known["GitopsError"] = GitopsError
    for name, parent in parents.items():
        assert issubclass(known[name], known[parent]), f"{name} is drawn below {parent}"


@pytest.mark.parametrize("name", NAMES)
def test_each_has_one_retry_decision_and_a_code_of_its_own_or_of_the_core(name):
    kind = getattr(errors, name)
    assert sum(issubclass(kind, decision) for decision in (TransientError, BlockedError, TerminalError)) == 1
    assert kind("message").hint


def test_what_may_have_happened_is_apart_from_what_did_not():
    assert not issubclass(errors.ReplyLost, errors.Unavailable)
    assert not issubclass(errors.Unavailable, errors.ReplyLost)
