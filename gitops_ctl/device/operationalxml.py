"""Reads the trees of the Cisco-IOS-XE operational models into `operational` (devices.md, sections 5.2 and 7.1).

Pure.  A list entry without its key, or with a leaf that has no readable value, is a gap; so is a container that has to be there.
Containers of neighbours may be absent, because a device leaves out what is empty; who needs a neighbour misses it then.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, TypeVar

from lxml import etree

from gitops_ctl.core.redact import redact_text
from gitops_ctl.device.operational import (
    Apps,
    Flash,
    InstallState,
    Interface,
    Mode,
    Neighbor,
    Platform,
    Seen,
    Surroundings,
    Version,
    VersionState,
)

MODELS: Final = "http://cisco.com/ns/yang/Cisco-IOS-XE-"
_MOSTGAPS: Final = 8
_LARGEST: Final = 2**63
_VERSION_STATES: Final = {
    "provisioned-committed": VersionState.COMMITTED,
    "provisioned-uncommitted": VersionState.UNCOMMITTED,
    "in-progress": VersionState.PENDING,
    "installed": VersionState.ADDED,
    "present": VersionState.PRESENT,
    "invalid": VersionState.INVALID,
}
_RUNNING: Final = (VersionState.COMMITTED, VersionState.UNCOMMITTED)
Trees: TypeAlias = tuple[etree._Element, ...]
T = TypeVar("T", str, Mode)


class Reader:
    """Looks up leaves by their local names, and remembers what was missing."""

    def __init__(self) -> None:
        self.gaps: list[str] = []

    def gap(self, text: str) -> None:
        shown = redact_text(text)
        if len(self.gaps) < _MOSTGAPS and shown not in self.gaps:
            self.gaps.append(shown)

    def container(self, trees: Trees, model: str, name: str) -> etree._Element | None:
        """The tree of this model, None when it is not there."""
        found = [tree for tree in trees if tree.tag == f"{{{MODELS}{model}}}{name}"]
        return found[0] if found else None

    def required(self, trees: Trees, model: str, name: str) -> etree._Element | None:
        tree = self.container(trees, model, name)
        if tree is None:
            self.gap(f"{name} is missing")
        return tree

    def text(self, entry: etree._Element, path: str, *, of: str) -> str:
        """The leaf at `path`; empty, and a gap, when it has no text."""
        found = optional(entry, path)
        if not found:
            self.gap(f"{of} has no {path.rpartition('/')[2]}")
        return found

    def number(self, entry: etree._Element, path: str, *, of: str, needed: bool = True) -> int | None:
        """The non-negative number at `path`; None, and a gap, when there is none; no gap where it may be absent."""
        found = optional(entry, path)
        if not found and not needed:
            return None
        if found.isascii() and found.isdigit() and int(found) < _LARGEST:
            return int(found)
        self.gap(f"{of} has no {path.rpartition('/')[2]}" if not found else f"{of}: {path} is no number")
        return None

    def enum(self, entry: etree._Element, path: str, *, of: str, known: tuple[str, ...]) -> str:
        """The word at `path` that ends with one of `known`, as that one; empty, and a gap, when it is another."""
        found = self.text(entry, path, of=of)
        for word in known:
            if found.endswith(f"-{word}"):
                return word
        if found:
            self.gap(f"{of}: {path.rpartition('/')[2]} is {found[:60]}")
        return ""


def optional(entry: etree._Element, path: str) -> str:
    """The text of the leaf at `path`, in the namespace of the entry; empty when it is not there."""
    namespace = etree.QName(entry).namespace
    found = entry.findtext("/".join(f"{{{namespace}}}{step}" for step in path.split("/")))
    return (found or "").strip()


def entries(tree: etree._Element | None, name: str) -> Iterator[etree._Element]:
    """Children called `name`, of the same namespace."""
    if tree is not None:
        yield from tree.iterfind(f"{{{etree.QName(tree).namespace}}}{name}")


def read_surroundings(trees: Trees) -> Seen[Surroundings]:
    """Interfaces with their rates, CDP and LLDP neighbours."""
    reader = Reader()
    interfaces = reader.required(trees, "interfaces-oper", "interfaces")
    found = [_interface(reader, entry) for entry in entries(interfaces, "interface")]
    if interfaces is not None and not found:
        reader.gap("interfaces is empty")
    neighbors = [*_cdp(reader, trees), *_lldp(reader, trees)]
    return Seen(
        Surroundings(
            tuple(sorted((item for item in found if item is not None), key=lambda item: item.name)),
            tuple(sorted(set(neighbors), key=lambda item: (item.source, item.id, item.interface))),
        ),
        tuple(reader.gaps),
    )


def _interface(reader: Reader, entry: etree._Element) -> Interface | None:
    name = reader.text(entry, "name", of="an interface")
    state = reader.text(entry, "oper-status", of=name or "an interface")
    if not name or not state:
        return None
    ingress, egress = (_kbps(reader, entry, f"statistics/{leaf}", name) for leaf in ("rx-kbps", "tx-kbps"))
    return Interface(
        name, state == "if-oper-state-ready", reader.number(entry, "speed", of=name, needed=False), ingress, egress
    )


def _kbps(reader: Reader, entry: etree._Element, path: str, name: str) -> int | None:
    rate = reader.number(entry, path, of=name, needed=False)
    return None if rate is None else rate * 1000


def _cdp(reader: Reader, trees: Trees) -> Iterator[Neighbor]:
    tree = reader.container(trees, "cdp-oper", "cdp-neighbor-details")
    for entry in entries(tree, "cdp-neighbor-detail"):
        name = reader.text(entry, "device-name", of="a CDP neighbour")
        interface = reader.text(entry, "local-intf-name", of=f"CDP neighbour {name}")
        if name and interface:
            yield Neighbor("cdp", name, interface)


def _lldp(reader: Reader, trees: Trees) -> Iterator[Neighbor]:
    tree = reader.container(trees, "lldp-oper", "lldp-entries")
    for details in entries(tree, "lldp-intf-details"):
        interface = reader.text(details, "if-name", of="an LLDP entry")
        for entry in entries(details, "lldp-neighbor-details"):
            name = optional(entry, "system-name") or reader.text(entry, "chassis-id", of="an LLDP neighbour")
            if name and interface:
                yield Neighbor("lldp", name, interface)


def read_install(trees: Trees) -> Seen[InstallState]:
    """Versions, running and committed, operation, timer and mode, where every supervisor says the same."""
    reader = Reader()
    tree = reader.required(trees, "install-oper", "install-oper-data")
    places = [
        _place(reader, entry)
        for entry in entries(tree, "install-location-information")
        if _is_supervisor(reader, entry, of="a location of install-oper-data")
    ]
    if tree is not None and not places:
        reader.gap("install-oper-data has no location")
    if not places:
        return Seen(InstallState(), tuple(reader.gaps))
    running = _agreed(reader, "running version", [place.running for place in places], "")
    mode = _agreed(reader, "boot mode", [place.mode for place in places], Mode.UNKNOWN)
    listed = [{version.name for version in place.versions} for place in places]
    everywhere = frozenset[str].intersection(*map(frozenset, listed))
    # Where a package came from may differ from one supervisor to the other.
    versions = {(version.name, version.state): version for place in reversed(places) for version in place.versions}
    if len({name for name, _ in versions}) != len(versions):
        reader.gap("the supervisors disagree about the state of a version")
    state = InstallState(
        running=running,
        committed=bool(running) and all(place.committed for place in places),
        versions=tuple(versions[key] for key in sorted(versions)),
        operation=any(place.operation for place in places),
        timer=any(place.timer for place in places),
        mode=mode,
        supervisors=len(places),
        partial=frozenset().union(*listed) - everywhere,
    )
    return Seen(state, tuple(reader.gaps))


def _place(reader: Reader, entry: etree._Element) -> InstallState:
    of = _place_name(entry)
    versions = [_version(reader, row, of) for row in entries(entry, "install-version-info")]
    known = tuple(version for version in versions if version is not None)
    running = [version for version in known if version.state in _RUNNING]
    if len(running) != 1:
        reader.gap(f"{of} names {len(running)} running versions")
    activity = reader.enum(
        entry, "oper-state/sys-activity", of=of, known=("no-activity", "install-in-progress", "issu-in-progress")
    )
    timer = reader.enum(entry, "oper-state/auto-abort-timer/state", of=of, known=("inactive", "active"))
    mode = reader.enum(entry, "oper-state/boot-mode", of=of, known=("install", "bundle"))
    return InstallState(
        running=running[0].name if len(running) == 1 else "",
        committed=len(running) == 1 and running[0].state is VersionState.COMMITTED,
        versions=known,
        operation=activity not in ("", "no-activity"),
        timer=timer == "active",
        mode=Mode(mode) if mode else Mode.UNKNOWN,
    )


def _version(reader: Reader, row: etree._Element, of: str) -> Version | None:
    base = reader.text(row, "version", of=f"a version of {of}")
    word = optional(row, "current").removeprefix("install-version-state-")
    if next(entries(row, "version-extension"), None) is None:
        # A key of the list: it may be empty and is always there.
        reader.gap(f"version {base} of {of} has no version-extension")
    name = version_name(row)
    state = _VERSION_STATES.get(word)
    if state is None:
        reader.gap(f"the state of version {name} is {word[:60] or 'missing'}")
    return Version(name, state, optional(row, "src-filename")) if base and state is not None else None


def version_name(row: etree._Element) -> str:
    """The whole name of a version, of which the extension is a leaf of its own."""
    base, extension = optional(row, "version"), optional(row, "version-extension")
    return base if not extension or base.endswith(f".{extension}") else f"{base}.{extension}"


def read_platform(trees: Trees) -> Seen[Platform]:
    """Serial number of the one chassis, and the flash of each supervisor."""
    reader = Reader()
    serial = _serial(reader, trees)
    software = reader.required(trees, "platform-software-oper", "cisco-platform-software")
    flash = [
        _flash(reader, place)
        for place in entries(software, "q-filesystem")
        if _is_supervisor(reader, place, of="a file system")
    ]
    if software is not None and not flash:
        reader.gap("cisco-platform-software has no file system")
    return Seen(Platform(serial, tuple(item for item in flash if item is not None)), tuple(reader.gaps))


def read_serial(trees: Trees) -> Seen[str]:
    """Serial number of the one chassis."""
    reader = Reader()
    return Seen(_serial(reader, trees), tuple(reader.gaps))


def _serial(reader: Reader, trees: Trees) -> str:
    hardware = reader.required(trees, "device-hardware-oper", "device-hardware-data")
    inventory = [item for part in entries(hardware, "device-hardware") for item in entries(part, "device-inventory")]
    serials = {
        reader.text(item, "serial-number", of="the chassis")
        for item in inventory
        if optional(item, "hw-type") == "hw-type-chassis"
    }
    if hardware is not None and len(serials) != 1:
        reader.gap(f"the inventory has {len(serials)} chassis")
    return serials.pop() if len(serials) == 1 else ""


def _flash(reader: Reader, place: etree._Element) -> Flash | None:
    of = _place_name(place)
    primary = [
        part
        for part in entries(place, "partitions")
        if optional(part, "is-primary") == "true" and optional(part, "is-writable") == "true"
    ]
    if len(primary) != 1:
        reader.gap(f"{of} has {len(primary)} primary writable file systems")
        return None
    # The model gives kilobytes.
    total, used = (reader.number(primary[0], leaf, of=of) for leaf in ("total-size", "used-size"))
    if total is None or used is None:
        return None
    if used > total:
        reader.gap(f"{of} uses more flash than it has")
        return None
    return Flash(of, total * 1024, (total - used) * 1024)


def read_apps(operational: Trees, configuration: Trees) -> Seen[Apps]:
    """Applications; the operational container has to be there, because an empty inventory lets an upgrade go on."""
    reader = Reader()
    present = reader.required(operational, "app-hosting-oper", "app-hosting-oper-data")
    states = [
        (reader.text(app, "name", of="an application"), optional(app, "details/state"))
        for app in entries(present, "app")
    ]
    configured = reader.container(configuration, "app-hosting-cfg", "app-hosting-cfg-data")
    names = [
        reader.text(app, "application-name", of="a configured application")
        for apps in entries(configured, "apps")
        for app in entries(apps, "app")
    ]
    return Seen(Apps(tuple(sorted(names)), tuple(sorted(states))), tuple(reader.gaps))


def _is_supervisor(reader: Reader, entry: etree._Element, *, of: str) -> bool:
    """Line cards and forwarding processors have entries too; nothing is installed on their own."""
    return reader.enum(entry, "fru", of=of, known=("rp", "fp", "cc", "fc", "bp")) == "rp"


def _place_name(entry: etree._Element) -> str:
    return f"supervisor {optional(entry, 'chassis') or '?'}/{optional(entry, 'slot') or '?'}"


def _agreed(reader: Reader, what: str, values: list[T], otherwise: T) -> T:
    if len(set(values)) == 1:
        return values[0]
    reader.gap(f"the supervisors disagree about the {what}")
    return otherwise
