"""The values of `gitops-ctl diff`: what would become of each object.  Pure; asking the server is in `compare`."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.api.names import ANNOTATION_INTRODUCED_BY, ANNOTATION_INTRODUCED_COMMIT
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.redact import REDACTED, redact_text
from gitops_ctl.sync.diff import Difference, differences, secret_keys_changed
from gitops_ctl.sync.model import UNSEEN, Desired, DesiredState, Entry, Mode
from gitops_ctl.sync.plan import Facts, plan
from gitops_ctl.sync.prune import hidden_entries

_MARKS: Final = frozenset(
    f"/metadata/annotations/{name.replace('/', '~1')}"
    for name in (ANNOTATION_INTRODUCED_BY, ANNOTATION_INTRODUCED_COMMIT)
)
_LAST_APPLIED: Final = "last-applied-configuration"


class Action(enum.StrEnum):
    """What would become of an object, in the order in which it is shown."""

    CREATE = "create"
    CHANGE = "change"
    RECREATE = "recreate"
    PRUNE = "prune"
    HELD = "held"
    UNKNOWN = "unknown"
    KEPT = "kept"
    SAME = "same"

    @property
    def changes(self) -> bool:
        """Whether the cluster would be another one."""
        return self in (Action.CREATE, Action.CHANGE, Action.RECREATE, Action.PRUNE)


_ORDER: Final = {action: number for number, action in enumerate(Action)}


@dataclass(frozen=True, slots=True)
class Item:
    """One object.  `reason` and `message` say why it is held or kept, or what the server could not say."""

    object: ObjectId
    action: Action
    file: str = ""
    line: int = 0
    changes: tuple[Difference, ...] = ()
    reason: str = ""
    message: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file and self.line else self.file


@dataclass(frozen=True, slots=True)
class Removals:
    """What would leave the cluster: `digest` names the set, `blocked` says why it does not go."""

    items: tuple[Item, ...] = ()
    digest: str = ""
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a controller would say of an object in the cluster as it is; it holds nothing."""

    object: ObjectId
    file: str
    line: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer for one Sync."""

    sync: NamespacedName
    items: tuple[Item, ...]
    removals: Removals = Removals()
    findings: tuple[Finding, ...] = ()

    @property
    def counts(self) -> Mapping[Action, int]:
        """Number of objects by action, those without any left out."""
        found = {action: sum(1 for item in self.items if item.action is action) for action in Action}
        return {action: count for action, count in found.items() if count}

    @property
    def exit_code(self) -> int:
        """2 when something would change, else 1 when an object waits or could not be asked about, else 0."""
        if any(item.action.changes for item in self.items):
            return 2
        waits = any(item.action in (Action.HELD, Action.UNKNOWN) for item in self.items)
        return 1 if waits or self.removals.blocked else 0


def in_order(items: list[Item]) -> tuple[Item, ...]:
    """What changes first, then what waits, then the rest; by object within."""
    return tuple(sorted(items, key=lambda item: (_ORDER[item.action], item.object)))


def item_of(desired: Desired, action: Action, *, reason: str = "", message: str = "") -> Item:
    """The item of a declared object; what looks like a credential is taken out of the message."""
    return Item(desired.id, action, desired.file, desired.line, reason=reason, message=redact_text(message))


def compared_item(desired: Desired, live: JsonObject | None, wanted: JsonObject) -> Item:
    """The item of an object that the server would accept: `wanted` is its answer to the dry run."""
    if live is None:
        return item_of(desired, Action.CREATE)
    found = differing(live, wanted)
    return replace(item_of(desired, Action.CHANGE), changes=found) if found else item_of(desired, Action.SAME)


def differing(live: JsonObject, wanted: JsonObject) -> tuple[Difference, ...]:
    """Everything that differs, with secret values hidden; of a Secret the keys.

    The marks that name an introducer are left out: they come from signed history, which a checkout does not hold yet.
    """
    if text_at(live, "kind") == "Secret":
        found = [*differences(_without_data(live), _without_data(wanted))]
        found += [Difference(pointer, REDACTED, REDACTED) for pointer in secret_keys_changed(live, wanted)]
    else:
        found = list(differences(live, wanted))
    return tuple(_shielded(item) for item in found if item.pointer not in _MARKS)


def _without_data(tree: JsonObject) -> JsonObject:
    return {name: value for name, value in tree.items() if name not in ("data", "stringData")}


def _shielded(item: Difference) -> Difference:
    """What kubectl keeps of a whole object may hold every value of it."""
    return replace(item, live=REDACTED, wanted=REDACTED) if item.pointer.endswith(_LAST_APPLIED) else item


def waiting_items(state: DesiredState, entries: Mapping[ObjectId, Entry]) -> Iterator[Item]:
    """What documents hold, also the objects that came from a file that cannot be read now, and what is left alone."""
    facts = Facts(state, entries, lambda _desired: UNSEEN, lambda _owner, _item: False)
    for held in plan(facts).held:
        message = redact_text(held.message)
        yield Item(held.id, Action.HELD, held.file, held.line, reason=held.why, message=message)
    for desired in state.objects.values():
        if desired.mode is Mode.IGNORE:
            yield item_of(desired, Action.KEPT, message="its mode is Ignore")
        elif state.unit_held:
            text = "spec.onDocumentError is HoldUnit, and a document of the unit has an error"
            yield item_of(desired, Action.HELD, reason=ErrorCode.OBJECTS_HELD.reason, message=text)
    for name in hidden_entries(state, entries):
        yield Item(name, Action.KEPT, reason=ErrorCode.HIDDEN_IN_GIT.reason, message="its file is ignored")
