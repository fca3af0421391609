"""What a switch says about itself, as far as an upgrade needs it (devices.md, section 5.2; rollouts.md, sections 9.4, 13.2, 15.5).

Every reading is a `Seen`: the value, and what is missing from it.  An entry that cannot be read is left out and named in `gaps`;
a subtree that is not there is a gap too.  Nothing is guessed: who decides asks `complete` first.  The values are those of the
published Cisco-IOS-XE models.  Sizes are bytes, rates and speeds bits per second.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_LONGEST_TEXT = 256


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """A reading; `gaps` says in words what of it is missing or cannot be read."""

    value: T
    gaps: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.gaps

    @property
    def why(self) -> str:
        """The gaps in one line, bounded; empty for a complete reading."""
        return "; ".join(self.gaps)[:_LONGEST_TEXT]


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface; a rate or speed that the device does not give is None."""

    name: str
    up: bool
    speed: int | None
    ingress: int | None
    egress: int | None


@dataclass(frozen=True, slots=True)
class Neighbor:
    """One neighbour on one interface; `source` is `cdp` or `lldp`."""

    source: str
    id: str
    interface: str
    state: str = "discovered"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Interfaces and neighbours, each sorted."""

    interfaces: tuple[Interface, ...] = ()
    neighbors: tuple[Neighbor, ...] = ()


class VersionState(StrEnum):
    """What a version is to the device."""

    COMMITTED = "committed"
    UNCOMMITTED = "uncommitted"
    PENDING = "pending"
    ADDED = "added"
    PRESENT = "present"
    INVALID = "invalid"


_INVENTORY: Final = {
    VersionState.COMMITTED: "ProvisionedCommitted",
    VersionState.UNCOMMITTED: "ProvisionedUncommitted",
    VersionState.PENDING: "InProgress",
    VersionState.ADDED: "Installed",
    VersionState.PRESENT: "Present",
    VersionState.INVALID: "Invalid",
}


class Mode(StrEnum):
    """How the device boots."""

    INSTALL = "install"
    BUNDLE = "bundle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Version:
    """One version that the device knows; `file` is where it came from, empty when the device does not say."""

    name: str
    state: VersionState
    file: str = ""


@dataclass(frozen=True, slots=True)
class InstallState:
    """What the install manager says, agreed by all supervisors.

    Attributes:
        running: the version that runs; empty when it is not known.
        committed: whether that version is the committed one.
        versions: all of them, sorted by name.
        operation: an install or ISSU operation is in progress.
        timer: the auto-abort timer runs.
        mode: how it booted.
        supervisors: how many places software is installed at.
        partial: names of versions that not every supervisor lists.
    """

    running: str = ""
    committed: bool = False
    versions: tuple[Version, ...] = ()
    operation: bool = False
    timer: bool = False
    mode: Mode = Mode.UNKNOWN
    supervisors: int = 0
    partial: frozenset[str] = frozenset()

    @property
    def everywhere(self) -> "InstallState":
        """Without the versions that a supervisor lacks."""
        return replace(self, versions=tuple(one for one in self.versions if one.name not in self.partial))

    @property
    def pending(self) -> tuple[str, ...]:
        """Versions whose activation is not finished."""
        return tuple(version.name for version in self.versions if version.state is VersionState.PENDING)

    def holds(self, wanted: str, *, states: tuple[VersionState, ...]) -> str:
        """The one version that is `wanted` or begins with it and a dot, in one of the states; empty for none or several."""
        found = [version.name for version in self.matching(wanted) if version.state in states]
        return found[0] if len(found) == 1 else ""

    def matching(self, wanted: str) -> tuple[Version, ...]:
        """Versions that are `wanted`, or begin with it and a dot."""
        return tuple(
            version for version in self.versions if version.name == wanted or version.name.startswith(f"{wanted}.")
        )


def inventory_state(seen: Seen[InstallState], wanted: str) -> str:
    """The word of a leaf's `inventoryState` for a version (rollouts.md, section 4.3); Unknown unless one complete look answers."""
    found = seen.value.matching(wanted)
    if not seen.complete or len(found) > 1:
        return "Unknown"
    return _INVENTORY[found[0].state] if found else "Absent"


@dataclass(frozen=True, slots=True)
class Flash:
    """The primary writable file system of one supervisor."""

    place: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Platform:
    """Serial number of the chassis (empty when not known), and the flash of each supervisor."""

    serial: str = ""
    flash: tuple[Flash, ...] = ()


@dataclass(frozen=True, slots=True)
class Apps:
    """Names of applications on the device: those of its configuration, and those that it has, with their state."""

    configured: tuple[str, ...] = ()
    present: tuple[tuple[str, str], ...] = ()

    @property
    def none(self) -> bool:
        return not self.configured and not self.present


@dataclass(frozen=True, slots=True)
class SavedConfiguration:
    """Whether what runs is what a reload brings back; `differences` are paths without values, a few of them."""

    saved: bool
    differences: tuple[str, ...] = ()
