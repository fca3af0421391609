"""Texts that are made to be slow to read are read as fast as others: a manager that computes for minutes is no manager (forges.md, section 14)."""

import time

import pytest

from gitops_ctl.forge.calls import Reply, next_link
from gitops_ctl.forge.marker import BEGIN, Marker, marker_line, read_marker, same_body, with_block

MARKER = Marker("cni/site-1/replaced", "7f1c", "sha256:" + "0a" * 32, "5f2b" * 10, "5f2b" * 10)
LINE = marker_line(MARKER)
FIRST, SECOND = "https://git.example.net/l?page=2,3", "https://git.example.net/l?page=9"


@pytest.mark.parametrize(
    "body",
    [
        f"{LINE}\n" + f"{BEGIN}\n" * 80_000,
        f"{BEGIN}\n" * 80_000 + LINE,
        f"{BEGIN}\n" + "x" * 2_000_000 + f"\n{LINE}",
        f"{LINE}\n" + "<!-- gitops-ctl " * 120_000,
        "\r" * 2_000_000 + LINE,
    ],
    ids=["begins after the marker", "begins before it", "a long line", "almost markers", "line ends"],
)
def test_a_body_of_megabytes_is_read_and_written_at_once(body: str) -> None:
    began_s = time.process_time()
    assert read_marker(body) == MARKER
    made = with_block(body, text="text", marker=MARKER)
    assert not same_body(made, body)
    assert time.process_time() - began_s < 3


def test_a_block_after_the_marker_of_another_place_is_not_taken_for_one() -> None:
    body = f"mine\n{LINE}\nmine too\n{BEGIN}\nand this"
    assert with_block(body, text="text", marker=MARKER) == f"{body}\n\n{BEGIN}\ntext\n\n{LINE}\n"


@pytest.mark.parametrize("header", ["<x>;" * 20_000, "<x>, " * 20_000, "<" * 80_000, ", " * 40_000, "," + " " * 80_000])
def test_a_link_header_that_leads_nowhere_is_read_at_once(header: str) -> None:
    began_s = time.process_time()
    assert next_link(Reply("GET x", 200, {"link": header}, None), 1) == ""
    assert time.process_time() - began_s < 3


@pytest.mark.parametrize(
    "header",
    [
        f'<{FIRST}>; rel="next", <{SECOND}>; rel="last"',
        f'<{SECOND}>; rel="prev",<{FIRST}>;rel=next',
        f'<{SECOND}>; rel="first", <{FIRST}>; title="a"; rel="next"',
    ],
)
def test_the_next_page_is_found_wherever_it_stands(header: str) -> None:
    assert next_link(Reply("GET x", 200, {"link": header}, None), 1) == FIRST
