"""What the network plane does around an upgrade: whom it calls, the maintenance of a device, and a journal that was lost (13.6, 13.9)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.device.worker import maintenance
from gitops_ctl.device.worker.history import NOBODYS
from gitops_ctl.device.worker.place import Place
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.identity import mutation_lease_name
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from tests.support.api_leaves import an_admission
from tests.support.api_rollouts import an_upgrade
from tests.support.device_planes import JOURNAL_ID, Planes, in_planes
from tests.support.device_world import DEVICES, LEASES, LEAVES

OTHER_JOURNAL = "6b1ee4b2-0a1d-4a2f-9a71-1e4be1a4b7d2"
LEASE = f"{LEASES}/{mutation_lease_name('campus', 'access-1')}"


async def an_open_leaf(planes: Planes, *, state: str = "Granted") -> Leaf:
    """An upgrade of the device that the manager admitted."""
    device: Any = await planes.world.seen()
    node: Any = device.get("status", {}).get("nodeIdentity", {})
    tree = an_upgrade(name="leaf-1", namespace="campus", deviceRef={"name": "access-1"})
    tree["metadata"]["annotations"] = {
        **{names.DEVICE_UID: device["metadata"]["uid"], names.DEVICE_NAME: "access-1"},
        **({names.NODE_NAME: node["nodeName"]} if node else {}),
    }
    made: Any = await planes.world.admin.create(LEAVES, tree)
    uids = {"leafUID": made["metadata"]["uid"], "deviceUID": device["metadata"]["uid"]}
    admission = an_admission(state, **uids, **({"nodeUID": node["nodeUID"]} if node else {}))
    status = {"phase": "Pending", "managerAdmission": admission}
    return leaf_of(await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": status}, subresource="status"))


async def a_worker_that_ended_in_an_upgrade(planes: Planes) -> None:
    """Its journal was reported, and the leaf is open."""
    await planes.switch()
    await planes.network()
    await planes.world.until(lambda: _journal_is(planes, JOURNAL_ID, "Ready"), what="a journal is reported")
    await planes.stop()
    await an_open_leaf(planes)


async def assert_lost_until_the_upgrade_is_over(planes: Planes, journal: str) -> None:
    """The loss is told under that id however long the leaf is open, and only then a new journal begins."""
    await planes.world.until(lambda: _journal_is(planes, journal, "HistoryLost"), what="the loss is told")
    await planes.world.clock.sleep(600)
    assert await _journal_is(planes, journal, "HistoryLost")
    done = {"phase": "Cancelled", "completionTime": "2026-02-01T00:00:00Z"}
    await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": done}, subresource="status")
    await planes.world.until(
        lambda: _journal_is(planes, OTHER_JOURNAL, "Ready"), what="a new one begins", timeout_s=400
    )


def the_place(planes: Planes) -> Place:
    (place,) = planes.rooms["network"].places
    return place


def test_each_upgrade_of_the_namespace_is_carried_out_and_again_when_it_changes(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.network()
        await an_open_leaf(planes)
        await planes.world.clock.sleep(30)
        before = len(planes.executor.steps)
        assert set(planes.executor.steps) == {"access-1: leaf-1"}
        await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"metadata": {"labels": {"seen": "again"}}})
        await planes.world.clock.sleep(5)
        assert len(planes.executor.steps) == before + 1

    in_planes(tmp_path, story)


def test_maintenance_is_asked_for_acknowledged_and_settled_once_it_is_let_go(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        leaf = await an_open_leaf(planes)

        async def is_acknowledged() -> bool:
            return await maintenance.ask(planes.equipment, the_place(planes), leaf) is not None

        await planes.world.until(is_acknowledged, what="the manager acknowledges")
        lease: Any = await planes.world.get(LEASE)
        assert lease["spec"]["holderIdentity"] == f"software-upgrade/{leaf.uid}"
        writes = len(planes.writes)
        assert await is_acknowledged()
        assert len(planes.writes) == writes, "asking again writes nothing"

        done = {"phase": "Cancelled", "completionTime": "2026-02-01T00:00:00Z"}
        await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": done}, subresource="status")
        await maintenance.let_go(planes.equipment, the_place(planes), leaf)

        async def is_settled() -> bool:
            return (await planes.status("maintenanceSession"))["phase"] == "Settled"

        await planes.world.until(is_settled, what="the session is settled")
        lease = await planes.world.get(LEASE)
        assert "holderIdentity" not in lease["spec"]
        assert not [key for key in lease["metadata"]["annotations"] if key.startswith(names.MAINTENANCE)]
        await maintenance.let_go(planes.equipment, the_place(planes), leaf)

    in_planes(tmp_path, story)


OTHERS: Any = {
    "another lease": {"lease": {"uid": "00000000-0000-4000-8000-00000000000f"}},
    "another token": {"sessionToken": "00000000-0000-4000-8000-00000000000e"},
    "another leaf of that name": {"operation": {"namespace": "elsewhere"}},
    "another holder": {"lease": {"holder": "software-upgrade/somebody"}},
    "another device": {"deviceUID": "00000000-0000-4000-8000-00000000000d"},
    "another node": {"nodeUID": "00000000-0000-4000-8000-00000000000c"},
    "another purpose": {"purpose": "WorkloadDrain", "protocolVersion": "pdb-drain-v1"},
    "settled": {"phase": "Settled"},
    "recovering": {"phase": "Recovering"},
}


def test_a_session_that_is_the_answer_to_anything_else_permits_nothing(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        leaf = await an_open_leaf(planes)

        async def is_acknowledged() -> bool:
            return await maintenance.ask(planes.equipment, the_place(planes), leaf) is not None

        await planes.world.until(is_acknowledged, what="the manager acknowledges")
        tree: Any = await planes.world.seen()
        real = device_of(tree)
        lease: Any = await planes.world.get(LEASE)
        assert real.session is not None
        token = real.session.session_token
        assert maintenance.is_answer(real, lease, leaf, token)
        for what, members in OTHERS.items():
            session = tree["status"]["maintenanceSession"]
            changed = {
                name: {**session[name], **value} if isinstance(value, dict) else value
                for name, value in members.items()
            }
            status = {**tree["status"], "maintenanceSession": {**session, **changed}}
            assert not maintenance.is_answer(device_of({**tree, "status": status}), lease, leaf, token), what
        await planes.world.admin.patch_merge(
            LEASE, {"metadata": {"annotations": {f"{names.MAINTENANCE}session-token": "another-token-of-20"}}}
        )
        assert await is_acknowledged(), "the request is made good again"
        asked: Any = await planes.world.get(LEASE)
        assert asked["metadata"]["annotations"][f"{names.MAINTENANCE}session-token"] == token

    in_planes(tmp_path, story)


def test_a_lease_that_somebody_else_holds_is_left_alone(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        leaf = await an_open_leaf(planes)
        held = {"spec": {"holderIdentity": "device-write/somebody", "leaseDurationSeconds": 60}}
        await planes.world.admin.patch_merge(LEASE, held)
        assert await maintenance.ask(planes.equipment, the_place(planes), leaf) is None
        await maintenance.let_go(planes.equipment, the_place(planes), leaf)
        lease: Any = await planes.world.get(LEASE)
        assert lease["spec"]["holderIdentity"] == "device-write/somebody"

    in_planes(tmp_path, story)


def test_a_lost_journal_is_told_under_its_old_id_while_an_upgrade_is_open(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await a_worker_that_ended_in_an_upgrade(planes)
        planes.folder = tmp_path / "another-volume"
        await planes.network(journal_id=OTHER_JOURNAL)
        await assert_lost_until_the_upgrade_is_over(planes, JOURNAL_ID)

    in_planes(tmp_path, story)


def test_a_device_that_is_being_upgraded_and_has_no_report_is_not_given_to_a_new_journal(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await a_worker_that_ended_in_an_upgrade(planes)
        await planes.world.admin.patch_merge(
            f"{DEVICES}/access-1", {"status": {"workerReport": None}}, subresource="status"
        )
        planes.folder = tmp_path / "another-volume"
        await planes.network(journal_id=OTHER_JOURNAL)
        await assert_lost_until_the_upgrade_is_over(planes, NOBODYS)

    in_planes(tmp_path, story)


def test_a_journal_of_the_same_id_that_does_not_know_a_claim_is_told_as_lost(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await a_worker_that_ended_in_an_upgrade(planes)
        claim = {"stage": "PrimaryInstall", "reservationID": "r" * 16, "policyEpoch": 1, "controlRevision": 1}
        status = {"phase": "Transferring", "managedMutationClaims": [{**claim, "claimedAt": "2026-02-01T00:00:00Z"}]}
        await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": status}, subresource="status")
        planes.folder = tmp_path / "another-volume"
        await planes.network()
        await planes.world.until(lambda: _journal_is(planes, JOURNAL_ID, "HistoryLost"), what="the loss is told")

    in_planes(tmp_path, story)


def test_a_new_journal_begins_only_once_the_device_was_seen_quiet(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        switch = await planes.switch()
        await planes.network()
        await planes.world.until(lambda: _journal_is(planes, JOURNAL_ID, "Ready"), what="a journal is reported")
        await planes.stop()
        planes.folder = tmp_path / "another-volume"
        with switch.change() as state:
            state["operation"] = {"kind": "add", "by": "somebody", "startedAt": 0}
        await planes.network(journal_id=OTHER_JOURNAL)
        await planes.world.until(lambda: _journal_is(planes, JOURNAL_ID, "HistoryLost"), what="the loss is told")
        with switch.change() as state:
            state["operation"] = None
        await planes.world.until(lambda: _journal_is(planes, OTHER_JOURNAL, "Ready"), what="a new one begins")

    in_planes(tmp_path, story)


async def _journal_is(planes: Planes, journal: str, state: str) -> bool:
    found = (await planes.status("workerReport")).get("journal", {})
    return (found.get("id"), found.get("state")) == (journal, state)


class Hanging:
    """NETCONF where one device takes the session and never answers."""

    def __init__(self, sessions: Any, name: str) -> None:
        self._sessions, self._name = sessions, name
        self.hung = 0

    @contextlib.asynccontextmanager
    async def session(self, endpoint: Any) -> AsyncIterator[Any]:
        if endpoint.name == self._name:
            self.hung += 1
            await asyncio.Event().wait()
        async with self._sessions.session(endpoint) as session:
            yield session


def test_a_device_that_hangs_delays_no_other(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.switch("access-2", number=2)
        hanging: Any = Hanging(planes.netconf, "access-2")
        planes.netconf = hanging
        await planes.node()
        await planes.network()
        await planes.world.ready()
        await planes.rollout(devices=("access-1", "access-2"))

        async def is_served() -> bool:
            return (await planes.preflight()).get("result") == "Passed" and bool(await planes.sample())

        await planes.world.until(is_served, what="the other device is served")
        first = (await planes.sample())["sampleSequence"]
        await planes.world.clock.sleep(700)
        assert (await planes.sample())["sampleSequence"] >= first + 6
        assert hanging.hung
        assert (await planes.status("workerReport", "access-2"))["materialValid"]

    in_planes(tmp_path, story)


def test_a_new_secret_ends_a_session_that_hangs(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        hanging: Any = Hanging(planes.netconf, "access-1")
        planes.netconf = hanging
        await planes.network()
        await planes.world.clock.sleep(60)
        place = the_place(planes)
        reading = asyncio.create_task(place.while_loaded(asyncio.Event().wait()))
        await planes.secret("access-1-login", address="192.0.2.1", password="another-password")
        with pytest.raises(Unavailable, match="Secrets were changed"):
            await reading

    in_planes(tmp_path, story)


def test_a_node_of_a_device_that_does_not_answer_is_not_ready_and_its_worker_lives(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        planes.netconf.away.add("access-1")

        async def is_lost() -> bool:
            return (await planes.condition("Ready"))["status"] == "False"

        await planes.world.until(is_lost, what="it is not ready")
        lease: Any = await planes.world.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/access-1")
        await planes.world.clock.sleep(60)
        later: Any = await planes.world.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/access-1")
        assert later["spec"]["renewTime"] > lease["spec"]["renewTime"]
        assert not (await planes.sample())["complete"]
        assert (await planes.sample())["unknownReason"]
        planes.netconf.away.clear()
        await planes.world.ready()

        async def is_complete() -> bool:
            return (await planes.sample())["complete"] and "unknownReason" not in await planes.sample()

        await planes.world.until(is_complete, what="the next sample is complete")

    in_planes(tmp_path, story)
