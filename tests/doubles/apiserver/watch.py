"""Watches: a cursor into the event log that turns changes into events.  Pure; the HTTP side decides when to poll."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.doubles.apiserver.answers import ApiError, Tree, bad_request, expired, internal
from tests.doubles.apiserver.calls import presented
from tests.doubles.apiserver.partial import metadata_of
from tests.doubles.apiserver.resources import Resource
from tests.doubles.apiserver.selectors import Predicate, selected
from tests.doubles.apiserver.store import Change, Compacted, Store

INITIAL_END = "k8s.io/initial-events-end"


def parsed_version(text: str) -> int:
    """A resourceVersion of a query.

    Raises:
        ApiError: 500, as the server answers for one that is no number.
    """
    if not text.isdigit():
        raise internal(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


@dataclass
class Watch:
    """One stream.  `poll` returns what happened since the last time."""

    store: Store
    resource: Resource
    namespace: str
    matches: Predicate
    version: int
    bookmarks: bool
    ended: bool = False
    pending: list[Tree] = field(default_factory=list)
    partial: bool = False

    def poll(self) -> list[Tree]:
        """New events, oldest first; after an ERROR event the stream has ended."""
        events, self.pending = self.pending, []
        if self.ended or self.is_ahead:
            return events
        try:
            changes = self.store.after(self.resource.collection, self.version)
        except Compacted:
            self.ended = True
            text = f"too old resource version: {self.version} ({self.store.floor})"
            return [*events, {"type": "ERROR", "object": expired(text).body()}]
        for change in changes:
            self.version = change.version
            event = self._event(change)
            if event is not None:
                events.append(event)
        self.version = max(self.version, self.store.version)
        return events

    @property
    def is_ahead(self) -> bool:
        """Whether the stream began at a version that the store has not reached."""
        return self.version > self.store.version

    def repeat(self, number: int) -> None:
        """Show the last `number` changes again, as after a resume from an older version."""
        known = [item for item in self.store.log if item.collection == self.resource.collection]
        older = [change for change in known if change.version <= self.version][-number:]
        if older:
            self.version = min(self.version, older[0].version - 1)

    def bookmark(self, *, initial_end: bool = False) -> Tree:
        """The event that says how far the stream is."""
        metadata: Tree = {"resourceVersion": str(min(self.version, self.store.version))}
        if initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        tree = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": metadata_of(tree) if self.partial else tree}

    def _event(self, change: Change) -> Tree | None:
        if self.namespace and change.key[0] != self.namespace:
            return None
        was = change.old is not None and self.matches(change.old)
        if change.new is None:
            return self._shown("DELETED", change.last) if was else None
        now = self.matches(change.new)
        if was and not now:
            gone = {**change.old} if change.old is not None else {}
            gone["metadata"] = {**gone["metadata"], "resourceVersion": str(change.version)}
            return self._shown("DELETED", gone)
        if not now:
            return None
        return self._shown("MODIFIED" if was else "ADDED", change.new)

    def _shown(self, kind: str, tree: Tree) -> Tree:
        shown = presented(self.resource, tree)
        whole = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **shown}
        return {"type": kind, "object": metadata_of(whole) if self.partial else whole}


def open_watch(store: Store, resource: Resource, namespace: str, query: Mapping[str, str]) -> Watch:
    """The watch that a query asks for.

    Raises:
        ApiError: bad selectors or versions.
    """
    text = query.get("resourceVersion", "")
    streaming = query.get("sendInitialEvents", "").lower() in ("1", "true")
    if streaming and query.get("resourceVersionMatch") != "NotOlderThan":
        raise _streaming_needs_match()
    if "continue" in query or ("resourceVersionMatch" in query and not streaming):
        raise bad_request("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    version = parsed_version(text) if text else 0
    watch = Watch(
        store,
        resource,
        namespace,
        selected(query, resource.collection),
        version or store.version,
        bookmarks=query.get("allowWatchBookmarks", "").lower() in ("1", "true"),
    )
    if not version or streaming:
        watch.version = store.version
        found = [tree for _, tree in store.all(resource.collection, namespace) if watch.matches(tree)]
        watch.pending = [watch._shown("ADDED", tree) for tree in found]
    if streaming and watch.bookmarks:
        watch.pending.append(watch.bookmark(initial_end=True))
    return watch


def _streaming_needs_match() -> ApiError:
    text = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    return ApiError(422, f'ListOptions.meta.k8s.io "" is invalid: {text}', "Invalid", {})
