"""Names that Git leaves out are sent, stay once they are stored, and a wrong one holds its object (gitops.md, section 4.6)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli.comparison import Action, Item
from gitops_ctl.cli.connection import Target
from gitops_ctl.cli.diff import Wish, compared_by
from tests.doubles.apiserver import FakeApiServer
from tests.support.api_rollouts import an_approval
from tests.support.rollout_git import APPROVER, AUTHOR, bare_plan, introduced, live, path_of, rollout
from tests.support.sync_cluster import Bench, fake_bench, until

pytestmark = pytest.mark.simulation


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    async with FakeApiServer() as server, fake_bench(server, tmp_path, devices=True) as made:
        await made.sync()
        introduced(made, "/spec/plan", AUTHOR, verb="plan")
        yield made


async def test_the_name_and_the_time_of_the_introducer_are_sent(site: Bench):
    site.push({"spring.yaml": rollout(site)})
    await site.until_ready()
    tree = await live(site)
    assert (tree["spec"]["plan"]["requestedBy"], tree["spec"]["plan"]["requestedAt"]) == (
        AUTHOR,
        "2026-11-30T08:00:00Z",
    )
    assert tree["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == "plan=network-author"


async def test_a_written_name_of_somebody_else_holds_the_object_and_no_other(site: Bench):
    site.push({"spring.yaml": rollout(site, plan=bare_plan(requestedBy=APPROVER)), **site.config_maps(1)})
    (held,) = await site.until_held("IdentityMismatch")
    assert f"'{APPROVER}'" in held["message"]
    assert f"'{AUTHOR}'" in held["message"]
    assert await live(site) is None
    assert await site.get("configmaps", "n0000") is not None


async def test_an_approval_in_the_document_of_an_absent_object_is_history(site: Bench):
    introduced(site, "/spec/approval", APPROVER, verb="approve")
    site.push({"spring.yaml": rollout(site, approval=an_approval(approvedBy=APPROVER))})
    (held,) = await site.until_held("HistoricRollout")
    assert "/spec/approval" in held["message"]
    assert await live(site) is None


async def test_what_the_cluster_has_stored_stays_and_nothing_is_written_twice(site: Bench):
    site.push({"spring.yaml": rollout(site)})
    await site.until_ready()
    before = (await live(site))["metadata"]["resourceVersion"]
    await site.request()
    await site.until_idle()
    assert (await live(site))["metadata"]["resourceVersion"] == before


async def test_a_name_that_was_filled_in_is_no_drift(site: Bench):
    site.push({"spring.yaml": rollout(site, control={"revision": 0, "pause": False})})
    await site.sync(drift="Report")
    await site.until_ready()
    await site.admin.patch_merge(path_of(site), {"metadata": {"labels": {"a": "b"}}}, manager="somebody")
    await site.admin.patch_merge(path_of(site), {"spec": {"control": None}}, manager="somebody")

    async def reported() -> Any:
        return (await site.status()).get("drift")

    (drift,) = await until(reported, what="the drift is reported")
    assert drift["pointers"] == ["/spec/control"]


async def what_diff_says(site: Bench) -> Item:
    site.repo.git("checkout", "-q", "--force", "main")
    target = Target(None, None, site.namespace)
    found = await compared_by(site.admin, Wish(target, "site", site.repo.path, "", as_sync=False))
    (item,) = [item for item in found.items if item.object.name == "spring"]
    return item


async def test_diff_shows_no_difference_in_names_that_a_sync_fills_in(site: Bench):
    site.push({"spring.yaml": rollout(site, control={"revision": 0})})
    await site.until_ready()
    assert (await what_diff_says(site)).action is Action.SAME
    site.repo.commit({"spring.yaml": rollout(site, control={"revision": 1, "pause": True})})
    changed = await what_diff_says(site)
    told = {change.pointer: change.wanted for change in changed.changes}
    assert (told["/spec/control/revision"], told["/spec/control/pause"]) == (1, True)


async def test_diff_calls_an_approval_of_an_absent_object_history_as_a_sync_does(site: Bench):
    site.push({"spring.yaml": rollout(site, approval=an_approval())})
    item = await what_diff_says(site)
    assert (item.action, item.reason) == (Action.HELD, "HistoricRollout")
