"""What a pass sees of a cluster: informers, and our own writes until the informers show them."""

from typing import Any

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.kube.cache import Change, Entry
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.informer import Health, Informer, State
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.cluster import NOTE_S, LiveCluster
from gitops_ctl.sync.model import UNSEEN, OwnerId, View
from tests.support.sync import OWNER

KIND = GroupVersionKind("", "v1", "ConfigMap")
ITEM = ObjectId("", "ConfigMap", "lab", "a")
KEY = NamespacedName("lab", "a")


class Clock(SystemClock):
    """Time that the test moves."""

    now_s = 1000.0

    def boot_s(self) -> float:
        return self.now_s


def seen(version: str, *, uid: str = "u") -> View:
    return View(uid, version, f"sha256:{version}", OWNER.mark(ITEM))


class Stage:
    """A cluster with one informer, which the test feeds."""

    def __init__(self) -> None:
        self.clock = Clock()
        client = KubeClient(ClusterConfig("http://127.0.0.1:1"), component="tests", clock=self.clock)
        self.heard: list[tuple[OwnerId, ObjectId]] = []
        self.cluster = LiveCluster(client, on_change=lambda owner, item: self.heard.append((owner, item)))
        self.informer: Informer[View] = Informer(
            client, Resource(KIND, "configmaps", namespaced=True), trim=lambda _: seen("0")
        )
        self.informer.add_handler(lambda change: self.cluster._heard(KIND.group_kind, change))
        self.cluster._informers[KIND] = self.informer
        self.informer.synced.set()

    def shows(self, value: View | None) -> None:
        old = self.informer.cache.entry(KEY)
        new = Entry(value.uid, value.version, value) if value is not None else None
        kind: Any = "deleted" if new is None else "added" if old is None else "modified"
        self.informer._change(Change(kind, KEY, old, new))

    def see(self) -> Any:
        return self.cluster.see(ITEM, KIND)


def test_H19_a_kind_that_cannot_be_seen_is_never_taken_for_missing() -> None:
    stage = Stage()
    assert stage.see() is None
    stage.informer.synced.clear()
    assert stage.see() is UNSEEN
    assert stage.cluster.see(ITEM, GroupVersionKind("x.example.net", "v1", "W")) is UNSEEN


def test_H17_after_a_list_that_lost_most_objects_nothing_is_concluded() -> None:
    stage = Stage()
    stage.informer.suspect = True
    assert stage.see() is UNSEEN


def test_S20_our_write_counts_until_the_cache_has_caught_up() -> None:
    stage = Stage()
    stage.shows(seen("5"))
    stage.cluster.note(ITEM, seen("7"), uid="u")
    stage.shows(seen("6"))
    assert stage.see().version == "7"
    stage.shows(seen("8"))
    assert stage.see().version == "8"


def test_a_deletion_after_our_write_is_seen_at_once() -> None:
    stage = Stage()
    stage.cluster.note(ITEM, seen("7"), uid="u")
    assert stage.see().version == "7"
    stage.shows(seen("7"))
    stage.shows(None)
    assert stage.see() is None


def test_our_delete_counts_until_the_cache_shows_it_or_another_object() -> None:
    stage = Stage()
    stage.shows(seen("5"))
    stage.cluster.note(ITEM, None, uid="u")
    assert stage.see() is None
    stage.shows(seen("9", uid="new"))
    assert stage.see().uid == "new"


def test_a_watch_that_is_faster_than_the_answer_to_our_delete_is_believed() -> None:
    stage = Stage()
    stage.shows(seen("5"))
    stage.shows(None)
    stage.cluster.note_removal(ITEM, KIND, left=seen("6"), uid="u")
    assert stage.see() is None


def test_a_write_that_the_cache_never_shows_is_forgotten_in_the_end() -> None:
    stage = Stage()
    stage.cluster.note(ITEM, seen("7"), uid="u")
    stage.clock.now_s += NOTE_S
    assert stage.see() is None


def test_the_owner_hears_of_changes_also_when_its_mark_was_taken_off() -> None:
    stage = Stage()
    stage.shows(seen("5"))
    stage.shows(View("u", "6", "", ""))
    stage.shows(None)
    assert stage.heard == [(OWNER, ITEM), (OWNER, ITEM)]


def test_a_kind_that_may_not_be_watched_is_read_by_name() -> None:
    stage = Stage()
    assert stage.cluster.is_watched(KIND)
    stage.informer.health = type(stage.informer.health)(State.FORBIDDEN)
    assert not stage.cluster.is_watched(KIND)
    assert not stage.cluster.is_watched(GroupVersionKind("", "v1", "Secret"))


def test_a_kind_that_may_not_be_watched_is_told_to_the_units_that_have_it_alone() -> None:
    stage = Stage()
    stage.informer.health = Health(State.FORBIDDEN, BlockedError("may not list configmaps", code=ErrorCode.FORBIDDEN))
    having, other = NamespacedName("lab", "site"), NamespacedName("another-tenant", "site")
    stage.cluster._needs = {having: frozenset({KIND}), other: frozenset({GroupVersionKind("", "v1", "Service")})}
    assert stage.cluster.troubles(having) == {KIND: "may not list configmaps"}
    assert stage.cluster.troubles(other) == {}
    assert stage.cluster.troubles(NamespacedName("lab", "new")) == {}
