"""The rollout room beside the room of devices: a campaign from Git to its end, what wakes it, and that it rests (rollouts.md, 9.1 and 11)."""

import base64
import json
from typing import Any

from gitops_ctl.cli.measure import measure_rollouts
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.rollout.controller import Intervals
from gitops_ctl.telemetry.metrics import Metrics
from tests.support.device_world import CONFIG_MAPS, DEVICES, POLICY_NAME, SECRETS
from tests.support.rollout_world import COHORT, ROLLOUT, RolloutWorld, document, in_rollout_world
from tests.support.topology_devices import NAMESPACE

SLOW = Intervals(resync_s=86400.0, planning_retry_s=86400.0)
"""Nothing is looked at again by the clock: what happens was woken."""


def _measured(world: RolloutWorld) -> str:
    """What the manager would tell about its rollouts."""
    assert world.rollouts is not None
    metrics = Metrics()
    measure_rollouts(metrics, world.rollouts.controller)
    return metrics.render().decode()


def test_a_rollout_from_git_is_planned_approved_and_carried_out() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1", "access-2")
        await world.request()
        status = await world.reaches("AwaitingApproval")
        assert [one["deviceName"] for one in status["frozenPlan"]["targets"]] == ["access-1", "access-2"]
        await world.approve()
        status = await world.reaches("Succeeded")
        assert {one["phase"] for one in status["targets"]} == {"Succeeded"}
        approval = status["approval"]
        assert (approval["person"], approval["commit"][-1], approval["valid"]) == ("change-approver", "2", True)
        told = world.reasons()
        for word in ("PlanFrozen", "AwaitingApproval", "RolloutApproved", "RolloutSucceeded"):
            assert told.count(word) == 1, (word, told)
        assert {"RolloutExecuting", "RolloutSoaking"} <= set(told)
        text = _measured(world)
        assert 'rollout_reconciliations_total{result="Soaking"}' in text
        assert 'rollout_target_transitions_total{phase="Succeeded"} 2.0' in text
        assert "rollout_ledger_active_reservations 0.0" in text
        ledger: Any = await world.get(f"{CONFIG_MAPS}/fleet-topology-ledger")
        size = len(ledger["data"]["ledger.json"])
        assert f"rollout_ledger_serialized_bytes {float(size)}" in text
        assert json.loads(ledger["data"]["ledger.json"])["reservations"] in ([], None, {})

    in_rollout_world(story)


def test_an_approval_in_the_cluster_alone_has_no_effect() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        await world.request()
        plan_hash = (await world.reaches("AwaitingApproval"))["frozenPlan"]["hash"]
        approval = {"planHash": plan_hash, "approvedBy": "mallory", "approvedAt": "2026-01-01T00:00:00Z"}
        await world.admin.patch_merge(ROLLOUT, {"spec": {"approval": approval}}, manager="mallory")

        async def is_judged() -> bool:
            return bool((await world.status()).get("approval", {}).get("reason") == "NotFromGit")

        await world.until(is_judged, what="judged")
        assert (await world.status())["phase"] == "AwaitingApproval"

    in_rollout_world(story)


def test_every_wait_ends_by_a_watch() -> None:
    async def story(world: RolloutWorld) -> None:
        world.intervals = SLOW
        await world.start()
        await world.fleet("access-1", "access-2")
        world.leaf_workers.results["access-1"] = "Failed"
        await world.request()
        await world.reaches("AwaitingApproval", timeout_s=60.0)
        await world.approve()

        async def is_blocked() -> bool:
            targets = (await world.status()).get("targets", ())
            return bool(targets) and targets[0].get("reason") == "FlashSpaceInsufficient"

        await world.until(is_blocked, what="the failed preflight is named", timeout_s=60.0)
        assert 'rollout_admission_waits_total{reason="FlashSpaceInsufficient"}' in _measured(world)
        world.leaf_workers.results.clear()
        await world.reaches("Succeeded", timeout_s=900.0)

    in_rollout_world(story)


def test_planning_that_failed_is_tried_again_when_a_device_changes() -> None:
    async def story(world: RolloutWorld) -> None:
        world.intervals = SLOW
        await world.start()
        await world.fleet("access-1")
        await world.admin.patch_merge(f"{DEVICES}/access-1", {"metadata": {"labels": {COHORT: "other"}}})
        await world.request()
        assert "other" in (await world.reaches("Failed", timeout_s=60.0))["message"]
        await world.admin.patch_merge(f"{DEVICES}/access-1", {"metadata": {"labels": {COHORT: "c9300"}}})
        await world.reaches("AwaitingApproval", timeout_s=60.0)

    in_rollout_world(story)


def test_without_a_policy_it_is_said_that_nothing_can_be_planned() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        await world.admin.delete(f"{CONFIG_MAPS}/{POLICY_NAME}")
        await world.request()

        async def is_said() -> bool:
            return POLICY_NAME in (await world.status()).get("message", "")

        await world.until(is_said, what="it is said", timeout_s=60.0)
        await world.policy()
        await world.reaches("AwaitingApproval")

    in_rollout_world(story)


def test_promise_08_while_there_is_no_rollout_one_kind_is_watched_and_nothing_is_asked_or_written() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        assert world.rollouts is not None
        await world.clock.sleep(5.0)
        assert world.rollouts.rollouts.synced.is_set()
        before = dict(world.requests)
        await world.clock.sleep(120.0)
        assert dict(world.requests) == before
        assert not world.rollouts.leaves.synced.is_set()

    in_rollout_world(story)


def test_promise_08_a_campaign_that_waits_writes_nothing() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1")
        await world.request()
        await world.reaches("AwaitingApproval")
        await world.clock.sleep(120.0)
        world.writes.clear()
        await world.clock.sleep(600.0)
        own = [call for call in world.writes if "ops.cisco.vk" in call.path or "configmaps" in call.path]
        assert own == []

    in_rollout_world(story)


PLANTED = {"username": "image-reader", "password": "T0p-Secret/Pass", "sshPrivateKey": "-----BEGIN KEY-----planted"}


def test_promise_09_of_a_source_secret_only_what_it_allows_is_taken() -> None:
    async def story(world: RolloutWorld) -> None:
        secret: Any = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "images", "labels": {"cisco.vk/purpose": "software-image-source"}},
            "stringData": {
                **PLANTED,
                **{"allowedScheme": "sftp", "allowedHost": "images.example.net", "allowedPort": "22"},
            },
        }
        await world.start()
        await world.fleet("access-1")
        await world.admin.create(SECRETS, secret)
        stored: Any = await world.get(f"{SECRETS}/images")
        data = {name: base64.b64encode(text.encode()).decode() for name, text in secret["stringData"].items()}
        if "data" not in stored:
            await world.admin.patch_merge(f"{SECRETS}/images", {"data": data})
        world.git.tree = document(
            image={
                "sha256": "a" * 64,
                "imageFamily": "cat9k",
                "sources": [
                    {
                        **{"name": "main", "priority": 10, "url": "sftp://images.example.net/cat9k.bin"},
                        "urlSecretRef": {"name": "images"},
                    }
                ],
            }
        )
        await world.request()
        status = await world.reaches("AwaitingApproval")
        uid = (await world.get(f"{SECRETS}/images"))["metadata"]["uid"]
        assert status["frozenPlan"]["targets"][0]["source"]["secretUID"] == uid
        assert world.rollouts is not None
        found = await world.rollouts.source_secrets(await world.rollout())
        said = [repr(found), str(await world.rollout()), str(world.told), *(str(call) for call in world.writes)]
        bodies = [text for tree in (await world.admin.list_all(DEVICES)).items for text in [str(tree)]]
        for value in PLANTED.values():
            encoded = base64.b64encode(value.encode()).decode()
            assert not [text for text in (*said, *bodies) if value in text or encoded in text]
        assert found["images"].allowed_host == "images.example.net"
        await world.admin.patch_merge(f"{SECRETS}/images", {"data": {"password": "%not base64%"}})
        assert (await world.rollouts.source_secrets(await world.rollout()))["images"].uid == uid
        # The same Secret without its label: a plan that names it shows the manager nothing of it.
        await world.admin.patch_merge(f"{SECRETS}/images", {"metadata": {"labels": {"cisco.vk/purpose": None}}})
        world.sent_secrets.clear()
        plain = (await world.rollouts.source_secrets(await world.rollout()))["images"]
        assert (plain.uid, plain.allowed_scheme, plain.allowed_host, plain.allowed_port) == (uid, "", "", "")
        assert world.sent_secrets == []

    in_rollout_world(story)


def test_a_source_secret_that_was_made_anew_ends_a_campaign_that_runs() -> None:
    async def story(world: RolloutWorld) -> None:
        await world.start()
        await world.fleet("access-1", "access-2")
        labels = {"cisco.vk/purpose": "software-image-source"}
        allowed = {"allowedScheme": "sftp", "allowedHost": "images.example.net", "allowedPort": "22"}
        data = {name: base64.b64encode(text.encode()).decode() for name, text in allowed.items()}
        body: Any = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "images", "labels": labels},
            "data": data,
        }
        await world.admin.create(SECRETS, body)
        source = {"name": "main", "priority": 10, "url": "sftp://images.example.net/cat9k.bin"}
        image = {"sha256": "a" * 64, "imageFamily": "cat9k"}
        world.git.tree = document(image={**image, "sources": [{**source, "urlSecretRef": {"name": "images"}}]})
        world.leaf_workers.works = False
        await world.request()
        await world.reaches("AwaitingApproval")
        await world.approve()
        await world.reaches("Executing")
        await world.admin.delete(f"{SECRETS}/images")
        await world.admin.create(SECRETS, body)
        status = await world.reaches("Paused", timeout_s=60.0)
        ready = next(one for one in status["conditions"] if one["type"] == "Ready")
        assert ready["reason"] == "SourceIdentityChanged"
        assert next(one for one in status["conditions"] if one["type"] == "SourceChanged")["status"] == "True"

    in_rollout_world(story)


def test_what_a_device_counts_as_is_kept_and_not_the_device() -> None:
    async def story(world: RolloutWorld) -> None:
        managed = await world.start()
        await world.fleet("access-1", "access-2")
        assert world.rollouts is not None
        assert managed.policy is not None
        reads: list[NamespacedName] = []
        inventory: Any = world.rollouts.book._inventory
        real = inventory.read

        def read(key: NamespacedName) -> Any:
            reads.append(key)
            return real(key)

        inventory.read = read
        for _ in range(3):
            look = world.rollouts.book.look(managed.policy)
            assert look is not None
            assert (len(look.members), look.problems) == (2, ())
        assert reads == [NamespacedName(NAMESPACE, "access-1"), NamespacedName(NAMESPACE, "access-2")]

    in_rollout_world(story)
