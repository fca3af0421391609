"""Names that Git leaves out are sent, stay once they are stored, and a wrong one holds its object (gitops.md, section 4.6)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli.comparison import Action, Item
from gitops_ctl.cli.connection import Target
from gitops_ctl.cli.diff import Wish, compared_by
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.trust.provenance import Introduced
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation

GROUP = "ops.cisco.vk/v1alpha1"
WHEN = datetime(2026, 11, 30, 8, tzinfo=UTC)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as made:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await made.admin.create(definitions, definition())
        await until(lambda: served(made), what="the kind is served")
        await made.sync()
        yield made


async def served(site: Bench) -> bool:
    try:
        await site.admin.list_all(site.path("iosxesoftwarerollouts", group=GROUP))
    except GitopsError:
        return False
    return True


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "iosxesoftwarerollouts.ops.cisco.vk"},
        "spec": {
            "group": "ops.cisco.vk",
            "scope": "Namespaced",
            "names": {"kind": "IOSXESoftwareRollout", "plural": "iosxesoftwarerollouts"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }


def rollout(site: Bench, **spec: Any) -> str:
    metadata = {"name": "spring", "namespace": site.namespace}
    return document({"apiVersion": GROUP, "kind": "IOSXESoftwareRollout", "metadata": metadata, "spec": spec})


def introduced(site: Bench, pointer: str, user: str, *, verb: str) -> None:
    identity = ObjectId("ops.cisco.vk", "IOSXESoftwareRollout", site.namespace, "spring")
    person = user.partition("@")[0]
    site.consents[identity, pointer] = Introduced("c" * 40, person, verb, user, WHEN, WHEN)


async def live(site: Bench) -> Any:
    return await site.get("iosxesoftwarerollouts", "spring", group=GROUP)


async def test_the_name_and_the_time_of_the_introducer_are_sent(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    site.push({"spring.yaml": rollout(site, plan={"batch": 2})})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["plan"] == {
        "batch": 2,
        "requestedBy": "network-author@example.net",
        "requestedAt": "2026-11-30T08:00:00Z",
    }
    assert tree["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == "plan=network-author"


async def test_a_written_name_of_somebody_else_holds_the_object_and_no_other(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    plan = {"requestedBy": "change-approver@example.net"}
    site.push({"spring.yaml": rollout(site, plan=plan), **site.config_maps(1)})
    (held,) = await site.until_held("IdentityMismatch")
    assert "'change-approver@example.net'" in held["message"]
    assert "'network-author@example.net'" in held["message"]
    assert await live(site) is None
    assert await site.get("configmaps", "n0000") is not None


async def test_an_approval_in_the_document_of_an_absent_object_is_history(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    introduced(site, "/spec/approval", "change-approver@example.net", verb="approve")
    site.push({"spring.yaml": rollout(site, plan={"batch": 2}, approval={"planHash": "a"})})
    (held,) = await site.until_held("HistoricRollout")
    assert "/spec/approval" in held["message"]
    assert await live(site) is None


async def test_what_the_cluster_has_stored_stays_and_nothing_is_written_twice(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    site.push({"spring.yaml": rollout(site, plan={"batch": 2})})
    await site.until_ready()
    before = (await live(site))["metadata"]["resourceVersion"]
    await site.request()
    await site.until_idle()
    assert (await live(site))["metadata"]["resourceVersion"] == before


async def test_a_name_that_was_filled_in_is_no_drift(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    site.push({"spring.yaml": rollout(site, plan={"batch": 2})})
    await site.sync(drift="Report")
    await site.until_ready()
    path = site.path("iosxesoftwarerollouts", "spring", group=GROUP)
    await site.admin.patch_merge(path, {"spec": {"plan": {"batch": 3}}}, manager="somebody")

    async def reported() -> Any:
        return (await site.status()).get("drift")

    (drift,) = await until(reported, what="the drift is reported")
    assert drift["pointers"] == ["/spec/plan/batch"]


async def what_diff_says(site: Bench) -> Item:
    site.repo.git("checkout", "-q", "--force", "main")
    target = Target(None, None, site.namespace)
    found = await compared_by(site.admin, Wish(target, "site", site.repo.path, "", as_sync=False))
    (item,) = [item for item in found.items if item.object.name == "spring"]
    return item


async def test_diff_shows_no_difference_in_names_that_a_sync_fills_in(site: Bench):
    introduced(site, "/spec/plan", "network-author@example.net", verb="plan")
    site.push({"spring.yaml": rollout(site, plan={"batch": 2})})
    await site.until_ready()
    assert (await what_diff_says(site)).action is Action.SAME
    site.repo.commit({"spring.yaml": rollout(site, plan={"batch": 3})})
    changed = await what_diff_says(site)
    assert [(change.pointer, change.live, change.wanted) for change in changed.changes] == [("/spec/plan/batch", 2, 3)]


async def test_diff_calls_an_approval_of_an_absent_object_history_as_a_sync_does(site: Bench):
    site.push({"spring.yaml": rollout(site, plan={"batch": 2}, approval={"planHash": "a"})})
    item = await what_diff_says(site)
    assert (item.action, item.reason) == (Action.HELD, "HistoricRollout")
