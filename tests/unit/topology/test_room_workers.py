"""The workers of a namespace when options change: templates wait for claims, rights follow the access profile (rollouts.md, 17.1, 17.2)."""

from dataclasses import replace
from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.topology.options import Access
from tests.support.api_leaves import a_claim, an_admission
from tests.support.api_rollouts import an_upgrade
from tests.support.device_world import DEPLOYMENTS, LEAVES, OPTIONS, DeviceWorld, in_device_world
from tests.support.topology_devices import APP_ACCOUNT, NAMESPACE, NETWORK_ACCOUNT

BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
NEWER = replace(OPTIONS, worker_image="gitops-ctl:newer")


async def begin(world: DeviceWorld) -> None:
    await world.policy()
    await world.device()
    await world.start()
    await world.ready()


async def image(world: DeviceWorld, account: str) -> str:
    deployment: Any = await world.get(f"{DEPLOYMENTS}/{account}")
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


async def claimed_leaf(world: DeviceWorld) -> None:
    leaf: Any = an_upgrade()
    annotations = {names.DEVICE_NAMESPACE: NAMESPACE, names.DEVICE_NAME: "access-1"}
    leaf["metadata"] = {"name": "leaf-1", "namespace": NAMESPACE, "annotations": annotations}
    await world.admin.create(LEAVES, leaf)
    for status in ({"managerAdmission": an_admission(state="Granted")}, {"managedMutationClaims": [a_claim()]}):
        await world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": status}, subresource="status")


def test_another_template_of_the_network_plane_waits_for_an_unresolved_claim_and_says_for_which() -> None:
    async def story(world: DeviceWorld) -> None:
        await begin(world)
        await claimed_leaf(world)
        await world.stop()
        await world.start(NEWER)
        await world.clock.sleep(120.0)
        assert await image(world, NETWORK_ACCOUNT) == OPTIONS.worker_image
        [note] = {entry[3] for entry in world.told if entry[2] == NAMESPACE}
        assert f"{NAMESPACE}/leaf-1" in note
        settled = {"type": names.MUTATION_SETTLED, "status": "True", "reason": "OutcomeVerified", "message": ""}
        settled["lastTransitionTime"] = "2026-02-01T00:00:00Z"
        body = {"status": {"conditions": [settled]}}
        await world.admin.patch_merge(f"{LEAVES}/leaf-1", body, subresource="status")

        async def is_newer() -> bool:
            return await image(world, NETWORK_ACCOUNT) == NEWER.worker_image

        await world.until(is_newer, what="the template is the new one", timeout_s=5.0)

    in_device_world(story)


def test_another_template_asks_for_a_new_proof_of_every_device() -> None:
    async def story(world: DeviceWorld) -> None:
        await begin(world)
        before = (await world.seen())["status"]["networkWorkerRevision"]
        await world.stop()
        await world.start(NEWER)

        async def is_proven_anew() -> bool:
            revision = (await world.seen())["status"]["networkWorkerRevision"]
            return revision.get("podUID", before["podUID"]) != before["podUID"] and await world.is_ready()

        await world.until(is_proven_anew, what="the new Pod has proved it")
        after = (await world.seen())["status"]["networkWorkerRevision"]
        assert after["desiredRevision"] == after["observedRevision"] != before["desiredRevision"]

    in_device_world(story)


def test_read_only_takes_the_writing_roles_away_and_disabled_the_accounts() -> None:
    async def story(world: DeviceWorld) -> None:
        await begin(world)
        await world.stop()
        await world.start(replace(OPTIONS, network=Access.READ_ONLY, app_hosting=Access.DISABLED))

        async def is_reduced() -> bool:
            bindings: Any = (await world.admin.list_all(BINDINGS)).items
            roles = {each["roleRef"]["name"] for each in bindings}
            gone = not await world.get(f"{ACCOUNTS}/{APP_ACCOUNT}") and not await world.get(
                f"{DEPLOYMENTS}/{APP_ACCOUNT}"
            )
            return gone and not [role for role in roles if role.endswith("read-write")]

        await world.until(is_reduced, what="nothing may write")
        assert await world.get(f"{ACCOUNTS}/{NETWORK_ACCOUNT}")
        args = (await world.get(f"{DEPLOYMENTS}/{NETWORK_ACCOUNT}"))["spec"]["template"]["spec"]["containers"][0][
            "args"
        ]
        assert "--read-only" in args

    in_device_world(story)


def test_what_somebody_changed_in_a_workers_role_is_put_back_by_the_next_pass() -> None:
    async def story(world: DeviceWorld) -> None:
        await begin(world)
        path = f"{BINDINGS.replace('rolebindings', 'roles')}/{NETWORK_ACCOUNT}-secrets"
        stored: Any = await world.get(path)
        wider = [{**stored["rules"][0], "resourceNames": ["login", "other"]}]
        await world.admin.patch_merge(path, {"rules": wider})
        await world.device(credentialSecretRef={"name": "login"}, address="192.0.2.9")

        async def is_back() -> bool:
            return bool((await world.get(path))["rules"] == stored["rules"])

        await world.until(is_back, what="the role names the device's Secrets again")

    in_device_world(story)
