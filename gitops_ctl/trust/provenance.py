"""Who introduced the present value of a field, and which revisions may have effects: all of trust that a domain sees.

`AcceptedRevisions` is the hand-over from source to sync: the newest revision of each source whose effects are allowed, kept in
memory, rebuilt from the status of the sources after a restart (gitops.md, sections 4.5 and 4.6).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName, ObjectId


@dataclass(frozen=True, slots=True)
class Introduced:
    """The commit that gave a field its present value, and the person who was judged for it.

    Attributes:
        person: of several reviewers of a forge's merge the one whose counted approval is the earliest.
        at: committer date of that commit.
        first_seen: when the controller first saw it, by its own clock.
        judged: everybody who was judged for the commit.
    """

    commit: str
    person: str
    verb: str
    kubernetes_user: str
    at: datetime
    first_seen: datetime
    judged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Answers about one revision.  What stood in the tree of the pinned root has no introducer.

    Attributes:
        fields: (object, JSON pointer) of authorising fields, and of what they authorise, to who introduced the value.
        objects: object to the commit that last changed it.
        void: (object, JSON pointer) of values that stand in Git and authorise nothing, to the reason; not in `fields`.
        lost: those of `void` whose introducer signed with a key, or in a commit, that no longer counts.
    """

    fields: Mapping[tuple[ObjectId, str], Introduced] = field(default_factory=dict)
    objects: Mapping[ObjectId, str] = field(default_factory=dict)
    void: Mapping[tuple[ObjectId, str], str] = field(default_factory=dict)
    lost: frozenset[tuple[ObjectId, str]] = frozenset()

    def of(self, identity: ObjectId, pointer: str) -> Introduced | None:
        """Who introduced the present value at a JSON pointer of an object; None when it authorises nothing."""
        return self.fields.get((identity, pointer))

    def why_void(self, identity: ObjectId, pointer: str) -> str:
        """Why a value that stands in Git authorises nothing; empty when it does, or when there is none."""
        return self.void.get((identity, pointer), "")

    def about(self, identity: ObjectId) -> Mapping[str, Introduced]:
        """Every field of an object whose introducer is known, by pointer."""
        return self._by_object.get(identity, {})

    def void_of(self, identity: ObjectId) -> Mapping[str, str]:
        """Pointers of an object's values that authorise nothing, with the reasons."""
        return {pointer: reason for (item, pointer), reason in self.void.items() if item == identity}

    @cached_property
    def _by_object(self) -> Mapping[ObjectId, Mapping[str, Introduced]]:
        found: dict[ObjectId, dict[str, Introduced]] = {}
        for (identity, pointer), introduced in self.fields.items():
            found.setdefault(identity, {})[pointer] = introduced
        return found

    def touched(self, identity: ObjectId) -> str | None:
        """The commit that last changed an object; None for what stood in the root."""
        return self.objects.get(identity)


@dataclass(frozen=True)
class AcceptedRevision:
    """One accepted commit of one source.

    Attributes:
        tree: empty: that of the commit.
        store_path: folder of the Git object store that holds it.
        generation: generation of the GitSource that it was accepted under.
        trusted: the source has a trust root.
        effects_allowed: False while the accepted commit itself is refused.
        signer: who stands behind the commit, for Events.
        policy_path: where the trust policy stands in it.
    """

    source: NamespacedName
    uid: str
    url: str
    ref: str
    commit: str
    tree: str
    store_path: Path
    provenance: Provenance
    generation: int
    trusted: bool
    effects_allowed: bool
    signer: str = ""
    policy_path: str = POLICY_PATH


class AcceptedRevisions:
    """The newest accepted revision of each source.  For one event loop."""

    def __init__(self) -> None:
        self._revisions: dict[NamespacedName, AcceptedRevision] = {}
        self._reasons: dict[NamespacedName, str] = {}
        self._callbacks: list[Callable[[NamespacedName], None]] = []
        self._exists: Callable[[NamespacedName], bool] = lambda _source: True

    def exists_by(self, exists: Callable[[NamespacedName], bool]) -> None:
        """From now on `exists` tells whether there is such a source; before, each one may be."""
        self._exists = exists

    def publish(self, revision: AcceptedRevision) -> None:
        """Make a revision the newest one of its source and tell the subscribers."""
        self._revisions[revision.source] = revision
        self._reasons.pop(revision.source, None)
        self._tell(revision.source)

    def withdraw(self, source: NamespacedName, *, reason: str = "") -> None:
        """Forget a source; `reason` is kept for whoever asks why there is nothing."""
        self._revisions.pop(source, None)
        self._reasons[source] = reason
        self._tell(source)

    def get(self, source: NamespacedName) -> AcceptedRevision | None:
        return self._revisions.get(source)

    def state(self, source: NamespacedName) -> str:
        """Why there is no revision; empty when there is one, or when the source was not looked at yet."""
        if source not in self._revisions and not self._exists(source):
            return ErrorCode.SOURCE_NOT_FOUND.reason
        return self._reasons.get(source, "")

    def subscribe(self, callback: Callable[[NamespacedName], None]) -> None:
        """Call `callback` with the source at each change; it must not raise or block."""
        self._callbacks.append(callback)

    def _tell(self, source: NamespacedName) -> None:
        for callback in self._callbacks:
            callback(source)
