"""What must hold after every single write of a simulated world; a broken rule is collected and fails the run.

The rules know the product by its objects only: what the store holds, who wrote it, and what each commit declares.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, GROUP, LABEL_OWNER
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.model import OwnerId
from tests.doubles.apiserver.store import Change, Store, Tree
from tests.support.simulation_git import Book

SOURCES, SYNCS, INVENTORIES = (GROUP, "gitsources"), (GROUP, "syncs"), (GROUP, "inventories")
OURS = (SOURCES, SYNCS, INVENTORIES)
SILENT = (("coordination.k8s.io", "leases"),)
MOST_REQUESTS = 400
"""In one minute; a restart takes some fifty, a pass over the few objects of a story some thirty."""


def identity_of(collection: tuple[str, str], tree: Tree) -> ObjectId:
    metadata = tree["metadata"]
    return ObjectId(collection[0], tree["kind"], metadata.get("namespace", ""), metadata["name"])


def mark_of(tree: Tree) -> str:
    """The owner annotation of an object that carries the label too."""
    metadata = tree["metadata"]
    labelled = LABEL_OWNER in (metadata.get("labels") or {})
    return str((metadata.get("annotations") or {}).get(ANNOTATION_OWNER_ID, "")) if labelled else ""


def contains(live: Any, declared: Any) -> bool:
    """Whether everything declared is in the live object; lists are compared item by item."""
    if isinstance(declared, Mapping):
        return isinstance(live, Mapping) and all(contains(live.get(name), value) for name, value in declared.items())
    if isinstance(declared, (list, tuple)):
        return isinstance(live, list) and len(live) == len(declared) and all(map(contains, live, declared))
    return bool(live == declared)


@dataclass
class Rules:
    """Watches one store.

    Attributes:
        acceptable: the commits that may ever be accepted.
        writer: who writes now: `product` or `story`.
        replaced: the process that writes has lost the Lease: its request was on the way already.  What it says may be untrue
            until the next leader sees it; that nothing of it stays is seen at the end.
        broken: what did not hold, oldest first.
        accepted: commits that a status has named as accepted, in order.
        last_write_s: when the product wrote last, Leases apart.
    """

    store: Store
    book: Book
    acceptable: frozenset[str]
    writer: str = "story"
    replaced: bool = False
    broken: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    last_write_s: float = 0.0
    minutes: Counter[int] = field(default_factory=Counter)
    uids: dict[ObjectId, str] = field(default_factory=dict)
    removed: set[ObjectId] = field(default_factory=set)

    def begin(self) -> None:
        """Take the world as it is for granted, and look at everything that comes."""
        self.accepted = [revision for _, tree in self.store.all(SOURCES) if (revision := _accepted(tree))]
        self.uids = {identity_of(place, tree): tree["metadata"]["uid"] for place, tree in self._objects()}
        self.store.listeners.append(self.changed)

    def asked(self, now_s: float) -> None:
        """A request of the product."""
        minute = int(now_s // 60)
        self.minutes[minute] += 1
        if self.minutes[minute] == MOST_REQUESTS:
            self._break(f"more than {MOST_REQUESTS} requests in minute {minute}")

    def changed(self, change: Change) -> None:
        """One write."""
        if self.writer == "product":
            self._of_product(change)
        else:
            self._of_story(change)
        self._superset()

    def _break(self, text: str) -> None:
        self.broken.append(text)

    def _of_story(self, change: Change) -> None:
        item = identity_of(change.collection, change.last)
        if change.new is None:
            self.uids.pop(item, None)
        else:
            self.uids[item] = change.new["metadata"]["uid"]

    def _of_product(self, change: Change) -> None:
        if change.collection == SOURCES and change.new is not None:
            self._source(change.new)
        elif change.collection == SYNCS and change.new is not None:
            self._sync(change.old or {}, change.new)
        elif change.collection not in (*OURS, *SILENT) and change.last.get("kind") != "Event":
            self._object(change)

    def _source(self, tree: Tree) -> None:
        revision = _accepted(tree)
        if revision and revision not in self.accepted:
            self.accepted.append(revision)
            if revision not in self.acceptable:
                self._break(f"accepted {self.book.names.get(revision, revision)}, which nobody was entitled to")

    def _sync(self, old: Tree, new: Tree) -> None:
        """No lie: a revision counts as applied only when every object of it is there as declared."""
        was, now = (tree.get("status", {}).get("lastAppliedRevision", "") for tree in (old, new))
        if not now or was == now or self.replaced:
            return
        if now not in self.accepted:
            self._break(f"{_name(new)} says that it applied {self.book.names.get(now, now)}, which no status accepts")
        for item, tree in self.book.declared[now][new["spec"]["path"]].items():
            live = self._live(item)
            if live is None or not contains(live, tree):
                self._break(f"{_name(new)} says that {self.book.names[now]} is applied, and {item} is not as declared")

    def _object(self, change: Change) -> None:
        item = identity_of(change.collection, change.last)
        if change.new is None:
            self._removal(item, change.last)
            return
        uid = change.new["metadata"]["uid"]
        before = self.uids.setdefault(item, uid)
        if item in self.removed or before != uid:
            self._break(f"{item} was removed and made again")
        self.uids[item] = uid
        if change.old is None or _content(change.old) != _content(change.new):
            self._traced(item, change.new)

    def _traced(self, item: ObjectId, tree: Tree) -> None:
        """P1: what is written stands in a revision that a status named as accepted before."""
        if not mark_of(tree):
            return  # released
        declared = (found.get(item) for commit in self.accepted for found in self.book.declared[commit].values())
        if not any(asked is not None and contains(tree, asked) for asked in declared):
            self._break(f"{item} was written as no accepted revision declares it")

    def _removal(self, item: ObjectId, last: Tree) -> None:
        owner = OwnerId.of_mark(mark_of(last), identity=item)
        self.uids.pop(item, None)
        self.removed.add(item)
        if owner is None:
            self._break(f"{item} was removed, and it was not ours")
            return
        for key, sync in self.store.all(SYNCS):
            dying = "deletionTimestamp" in sync["metadata"]
            commit = self.accepted[-1] if self.accepted else ""
            if commit and not dying and item in self.book.declared[commit].get(sync["spec"]["path"], {}):
                self._break(f"{item} was removed, and {key[1]} asks for it")

    def _superset(self) -> None:
        """Whatever carries a mark stands in an inventory of that owner."""
        listed = {
            (tree["spec"]["owner"]["id"], _entry(entry))
            for _, tree in self.store.all(INVENTORIES)
            for entry in tree["spec"].get("entries", ())
        }
        for place, tree in self._objects():
            item = identity_of(place, tree)
            owner = OwnerId.of_mark(mark_of(tree), identity=item)
            if owner is not None and (str(owner), item) not in listed:
                self._break(f"{item} is marked as ours and in no inventory")

    def _objects(self) -> Iterator[tuple[tuple[str, str], Tree]]:
        return (
            (place, tree)
            for place, _, tree in self.store.everything()
            if place not in OURS and place not in SILENT and tree["kind"] != "Event"
        )

    def _live(self, item: ObjectId) -> Tree | None:
        return next((tree for place, tree in self._objects() if identity_of(place, tree) == item), None)


def _accepted(tree: Tree) -> str:
    return str(tree.get("status", {}).get("accepted", {}).get("revision", ""))


def _name(tree: Tree) -> str:
    return f"{tree['kind']} {tree['metadata']['name']}"


def _entry(entry: Mapping[str, str]) -> ObjectId:
    return ObjectId(entry.get("group", ""), entry["kind"], entry.get("namespace", ""), entry["name"])


def _content(tree: Tree) -> Any:
    """An object without what the server itself writes."""
    hidden = ("resourceVersion", "managedFields", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
    metadata = {name: value for name, value in tree["metadata"].items() if name not in hidden}
    return {**tree, "metadata": metadata}
