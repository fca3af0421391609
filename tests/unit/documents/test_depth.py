"""Which texts are composed without counting their depth: never one that nests deeper than allowed (fault H21)."""

from collections.abc import Callable
from typing import Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents import yamltree
from gitops_ctl.documents.yamltree import TreeLimits, read_tree

LIMITS: Final = TreeLimits()


def members(levels: int) -> str:
    return "".join(f"{' ' * level}a:\n" for level in range(levels)) + f"{' ' * levels}b\n"


def _pairs(levels: int) -> str:
    """Two levels a column: a list in the same column as the mapping that it is a member of."""
    text = ""
    for level in range(levels // 2):
        text += f"{'  ' * level}a:\n" if level == 0 else "a:\n"
        text += f"{'  ' * level}- "
    return text + "b\n"


DEEP: Final[dict[str, Callable[[int], str]]] = {
    "mappings": members,
    "lists on one line": lambda levels: "- " * levels + "b\n",
    "lists in mappings": _pairs,
    "flow lists": lambda levels: "[" * levels + "]" * levels,
    "flow mappings": lambda levels: "{a: " * levels + "b" + "}" * levels,
    "explicit keys": lambda levels: "? " * levels + "b\n",
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("levels", [LIMITS.depth + 2, LIMITS.depth + 50, 5_000])
def test_H21_no_form_of_nesting_slips_past_the_limit(name: str, levels: int) -> None:
    tree = read_tree(DEEP[name](levels).encode(), limits=LIMITS)
    (found,) = tree.findings
    # libyaml has a limit of its own for brackets, far above ours, and calls it syntax.
    assert found.code is ErrorCode.EXPANSION_LIMIT or (levels == 5_000 and found.code is ErrorCode.YAML_SYNTAX)


BLOCKS = st.recursive(
    st.sampled_from(["a", "1", "text with: no meaning"]).map(repr),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(BLOCKS, st.booleans(), st.integers(1, 9))
def test_a_text_that_is_not_counted_is_flat(value: object, flow: bool, indent: int) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, indent=indent).encode()
    careful = yamltree._may_be_deep(text, depth=LIMITS.depth)
    composer = yamltree.BoundedComposer(text, depth=10_000)
    deepest = 0
    count = composer.descend_resolver

    def counted(parent: object, index: object) -> None:
        nonlocal deepest
        count(parent, index)  # type: ignore[arg-type]
        deepest = max(deepest, composer._depth)

    composer.descend_resolver = counted  # type: ignore[method-assign]
    composer.get_single_node()
    assert careful or deepest < yamltree._SURELY_FLAT
