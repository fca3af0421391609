"""What a pass of the source controller does when things are not as they should be (topology-scheduling.md, 3.2, 3.3, 5.2, 9.1 and 12)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gitops_ctl.core.errors import Conflict, Unavailable
from gitops_ctl.kube.answers import AlreadyExists
from gitops_ctl.kube.lease import LeadershipLost
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot import decode
from gitops_ctl.scheduling.source_rules import source_problems
from gitops_ctl.scheduling.sourceports import SOURCE
from tests.support.source_bench import HALL, NAMESPACE, RACK, REGION, ZONE, SourceBench, config_map_arm, snapshot

MANY = {f"n{number}": HALL for number in range(10)}


@pytest.fixture
def bench(source_bench):
    return source_bench


async def published(bench: SourceBench, nodes=None, **arm):
    await bench.config_map(snapshot(nodes or {"node-a": HALL}))
    await bench.source(**arm)
    await bench.look()
    assert bench.condition()["reason"] == "Observed"


async def large(bench: SourceBench, options: Options):
    """Ten Nodes, all of them described."""
    for name in MANY:
        await bench.node(name)
    bench.restart(options=options)
    await published(bench, MANY)


async def test_a_pass_over_nothing_new_writes_no_feature_and_only_renews_the_time(bench):
    await published(bench)
    await bench.look(after=5)
    bench.api.audit.clear()
    await bench.look(after=5)
    assert [(one.resource, one.subresource) for one in bench.api.audit if one.verb != "get"] == [
        ("topologysources", "status")
    ]
    assert bench.status()["lastSuccessfulRefreshTime"].endswith("00:16:50Z")


async def test_promise_08_a_read_only_source_with_nothing_new_writes_nothing(bench):
    await bench.source(nodeLabels={})
    await bench.look()
    bench.api.audit.clear()
    await bench.look(after=3600)
    assert {one.verb for one in bench.api.audit} == {"get"}


async def test_a_failure_that_goes_on_is_written_once(bench):
    await bench.source()
    await bench.look()
    assert bench.words() == {
        "Ready": "False ConfigMapReadFailed",
        "Valid": "False ConfigMapReadFailed",
        "OwnershipConflict": "False NoConflict",
    }
    assert f"ConfigMap {NAMESPACE}/hall does not exist" in bench.condition("Valid")["message"]
    bench.api.audit.clear()
    assert await bench.look(after=60) is None
    assert {one.verb for one in bench.api.audit} == {"get"}


async def test_a_key_that_is_missing_has_a_reason_of_its_own(bench):
    await bench.config_map(snapshot({"node-a": HALL}), key="other.yaml")
    await bench.source()
    await bench.look()
    assert bench.words()["Ready"] == "False SnapshotKeyMissing"
    assert "snapshot.yaml" in bench.condition("Valid")["message"]


async def test_binary_data_is_never_a_snapshot(bench):
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hall"},
        "binaryData": {"snapshot.yaml": "YQ=="},
    }
    await bench.client.create(path, tree)
    await bench.source()
    await bench.look()
    assert bench.words()["Ready"] == "False SnapshotKeyMissing"


async def test_an_api_server_that_does_not_answer_says_nothing_about_the_snapshot(bench, monkeypatch):
    """A source without polls succeeded long ago: one failed request must not be its expiry."""
    await published(bench)
    before = bench.tree()
    asked = bench.client.get

    async def get(path, **options):
        if "/configmaps/" in path:
            raise Unavailable("no answer")
        return await asked(path, **options)

    monkeypatch.setattr(bench.client, "get", get)
    with pytest.raises(Unavailable):
        await bench.look(after=3600)
    assert (bench.tree(), bench.labels) == (before, {"node-a": HALL})


async def test_a_spec_with_problems_reads_nothing_and_keeps_what_is_usable(bench):
    """What the schema lets through, the controller judges again (D9)."""
    await published(bench)
    wrong = config_map_arm(name="hall")
    wrong["configMap"]["configMapRef"] = {"namespace": "elsewhere", "name": "hall"}
    await bench.source(**wrong)
    bench.api.audit.clear()
    assert await bench.look(after=30) == 30.0
    assert not [one for one in bench.api.audit if one.resource == "configmaps"]
    assert bench.words() == {
        "Ready": "False InvalidSpec",
        "Valid": "False InvalidSpec",
        "OwnershipConflict": "False NoConflict",
    }
    assert "spec.configMap.configMapRef.namespace" in bench.condition()["message"]
    assert bench.labels == {"node-a": HALL}
    await bench.look(after=30)
    assert (bench.features, bench.words()["Ready"]) == ([], "False InvalidSpec")


async def test_a_new_spec_with_problems_gets_no_finalizer(bench):
    wrong = config_map_arm()
    wrong["configMap"]["configMapRef"] = {"namespace": "elsewhere", "name": "hall"}
    await bench.source(**wrong)
    await bench.look()
    assert "finalizers" not in bench.tree()["metadata"]
    assert bench.words()["Ready"] == "False InvalidSpec"


async def test_a_source_that_changes_between_writing_arms_keeps_its_features(bench):
    await published(bench)
    before = bench.features
    token = {"namespace": NAMESPACE, "name": "token"}
    durations = {"pollInterval": "10s", "timeout": "10s", "maxStaleness": "1m"}
    await bench.source(webhook={"url": "https://inventory.example.net/", "bearerTokenSecretRef": token, **durations})
    assert await bench.look(after=10) == 10.0
    assert bench.features == before
    assert bench.words()["Ready"] == "False Stale"
    assert f"Secret {NAMESPACE}/token does not exist" in bench.condition("Valid")["message"]
    await bench.source()
    await bench.look(after=10)
    assert (bench.features, bench.words()["Ready"]) == (before, "True Observed")


@pytest.mark.parametrize("unseen", ["nodes", "sources", "features"])
async def test_nothing_is_concluded_from_what_was_not_seen_as_a_whole(unseen, bench):
    await published(bench)
    before = bench.tree()
    bench.unseen = {unseen}
    bench.told.clear()
    assert await bench.look(after=3600) == 30.0
    assert (bench.tree(), bench.labels) == (before, {"node-a": HALL})
    assert [reason for _, reason, _ in bench.told] == (["DependencyNotReady"] if unseen == "features" else [])


async def test_a_read_only_source_works_without_node_feature_discovery(bench):
    bench.unseen = {"features"}
    await bench.source(nodeLabels={})
    await bench.look()
    assert bench.words()["Ready"] == "True Observed"


async def test_a_process_that_loses_its_lead_stops_at_once_and_the_next_one_goes_on(bench):
    await bench.config_map(snapshot({"node-a": HALL}))
    await bench.source()
    left = 0

    def leading():
        nonlocal left
        left -= 1
        if left < 0:
            raise LeadershipLost("the Lease is held by another process")

    def written():
        return [one.resource for one in bench.api.audit if one.verb not in ("get", "list")]

    bench.require = leading
    for left, wanted in ((0, []), (1, ["topologysources"]), (1, ["nodefeatures"])):  # noqa: B007  read by leading
        bench.api.audit.clear()
        with pytest.raises(LeadershipLost):
            await bench.look()
        assert written() == wanted
    left = 1
    await bench.look()
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "True Observed")


async def test_who_planned_from_something_old_loses(bench):
    await published(bench)
    seen = tuple(bench.features)
    await bench.edit_feature(seen[0]["metadata"]["name"], lambda tree: tree["metadata"]["labels"].update({"x": "y"}))
    changed = bench.features
    bench.restart(features=lambda: seen)
    await bench.config_map(snapshot({"node-a": {REGION: "south"}}))
    with pytest.raises(Conflict):
        await bench.look()
    await bench.config_map(snapshot({}))
    with pytest.raises(Conflict):
        await bench.look()
    bench.restart(features=lambda: ())
    await bench.config_map(snapshot({"node-a": HALL}))
    with pytest.raises(AlreadyExists):
        await bench.look()
    assert bench.features == changed
    assert [reason for _, reason, _ in bench.told] == ["Observed"]


async def test_a_status_is_only_put_in_place_of_the_one_that_was_read(bench):
    await bench.config_map(snapshot({"node-a": HALL}))
    await bench.source()
    await bench.look()
    asked = bench.ports.http
    assert asked is not None

    def wall():
        tree = {"metadata": {"labels": {"x": str(bench.clock.now_s)}}}
        bench.clock.now_s += 1
        raced.append(asyncio.ensure_future(bench.client.patch_merge(SOURCE.path(name="first"), tree)))
        return type(bench.clock).wall(bench.clock)

    raced: list[asyncio.Future] = []
    bench.clock.wall = wall
    await bench.config_map(snapshot({"node-a": HALL, "node-b": HALL}))
    with pytest.raises(Conflict):
        await bench.look()
    await asyncio.gather(*raced)
    del bench.clock.wall
    await bench.look()
    assert bench.words()["Ready"] == "True Observed"
    assert set(bench.labels) == {"node-a", "node-b"}


async def test_a_node_that_leaves_the_cluster_makes_its_source_stale(bench):
    """4.5."""
    await published(bench, {"node-a": HALL, "node-b": HALL})
    await bench.client.delete("/api/v1/nodes/node-b")
    await bench.look(after=10)
    assert bench.words() == {
        "Ready": "False Stale",
        "Valid": "False SnapshotInvalid",
        "OwnershipConflict": "False NoConflict",
    }
    assert set(bench.labels) == {"node-a", "node-b"}


async def test_a_stale_source_says_which_option_keeps_the_profiles(bench):
    await published(bench)
    await bench.config_map("no snapshot: [")
    await bench.look(after=10)
    is_kept = bench.ports.options.keep_profile_while_stale
    assert ("keep-profile-while-stale" in bench.condition()["message"]) == is_kept


async def test_a_revision_that_drops_most_nodes_waits_for_a_consent_that_fits_it(source_bench):
    """B2, D41; with the numbers, the moment of expiry and the digest in the message."""
    bench = source_bench
    await large(bench, Options())
    few = dict.fromkeys(list(MANY)[:4], HALL)
    await bench.config_map(snapshot(few, "r2"))
    await bench.look(after=10)
    assert (len(bench.features), bench.words()["Valid"]) == (10, "False SnapshotInvalid")
    message = bench.condition("Valid")["message"]
    digest = f"sha256:{message.partition('sha256:')[2][:64]}"
    assert "6 of 10" in message
    assert bench.status()["lastSuccessfulRevision"] == "r1"
    marks = {"metadata": {"annotations": {"gitops-ctl.dev/allow-node-drop": "sha256:" + "0" * 64}}}
    await bench.client.patch_merge(SOURCE.path(name="first"), marks)
    await bench.look(after=10)
    assert len(bench.features) == 10
    marks["metadata"]["annotations"]["gitops-ctl.dev/allow-node-drop"] = digest
    await bench.client.patch_merge(SOURCE.path(name="first"), marks)
    await bench.look(after=10)
    assert (set(bench.labels), bench.words()["Ready"]) == (set(few), "True Observed")
    assert (bench.status()["mutatedNodes"], bench.status()["lastSuccessfulRevision"]) == (6, "r2")


async def test_with_reference_defaults_a_snapshot_without_nodes_wipes_everything(source_bench):
    bench = source_bench
    await large(bench, Options.reference())
    await bench.config_map("apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r2\n")
    await bench.look()
    assert (bench.features, bench.words()["Ready"]) == ([], "True Observed")


async def test_a_write_rate_spaces_writes_puts_removals_last_and_shows_progress(source_bench):
    """B18."""
    bench = source_bench
    await large(bench, Options(snapshot_drop_percent=100, tolerate_unknown_nodes=True))
    bench.restart(options=replace(bench.ports.options, write_rate=1, tolerate_unknown_nodes=False))
    moved = {name: {REGION: "south"} for name in list(MANY)[:4]}
    moved |= {"node-a": HALL, "node-b": HALL}
    await bench.config_map(snapshot(moved, "r2"))
    bench.api.audit.clear()
    began_s = bench.clock.now_s
    await bench.look()
    assert bench.clock.now_s - began_s >= 12
    verbs = [one.verb for one in bench.api.audit if one.resource == "nodefeatures"]
    assert verbs == ["create", "create", *["update"] * 4, *["delete"] * 6]
    statuses = [one for one in bench.api.audit if one.subresource == "status"]
    assert len(statuses) == 2, "one on the way, one at the end"
    assert (bench.status()["mutatedNodes"], bench.words()["Ready"]) == (12, "True Observed")
    assert "write-rate" in bench.condition("Valid")["message"]


async def test_a_text_as_revision_is_cut_to_what_a_status_holds(bench):
    await bench.config_map(snapshot({"node-a": HALL}, "r" * 5000))
    await bench.source()
    await bench.look()
    assert bench.words()["Ready"] == "True Observed"
    assert len(bench.status()["lastSuccessfulRevision"]) == 1024


async def test_a_large_snapshot_is_judged_beside_the_event_loop(bench):
    names = [f"gpu-{number:04}" for number in range(1200)]
    for name in names:
        await bench.node(name)
    nodes = {name: {REGION: "north", ZONE: "hall7", RACK: f"r{number // 16}"} for number, name in enumerate(names)}
    assert len(snapshot(nodes)) > 64 * 1024
    await bench.config_map(snapshot(nodes))
    await bench.source(levels=(REGION, ZONE, RACK))
    await bench.look()
    assert bench.status()["mutatedNodes"] == len(bench.features) == 1200


def test_the_source_of_the_how_to_has_no_problems():
    page = Path(__file__).parents[3] / "docs" / "howto" / "topology-sources.md"
    shown = [block.partition("```")[0] for block in page.read_text().split("```yaml\n")[1:]]
    config_map, source = yaml.safe_load_all(shown[0])
    webhook = yaml.safe_load(shown[1])
    assert decode(config_map["data"]["snapshot.yaml"]).problems == ()
    for tree in (source, webhook):
        assert source_problems(tree, options=Options(short_staleness="refuse")) == ()
