"""What holds a rollout or a device as it is in the cluster, and what of it Git does not put back (rollouts.md, 2.6, 8.6, 11.1 to 11.6).

Each rule says before the apply, in words and with numbers, what the API server would refuse with a rule about two versions; a
lock holds what admission would refuse.  The old version is the live object.  A checkout has none, and says nothing here.
"""

from collections.abc import Iterator
from typing import Final

from gitops_ctl.api.names import ANNOTATION_INTRODUCED_COMMIT
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.documents.holds import HoldQuestion, register_hold
from gitops_ctl.documents.living import register_living
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.fleet import names
from gitops_ctl.rollout.documentrules import DEVICE, ROLLOUT

IDENTITY_MEMBERS: Final = ("requestedBy", "requestedAt")
_CONTROL: Final = "/spec/control"
_PROTECTED: Final = ("topology.cisco.vk/", "operations.cisco.vk/", "distribution.cisco.vk/")
_ZONES: Final = (names.REGION, names.ZONE)
_FROZEN_ANNOTATIONS: Final = (names.ADOPT_NODE_UID, names.APPROVE_RECLASSIFICATION)


def live_control(tree: JsonObject, live: JsonObject) -> JsonObject:
    """The document with the live control while that is newer: an emergency stop stays until Git has caught up.

    Names and times are left out: the stored ones stay, because the revision is the same.
    """
    control = object_at(live, "spec", "control")
    if int_at(control, "revision") <= int_at(tree, "spec", "control", "revision"):
        return tree
    kept = {name: value for name, value in control.items() if name not in IDENTITY_MEMBERS}
    return {**tree, "spec": {**object_at(tree, "spec"), "control": kept}}


def control_is_stale(question: HoldQuestion) -> Flaw | None:
    """Held while Git changes the control without a revision above the live one.

    A lower revision that was applied before is no change: somebody tightened it since, and that stands until Git catches up.
    """
    live = _live_part(question.old, "spec", "control")
    wanted = object_at(question.new, "spec", "control")
    if live is None or _asked(wanted) == _asked(live):
        return None
    revision, written = int_at(live, "revision"), int_at(wanted, "revision")
    if written > revision or (written < revision and not _is_news(question)):
        return None
    who = text_at(live, "requestedBy", default="nobody")
    message = (
        f"control has the revision {written} and differs from the live one, revision {revision} of {who}: "
        f"the next free revision is {revision + 1}"
    )
    return Flaw(ErrorCode.CONTROL_REVISION, message, f"{_CONTROL}/revision", f"write revision {revision + 1}")


def _is_news(question: HoldQuestion) -> bool:
    """Whether the control comes from another commit than the one that was applied last."""
    author = question.authors.of(_CONTROL) if question.authors is not None else None
    applied = text_at(question.old or {}, "metadata", "annotations", ANNOTATION_INTRODUCED_COMMIT)
    return author is not None and f"control={author.commit}" not in applied.split(",")


def _asked(control: JsonObject) -> tuple[int, bool, bool, str]:
    """What a control asks for, whoever asked."""
    return (
        int_at(control, "revision"),
        bool_at(control, "pause"),
        bool_at(control, "cancel"),
        text_at(control, "reason"),
    )


def hash_mismatch(question: HoldQuestion) -> Flaw | None:
    """Held while a block names another hash than that of the published plan."""
    if _live_part(question.old) is None:
        return None
    published = text_at(question.old or {}, "status", "frozenPlan", "hash")
    for block in ("approval", "activationApproval", "preparationInvalidation"):
        wanted = text_at(question.new, "spec", block, "planHash")
        if not wanted or wanted == published:
            continue
        found = f"the published plan has {published}" if published else "no plan is published yet"
        pointer = f"/spec/{block}/planHash"
        return Flaw(ErrorCode.APPROVAL_MISMATCH, f"{block} is for the plan {wanted}, and {found}", pointer)
    return None


def wrong_state(question: HoldQuestion) -> Flaw | None:
    """Held while a block is added to a campaign that is not there yet."""
    old = _live_part(question.old)
    if old is None:
        return None
    return next(_wrong_states(question.new, old), None)


def _wrong_states(new: JsonObject, old: JsonObject) -> Iterator[Flaw]:
    phase = text_at(old, "status", "phase", default="not planned")
    if _is_added("preparationInvalidation", new, old) and phase != "Cancelled":
        message = f"preparationInvalidation is for cancelled campaigns, and this one is {phase}"
        yield Flaw(ErrorCode.ROLLOUT_STATE, message, "/spec/preparationInvalidation")
    if object_at(new, "spec", "recovery") == object_at(old, "spec", "recovery"):
        return
    yield from _recovery(text_at(new, "spec", "recovery", "leafUID"), old)


def _recovery(leaf: str, old: JsonObject) -> Iterator[Flaw]:
    pointer = "/spec/recovery"
    states = {text_at(item, "leafUID"): text_at(item, "state") for item in objects_at(old, "status", "recoveries")}
    before = text_at(old, "spec", "recovery", "leafUID")
    leaves = {text_at(target, "leafUID") for target in objects_at(old, "status", "targets")}
    if states.get(before) == "Accepted" or (states.get(before) == "Settled" and leaf in ("", before)):
        message = f"the recovery of leaf {before} is {states[before]}: it neither changes nor goes away"
        yield Flaw(ErrorCode.ROLLOUT_STATE, message, pointer)
    elif leaf and states.get(leaf) in ("Accepted", "Settled"):
        yield Flaw(ErrorCode.ROLLOUT_STATE, f"the recovery of leaf {leaf} is {states[leaf]} already", pointer)
    elif leaf and leaf not in leaves:
        yield Flaw(ErrorCode.ROLLOUT_STATE, f"{leaf} is the UID of no leaf of this campaign", f"{pointer}/leafUID")


def _is_added(block: str, new: JsonObject, old: JsonObject) -> bool:
    return bool(object_at(new, "spec", block)) and not object_at(old, "spec", block)


def device_is_locked(question: HoldQuestion) -> Flaw | None:
    """Held while a campaign has the device: the whole spec, protected labels and what approves an identity."""
    lock = _live_part(question.old, "status", "topologyLock")
    if not lock or question.old is None:
        return None
    pointer = next(_frozen_changes(question.new, question.old), None)
    if pointer is None:
        return None
    campaign = f"{text_at(lock, 'campaignNamespace')}/{text_at(lock, 'campaignName')}"
    message = f"the campaign {campaign} has the device ({text_at(lock, 'state')}); the change waits until it lets go"
    return Flaw(ErrorCode.DEVICE_LOCKED, message, pointer)


def _frozen_changes(new: JsonObject, old: JsonObject) -> Iterator[str]:
    """Places where the document says something else than the object; what it does not name, admission keeps."""
    live, wanted = object_at(old, "spec"), object_at(new, "spec")
    yield from (f"/spec/{name}" for name, value in wanted.items() if not _covers(live.get(name), value))
    for part, is_frozen in (("labels", _is_protected), ("annotations", _is_approval)):
        before = object_at(old, "metadata", part)
        for name, value in object_at(new, "metadata", part).items():
            if is_frozen(name) and before.get(name) != value:
                yield pointer_of(("metadata", part, name))


def _covers(live: object, wanted: object) -> bool:
    """Whether an object has all that a document says; the server adds members, and leaves out empty ones."""
    if isinstance(wanted, dict):
        return all(_covers(live.get(name) if isinstance(live, dict) else None, value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(live) == len(wanted) and all(map(_covers, live, wanted))
    return live == wanted or (live is None and wanted in (None, [], ""))


def _is_protected(name: str) -> bool:
    return name.startswith(_PROTECTED) or name in _ZONES


def _is_approval(name: str) -> bool:
    return name in _FROZEN_ANNOTATIONS


def _live_part(tree: JsonObject | None, *steps: str) -> JsonObject | None:
    """A part of the live object; None when the old version is that of a checkout."""
    if tree is None or not text_at(tree, "metadata", "uid"):
        return None
    return object_at(tree, *steps) if steps else tree


register_living(ROLLOUT, live_control)
register_hold(ROLLOUT, control_is_stale)
register_hold(ROLLOUT, hash_mismatch)
register_hold(ROLLOUT, wrong_state)
register_hold(DEVICE, device_is_locked)
