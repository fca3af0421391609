"""The lines of the claim journal (rollouts.md, section 13.9).  Pure.

The first line names the journal; every other one is a record.  Each line begins with a digest over itself and the digest before it, so
that no line can be changed, moved or taken out unseen; only the end can be missing.  A record belongs to a claim by device, plan,
reservation and stage, whatever leaf carried it.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from gitops_ctl.core.jsonvalue import JsonObject, int_at, text_at

_DIGEST: Final = 32
_VERSION: Final = 1


class Step(StrEnum):
    """What a record says about its claim."""

    INTENT = "intent"
    """The journal can be written; nothing was sent."""
    CLAIMED = "claimed"
    """The request may have been sent."""
    SETTLED = "settled"
    """The outcome is resolved; the claim is history, and is kept so that it is never made again."""


class ClaimKey(NamedTuple):
    """What makes a claim the same claim after a restore of the cluster."""

    device_uid: str
    plan_hash: str
    reservation_id: str
    stage: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim as it stands in the leaf; `sequence` is 0 until the journal has given it one."""

    key: ClaimKey
    physical_identity: str
    leaf_uid: str
    claimed_at: str
    policy_epoch: int
    control_revision: int
    step: Step = Step.INTENT
    sequence: int = 0

    def at(self, step: Step, sequence: int) -> "Claim":
        """The same claim, one record further."""
        return replace(self, step=step, sequence=sequence)


class Malformed(ValueError):
    """A line that is not what it has to be."""


def first_line(journal_id: str) -> tuple[bytes, str]:
    """The line that names the journal, and its digest."""
    return _line({"journal": journal_id, "version": _VERSION}, "")


def line_of(claim: Claim, before: str) -> tuple[bytes, str]:
    """The line of a record after the line with the digest `before`, and its own digest."""
    record: JsonObject = {
        "record": claim.step,
        "deviceUID": claim.key.device_uid,
        "physicalIdentity": claim.physical_identity,
        "planHash": claim.key.plan_hash,
        "reservationID": claim.key.reservation_id,
        "leafUID": claim.leaf_uid,
        "stage": claim.key.stage,
        "claimedAt": claim.claimed_at,
        "policyEpoch": claim.policy_epoch,
        "controlRevision": claim.control_revision,
        "sequence": claim.sequence,
    }
    return _line(record, before)


def read_first(line: bytes) -> tuple[str, str]:
    """Id of the journal and digest of the line.

    Raises:
        Malformed: it names no journal of this version.
    """
    tree, digest = _checked(line, "")
    if not text_at(tree, "journal") or int_at(tree, "version") != _VERSION:
        raise Malformed("it names no journal of this version")
    return text_at(tree, "journal"), digest


def read_line(line: bytes, before: str) -> tuple[Claim, str]:
    """The record and the digest of its line.

    Raises:
        Malformed: it was changed, does not follow the line with the digest `before`, or is no record.
    """
    tree, digest = _checked(line, before)
    try:
        step = Step(text_at(tree, "record"))
    except ValueError:
        raise Malformed("it is no record") from None
    texts = {name: text_at(tree, name) for name in ("deviceUID", "planHash", "reservationID", "stage", "leafUID")}
    sequence = int_at(tree, "sequence")
    if not all(texts.values()) or sequence < 1:
        raise Malformed("it is no record")
    key = ClaimKey(texts["deviceUID"], texts["planHash"], texts["reservationID"], texts["stage"])
    claim = Claim(
        key,
        text_at(tree, "physicalIdentity"),
        texts["leafUID"],
        text_at(tree, "claimedAt"),
        int_at(tree, "policyEpoch"),
        int_at(tree, "controlRevision"),
        step,
        sequence,
    )
    return claim, digest


def whole_lines(data: bytes) -> tuple[list[bytes], int]:
    """The complete lines of a journal without their ends, and how many bytes of a torn line follow.

    The last line is torn when its end is missing, or when it holds a zero byte: that is what a loss of power leaves of a record that
    nobody was told about.
    """
    whole, _, torn = data.rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    if lines and not torn and b"\0" in lines[-1]:
        return lines[:-1], len(lines[-1]) + 1
    return lines, len(torn)


def _line(tree: JsonObject, before: str) -> tuple[bytes, str]:
    payload = json.dumps(tree, separators=(",", ":"), ensure_ascii=True).encode()
    digest = _digest(payload, before)
    return b"%s %s\n" % (digest.encode(), payload), digest


def _checked(line: bytes, before: str) -> tuple[JsonObject, str]:
    digest, _, payload = line.partition(b" ")
    if digest.decode(errors="replace") != _digest(payload, before):
        raise Malformed("its digest is wrong")
    tree = json.loads(payload)
    if not isinstance(tree, dict):
        raise Malformed("it is no object")
    return tree, digest.decode()


def _digest(payload: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + b"\n" + payload).hexdigest()[:_DIGEST]
