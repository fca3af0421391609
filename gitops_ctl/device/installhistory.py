"""What a switch remembers of its install operations, and what that proves about a package (rollouts.md, section 13.4).  Pure.

A listed package proves nothing about who added it: an earlier try may have.  One add that succeeded since the request, of the file that the
package came from, does; so do two where each supervisor is installed on its own.  Times are those of the device, so they are compared with its own clock.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lxml import etree

from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.device.operational import Seen
from gitops_ctl.device.operationalxml import Reader, Trees, entries, optional, version_name

LEEWAY: Final = timedelta(seconds=60)
"""Between two readings of two clocks."""
_SUCCEEDED: Final = ("install-op-succ", "op-complete")
_VERSION: Final = "install-version-info"
_IMAGE: Final = "install-pkg-img"


@dataclass(frozen=True, slots=True)
class Add:
    """One install-add that is over, with the file that it made available; times by the clock of the device."""

    file: str
    begun: datetime
    ended: datetime
    succeeded: bool


@dataclass(frozen=True, slots=True)
class InstallHistory:
    """Adds in the order in which the device lists them.

    Attributes:
        now: the device's own clock; None when it does not say.
        files: versions with the names of the files that they came from, without their folders.
    """

    now: datetime | None = None
    adds: tuple[Add, ...] = ()
    files: frozenset[tuple[str, str]] = frozenset()


def read_history(trees: Trees) -> Seen[InstallHistory]:
    """From `install-oper-data` and the clock in `device-hardware-data`."""
    reader = Reader()
    install = reader.required(trees, "install-oper", "install-oper-data")
    hardware = reader.required(trees, "device-hardware-oper", "device-hardware-data")
    clocks = [optional(part, "device-system-data/current-time") for part in entries(hardware, "device-hardware")]
    now = _moment(clocks[0]) if clocks else None
    if hardware is not None and now is None:
        reader.gap("the device does not tell the time")
    adds = [_add(reader, row) for row in entries(install, "install-oper-hist") if _file_of(row)]
    rows = [row for place in entries(install, "install-location-information") for row in entries(place, _VERSION)]
    files = frozenset((version_name(row), file) for row in rows for file in _files_of(row))
    return Seen(InstallHistory(now, tuple(add for add in adds if add is not None), files), tuple(reader.gaps))


def unproven_add(seen: Seen[InstallHistory], version: str, *, requests: tuple[datetime, ...], now: datetime) -> str:
    """Why it is not proven that each request made the version available by one add; empty when it is.

    Args:
        version: as the device names it.
        requests: moments of those that were sent, by our clock; at least one.
        now: the moment of the look, by our clock.
    """
    history = seen.value
    if not seen.complete or history.now is None:
        return f"the history of installs cannot be read: {seen.why or 'the device does not tell the time'}"
    files = {file for name, file in history.files if name == version}
    first, last = min(requests) + (history.now - now) - LEEWAY, history.now + LEEWAY
    ours = [one for one in history.adds if one.file in files and first <= one.begun <= one.ended <= last]
    good = sum(one.succeeded for one in ours)
    if good == len(ours) == len(requests):
        return ""
    told = f"the device remembers {len(ours)} installs of the file of {version} since then, {good} with success"
    return f"{told}, and {len(requests)} were sent"


def _add(reader: Reader, row: etree._Element) -> Add | None:
    begun, ended = (_moment(optional(row, member)) for member in ("start-time", "end-time"))
    if begun is None or ended is None:
        reader.gap("an install of the history has no times")
        return None
    succeeded = (optional(row, "op-status"), optional(row, "op-done")) == _SUCCEEDED
    return Add(_file_of(row), begun, ended, succeeded)


def _files_of(row: etree._Element) -> set[str]:
    """Of a version: the source that it names, and its image; a second add of a file may leave a shortened name as the source."""
    packages = entries(row, "install-package-state-info")
    images = (optional(one, "pkg-name") for one in packages if optional(one, "package-type") == _IMAGE)
    return {_base(name) for name in (optional(row, "src-filename"), *images) if _base(name)}


def _file_of(row: etree._Element) -> str:
    return _base(optional(row, "add-param/dest-filename"))


def _base(path: str) -> str:
    """The name of a file without its folder; `flash:` is a folder too."""
    return path.rpartition("/")[2].rpartition(":")[2]


def _moment(text: str) -> datetime | None:
    try:
        return from_rfc3339(text)
    except ValueError:
        return None
