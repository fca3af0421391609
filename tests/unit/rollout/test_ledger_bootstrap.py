"""Policy and ledger find each other once and never another (rollouts.md, section 7.4)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.fleet.ledger import Ledger, encode_ledger
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import BoundPolicy, bind
from gitops_ctl.rollout.ledger_store import LedgerIdentity
from tests.support.kube_crash import Crash
from tests.support.ledger import a_record
from tests.support.ledger_bench import LEDGER, NAMESPACE, PATH, POLICY, LedgerBench, ledger_bench

RULES: dict[str, Any] = {
    "version": "v1",
    "appHostingServiceAccountName": "gitops-ctl-app-hosting",
    "networkManagementServiceAccountName": "gitops-ctl-network-management",
    "configLeaseNamespace": "",
    "fleetSelector": {"matchLabels": {"topology.cisco.vk/managed": "true"}},
    "requiredTopologyKeys": ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"],
    "projectedTopologyKeys": ["topology.kubernetes.io/zone"],
    "globalMaxConcurrentTransfers": 1,
    "globalMaxUnavailable": 1,
    "domainMaxConcurrentTransfers": {"topology.kubernetes.io/region": 1},
    "domainMaxUnavailable": {"topology.kubernetes.io/zone": 1},
    "healthFreshnessSeconds": 300,
    "maxCampaignTargets": 100,
    "maxActiveReservations": 256,
    "maxLedgerBytes": 262144,
    "ledgerName": LEDGER,
}
ANNOTATIONS = {
    "topology.cisco.vk/managed-policy": "true",
    "topology.cisco.vk/admission-policy-prefix": "gitops-ctl",
    "topology.cisco.vk/app-hosting-service-account": "gitops-ctl-app-hosting",
    "topology.cisco.vk/network-management-service-account": "gitops-ctl-network-management",
    "topology.cisco.vk/config-lease-namespace": "",
}
BOUND = "topology.cisco.vk/ledger-uid"


@pytest.fixture
async def bench() -> AsyncIterator[LedgerBench]:
    async with ledger_bench() as found:
        async with found.client(faulty=False) as client:
            meta = {"name": POLICY, "annotations": ANNOTATIONS}
            tree = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": meta,
                "data": {"policy.json": json.dumps(RULES)},
            }
            await client.create(PATH, tree)
        yield found


async def _bind(client: KubeClient) -> BoundPolicy:
    return await bind(client, namespace=NAMESPACE, name=POLICY)


def bound_uid(bench: LedgerBench) -> str:
    found: str = bench.tree(POLICY)["metadata"]["annotations"].get(BOUND, "")
    return found


async def test_the_first_pass_writes_an_empty_ledger_and_then_binds_it(bench: LedgerBench) -> None:
    async with bench.client() as client:
        bound = await _bind(client)

    assert bench.ledger == Ledger(uid=bench.uid)
    assert bound_uid(bench) == bench.uid == bound.ledger.uid == bound.record.ledger_uid
    assert bench.faults.writes == [f"patch {PATH}/{LEDGER}", f"patch {PATH}/{POLICY}"]
    assert bound.record.resource_version == bench.tree(POLICY)["metadata"]["resourceVersion"]


async def test_a_second_pass_writes_nothing(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await _bind(client)
        await _bind(client)

    assert len(bench.faults.writes) == 2


@pytest.mark.parametrize("write", [1, 2], ids=["ledger", "annotation"])
@pytest.mark.parametrize("fault", ["crash before", "crash after", "lost before", "lost after", "conflict"])
async def test_nothing_that_happens_at_a_write_leaves_another_end(bench: LedgerBench, write: int, fault: str) -> None:
    bench.faults.at = {write: fault}
    async with bench.client() as client:
        if fault.startswith("crash"):
            with pytest.raises(Crash):
                await _bind(client)
        else:
            await _bind(client)
    async with bench.reborn() as client:
        bound = await _bind(client)

    assert bound.ledger.uid == bound_uid(bench) == bench.uid
    assert bench.ledger == Ledger(uid=bench.uid)


async def test_an_unbound_policy_takes_up_a_ledger_that_has_records(bench: LedgerBench) -> None:
    async with bench.client() as client:
        text = encode_ledger(Ledger(uid=bench.uid, reservations=(a_record(),)))
        await client.patch_merge(f"{PATH}/{LEDGER}", {"data": {"ledger.json": text}})
        await _bind(client)

    assert bench.text == text


async def test_a_bound_policy_refuses_another_ledger(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await _bind(client)
        await client.delete(f"{PATH}/{LEDGER}")
        meta = {"name": LEDGER, "annotations": {"topology.cisco.vk/managed-ledger": "true"}}
        await client.create(PATH, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        with pytest.raises(LedgerIdentity, match="the policy is bound to"):
            await _bind(client)

    assert bench.text == ""


async def test_a_bound_ledger_that_is_empty_is_never_begun_anew(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await _bind(client)
        await client.patch_merge(f"{PATH}/{LEDGER}", {"data": {"ledger.json": ""}})
        with pytest.raises(LedgerIdentity, match="empty") as refused:
            await _bind(client)

    assert refused.value.code.reason == "LedgerIdentityInvalid"
    assert bench.text == ""


async def test_a_ledger_of_another_uid_is_refused_before_the_annotation(bench: LedgerBench) -> None:
    async with bench.client() as client:
        text = encode_ledger(Ledger(uid="another"))
        await client.patch_merge(f"{PATH}/{LEDGER}", {"data": {"ledger.json": text}})
        with pytest.raises(Refused):
            await _bind(client)

    assert bound_uid(bench) == ""


async def test_a_config_map_that_is_not_marked_is_no_ledger(bench: LedgerBench) -> None:
    async with bench.client() as client:
        change = {"metadata": {"annotations": {"topology.cisco.vk/managed-ledger": None}}}
        await client.patch_merge(f"{PATH}/{LEDGER}", change)
        with pytest.raises(LedgerIdentity, match="managed-ledger"):
            await _bind(client)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("topology.cisco.vk/managed-policy", None),
        ("topology.cisco.vk/config-lease-namespace", None),
        ("topology.cisco.vk/config-lease-namespace", "leases"),
        ("topology.cisco.vk/app-hosting-service-account", "other"),
    ],
)
async def test_annotations_of_the_policy_agree_with_its_text(bench: LedgerBench, annotation: str, value: Any) -> None:
    async with bench.client() as client:
        await client.patch_merge(f"{PATH}/{POLICY}", {"metadata": {"annotations": {annotation: value}}})
        with pytest.raises(Refused, match=annotation.rpartition("/")[2]):
            await _bind(client)

    assert bench.text == ""


async def test_a_missing_ledger_waits_for_somebody_to_bring_it(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await client.delete(f"{PATH}/{LEDGER}")
        with pytest.raises(NotFound):
            await _bind(client)
