"""The compare-and-swap of the ledger, with everything that can happen between its requests (rollouts.md, section 8.5)."""

import dataclasses
from collections.abc import AsyncIterator

import pytest

from gitops_ctl.core.errors import Conflict, NotFound, Refused
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.rollout.ledger_arithmetic import reserve
from gitops_ctl.rollout.ledger_store import LedgerIdentity, Stored
from gitops_ctl.rollout.ledger_transitions import acquisition_of, bind_child, fence_unbound_acquisition
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.kube_crash import Crash
from tests.support.ledger import a_fleet, a_policy, a_record, a_request, refused
from tests.support.ledger_bench import LEDGER, PATH, LedgerBench, ledger_bench


@pytest.fixture
async def bench() -> AsyncIterator[LedgerBench]:
    async with ledger_bench(lambda uid: Ledger(uid=uid)) as found:
        yield found


def reserving(record=None, *, rounds: list[Ledger] | None = None):
    """A callback that reserves, and notes each ledger that it saw."""

    async def callback(ledger: Ledger) -> Ledger | Refusal:
        if rounds is not None:
            rounds.append(ledger)
        return reserve(ledger, a_policy(), a_fleet(8), a_request(record or a_record()))

    return callback


async def test_an_update_writes_what_the_callback_says(bench: LedgerBench) -> None:
    async with bench.client() as client:
        stored = await bench.store(client).update(reserving())

    assert isinstance(stored, Stored)
    assert stored.written
    assert bench.ledger == stored.ledger
    assert bench.faults.writes == [f"patch {PATH}/{LEDGER}"]


async def test_an_update_that_changes_nothing_writes_nothing(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await bench.store(client).update(reserving())
        version = bench.tree()["metadata"]["resourceVersion"]
        stored = await bench.store(client).update(reserving())

    assert isinstance(stored, Stored)
    assert not stored.written
    assert bench.tree()["metadata"]["resourceVersion"] == version


async def test_a_refusal_writes_nothing(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await bench.store(client).update(reserving())
        refused(await bench.store(client).update(reserving(a_record(campaign="winter"))), Reason.ALREADY_RESERVED)

    assert len(bench.faults.writes) == 1


async def test_after_a_conflict_the_callback_runs_again_on_the_fresh_ledger(bench: LedgerBench) -> None:
    other, rounds = a_record("edge-2", campaign="winter", zone="b"), []
    async with bench.client() as client, bench.client(faulty=False) as others:

        async def meanwhile(ledger: Ledger) -> Ledger | Refusal:
            rounds.append(ledger)
            if len(rounds) == 1:
                await bench.store(others).update(reserving(other))
            return reserve(ledger, a_policy(), a_fleet(8), a_request(a_record()))

        stored = await bench.store(client).update(meanwhile)

    assert isinstance(stored, Stored)
    assert [len(ledger.reservations) for ledger in rounds] == [0, 1]
    assert {record.campaign_uid for record in bench.ledger.reservations} == {"uid-spring", "uid-winter"}


async def test_a_fence_that_comes_first_refuses_the_reserve_behind_it(bench: LedgerBench) -> None:
    rounds = []
    async with bench.client() as client, bench.client(faulty=False) as others:

        async def fence(ledger: Ledger) -> Ledger | Refusal:
            return fence_unbound_acquisition(ledger, acquisition_of(a_record()))

        async def late(ledger: Ledger) -> Ledger | Refusal:
            rounds.append(ledger)
            if len(rounds) == 1:
                await bench.store(others).update(fence)
            return reserve(ledger, a_policy(), a_fleet(8), a_request(a_record()))

        refused(await bench.store(client).update(late), Reason.STALE)

    assert len(rounds) == 2
    assert bench.ledger.reservations == ()


async def test_four_conflicts_end_the_update_and_the_pauses_grow(bench: LedgerBench) -> None:
    rounds: list[Ledger] = []
    bench.faults.at = dict.fromkeys(range(1, 9), "conflict")
    async with bench.client() as client:
        with pytest.raises(Conflict):
            await bench.store(client).update(reserving(rounds=rounds))

    assert len(rounds) == 4
    assert bench.clock.slept == pytest.approx([0.0105, 0.0525, 0.2625])


@pytest.mark.parametrize("fault", ["lost before", "lost after"])
async def test_a_lost_answer_ends_in_one_record(bench: LedgerBench, fault: str) -> None:
    bench.faults.at = {1: fault}
    async with bench.client() as client:
        stored = await bench.store(client).update(reserving())

    assert isinstance(stored, Stored)
    assert bench.ledger.reservations == (a_record(),)


@pytest.mark.parametrize("fault", ["crash before", "crash after"])
@pytest.mark.parametrize("write", [1, 2], ids=["reserve", "bind"])
async def test_the_next_process_does_the_same_again_after_a_crash_at_any_write(
    bench: LedgerBench, fault: str, write: int
) -> None:
    async def work(client) -> None:
        await bench.store(client).update(reserving())

        async def bind(ledger: Ledger) -> Ledger | Refusal:
            return bind_child(ledger, acquisition_of(a_record()), child_uid="leaf-1")

        await bench.store(client).update(bind)

    bench.faults.at = {write: fault}
    async with bench.client() as client:
        with pytest.raises(Crash):
            await work(client)
    async with bench.reborn() as client:
        await work(client)

    assert [record.child_uid for record in bench.ledger.reservations] == ["leaf-1"]


async def test_another_object_under_the_name_is_never_written(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await client.delete(f"{PATH}/{LEDGER}")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LEDGER}, "data": {"ledger.json": "{}"}}
        await client.create(PATH, body)
        with pytest.raises(LedgerIdentity, match="bound is") as found:
            await bench.store(client).update(reserving())

    assert found.value.code.label == "GC2140"
    assert found.value.subject == f"ConfigMap topology-system/{LEDGER}"
    assert bench.text == "{}"


async def test_a_ledger_that_is_replaced_between_read_and_write_is_found_out(bench: LedgerBench) -> None:
    async with bench.client() as client, bench.client(faulty=False) as others:

        async def replaced(ledger: Ledger) -> Ledger | Refusal:
            if bench.tree()["metadata"]["uid"] == bench.uid:
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LEDGER}}
                await others.delete(f"{PATH}/{LEDGER}")
                await others.create(PATH, body)
            return reserve(ledger, a_policy(), a_fleet(8), a_request(a_record()))

        with pytest.raises(LedgerIdentity):
            await bench.store(client).update(replaced)

    assert bench.text == ""


@pytest.mark.parametrize("text", ["", "  \n", "{", '{"version":"v1"}', "[]"], ids=repr)
async def test_a_ledger_that_cannot_be_read_stops_everything(bench: LedgerBench, text: str) -> None:
    async with bench.client() as client:
        await client.patch_merge(f"{PATH}/{LEDGER}", {"data": {"ledger.json": text}})
        with pytest.raises(Refused):
            await bench.store(client).update(reserving())

    assert bench.text == text


async def test_a_missing_ledger_is_named(bench: LedgerBench) -> None:
    async with bench.client() as client:
        await client.delete(f"{PATH}/{LEDGER}")
        with pytest.raises(NotFound, match=LEDGER):
            await bench.store(client).read()


async def test_a_result_that_breaks_a_rule_of_the_document_is_not_written(bench: LedgerBench) -> None:
    before = bench.text
    async with bench.client() as client:

        async def broken(ledger: Ledger) -> Ledger | Refusal:
            twins = (a_record(), a_record("edge-2", physical_id="chassis-edge-1"))
            return dataclasses.replace(ledger, reservations=tuple(sorted(twins, key=lambda one: one.id)))

        with pytest.raises(Refused, match="physicalID"):
            await bench.store(client).update(broken)

    assert bench.text == before


@pytest.mark.parametrize("count", [257, 256], ids=["too many", "too large"])
async def test_the_absolute_limits_hold_for_everybody(bench: LedgerBench, count: int) -> None:
    """256 records, and 262144 bytes; the long names make the smaller number too large."""
    domains = tuple((f"example.net/{number:02}-{'k' * 60}", "v" * 63) for number in range(16 if count == 256 else 1))
    records = [
        a_record(f"edge-{n}", physical_id=f"c-{n}", node_uid=f"n-{n}", domains=domains, child_name=f"leaf-{n}")
        for n in range(count)
    ]
    before = bench.text
    async with bench.client() as client:

        async def fill(ledger: Ledger) -> Ledger | Refusal:
            return dataclasses.replace(ledger, reservations=tuple(sorted(records, key=lambda one: one.id)))

        with pytest.raises(Refused, match="256 are allowed" if count == 257 else "262144 are allowed"):
            await bench.store(client).update(fill)

    assert bench.text == before


async def test_a_tightened_size_limit_of_the_policy_never_stops_a_release(bench: LedgerBench) -> None:
    """The limit of the policy is a rule of Reserve alone; what leaves the ledger only meets the absolute one."""
    policy = a_policy(max_ledger_bytes=4096, max_reservations=1)
    many = [
        a_record(f"edge-{n}", campaign=f"campaign-{n}", node_uid=f"node-{n}", physical_id=f"chassis-{n}")
        for n in range(12)
    ]
    async with bench.client() as client:

        async def fill(ledger: Ledger) -> Ledger | Refusal:
            return dataclasses.replace(ledger, reservations=tuple(sorted(many, key=lambda one: one.id)))

        await bench.store(client).update(fill)
        assert len(bench.text) > policy.max_ledger_bytes

        async def leave(ledger: Ledger) -> Ledger | Refusal:
            return fence_unbound_acquisition(ledger, acquisition_of(many[0]))

        assert isinstance(await bench.store(client).update(leave), Stored)

    assert len(bench.ledger.reservations) == 11
