"""What a switch remembers of its installs: it proves an install only as one add of that file since the request (rollouts.md, section 13.4)."""

from datetime import UTC, datetime, timedelta

import pytest
from lxml import etree

from gitops_ctl.device.installhistory import InstallHistory, read_history, unproven_add
from gitops_ctl.device.operational import Seen
from gitops_ctl.device.operationalxml import MODELS
from tests.support.operational import tree

TARGET = "17.18.03.0.5496.1776157760"
FILE = f"gNOI_iosxe_{TARGET}.bin"
SINCE = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
NOW = SINCE + timedelta(minutes=30)
AHEAD = timedelta(hours=7)
"""The clock of the device against ours."""


def add(file: str = FILE, *, begun: int = 5, ended: int = 7, status: str = "succ", done: str = "complete") -> str:
    """Minutes are those since the request."""
    times = [(SINCE + AHEAD + timedelta(minutes=each)).isoformat() for each in (begun, ended)]
    return (
        f"<install-oper-hist><op-status>install-op-{status}</op-status><op-done>op-{done}</op-done>"
        f"<start-time>{times[0]}</start-time><end-time>{times[1]}</end-time>"
        f"<add-param><dest-filename>{file}</dest-filename></add-param></install-oper-hist>"
    )


OTHER_OPERATION = (
    "<install-oper-hist><op-status>install-op-succ</op-status><op-done>op-complete</op-done></install-oper-hist>"
)


def inventory(source: str = f"flash:{FILE}", image: str = "") -> str:
    package = (
        f"<install-package-state-info><package-type>install-pkg-img</package-type><pkg-name>{image}</pkg-name>"
        "</install-package-state-info>"
    )
    name, _, extension = TARGET.rpartition(".")
    return (
        "<install-location-information><install-version-info>"
        f"<version>{name}</version><version-extension>{extension}</version-extension>"
        f"<src-filename>{source}</src-filename>{package if image else ''}"
        "</install-version-info></install-location-information>"
    )


def clock(moment: datetime | None = NOW + AHEAD) -> etree._Element:
    told = "" if moment is None else f"<current-time>{moment.isoformat()}</current-time>"
    inside = f"<device-hardware><device-system-data>{told}</device-system-data></device-hardware>"
    return tree("device-hardware-oper", "device-hardware-data", inside)


def seen(*rows: str, at: datetime | None = NOW + AHEAD) -> Seen[InstallHistory]:
    return read_history((tree("install-oper", "install-oper-data", "".join(rows)), clock(at)))


def problem(*rows: str, at: datetime | None = NOW + AHEAD) -> str:
    return unproven_add(seen(*rows, at=at), TARGET, requests=(SINCE,), now=NOW)


class TestProof:
    @pytest.mark.parametrize(
        "rows",
        [
            (inventory(), add()),
            (inventory(), OTHER_OPERATION, add()),
            (inventory(f"/mnt/sd3/user/{FILE}"), add(f"flash:/{FILE}")),
            (inventory("/mnt/sd3/user/gNOI_iosxe_.bin", image=FILE), add()),
            (inventory(), add(begun=-300, ended=-290), add()),
            (inventory(), add("another.bin"), add()),
        ],
        ids=["plain", "other operations", "folders", "shortened source", "an earlier try", "another file"],
    )
    def test_one_add_of_the_file_since_the_request_proves_it(self, rows):
        assert problem(*rows) == ""

    @pytest.mark.parametrize(
        "rows",
        [
            (inventory(),),
            (inventory(), add(begun=-300, ended=-290)),
            (inventory(), add(begun=-300)),
            (inventory(), add("another.bin")),
            (inventory(""), add()),
            (inventory(), add(status="fail")),
            (inventory(), add(status="marked-succ")),
            (inventory(), add(done="not-complete")),
            (inventory(), add(), add(begun=9, ended=11)),
            (inventory(), add(status="fail"), add(begun=9, ended=11)),
            (inventory(), add(ended=300)),
            (inventory(), add(begun=7, ended=5)),
        ],
        ids=[
            *("no history", "an earlier try", "begun before", "another file", "no source", "failed", "nothing to do"),
            *("not complete", "two", "one failed before", "not over", "backwards"),
        ],
    )
    def test_anything_else_does_not(self, rows):
        assert "installs of the file of 17.18.03" in problem(*rows)

    @pytest.mark.parametrize(("adds", "proven"), [(1, False), (2, True), (3, False)])
    def test_two_requests_are_proven_by_two_adds(self, adds, proven):
        rows = [add(begun=5 * number, ended=5 * number + 1) for number in range(1, adds + 1)]
        later = SINCE + timedelta(minutes=8)
        why = unproven_add(seen(inventory(), *rows), TARGET, requests=(SINCE, later), now=NOW)
        assert (why == "") is proven

    def test_without_a_clock_of_the_device_no_time_means_anything(self):
        assert problem(inventory(), add(), at=None) == (
            "the history of installs cannot be read: the device does not tell the time"
        )

    def test_an_add_without_times_is_a_gap(self):
        assert "no times" in problem(inventory(), add().replace("start-time", "begin-time"))

    @pytest.mark.parametrize("missing", ["install-oper-data", "device-hardware-data"])
    def test_a_missing_tree_is_a_gap(self, missing):
        trees = (tree("install-oper", "install-oper-data", inventory() + add()), clock())
        kept = tuple(one for one in trees if etree.QName(one).localname != missing)
        assert f"{missing} is missing" in unproven_add(read_history(kept), TARGET, requests=(SINCE,), now=NOW)
        assert etree.QName(trees[0]).namespace == f"{MODELS}install-oper"
