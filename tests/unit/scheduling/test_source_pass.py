"""Whole passes over a TopologySource (topology-scheduling.md, section 15, cases 31 to 42, 56, 57 and 59).

Each runs with our defaults and with those of the reference.
"""

import copy
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.scheduling.nodefeature import feature_name, node_of
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_pass import Surroundings, plan_pass
from gitops_ctl.scheduling.source_status import Failed, status_of

NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
REGION, ZONE, RACK = "topology.gpustack.ai/region", "topology.gpustack.ai/zone", "topology.gpustack.ai/rack"
STANDARD_REGION, STANDARD_ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
UNAVAILABLE = Failed("WebhookReadFailed", "the server answered 503")


@pytest.fixture(params=[Options(), Options.reference()], ids=["ours", "reference-defaults"])
def options(request):
    return request.param


def config_map(staleness="1m"):
    reference = {"namespace": "gpustack-system", "name": "hall"}
    return {"configMap": {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": staleness}}


def webhook(poll="10s", staleness="1m"):
    token = {"namespace": "gpustack-system", "name": "token"}
    arm = {"url": "https://inventory.example.net/", "timeout": "1s", "bearerTokenSecretRef": token}
    return {"webhook": {**arm, "pollInterval": poll, "maxStaleness": staleness}}


def text(nodes, revision="r1"):
    lines = [
        f"  {node}: {{{', '.join(f'{key}: {value}' for key, value in labels.items())}}}\n"
        for node, labels in nodes.items()
    ]
    body = "".join(lines) or "  {}\n"
    return f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: {revision}\nnodes:\n{body}"


class Bench:
    """One source in a small cluster, with its NodeFeatures and its status."""

    def __init__(self, options, *, levels=(REGION, ZONE), nodes=None, name="first", **arm):
        self.options = options
        self.nodes = nodes or {"node-a": {}, "node-b": {}}
        self.tree = {
            "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
            "spec": {"nodeSelector": {}, "levels": list(levels), **(arm or config_map())},
        }
        self.others = ()
        self.features = []
        self.now = NOW

    def look(self, read=None, *, after=0.0):
        self.now += timedelta(seconds=after)
        around = Surroundings(self.nodes, (TopologySource.of(self.tree), *self.others), tuple(self.features))
        untouched = copy.deepcopy((self.tree, self.nodes, self.features))
        found = plan_pass(self.tree, read, around, now=self.now, options=self.options)
        assert (self.tree, self.nodes, self.features) == untouched
        gone = {one["metadata"]["name"] for one in found.features.deletes}
        new = {one["metadata"]["name"]: one for one in found.features.updates}
        kept = [new.get(one["metadata"]["name"], one) for one in self.features if one["metadata"]["name"] not in gone]
        self.features = [copy.deepcopy(one) for one in (*kept, *found.features.creates)]
        if found.judgement is not None:
            self.tree["status"] = status_of(self.tree, found.judgement, found.look, generation=1, now=self.now)
        return found

    @property
    def labels(self):
        return {node_of(one): one["spec"]["labels"] for one in self.features}

    def reason(self, kind="Ready"):
        return next(one["reason"] for one in self.tree["status"]["conditions"] if one["type"] == kind)

    def message(self, kind="Valid"):
        return next(one["message"] for one in self.tree["status"]["conditions"] if one["type"] == kind)


HALL = {REGION: "north", ZONE: "hall7"}


def test_a_read_only_source_counts_its_nodes_and_writes_nothing(options):
    """Case 31."""
    bench = Bench(options, nodes={"a": {"pool": "x"}, "b": {}}, nodeLabels={})
    bench.tree["spec"]["nodeSelector"] = {"matchLabels": {"pool": "x"}}
    found = bench.look()
    assert (bench.reason(), bench.reason("Valid"), bench.reason("OwnershipConflict")) == (
        "Observed",
        "Observed",
        "ReadOnly",
    )
    assert bench.tree["status"]["selectedNodes"] == 1
    assert "mutatedNodes" not in bench.tree["status"]
    assert bench.tree["status"]["sourceKind"] == "NodeLabels"
    assert found.features.mutations == 0


def test_a_read_only_source_over_a_shared_rack_is_no_hierarchy(options):
    """Case 32."""
    nodes = {"a": {ZONE: "zone-a", RACK: "rack-shared"}, "b": {ZONE: "zone-b", RACK: "rack-shared"}}
    bench = Bench(options, levels=(ZONE, RACK), nodes=nodes, nodeLabels={})
    bench.look()
    assert bench.reason() == "InvalidHierarchy"


TIERS = tuple(f"fabric.topograph.run/tier-{number}" for number in (1, 3, 2))


@pytest.mark.parametrize("arm", [{"nodeLabels": {}}, config_map()], ids=["nodeLabels", "configMap"])
def test_sorted_fabric_tiers_are_named_in_the_status_where_the_option_acts(arm):
    """B8: it does nothing for a run that is in order anyway."""

    def said(levels, **options):
        bench = Bench(Options(**options), levels=levels, nodes={"a": dict.fromkeys((REGION, *TIERS), "x")}, **arm)
        bench.look(text({}))
        assert bench.reason() == "Observed"
        return bench.message()

    assert said(TIERS, sort_fabric_tiers=True) == "fabric tiers are sorted by number (sort-fabric-tiers)"
    assert said(TIERS) == said((REGION, *TIERS[:2]), sort_fabric_tiers=True) == ""


def test_sorted_fabric_tiers_are_named_beside_the_problem_of_a_hierarchy():
    options = Options(sort_fabric_tiers=True)
    bench = Bench(options, levels=TIERS, nodes={"a": {TIERS[0]: "x"}}, nodeLabels={})
    bench.look()
    assert bench.reason() == "InvalidHierarchy"
    assert bench.message().endswith(
        "coarser fabric.topograph.run/tier-3; fabric tiers are sorted by number (sort-fabric-tiers)"
    )


def test_a_snapshot_becomes_a_node_feature_with_exactly_its_labels(options):
    """Case 33."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    assert bench.labels == {"node-a": HALL}
    assert bench.features[0]["metadata"]["name"] == feature_name("uid-first", "node-a")
    status = bench.tree["status"]
    assert (status["lastSuccessfulRevision"], status["mutatedNodes"], bench.reason()) == ("r1", 1, "Observed")


def test_a_config_map_that_is_gone_expires(options):
    """Case 34."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    bench.look(Failed("ConfigMapReadFailed", "not found"), after=30)
    assert (bench.labels, bench.reason()) == ({"node-a": HALL}, "Stale")
    bench.look(Failed("ConfigMapReadFailed", "not found"), after=90)
    assert (bench.labels, bench.reason(), bench.tree["status"]["mutatedNodes"]) == ({}, "Expired", 1)


@pytest.mark.parametrize(
    ("live", "published"),
    [
        ({STANDARD_REGION: "north", STANDARD_ZONE: "z1"}, {"node-a": {RACK: "r1"}}),
        ({STANDARD_REGION: "north"}, {}),
        ({STANDARD_REGION: "north", STANDARD_ZONE: "z2"}, {}),
    ],
    ids=["case 35: equal", "case 36: missing", "case 37: different"],
)
def test_standard_levels_are_compared_and_never_published(live, published, options):
    """Cases 35 to 37."""
    bench = Bench(options, levels=(STANDARD_REGION, STANDARD_ZONE, RACK), nodes={"node-a": live})
    bench.look(text({"node-a": {STANDARD_REGION: "north", STANDARD_ZONE: "z1", RACK: "r1"}}))
    assert bench.labels == published
    assert bench.reason() == ("Observed" if published else "SnapshotInvalid")
    assert bench.nodes == {"node-a": live}


def test_an_edited_node_feature_is_repaired_by_the_next_pass(options):
    """Case 38."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    wanted = copy.deepcopy(bench.features)
    edited = bench.features[0]
    edited["spec"]["labels"][ZONE] = "other"
    edited["spec"]["features"]["flags"] = {"x": {}}
    edited["metadata"]["ownerReferences"] = []
    bench.look(text({"node-a": HALL}))
    assert bench.features == wanted
    bench.look(text({"node-a": HALL}))
    assert "mutatedNodes" not in bench.tree["status"]


def test_a_second_source_takes_the_features_away_until_it_goes(options):
    """Cases 39 and 41."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    bench.others = (TopologySource.of(Bench(options, name="second").tree),)
    found = bench.look(text({"node-a": HALL}))
    assert (bench.labels, found.look.mutated, found.judgement.requeue_s) == ({}, 1, 60.0)
    assert (bench.reason(), bench.reason("OwnershipConflict")) == ("OwnershipConflict", "OverlappingSources")
    assert "second" in bench.message("OwnershipConflict")
    assert bench.tree["status"]["conflictedNodes"] == 2
    bench.others = ()
    bench.look(text({"node-a": HALL}))
    assert (bench.labels, bench.reason()) == ({"node-a": HALL}, "Observed")


def test_an_empty_revision_removes_also_what_lost_its_owner(options):
    """Case 40."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    bench.features[0]["metadata"]["ownerReferences"] = []
    bench.look(text({}, "r2"))
    assert (bench.labels, bench.reason(), bench.tree["status"]["lastSuccessfulRevision"]) == ({}, "Observed", "r2")


def test_a_source_that_becomes_read_only_or_goes_deletes_its_features(options):
    """Case 42."""
    for change in ("arm", "deletion"):
        bench = Bench(options)
        bench.look(text({"node-a": HALL}))
        if change == "arm":
            bench.tree["spec"] = {"nodeSelector": {}, "levels": [REGION], "nodeLabels": {}}
        else:
            bench.tree["metadata"]["deletionTimestamp"] = "2031-04-02T06:00:00Z"
        bench.look()
        assert bench.labels == {}


def test_a_webhook_goes_stale_expires_and_recovers_by_itself(options):
    """Case 56."""
    bench = Bench(options, **webhook())
    assert bench.look(text({"node-a": HALL})).judgement.requeue_s == 10.0
    assert bench.look(UNAVAILABLE, after=30).judgement.requeue_s == 10.0
    assert (bench.labels, bench.reason(), bench.reason("Valid")) == ({"node-a": HALL}, "Stale", "WebhookReadFailed")
    assert bench.look(UNAVAILABLE, after=120).judgement.requeue_s == 10.0
    assert (bench.labels, bench.reason()) == ({}, "Expired")
    bench.look(text({"node-a": HALL}))
    assert (bench.labels, bench.reason()) == ({"node-a": HALL}, "Observed")


def test_a_slow_webhook_in_conflict_is_looked_at_within_a_minute(options):
    """Case 57; its staleness is below its poll interval, which warns and refuses nothing."""
    bench = Bench(options, **webhook(poll="10m"))
    bench.others = (TopologySource.of(Bench(options, name="second").tree),)
    assert bench.look(text({"node-a": HALL})).judgement.requeue_s == 60.0
    assert "second" in bench.message("Ready")


def test_invalid_content_keeps_the_last_revision_until_it_expires(options):
    """Case 59."""
    bad = text({"unknown": HALL})
    bench = Bench(options, **webhook())
    bench.look(bad)
    assert (bench.labels, bench.reason()) == ({}, "SnapshotInvalid")
    bench.look(text({"node-a": HALL}))
    assert bench.reason() == "Observed"
    found = bench.look(bad, after=30)
    assert (bench.labels, bench.reason(), bench.reason("Valid")) == ({"node-a": HALL}, "Stale", "SnapshotInvalid")
    assert (bench.tree["status"]["lastSuccessfulRevision"], found.judgement.requeue_s) == ("r1", 10.0)
    bench.look(bad, after=120)
    assert (bench.labels, bench.reason()) == ({}, "Expired")


def test_a_body_that_is_no_snapshot_is_a_failed_read_of_a_webhook_and_quotes_nothing(options):
    for arm, reason in ((webhook(), "WebhookReadFailed"), (config_map(), "SnapshotInvalid")):
        bench = Bench(options, **arm)
        bench.look("hidden-word: [")
        assert bench.reason("Valid") == reason
        assert "hidden-word" not in bench.message()


def test_a_node_that_leaves_the_cluster_makes_the_source_stale(options):
    """Section 4.5."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL, "node-b": HALL}))
    del bench.nodes["node-b"]
    bench.look(text({"node-a": HALL, "node-b": HALL}))
    assert (bench.reason(), bench.reason("Valid")) == ("Stale", "SnapshotInvalid")


def test_nodes_that_do_not_exist_are_named_when_they_are_passed_over():
    """B4."""
    bench = Bench(Options(tolerate_unknown_nodes=True))
    bench.look(text({"node-a": HALL, "gone": HALL}))
    assert (bench.labels, bench.reason()) == ({"node-a": HALL}, "Observed")
    assert "gone" in bench.message()
    assert "tolerate-unknown-nodes" in bench.message()


def many(count):
    return {f"n{number}": HALL for number in range(count)}


def test_a_revision_that_drops_most_nodes_is_refused_until_somebody_agrees():
    """B2, D41."""
    bench = Bench(Options(), nodes={node: {} for node in many(10)})
    bench.look(text(many(10)))
    bench.look(text(many(4), "r2"), after=10)
    assert (len(bench.labels), bench.reason(), bench.reason("Valid")) == (10, "Stale", "SnapshotInvalid")
    for part in ("6 of 10", "2031-04-02T06:01:00Z", "sha256:"):
        assert part in bench.message()
    digest = f"sha256:{bench.message().partition('sha256:')[2][:64]}"
    bench.tree["metadata"]["annotations"] = {"gitops-ctl.dev/allow-node-drop": digest}
    bench.look(text(many(4), "r2"), after=10)
    assert (len(bench.labels), bench.reason()) == (4, "Observed")


def test_with_reference_defaults_a_truncated_inventory_wipes_all_labels():
    """Section 4.3."""
    bench = Bench(Options.reference(), nodes={node: {} for node in many(10)})
    bench.look(text(many(10)))
    bench.look("apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r2\n")
    assert (bench.labels, bench.reason()) == ({}, "Observed")


def test_a_spec_with_problems_reads_nothing_and_keeps_what_is_usable(options):
    """D9."""
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    bench.tree["spec"]["levels"] = ["kubernetes.io/hostname"]
    bench.look(None, after=30)
    assert (bench.labels, bench.reason()) == ({"node-a": HALL}, "InvalidSpec")
    bench.look(None, after=31)
    assert (bench.labels, bench.reason()) == ({}, "InvalidSpec")


def test_a_failed_pass_keeps_the_number_of_selected_nodes(options):
    bench = Bench(options)
    bench.look(text({"node-a": HALL}))
    bench.nodes["node-c"] = {}
    bench.look(text({"unknown": HALL}))
    assert bench.tree["status"]["selectedNodes"] == 2
