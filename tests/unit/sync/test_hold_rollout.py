"""Rollouts and devices through a Sync: an emergency stop stays, a stale control, a wrong hash and a locked device hold their object.

The whole room against the double; each rule by itself is in tests/unit/rollout/test_rollout_holds.py (rollouts.md, 2.6 and 8.6).
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import gitops_ctl.cli.rolloutrules  # noqa: F401 - registers what is tried here
from tests.doubles.apiserver import FakeApiServer
from tests.support.api_devices import a_lock
from tests.support.api_rollouts import OTHER_DIGEST, a_control, a_device, a_frozen_plan, an_approval
from tests.support.rollout_git import APPROVER, AUTHOR, introduced, live, path_of, rollout
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    async with FakeApiServer() as server, fake_bench(server, tmp_path, devices=True) as made:
        await made.sync()
        introduced(made, "/spec/plan", AUTHOR, verb="plan")
        yield made


async def begun(site: Bench, **spec: Any) -> None:
    """The campaign is there, with a published plan."""
    site.push({"spring.yaml": rollout(site, **spec)})
    await until(lambda: live(site), what="the rollout is there")
    status = {"phase": "Executing", "observedGeneration": 1, "frozenPlan": a_frozen_plan()}
    await site.admin.patch_merge(f"{path_of(site)}/status", {"status": status}, manager="gitops-ctl-rollout")


async def stop(site: Bench, revision: int) -> None:
    """A person pauses the campaign with kubectl."""
    control = a_control(revision, pause=True, requestedBy="on-call", reason="smoke")
    await site.admin.patch_merge(path_of(site), {"spec": {"control": control}}, manager="kubectl")


async def control(site: Bench) -> Any:
    return (await live(site))["spec"].get("control")


async def test_an_emergency_stop_is_not_put_back_and_another_commit_does_not_undo_it(site: Bench):
    await begun(site)
    await stop(site, 1)
    site.push({"note.yaml": site.config_map("note")})
    await until(lambda: site.get("configmaps", "note"), what="the next commit is applied")
    await site.request()
    found = await control(site)
    assert (found["revision"], found["pause"], found["requestedBy"]) == (1, True, "on-call")


async def test_a_stop_is_brought_back_to_git_and_ended_there(site: Bench):
    await begun(site)
    await stop(site, 1)
    introduced(site, "/spec/control", APPROVER, verb="control", commit="d" * 40)
    site.push({"spring.yaml": rollout(site, control={"revision": 1, "pause": True, "reason": "smoke"})})
    await site.until_ready()
    assert (await control(site))["requestedBy"] == "on-call"
    introduced(site, "/spec/control", APPROVER, verb="control", commit="e" * 40)
    site.push({"spring.yaml": rollout(site, control={"revision": 2, "pause": False})})
    await until(lambda: _has_revision(site, 2), what="the campaign is resumed")
    assert (await control(site))["requestedBy"] == APPROVER


async def _has_revision(site: Bench, revision: int) -> bool:
    return bool((await control(site))["revision"] == revision)


async def test_a_commit_that_does_not_know_of_the_stop_is_held_with_the_next_free_revision(site: Bench):
    introduced(site, "/spec/control", APPROVER, verb="control", commit="d" * 40)
    await begun(site, control={"revision": 1, "pause": False})
    await stop(site, 3)
    introduced(site, "/spec/control", APPROVER, verb="control", commit="e" * 40)
    site.push({"spring.yaml": rollout(site, control={"revision": 2, "pause": False})})
    (held,) = await site.until_held("ControlRevisionStale")
    assert "revision 3 of on-call: the next free revision is 4" in held["message"]
    assert (await control(site))["revision"] == 3


async def test_an_approval_of_another_plan_is_held_and_the_right_one_is_stored_with_its_name(site: Bench):
    await begun(site)
    introduced(site, "/spec/approval", APPROVER, verb="approve", commit="d" * 40)
    approval = {"planHash": OTHER_DIGEST}
    site.push({"spring.yaml": rollout(site, approval=approval), "note.yaml": site.config_map("note")})
    (held,) = await site.until_held("ApprovalHashMismatch")
    assert OTHER_DIGEST in held["message"]
    assert await site.get("configmaps", "note") is not None
    site.push({"spring.yaml": rollout(site, approval={"planHash": an_approval()["planHash"]})})
    await site.until_ready()
    assert (await live(site))["spec"]["approval"]["approvedBy"] == APPROVER


async def test_a_change_of_a_locked_device_waits_for_the_campaign_without_another_commit(site: Bench):
    device = a_device(namespace=site.namespace)
    site.push({"switch.yaml": document(device)})
    await site.until_ready()
    path = f"{site.path('ciscodevices', 'switch-1', group='cisco.vk/v1alpha1')}/status"
    await site.admin.patch_merge(path, {"status": {"topologyLock": a_lock()}}, manager="gitops-ctl-rollout")
    site.push({"switch.yaml": document(a_device(namespace=site.namespace, port=443))})
    (held,) = await site.until_held("DeviceLocked")
    assert held["message"].startswith("the campaign team-a/to-17-18 has the device (Active)")
    for lock in (a_lock("Releasing"), None):
        await site.admin.patch_merge(path, {"status": {"topologyLock": lock}}, manager="gitops-ctl-rollout")
    await site.until_ready()
    found = await site.get("ciscodevices", "switch-1", group="cisco.vk/v1alpha1")
    assert found["spec"]["port"] == 443
