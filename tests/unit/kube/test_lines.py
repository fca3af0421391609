"""Cutting a watch stream into lines: any chunks give the same lines, long lines pass, endless ones do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.kube.lines import LineSplitter, ProtocolFailed


@pytest.mark.property
@given(st.binary(max_size=200), st.lists(st.integers(min_value=1, max_value=40)))
def test_the_lines_do_not_depend_on_how_the_stream_is_cut(data: bytes, sizes: list[int]) -> None:
    splitter, got, rest = LineSplitter(), [], data
    for size in sizes:
        got += splitter.feed(rest[:size])
        rest = rest[size:]
    got += splitter.feed(rest)
    assert got == [piece for piece in data.split(b"\n")[:-1] if piece]


def test_a_line_of_two_megabytes_is_accepted() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"x" * 2_000_000) == []
    assert [len(found) for found in splitter.feed(b"y\nz")] == [2_000_001]


def test_a_line_without_end_is_refused_before_it_is_complete() -> None:
    splitter = LineSplitter(limit_bytes=1000)
    splitter.feed(b"x" * 1000)
    with pytest.raises(ProtocolFailed):
        splitter.feed(b"x")
