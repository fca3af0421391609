"""The responder itself: what it serves and what time does to its switch (own responder, not Cisco's models)."""

import io

import pytest
from lxml import etree

from tools.peers.iosxe import state
from tools.peers.iosxe.framing import Wire
from tools.peers.iosxe.models import CISCO, configuration, operational_data
from tools.peers.iosxe.state import DeviceFile, activate, new_device
from tools.peers.iosxe.subtree import filtered

pytestmark = pytest.mark.peers
OLD, NEW = "17.18.02.0.4112.1766116039", "17.18.03.0.5496.1776157760"
DATA = [etree.fromstring("<top xmlns='m'><row><k>1</k><v>a</v></row><row><k>2</k><v>b</v></row><other/></top>")]


def select(text: str) -> list[str]:
    return [etree.tostring(tree).decode() for tree in filtered(DATA, etree.fromstring(f"<filter>{text}</filter>"))]


def test_a_filter_contains_selects_and_matches():
    assert select("<top xmlns='m'/>") == [etree.tostring(DATA[0]).decode()]
    assert select("<top xmlns='m'><other/></top>") == ['<top xmlns="m"><other/></top>']
    assert select("<top xmlns='m'><row><v/></row></top>") == [
        '<top xmlns="m"><row><v>a</v></row><row><v>b</v></row></top>'
    ]
    assert select("<top xmlns='m'><row><k>2</k></row></top>") == ['<top xmlns="m"><row><k>2</k><v>b</v></row></top>']
    assert select("<top xmlns='m'><row><k>2</k><v/></row></top>") == [
        '<top xmlns="m"><row><k>2</k><v>b</v></row></top>'
    ]
    assert select("<top xmlns='m'><row><k>3</k></row></top>") == []
    assert select("<top xmlns='else'/>") == []
    assert select("") == []
    assert len(filtered(DATA, None)) == 1


def test_both_framings_pass_messages_on():
    out = io.BytesIO()
    wire = Wire(io.BytesIO(b"<a/>]]>]]>\n#2\n<b\n#2\n/>\n##\n"), out)
    assert wire.receive() == b"<a/>"
    wire.chunked = True
    assert wire.receive() == b"<b/>"
    assert wire.receive() is None
    wire.send(b"<c/>")
    assert out.getvalue() == b"\n#4\n<c/>\n##\n"


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def file(tmp_path, clock):
    file = DeviceFile(tmp_path / "device.json", now=lambda: clock[0])
    device = new_device("FOC1234")
    device["packages"].append({"version": NEW, "state": "added", "file": "", "addedAt": 0})
    file.create(device)
    return file


def test_an_activated_version_is_left_when_the_timer_ends(file, clock):
    with file.change() as device:
        activate(device, NEW, now=clock[0])
    assert (file.read()["running"], file.read()["committed"]) == (NEW, OLD)
    clock[0] += state.AUTO_ABORT_S
    device = file.read()
    assert (device["running"], device["committed"], device["autoAbort"]) == (OLD, OLD, None)
    assert "auto-abort" in device["failMessage"]


def test_a_committed_version_is_kept(file, clock):
    with file.change() as device:
        activate(device, NEW, now=clock[0])
        state.commit(device)
    clock[0] += state.AUTO_ABORT_S
    device = file.read()
    assert (device["running"], device["committed"]) == (NEW, NEW)
    assert {package["version"]: package["state"] for package in device["packages"]} == {
        OLD: "inactive",
        NEW: "committed",
    }


def test_a_slow_commit_is_done_later_and_before_the_timer(file, clock):
    with file.change() as device:
        activate(device, NEW, now=clock[0])
        device["committing"] = {"until": clock[0] + 10}
    clock[0] += 9
    assert file.read()["committed"] == OLD
    clock[0] += 1
    assert file.read()["committed"] == NEW


def test_a_device_that_needs_no_commit_arms_no_timer(file, clock):
    with file.change() as device:
        device["autoAbortSeconds"] = 0
        activate(device, NEW, now=clock[0])
    assert (file.read()["committed"], file.read()["autoAbort"]) == (NEW, None)


def test_a_change_that_fails_changes_nothing(file):
    def change() -> None:
        with file.change() as device:
            device["running"] = "nothing"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert file.read()["running"] == OLD


def test_faults_are_taken_by_side_and_place_as_often_as_they_say(file):
    with file.change() as device:
        device["faults"] = [
            {"for": "netconf", "kind": "late", "on": "get", "times": 2, "skip": 1},
            {"for": "gnoi", "kind": "x"},
        ]
    found = [file.take_fault("netconf", place) for place in ("hello", "get", "get", "get", "get")]
    assert [fault and fault["kind"] for fault in found] == [None, None, "late", "late", None]
    assert [fault["for"] for fault in file.read()["faults"]] == ["gnoi"]


def test_every_model_that_is_served_has_its_namespace():
    device = new_device("FOC1234")
    device["apps"] = [{"name": "edge", "configured": True, "state": ""}]
    trees = [*operational_data(device), *configuration(device, device["runningConfig"])]
    assert all(etree.QName(tree).namespace.startswith(CISCO) for tree in trees)
    assert len({tree.tag for tree in trees}) == len(trees)
