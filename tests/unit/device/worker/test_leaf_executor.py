"""The worker's entry for leaves over Secrets, Lease and maintenance of the cluster (rollouts.md, sections 13.1, 13.6 and 17.2)."""

import base64
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.worker.executor import Executor
from gitops_ctl.device.worker.identity import Who
from gitops_ctl.device.worker.place import Equipment
from gitops_ctl.device.worker.secretreader import SecretReader
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key, mutation_lease_name
from gitops_ctl.fleet.revision import worker_revision
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.gnoi import DirectGnoi
from tests.support.admission_world import DEVICES, LEAVES
from tests.support.device_planes import HOST_KEY
from tests.support.leaf_world import POD, LeafWorld
from tests.support.rollout_planning import NAMESPACE, ago

SECRETS, LEASES = ("", "secrets"), ("coordination.k8s.io", "leases")
LEASE = mutation_lease_name(NAMESPACE, "edge-1")
DIGEST = f"sha256:{'4' * 64}"


class ExecutorWorld(LeafWorld):
    """A leaf whose worker reads Secrets and takes the Lease itself."""

    def __init__(self, folder):
        super().__init__(folder)
        self.change(DEVICES, "edge-1", "spec", "credentialSecretRef", to={"name": "login"})
        self.change(DEVICES, "edge-1", "spec", "gnoi", to={"transportSecurity": "plaintext"})
        self.log_in("one")
        labels = {names.LEASE_DEVICE: device_key(NAMESPACE, "edge-1")}
        meta = {"name": LEASE, "namespace": NAMESPACE, "uid": "lease-uid", "labels": labels}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}}
        self.put(LEASES, lease)
        with self.switch.change() as device:
            device["serial"] = self.tree(DEVICES, "edge-1")["spec"]["physicalIdentity"].upper()
        self.cached = None
        target = GnoiTarget("192.0.2.1", 50052)
        self.gnoi = DirectGnoi({str(target): self.switch}, point=self._called)

    def log_in(self, password):
        """The login of the switch, made or rotated."""
        texts = {"username": "operator", "password": password, "known_hosts": f"[192.0.2.1]:830 {HOST_KEY}\n"}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        meta = {"name": "login", "namespace": NAMESPACE, "uid": "login-uid"}
        self.put(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})

    def prove(self):
        """The manager takes up the revision that the worker loaded."""
        version = self.tree(SECRETS, "login")["metadata"]["resourceVersion"]
        revision = worker_revision(template_digest=DIGEST, credential=version, tls="", provisioning="")
        for member in ("desiredRevision", "observedRevision"):
            self.change(DEVICES, "edge-1", "status", "networkWorkerRevision", member, to=revision)

    def acknowledge_session(self):
        """The manager guards the Node."""
        lease = self.tree(LEASES, LEASE)
        asked = {name: lease["metadata"]["annotations"][names.MAINTENANCE + name] for name in names.MAINTENANCE_MEMBERS}
        admission = self.status["managerAdmission"]
        session = {
            "phase": "Acknowledged",
            "protocolVersion": asked["request-version"],
            "purpose": asked["purpose"],
            "sessionToken": asked["session-token"],
            "lease": {**{one: lease["metadata"][one] for one in ("namespace", "name", "uid")}, "holder": self.holder},
            "operation": {one: asked[f"operation-{one}"] for one in ("namespace", "name", "uid")},
            "deviceUID": self.tree(DEVICES, "edge-1")["metadata"]["uid"],
            "nodeName": self.leaf()["metadata"]["annotations"][names.NODE_NAME],
            "nodeUID": admission["nodeUID"],
        }
        self.change(DEVICES, "edge-1", "status", "maintenanceSession", to=session)

    @property
    def holder(self):
        return self.tree(LEASES, LEASE)["spec"].get("holderIdentity", "")

    @asynccontextmanager
    async def executing(self):
        """One process: the entry as a function without arguments."""
        client = direct_client(self.api, component="worker", clock=self.clock)
        equipment = Equipment(
            client=client,
            namespace=NAMESPACE,
            who=Who(f"system:serviceaccount:{NAMESPACE}:network-management", POD, "pod-uid"),
            template_digest=DIGEST,
            secrets=SecretReader(client, namespace=NAMESPACE),
            lease_namespace=NAMESPACE,
            netconf=self.netconf,
            gnoi=self.gnoi,
            journal=self.journal,
            spool=self.spool,
            sources=SimpleNamespace(download=lambda _endpoint, _login: self._download()),
            new_id=lambda: f"00000000-0000-4000-8000-{next(self._tokens):012d}",
        )
        key = NamespacedName(NAMESPACE, "edge-1")
        place = equipment.place(key, tree=lambda: self.cached or self.tree(DEVICES, "edge-1"))
        executor, leaf = Executor(equipment), NamespacedName(NAMESPACE, self.target().child_name)

        async def step(times=1):
            for _ in range(times):
                wait_s = await executor.step(place, leaf)
                self.clock.now_s += wait_s or 0.0
            return wait_s

        async with client:
            yield step


@pytest.fixture
async def world(tmp_path):
    made = ExecutorWorld(tmp_path)
    await made.grant()
    made.prove()
    yield made
    made.journal.close()
    assert made.violations() == []


async def test_the_lease_is_held_for_the_leaf_and_let_go_when_its_outcome_is_proven(world):
    async with world.executing() as step:
        await step()
        assert world.holder == f"software-upgrade/{world.leaf()['metadata']['uid']}"
        assert world.mutations() == []
        world.acknowledge_session()
        while (await step()) is not None:
            pass
    assert world.status["phase"] == "Succeeded", world.status
    assert world.holder == ""
    assert world.mutations() == ["Install", "Activate", "Commit"]


async def test_a_rotated_secret_forbids_claims_until_the_new_revision_is_proven(world):
    async with world.executing() as step:
        await step()
        world.acknowledge_session()
        world.log_in("two")
        await step(3)
        assert world.mutations() == []
        world.prove()
        while (await step()) is not None:
            pass
    assert world.status["phase"] == "Succeeded", world.status


async def test_a_device_is_not_reached_at_an_address_that_is_older_than_the_upgrade(world):
    old = world.tree(DEVICES, "edge-1")
    meta = {**old["metadata"], "generation": old["metadata"]["generation"] - 1, "resourceVersion": "1"}
    world.cached = {**old, "metadata": meta}
    async with world.executing() as step:
        await step(3)
        assert world.calls == []
        assert "generation" in world.status["message"]
        world.cached = None
        await step()
        world.acknowledge_session()
        while (await step()) is not None:
            pass
    assert world.status["phase"] == "Succeeded", world.status


async def test_the_chassis_that_answers_has_to_be_the_one_of_the_grant(world):
    with world.switch.change() as device:
        device["serial"] = "edge-1"
    async with world.executing() as step:
        await step()
    assert (world.status["phase"], world.status["failureReason"]) == ("PreflightFailed", "PhysicalIdentityMismatch")


async def test_a_source_secret_that_was_made_anew_forbids_claims(world):
    reference = {"name": "images"}
    spec = world.leaf()["spec"]["imageSource"]
    world.set_leaf(
        "spec", "imageSource", to={**spec, "url": "sftp://images.example.net/a.bin", "urlSecretRef": reference}
    )
    async with world.executing() as step:
        await step(2)
    assert world.calls == []
    assert world.mutations() == []


async def test_the_worker_publishes_the_revision_that_its_secrets_prove(world):
    version = world.tree(SECRETS, "login")["metadata"]["resourceVersion"]
    assert version
    async with world.executing() as step:
        await step()
    assert world.status["workerControl"]["observedWorkerConfigRevision"] == worker_revision(
        template_digest=DIGEST, credential=version, tls="", provisioning=""
    )
    assert world.status["workerControl"]["updatedAt"] >= ago(0)


@pytest.mark.parametrize("state", ["Revoked", "Settled"])
async def test_a_leaf_that_was_stopped_before_its_first_claim_lets_the_lease_go(world, state):
    async with world.executing() as step:
        await step()
        assert world.holder
        world.acknowledge_session()
        world.set_leaf("status", "managerAdmission", "state", to=state)
        assert await step() is None
        assert world.holder == ""
        lease = world.tree(LEASES, LEASE)
        await step(2)
    assert world.tree(LEASES, LEASE) == lease
    assert world.mutations() == []


async def test_a_stopped_leaf_lets_go_also_when_it_is_not_the_workers_any_more(world):
    async with world.executing() as step:
        await step()
        world.set_leaf("status", "managerAdmission", "state", to="Revoked")
        generation = world.tree(DEVICES, "edge-1")["metadata"]["generation"]
        world.change(DEVICES, "edge-1", "metadata", "generation", to=generation + 1)
        await step()
    assert world.holder == ""


async def test_while_the_journal_is_lost_a_stopped_leaf_keeps_the_lease(world):
    async with world.executing() as step:
        await step()
        world.set_leaf("status", "managerAdmission", "state", to="Revoked")
        world.change(DEVICES, "edge-1", "status", "workerReport", "journal", "id", to="another-journal")
        await step(2)
    assert world.holder


@pytest.mark.parametrize("exists", [False, True], ids=["gone", "there"])
async def test_the_lease_of_a_leaf_that_is_gone_is_taken_over(world, exists):
    name = world.target().child_name
    asked = dict(
        zip(
            names.MAINTENANCE_MEMBERS, ("rollout-v1", "0" * 16, ago(9), NAMESPACE, name, "uid-1", "0", "S"), strict=True
        )
    )
    if exists:
        world.put(LEAVES, {**world.leaf(), "metadata": {**world.leaf()["metadata"], "name": "former", "uid": "uid-1"}})
        asked["operation-name"] = "former"
    world.change(
        LEASES, LEASE, "metadata", "annotations", to={f"{names.MAINTENANCE}{key}": one for key, one in asked.items()}
    )
    world.change(LEASES, LEASE, "spec", "holderIdentity", to="software-upgrade/uid-1")
    async with world.executing() as step:
        await step()
    assert world.holder == (
        "software-upgrade/uid-1" if exists else f"software-upgrade/{world.leaf()['metadata']['uid']}"
    )


async def test_nobody_takes_the_lease_while_the_session_of_another_leaf_is_open(world):
    session = {"phase": "Acknowledged", "operation": {"namespace": NAMESPACE, "name": "former", "uid": "uid-1"}}
    world.change(DEVICES, "edge-1", "status", "maintenanceSession", to=session)
    async with world.executing() as step:
        await step()
        assert world.holder == ""
        world.change(DEVICES, "edge-1", "status", "maintenanceSession", "phase", to="Settled")
        await step()
    assert world.holder == f"software-upgrade/{world.leaf()['metadata']['uid']}"
