"""The operational side of a device, as the program that sshd starts for the subsystem `netconf`.

`python -m tools.peers.iosxe.netconf STATE-FILE` serves one session on standard input and output: hello, `get` and `get-config` with
subtree filters, `close-session` and the install commit.  It is no datastore server.  Faults stand in the state file:

    {"for": "netconf", "kind": KIND, "on": PLACE, "times": 1, "skip": 0, …}

PLACE is hello, get, get-config, install-commit, close-session, or the name of a datastore; empty is any.  KIND is
silent (no answer) · late (seconds) · drop-before · drop-after (the effect of the commit) · error (errors: tag, message, severity,
info) · empty (a reply without content) · omit (subtree) · partial (list, leaf: the last entry lacks it) · malformed · wrong-id ·
huge (bytes) · slow (seconds: the commit is done only later) · base10 (hello: framing 1.0 only) · raw (text).
"""

import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lxml import etree

from tools.peers.iosxe import models, state
from tools.peers.iosxe.framing import Wire
from tools.peers.iosxe.subtree import filtered

NETCONF = "urn:ietf:params:xml:ns:netconf:base:1.0"
INSTALL_RPC = models.CISCO + "install-rpc"
_BASE = "urn:ietf:params:netconf:base:1."
_MODULES = (
    "interfaces-oper",
    "cdp-oper",
    "lldp-oper",
    "install-oper",
    "platform-software-oper",
    "device-hardware-oper",
)


class Gone(Exception):
    """The session ends without another word."""


class Session:
    """One session of one client."""

    def __init__(
        self,
        file: state.DeviceFile,
        wire: Wire,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file = file
        self._wire = wire
        self._now = now
        self._sleep = sleep
        self._over = False

    def serve(self) -> None:
        """Until the client says goodbye or goes."""
        with self._file.change() as device:
            if device.get("downUntil", 0) > self._now():
                return
            device["sessions"] = {pid: at for pid, at in device["sessions"].items() if _lives(int(pid))}
            if len(device["sessions"]) >= device["sessionLimit"]:
                return
            device["sessions"][str(os.getpid())] = self._now()
        try:
            self._hello()
            while not self._over and (message := self._wire.receive()) is not None:
                self.answer(etree.fromstring(message))
        except Gone:
            return
        finally:
            with self._file.change() as device:
                device["sessions"].pop(str(os.getpid()), None)

    def _hello(self) -> None:
        fault = self._fault("hello")
        hello = etree.Element(f"{{{NETCONF}}}hello", nsmap={None: NETCONF})
        capabilities = etree.SubElement(hello, f"{{{NETCONF}}}capabilities")
        both = fault.get("kind") != "base10"
        names = [f"{_BASE}0", *([f"{_BASE}1"] if both else []), "urn:ietf:params:netconf:capability:startup:1.0"]
        names += [f"{models.CISCO}{name}?module=Cisco-IOS-XE-{name}" for name in _MODULES]
        for name in names:
            etree.SubElement(capabilities, f"{{{NETCONF}}}capability").text = name
        etree.SubElement(hello, f"{{{NETCONF}}}session-id").text = str(os.getpid())
        self._wire.send(etree.tostring(hello))
        theirs = self._wire.receive()
        if theirs is None:
            raise Gone
        self._wire.chunked = both and f"{_BASE}1" in theirs.decode()

    def answer(self, rpc: etree._Element) -> None:
        """Send the reply to one request; Gone when there is none and the session is over."""
        operation = rpc[0]
        name = etree.QName(operation).localname
        source = operation.find(f"{{{NETCONF}}}source")
        places = (name, *(etree.QName(store).localname for store in (source if source is not None else ())))
        fault = self._fault(*places)
        reply = etree.Element(f"{{{NETCONF}}}rpc-reply", nsmap={None: NETCONF})
        for key, value in rpc.attrib.items():
            reply.set(key, value)
        self._fill(reply, operation, name=name, fault=fault)
        kind = fault.get("kind")
        if kind == "empty":
            reply[:] = []
        if kind == "wrong-id":
            reply.set("message-id", "urn:uuid:somebody-elses")
        if kind == "malformed":
            self._wire.send(etree.tostring(reply)[:-20] + b"<<</rpc-reply>")
            return
        self._wire.send(etree.tostring(reply))

    def _fill(self, reply: etree._Element, operation: etree._Element, *, name: str, fault: dict[str, Any]) -> None:
        if fault.get("kind") == "error":
            for told in fault["errors"]:
                _add_error(reply, told)
        elif name == "get":
            trees = models.operational_data(self._file.read(), now=self._now(), wanted=_wanted(operation))
            self._data(reply, trees, operation, fault)
        elif name == "get-config":
            store = etree.QName(operation.find(f"{{{NETCONF}}}source")[0]).localname
            device = self._file.read()
            self._data(reply, models.configuration(device, device[f"{store}Config"]), operation, fault)
        elif name == "install-commit" and etree.QName(operation).namespace == INSTALL_RPC:
            self._commit(reply, operation, fault)
        elif name == "close-session":
            self._over = True
            etree.SubElement(reply, f"{{{NETCONF}}}ok")
        else:
            _add_error(reply, {"tag": "operation-not-supported", "message": f"{name} is not served here"})

    def _data(
        self, reply: etree._Element, trees: list[etree._Element], operation: etree._Element, fault: dict[str, Any]
    ) -> None:
        data = etree.SubElement(reply, f"{{{NETCONF}}}data")
        data.extend(filtered(trees, operation.find(f"{{{NETCONF}}}filter")))
        if fault.get("kind") == "omit":
            for tree in [tree for tree in data if etree.QName(tree).localname == fault["subtree"]]:
                data.remove(tree)
        if fault.get("kind") == "partial":
            entries = [entry for entry in data.iter() if etree.QName(entry).localname == fault["list"]]
            for leaf in [leaf for leaf in entries[-1].iter() if etree.QName(leaf).localname == fault["leaf"]]:
                leaf.getparent().remove(leaf)
        if fault.get("kind") == "huge":
            etree.SubElement(data, "filler").text = "x" * fault["bytes"]

    def _commit(self, reply: etree._Element, operation: etree._Element, fault: dict[str, Any]) -> None:
        with self._file.change() as device:
            told = {"uuid": operation.findtext(f"{{{INSTALL_RPC}}}uuid"), "at": self._now()}
            if any(one["at"] >= device["bootTime"] for one in device["commits"]) and "gnoi" in device:
                # What was booted is committed by one request; another one is a violation of at-most-once.
                device["gnoi"]["violations"].append({"method": "Commit", "arguments": {}, "at": self._now()})
            device["commits"].append(told)
            if device["operation"] is not None:
                _add_error(reply, {"tag": "in-use", "message": "an install operation is in progress"})
                return
            if fault.get("kind") == "slow":
                device["committing"] = {"until": self._now() + fault["seconds"]}
            else:
                state.commit(device)
        if fault.get("kind") == "drop-after":
            raise Gone
        etree.SubElement(reply, f"{{{NETCONF}}}ok")

    def _fault(self, *places: str) -> dict[str, Any]:
        if self._file.read().get("downUntil", 0) > self._now():
            raise Gone
        fault = self._file.take_fault("netconf", *places) or {}
        kind = fault.get("kind")
        if kind == "drop-before":
            raise Gone
        if kind == "late":
            self._sleep(fault["seconds"])
        if kind == "raw":
            self._wire.write(fault["text"].encode())
            raise Gone
        if kind == "silent":
            while self._wire.receive() is not None:
                pass
            raise Gone
        return fault


def _wanted(operation: etree._Element) -> set[str] | None:
    """Names of the trees that the filter of a request is about."""
    filtering = operation.find(f"{{{NETCONF}}}filter")
    return None if filtering is None else {etree.QName(pattern).localname for pattern in filtering}


def _add_error(reply: etree._Element, told: dict[str, Any]) -> None:
    error = etree.SubElement(reply, f"{{{NETCONF}}}rpc-error")
    members = {"error-type": told.get("type", "application"), "error-tag": told["tag"]}
    members["error-severity"] = told.get("severity", "error")
    if "path" in told:
        members["error-path"] = told["path"]
    members["error-message"] = told.get("message", "")
    for name, text in members.items():
        etree.SubElement(error, f"{{{NETCONF}}}{name}").text = text
    if "info" in told:
        etree.SubElement(error, f"{{{NETCONF}}}error-info").append(etree.fromstring(told["info"]))


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _left(stream: int) -> bool:
    """Whether the other end of the stream is closed."""
    ends = select.poll()
    ends.register(stream, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in ends.poll(0))


def main() -> None:
    """The program."""
    if _left(sys.stdin.fileno()):
        # The client gave up while this program started; the device must not notice.
        return
    file = state.DeviceFile(Path(sys.argv[1]))
    Session(file, Wire(sys.stdin.buffer, sys.stdout.buffer)).serve()


if __name__ == "__main__":
    main()
