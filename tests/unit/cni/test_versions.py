"""Ranges of the deny list (cni-switch.md, section 3.1)."""

import pytest

from gitops_ctl.cni.versions import is_in, version_of


@pytest.mark.parametrize(
    ("version", "ranges", "inside"),
    [
        ("1.19.4", ">=1.19.0 <1.19.5", True),
        ("1.19.5", ">=1.19.0 <1.19.5", False),
        ("1.19.4", ">=1.19.0, <1.19.5", True),
        ("1.20.9", "<1.0 || 1.20.x", True),
        ("1.20.9", "1.20.*", True),
        ("1.21.0", "1.20.x", False),
        ("9.9.9", "*", True),
        ("v1.19.0-rc.1", "1.19.0", True),
        ("1.19.3+build", "=1.19.3", True),
        ("1.19.3", "~1.19.2", True),
        ("1.20.0", "~1.19.2", False),
        ("1.99.0", "^1.2", True),
        ("2.0.0", "^1.2", False),
        ("0.2.5", "^0.2.3", True),
        ("0.3.0", "^0.2.3", False),
        ("1.19.9", "<=1.19", True),
        ("1.19.9", ">1.19", False),
        ("1.20.0", ">1.19", True),
    ],
)
def test_a_version_lies_in_a_range_or_not(version: str, ranges: str, inside: bool) -> None:
    found = version_of(version)
    assert found is not None
    assert is_in(found, ranges) is inside


@pytest.mark.parametrize("ranges", ["banana", "", "1.19 ||", ">=1.19.0<1.20", "1.19 and more"])
def test_a_text_that_is_no_range_is_told_apart_from_one_that_does_not_hold(ranges: str) -> None:
    assert is_in((1, 19, 0), ranges) is None


@pytest.mark.parametrize("text", ["", "latest", "1.19.x.y", "sha256:abc"])
def test_a_text_that_is_no_version_has_none(text: str) -> None:
    assert version_of(text) is None
