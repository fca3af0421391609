"""When running and startup are the same configuration (rollouts.md, section 9.4)."""

import pytest
from lxml import etree

from gitops_ctl.device.configurations import differences


def trees(text: str) -> list[etree._Element]:
    return list(etree.fromstring(f"<config>{text}</config>"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<a><b>1</b></a>", "<a>\n  <b> 1 </b>\n</a>"),
        ("<a><b>1</b><c>2</c></a>", "<a><c>2</c><b>1</b></a>"),
        ("<a/><b/>", "<b/><a/>"),
        ("<a x='1' y='2'/>", "<a y='2' x='1'/>"),
        ("", ""),
    ],
)
def test_white_space_and_the_order_of_different_kinds_carry_nothing(one, other):
    assert differences(trees(one), trees(other)) == ()


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("<a><b>1</b></a>", "<a><b>2</b></a>", "/a/b"),
        ("<a><b>1</b></a>", "<a/>", "/a/b"),
        ("<a/>", "<a><b/></a>", "/a/b"),
        ("<a/>", "", "/a"),
        ("<a><r>1</r><r>2</r></a>", "<a><r>2</r><r>1</r></a>", "/a/r"),
        ("<a xmlns='x'/>", "<a xmlns='y'/>", "/a"),
        ("<a x='1'/>", "<a/>", "/a"),
    ],
)
def test_every_other_difference_counts_and_is_told_by_its_path(one, other, path):
    assert path in differences(trees(one), trees(other))


def test_no_value_stands_in_a_difference():
    found = differences(trees("<user><secret>Hunter2</secret></user>"), trees("<user><secret>Hunter3</secret></user>"))
    assert found == ("/user/secret",)


def test_many_differences_are_a_few():
    assert len(differences(trees("<a/>" * 100), trees(""))) == 8


def test_a_tree_that_is_too_deep_to_compare_is_not_equal():
    deep = "<a>" * 250 + "</a>" * 250
    assert differences(trees(deep), trees(deep))
