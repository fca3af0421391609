"""What the manager keeps in memory about one Sync.  All of it can be thrown away: Git, inventory and cluster give it again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.sync.drift import Heat
from gitops_ctl.sync.inventory import InventoryStore, Record
from gitops_ctl.sync.model import Desired, DesiredState, Entry, Health, Held, View
from gitops_ctl.sync.summarise import Drifted


@dataclass(slots=True)
class Retry:
    """When a held object is tried again, and how often it was."""

    due_s: float
    times: int = 1


RETRY_S = 1.0
RETRY_CAP_S = 60.0


@dataclass(slots=True)
class Memory:
    """Of one Sync; used by one pass at a time.

    Attributes:
        record: the inventory as it is stored; None when it must be read.
        state: what Git asks for; `before` is what was last applied of each object by this process.
        held: objects that an apply refused, with the declared digest that was refused.
        dirty: objects of which an informer reported a change since the last plan.
        read: objects that are read by name, as they were last seen.
        judged: health by an expression, for a version of an object.
        notes: what differs in a drifted object, for a version of it.
        permitted: objects with UIDs of a removal that passed the guards and is not finished.
        waits: the last pass left objects that are not healthy yet.
        done: key of the last pass that came to its end; `due_s` is when it wants to look again.
    """

    key: NamespacedName
    uid: str
    store: InventoryStore | None = None
    record: Record | None = None
    state: DesiredState | None = None
    before: dict[ObjectId, Desired] = field(default_factory=dict)
    held: dict[ObjectId, tuple[Held, str]] = field(default_factory=dict)
    retries: dict[ObjectId, Retry] = field(default_factory=dict)
    dirty: set[ObjectId] = field(default_factory=set)
    read: dict[ObjectId, View | None] = field(default_factory=dict)
    read_at_s: float | None = None
    compared_at_s: float | None = None
    heats: dict[ObjectId, Heat] = field(default_factory=dict)
    judged: dict[ObjectId, tuple[str, Health]] = field(default_factory=dict)
    notes: dict[ObjectId, tuple[str, Drifted]] = field(default_factory=dict)
    permitted: frozenset[tuple[ObjectId, str]] = frozenset()
    wait_key: tuple[object, ...] = ()
    wait_since_s: float = 0.0
    waits: bool = False
    done: tuple[object, ...] = ()
    due_s: float = 0.0
    requested: str = ""

    @property
    def entries(self) -> Mapping[ObjectId, Entry]:
        return self.record.entries if self.record is not None else {}

    @property
    def shards(self) -> int:
        return len(self.record.shards) if self.record is not None else 0

    def hold(self, held: Held, *, digest: str, retry: bool, now_s: float, interval_s: float) -> None:
        """Remember a refusal: tried again soon when it may go by itself, else at the interval."""
        item = held.id
        times = self.retries[item].times + 1 if item in self.retries else 1
        wait_s = min(RETRY_CAP_S, RETRY_S * 2.0 ** min(times - 1, 10)) if retry else interval_s
        self.held[item] = (held, digest)
        self.retries[item] = Retry(now_s + wait_s, times)

    def release(self, item: ObjectId) -> None:
        """An object is applied, or gone from Git."""
        self.held.pop(item, None)
        self.retries.pop(item, None)

    def is_waiting(self, desired: Desired, *, now_s: float) -> Held | None:
        """The reason why an object is not tried now: it was refused with the same content, and its time has not come."""
        found = self.held.get(desired.id)
        retry = self.retries.get(desired.id)
        if found is None or retry is None or found[1] != desired.digest or now_s >= retry.due_s:
            return None
        return found[0]
