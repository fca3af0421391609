"""A software rollout on a real API server, under the rights of the chart and nothing else (rollouts.md, sections 9, 11 and 18.2).

What only the server shows: transition rules and defaults of the kinds against every write of a campaign, field ownership, the rights, and the
audit log of a campaign that waits.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.cli.rolloutfleet import ManagedFleet
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.fleet import names
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import bind
from gitops_ctl.rollout.controller import Intervals
from gitops_ctl.rollout.room import Options as RolloutOptions
from gitops_ctl.rollout.room import RolloutRoom
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.room import TopologyRoom
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.support.admission_proof import proven
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.device_workers import Workers
from tests.support.leaf_workers import LeafWorkers
from tests.support.rollout_revision import RolloutInGit
from tests.support.rollout_world import COHORT, FAMILY, document
from tests.support.sync_cluster import TIMING, install_crds, until
from tests.support.topology_devices import POLICY, REGION, ZONE, device, policy_objects
from tools.render_install import chart_objects

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

HALL = f"{names.TOPOLOGY}hall"
POLICY_NAME = "topology-policy"
AGENT = "rollout-rooms"
OWN = ("/iosxesoftware", "/configmaps", "/proposals")
"""What only the rollout room writes; evidence of devices is renewed all the time."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = (
    "gitops-ctl-node-heartbeats",
    "gitops-ctl-managed-topology",
    "gitops-ctl-software-rollouts",
    "gitops-ctl-device-workers",
    "gitops-ctl-manager",
)


class Site:
    """A device and a rollout over it, in a namespace of its own, with both rooms and all workers at work."""

    def __init__(self, admin: KubeClient, namespace: str) -> None:
        self.admin, self.namespace = admin, namespace
        self.name = f"hall-{secrets.token_hex(4)}"
        self.devices = f"/apis/cisco.vk/v1alpha1/namespaces/{namespace}/ciscodevices"
        self.rollouts = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{namespace}/iosxesoftwarerollouts"
        self.revisions = AcceptedRevisions()
        self.entitled: list[str] = []
        tree = document(canaries=(f"{self.name}-1",))
        tree["metadata"]["namespace"] = namespace
        tree["spec"]["plan"]["targets"]["selector"] = {"matchLabels": {HALL: self.name}}
        tree["spec"]["plan"]["health"]["maxObservationAgeSeconds"] = 30
        self.git = RolloutInGit(self.revisions, tree)

    async def entitle(self) -> None:
        """Give the rooms' user what the chart gives the manager, under names of this test."""
        values = {
            "enabled": True,
            "namespaces": [self.namespace],
            "fleetPolicy": POLICY_NAME,
            "ledger": POLICY["ledgerName"],
        }
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.name}
        for tree in chart_objects({"managedTopology": values}):
            if tree["metadata"]["name"] not in ROLES or "Role" not in tree["kind"]:
                continue
            own: Any = json.loads(json.dumps(tree))
            scope = ""
            if own["metadata"].get("namespace") in (SYSTEM_NAMESPACE, self.namespace):
                own["metadata"]["namespace"] = self.namespace
                scope = f"/namespaces/{self.namespace}"
            else:
                if "namespace" in own["metadata"]:
                    scope = f"/namespaces/{own['metadata']['namespace']}"
                own["metadata"]["name"] += f"-{self.name}"
                if "roleRef" in own:
                    own["roleRef"]["name"] += f"-{self.name}"
            self.entitled.append(f"{RBAC}{scope}/{own['kind'].lower()}s/{own['metadata']['name']}")
            if "subjects" in own:
                own["subjects"] = [user]
            await self.admin.create(f"{RBAC}{scope}/{own['kind'].lower()}s", own)
            if "roleRef" in own:
                await self._until_bound(own)

    async def _until_bound(self, binding: Any) -> None:
        """The authoriser learns of a role a moment after it was stored; rooms that ask earlier would see 403."""
        namespace = binding["metadata"].get("namespace", "")
        scope = f"/namespaces/{namespace}" if binding["roleRef"]["kind"] == "Role" else ""
        role: Any = await self.admin.get(
            f"{RBAC}{scope}/{binding['roleRef']['kind'].lower()}s/{binding['roleRef']['name']}"
        )
        for rule in role["rules"]:
            asked = {
                "namespace": namespace,
                "verb": rule["verbs"][0],
                "group": rule["apiGroups"][0],
                "resource": rule["resources"][0].partition("/")[0],
                "subresource": rule["resources"][0].partition("/")[2],
                "name": rule.get("resourceNames", [""])[0],
            }
            await until(lambda asked=asked: self._may(asked), what=f"the authoriser knows of {asked}")

    async def _may(self, asked: Any) -> bool:
        review: Any = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": self.name, "resourceAttributes": asked},
        }
        answer: Any = await self.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    async def prepare(self) -> None:
        """The policy, a Secret and the device."""
        maps = f"/api/v1/namespaces/{self.namespace}/configmaps"
        selector = {"matchLabels": {HALL: self.name}}
        fast = {"fleetSelector": selector, "healthFreshnessSeconds": 30}
        for tree in policy_objects(self.namespace, name=POLICY_NAME, **fast):
            await self.admin.create(maps, tree)
        secret: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"user": "x"}}
        await self.admin.create(f"/api/v1/namespaces/{self.namespace}/secrets", secret)
        name = f"{self.name}-1"
        labels = {HALL: self.name, REGION: "north", ZONE: "hall-1", COHORT: "c9300", FAMILY: "cat9k"}
        metadata: Any = {"name": name, "namespace": self.namespace, "labels": labels}
        await self.admin.create(self.devices, {**device(name), "metadata": metadata, "status": {}})

    @contextlib.asynccontextmanager
    async def working(self, control_plane: ControlPlaneHandle) -> AsyncIterator["Site"]:
        config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
        limited = await load_cluster(control_plane.kubeconfig_for(self.name), allow_exec=False)
        async with (
            KubeClient(limited, component=AGENT, clock=SystemClock()) as client,
            KubeClient(config, component="workers", clock=SystemClock()) as workers,
        ):
            managed, rolling = self._rooms(client)
            planes = Workers(workers, namespace=self.namespace, has_controllers=True)
            leaves = LeafWorkers(workers, namespace=self.namespace)
            rooms = [asyncio.create_task(room.run()) for room in (managed, rolling)]
            others = [asyncio.create_task(one.run(every_s=0.3)) for one in (planes, leaves)]
            try:
                yield self
            finally:
                managed.stop()
                rolling.stop()
                for task in others:
                    task.cancel()
                await asyncio.gather(*rooms, *others, return_exceptions=True)

    def _rooms(self, client: KubeClient) -> tuple[TopologyRoom, RolloutRoom]:
        async def bound(namespace: str, name: str) -> FleetPolicy:
            return (await bind(client, namespace=namespace, name=name)).record.policy

        options = Options(namespace=self.namespace, policy=POLICY_NAME, worker_image="gitops-ctl:test", resync_s=1.0)
        managed = TopologyRoom(client, bind=bound, options=options, timing=TIMING, prove=proven)
        rolling = RolloutRoom(
            client,
            revisions=self.revisions,
            read=self.git.read,
            read_file=lambda _revision, _path: self.git.data,
            inventory=ManagedFleet(managed.caches, options),
            options=RolloutOptions(
                namespace=self.namespace,
                policy=POLICY_NAME,
                intervals=Intervals(resync_s=1.0, planning_retry_s=0.5),
                require=managed.require,
                timing=TIMING,
            ),
        )
        return managed, rolling

    async def status(self) -> Any:
        found: Any = await self.admin.find(f"{self.rollouts}/spring") or {}
        return found.get("status", {})

    async def reaches(self, phase: str) -> Any:
        async def is_there() -> bool:
            return bool((await self.status()).get("phase") == phase)

        try:
            await until(is_there, what=f"phase {phase}", timeout_s=120.0)
        except AssertionError as error:
            raise AssertionError(f"{error}: {(await self.status()).get('targets')}") from None
        return await self.status()

    async def proposal(self) -> Any:
        path = f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{self.namespace}/proposals/spring-approval"
        return await self.admin.find(path) or {}


@pytest.fixture
async def site(kube_admin: KubeClient, control_plane: ControlPlaneHandle, namespace: str) -> AsyncIterator[Site]:
    await install_crds(kube_admin)
    found = Site(kube_admin, namespace)
    await found.entitle()
    await found.prepare()
    async with found.working(control_plane):
        yield found
    for path in found.entitled:
        await kube_admin.delete(path)


async def test_a_rollout_lives_from_its_request_to_its_success_under_the_shipped_rights(
    site: Site, audit_log: AuditLog
) -> None:
    site.git.accept()
    await site.git.apply(site.admin)
    plan_hash = (await site.reaches("AwaitingApproval"))["frozenPlan"]["hash"]

    async def is_proposed() -> bool:
        return bool((await site.proposal()).get("spec", {}).get("changes"))

    await until(is_proposed, what="the approval is proposed", timeout_s=60.0)
    await _writes_nothing(audit_log)

    site.git.tree["spec"]["approval"] = {"planHash": plan_hash}
    site.git.who["/spec/approval"] = ("approve", "change-approver")
    site.git.accept()
    await site.git.apply(site.admin)
    status = await site.reaches("Succeeded")
    assert {one["phase"] for one in status["targets"]} == {"Succeeded"}
    assert not (await site.proposal())["spec"].get("changes")
    assert _denied(audit_log, site.namespace) == []

    await site.admin.delete(f"{site.rollouts}/spring")

    async def is_gone() -> bool:
        return await site.admin.find(f"{site.rollouts}/spring") is None

    await until(is_gone, what="the rollout is gone", timeout_s=60.0)


def _denied(audit_log: AuditLog, namespace: str) -> list[Any]:
    """What the chart's rights did not allow, but for namespaces that the chart was not told of: others' devices live there."""
    entries = [entry for entry in audit_log.entries(user_agent=AGENT) if entry["responseStatus"]["code"] == 403]
    return [entry for entry in entries if entry["objectRef"].get("namespace", namespace) == namespace]


async def _writes_nothing(audit_log: AuditLog) -> None:
    """For the time of a pass or two, a campaign that waits writes nothing of its own."""

    async def is_silent() -> bool:
        audit_log.mark()
        await asyncio.sleep(1.5)
        found = audit_log.entries(user_agent=AGENT, verbs=("create", "update", "patch", "delete"))
        return not [entry for entry in found if any(kind in entry["requestURI"] for kind in OWN)]

    await until(is_silent, what="a while without a write", timeout_s=60.0)
