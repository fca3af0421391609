"""Physical identity of a device, and the identifiers that are derived from names and UIDs (rollouts.md, 5.4, 6.3 and 8.2)."""

import re
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet.encoding import sha256_hex, sha256_text
from gitops_ctl.fleet.names import DEVICE_KEY, MUTATION_LEASE

LONGEST_IDENTITY: Final = 128
"""Bytes of a physical identity."""
LONGEST_NAME: Final = 253
"""Characters of an object's name."""
_IDENTITY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/-]*[A-Za-z0-9])?")
_SUFFIX: Final = 8


def canonical_identity(text: str) -> str:
    """The one form of a physical identity: lower case.

    Raises:
        Refused: another form than letters, digits and `. _ : / -` inside, at most 128 bytes; nothing is trimmed.
    """
    if len(text) > LONGEST_IDENTITY or _IDENTITY.fullmatch(text) is None:
        said = text if len(text) <= LONGEST_IDENTITY else f"{text[:LONGEST_IDENTITY]}…"
        raise Refused(f"{said!r} is no physical identity", code=ErrorCode.PHYSICAL_IDENTITY_INVALID)
    return text.lower()


def observed_identity(machine_id: str, system_uuid: str) -> str:
    """What a Node says about its chassis, in canonical form: both members where both are there, and then equal.

    Raises:
        Refused: neither is there, one has another form, or they differ.
    """
    found = {canonical_identity(text) for text in (machine_id, system_uuid) if text}
    if len(found) == 1:
        return found.pop()
    why = "machineID and systemUUID of the Node differ" if found else "the Node reports no machineID and no systemUUID"
    raise Refused(why, code=ErrorCode.PHYSICAL_IDENTITY_INVALID)


def device_identity_hash(canonical: str) -> str:
    """Hash of a canonical identity: of the text itself, without quotes."""
    return sha256_text(canonical)


def device_key(namespace: str, name: str) -> str:
    """First part of the names of a device's Leases."""
    return DEVICE_KEY + sha256_hex(f"{namespace}\0{name}")[:16]


def mutation_lease_name(namespace: str, name: str) -> str:
    """Name of the Lease that a disruptive change of the device needs; an existing one is adopted under whatever name it has."""
    suffix = sha256_hex("\0".join((namespace, name, MUTATION_LEASE)))[:_SUFFIX]
    return f"{device_key(namespace, name)}-{MUTATION_LEASE}-{suffix}"


def reservation_id(rollout_uid: str, device_uid: str) -> str:
    """Key of a campaign's reservation for a device; the same for preparation and activation."""
    return sha256_hex(f"{rollout_uid}/{device_uid}")[:32]


def child_name(rollout: str, device: str, reservation: str) -> str:
    """Name of the leaf that a campaign makes for a device, at most 253 characters."""
    return _fitting(f"{rollout}-{device}", f"-{reservation[:_SUFFIX]}")


def activation_child_name(prepared: str) -> str:
    """Name of the leaf that activates what the leaf `prepared` staged."""
    return _fitting(prepared, f"-activate-{sha256_hex(prepared)[:_SUFFIX]}")


def _fitting(base: str, suffix: str) -> str:
    return base[: LONGEST_NAME - len(suffix)].rstrip("-.") + suffix
