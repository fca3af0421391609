"""What a commit would do to a cluster (topology-scheduling.md, 4.5, 5.3, 8 and 13.3): from region and zone to region, zone and rack."""

from datetime import UTC, datetime

from gitops_ctl.scheduling.forecast import Change, Live, Proposed, forecast
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.preview import Fate
from tests.support.scheduling_objects import (
    NAMESPACE,
    RACK,
    RACKED,
    RACKED_FLAVOR,
    REGION,
    ZONE,
    ZONED,
    ZONED_FLAVOR,
    feature,
    flavors,
    local_queue,
    node,
    nodes,
    owned,
    queue,
    queue_document,
    snapshot,
    source,
    workload,
)

NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
HALL = {"region": "north", "zone": "hall7"}
KEY = (NAMESPACE, "hall")


def live(names=("a", "b"), *, reserved=2, **members):
    """A cluster with region and zone on these Nodes, and a queue that serves them."""
    standing = nodes(*names)
    told = {
        "sources": (source(REGION, ZONE),),
        "features": tuple(feature(name, **HALL) for name in names),
        "flavors": flavors(standing),
        "queues": (queue(standing, reserved=reserved),),
        "local_queues": (local_queue(),),
        "config_maps": {KEY: snapshot("hall-7/1", dict.fromkeys(names, HALL))},
    }
    return Live(nodes=members.pop("nodes", standing), **{**told, **members})


def with_racks(*names):
    """The commit that adds the level rack."""
    described = {name: {**HALL, "rack": f"r{place}"} for place, name in enumerate(names)}
    return declared(source(REGION, ZONE, RACK, live=False), snapshot("hall-7/2", described))


def declared(*sources_and_snapshot):
    """A checkout with the queue, a source and its snapshot."""
    hall, text = sources_and_snapshot
    return Proposed(sources=(hall,), config_maps={KEY: text}, queues=(queue_document(),))


def told(cluster, commit, *, options=None):
    return forecast(cluster, commit, now=NOW, options=options or Options())


def test_a_rack_level_drains_the_busy_queue_and_evicts_whoever_holds_quota_in_it():
    holders = (workload("train-1", queue="pool", flavor=ZONED_FLAVOR), workload("train-2", queue="pool"))
    others = (workload("elsewhere", queue="other"), workload("done", queue="pool", finished=True), workload("waits"))
    found = told(live(workloads=(*holders, *others)), with_racks("a", "b"))
    assert found.preview.profiles == (("a", ZONED, RACKED), ("b", ZONED, RACKED))
    assert (found.preview.new_flavors, found.preview.gone_flavors) == ((RACKED_FLAVOR,), (ZONED_FLAVOR,))
    (change,) = found.preview.queues
    assert (change.fate, change.busy, change.workloads) == (Fate.DRAIN, (ZONED_FLAVOR,), 2)
    assert change.digest.startswith("sha256:")
    assert [one.workload.name for one in found.evicted] == ["default/train-1", "default/train-2"]
    (hall,) = found.sources
    assert (hall.change, hall.reason, hall.revision, hall.described) == (Change.CHANGED, "Observed", "hall-7/2", 2)
    assert found.changes


def test_a_workload_that_kueue_has_not_counted_yet_makes_its_queue_busy():
    """Counters of a queue come after an admission: within that moment a plan would say that nothing drains."""
    holders = (workload("train-1", queue="pool", flavor=ZONED_FLAVOR),)
    found = told(live(reserved=0, workloads=holders), with_racks("a", "b"))
    (change,) = found.preview.queues
    assert (change.fate, change.busy, change.workloads) == (Fate.DRAIN, (ZONED_FLAVOR,), 1)
    assert [one.workload.name for one in found.evicted] == ["default/train-1"]
    idle = (workload("done", queue="pool", flavor=ZONED_FLAVOR, finished=True), workload("other", queue="elsewhere"))
    (change,) = told(live(reserved=0, workloads=idle), with_racks("a", "b")).preview.queues
    assert (change.fate, change.workloads) == (Fate.IN_PLACE, 0)


def test_the_same_documents_change_nothing():
    same = declared(source(REGION, ZONE, live=False), live().config_maps[KEY])
    found = told(live(workloads=(workload("train-1", queue="pool"),)), same)
    assert found.preview.profiles == ()
    assert found.evicted == ()
    assert [one.change for one in found.sources] == [Change.SAME]
    assert not found.changes


def test_an_idle_queue_changes_in_place():
    found = told(live(reserved=0), with_racks("a", "b"))
    assert [change.fate for change in found.preview.queues] == [Fate.IN_PLACE]
    assert found.evicted == ()
    assert found.changes


def test_a_snapshot_with_an_unknown_node_is_told_and_leaves_everything_as_it_is():
    found = told(live(), with_racks("a", "b", "ghost"))
    (hall,) = found.sources
    assert "rule 8" in hall.message
    assert "ghost" in hall.message
    assert hall.revision == ""
    assert hall.reason == "Stale"
    assert found.preview.profiles == ()
    assert found.evicted == ()


def test_with_reference_defaults_a_stale_source_loses_its_profiles_at_once():
    lost = told(live(), with_racks("ghost"), options=Options.reference())
    assert [one.reason for one in lost.sources] == ["Stale"]
    assert [after for _, _, after in lost.preview.profiles] == ["fnv64-87bf574bea2a4f23"] * 2


def test_a_source_that_expired_takes_its_labels_away():
    standing = (source(REGION, ZONE, lastSuccessfulRefreshTime="2031-04-02T04:00:00Z"),)
    found = told(live(sources=standing), with_racks("ghost"))
    assert [one.reason for one in found.sources] == ["Expired"]
    assert [after for _, _, after in found.preview.profiles] == ["fnv64-87bf574bea2a4f23"] * 2


def test_the_drop_guard_is_asked():
    """B2, with the NodeFeatures that are there."""
    names = tuple("abcdefgh")
    found = told(live(names), with_racks("a"))
    assert "rule B2" in found.sources[0].message
    assert found.preview.profiles == ()


def test_a_second_writing_source_on_the_same_nodes_is_told_on_both():
    other = source(REGION, ZONE, name="annex", live=False)
    commit = Proposed(
        sources=(other,), config_maps={(NAMESPACE, "annex"): snapshot("annex/1", {"a": HALL}, name="annex")}
    )
    found = told(live(), commit)
    assert {one.name: one.reason for one in found.sources} == {
        "annex": "OwnershipConflict",
        "hall": "OwnershipConflict",
    }
    assert [after for _, _, after in found.preview.profiles] == ["fnv64-87bf574bea2a4f23"] * 2


def test_a_source_that_the_checkout_drops_goes_when_its_sync_owns_another_document():
    commit = Proposed(queues=(queue_document(),))
    found = told(live(workloads=(workload("train-1", queue="pool"),)), commit)
    assert [(one.name, one.change) for one in found.sources] == [("hall", Change.GOES)]
    assert [after for _, _, after in found.preview.profiles] == ["fnv64-87bf574bea2a4f23"] * 2
    assert [one.workload.name for one in found.evicted] == ["default/train-1"]


def test_a_source_of_somebody_else_stays():
    foreign = source(REGION, ZONE)
    foreign["metadata"]["annotations"] = owned("worker.gpustack.ai/TopologySource", "another-name")
    found = told(live(sources=(foreign,)), Proposed(queues=(queue_document(),)))
    assert [(one.name, one.change) for one in found.sources] == [("hall", Change.ELSEWHERE)]
    assert found.preview.profiles == ()


def test_a_webhook_is_not_asked_and_its_labels_stay():
    hook = source(REGION, ZONE)
    hook["spec"] = {
        "nodeSelector": {},
        "levels": [REGION, ZONE],
        "webhook": {
            "url": "https://inventory.example.net/",
            "pollInterval": "1m",
            "timeout": "1s",
            "maxStaleness": "5m",
        },
    }
    found = told(live(sources=(hook,)), Proposed())
    assert found.sources[0].message == "its webhook is not asked: the labels of its Nodes stay as they are"
    assert found.preview.profiles == ()
    fresh = {**hook, "metadata": {"name": "fresh"}}
    del fresh["status"]
    new = told(live(), Proposed(sources=(fresh,), queues=(queue_document(),)))
    assert {one.name: one.message for one in new.sources}[
        "fresh"
    ] == "its webhook is not asked: what it will say is open"


def test_a_configmap_that_nobody_declares_leaves_the_labels_as_they_are():
    found = told(live(config_maps={}), Proposed())
    assert "its ConfigMap is not known" in found.sources[0].message
    assert found.preview.profiles == ()


def test_a_source_that_reads_labels_is_judged_by_those_that_there_will_be():
    reading = {
        "apiVersion": "worker.gpustack.ai/v1",
        "kind": "TopologySource",
        "metadata": {"name": "labels"},
        "spec": {"nodeSelector": {}, "levels": [ZONE, RACK], "nodeLabels": {}},
    }
    standing = {"a": node("a", rack="r1"), "b": node("b", rack="r1")}
    standing["b"]["metadata"]["labels"][ZONE] = "hall8"
    for tree in standing.values():
        del tree["metadata"]["annotations"]
    found = told(Live(nodes=standing), Proposed(sources=(reading,)))
    assert [after for _, _, after in found.preview.profiles] == ["fnv64-87bf574bea2a4f23"] * 2
    standing["b"]["metadata"]["labels"][ZONE] = "hall7"
    found = told(Live(nodes=standing), Proposed(sources=(reading,)))
    (levels,) = found.preview.levels.values()
    assert levels == (ZONE, RACK, "kubernetes.io/hostname")


def test_a_queue_that_goes_or_is_to_be_drained_by_git_evicts_too():
    going = told(
        live(workloads=(workload("train-1", queue="pool"),)), Proposed(sources=(source(REGION, ZONE, live=False),))
    )
    assert going.queues == (("pool", Change.GOES),)
    assert [one.why for one in going.evicted] == ["queue pool goes"]
    commit = Proposed(queues=(queue_document(stopPolicy="HoldAndDrain"),), sources=(source(REGION, ZONE, live=False),))
    stopped = told(live(workloads=(workload("train-1", queue="pool"),)), commit)
    assert [one.why for one in stopped.evicted] == ["Git wants HoldAndDrain for queue pool"]
    assert stopped.changes


def test_a_new_queue_gets_its_first_plan():
    found = told(live(queues=()), Proposed(queues=(queue_document("fresh"),)))
    assert found.queues == (("fresh", Change.NEW),)
    (change,) = found.preview.queues
    assert (change.fate, change.before, {name: int(quota) for name, quota in change.after.items()}) == (
        Fate.IN_PLACE,
        {},
        {ZONED_FLAVOR: 8},
    )


def test_workloads_that_require_a_level_which_goes_are_stranded():
    """Section 11: such a Workload never comes back, and nothing tells it so."""
    racked = live(
        nodes={name: node(name, profile=RACKED, rack="r1") for name in ("a", "b")},
        sources=(source(REGION, ZONE, RACK),),
        workloads=(workload("waits", required=RACK), workload("fine", required=ZONE)),
    )
    commit = declared(source(REGION, ZONE, live=False), snapshot("hall-7/2", {"a": HALL, "b": HALL}))
    found = told(racked, commit)
    assert [(one.name, level) for one, level in found.stranded] == [("default/waits", RACK)]
