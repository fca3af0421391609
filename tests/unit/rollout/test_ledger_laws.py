"""What holds of the ledger however several campaigns, fences and epochs interleave (rollouts.md, section 23.2).

The model is the one of the product: a compare-and-swap whose callback looks at the device lock after it read the ledger.  Each writer is a
generator that may stop between its reads and its write, so a Reserve can be in flight while everybody else goes on.
"""

import dataclasses
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from gitops_ctl.fleet.ledger import Ledger, Reservation, State, decode_ledger, encode_ledger
from gitops_ctl.rollout.ledger_arithmetic import EffectivePolicy, Limits, merged, reserve
from gitops_ctl.rollout.ledger_transitions import (
    Acquisition,
    Settled,
    Unclaimed,
    acquisition_of,
    bind_child,
    fence_unbound_acquisition,
    grant,
    release_unclaimed_at_epoch,
    revoke,
    revoke_unclaimed_at_epoch,
    settle,
)
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.ledger import LEDGER_UID, POLICY_UID, REGION, ZONE, a_member, a_record, a_request, hex_of

pytestmark = pytest.mark.property

DEVICES = 6
CAMPAIGNS = ("spring", "summer", "winter")
Change = Callable[[Ledger], Ledger | Refusal]


@dataclass
class Target:
    """One device of one campaign: what its lock and its leaf say."""

    campaign: str
    device: str
    lock: Acquisition | None = None
    leaf: str = ""
    claimed: bool = False
    granted: bool = False
    settled: bool = False
    revision: int = 0


@dataclass
class World:
    """Several campaigns on one ledger.  `version` is the resourceVersion of the compare-and-swap."""

    chance: random.Random
    text: str
    ledger: Ledger = field(init=False)
    version: int = 0
    epoch: int = 1
    limits: Limits = field(default_factory=lambda: Limits(4, 4))
    limits_at: dict[int, Limits] = field(default_factory=lambda: {1: Limits(4, 4)})
    unhealthy: set[str] = field(default_factory=set)
    locks: dict[str, tuple[str, Acquisition, bool]] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    flights: list[tuple[str, Iterator[None]]] = field(default_factory=list)
    takings: int = 0
    refusals: set[Reason] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ledger = decode_ledger(self.text, LEDGER_UID)

    def policy(self) -> EffectivePolicy:
        return EffectivePolicy(
            uid=POLICY_UID,
            version="7",
            epoch=self.epoch,
            fleet=self.limits,
            domains={REGION: Limits(transfers=self.limits.transfers), ZONE: Limits(unavailable=2)},
            risk_groups={"core": Limits(2, 2)},
            max_reservations=4,
            max_ledger_bytes=262144,
        )

    def fleet(self):
        return merged(
            a_member(name, zone=zone(name), groups=groups(name), unavailable=name in self.unhealthy) for name in names()
        )

    def record(self, target: Target, which: Acquisition) -> Reservation:
        return a_record(
            target.device,
            campaign=target.campaign,
            zone=zone(target.device),
            policy_epoch=which.policy_epoch,
            topology_lock_id=which.lock_id,
            risk_groups=groups(target.device),
        )

    def swap(self, change: Change) -> Iterator[None]:
        """One update of the store, with a stop between the callback and the write; four rounds."""
        for _ in range(4):
            version, ledger = self.version, self.ledger
            after = change(ledger)
            yield
            if isinstance(after, Refusal):
                self.refusals.add(after.reason)
                return
            if version != self.version:
                continue
            text = encode_ledger(after)
            if text != self.text:
                self.text, self.version = text, self.version + 1
                self.ledger = decode_ledger(text, LEDGER_UID)
            return


def names() -> list[str]:
    return [f"edge-{number}" for number in range(1, DEVICES + 1)]


def zone(device: str) -> str:
    return "ab"[int(device[-1]) % 2]


def groups(device: str) -> tuple[str, ...]:
    return ("core",) if int(device[-1]) % 3 == 0 else ()


def acquire(world: World, target: Target) -> Iterator[None]:
    """Lock, reserve, bind, grant: each step may be the last for a long time."""
    if target.device not in world.locks:
        world.takings += 1
        which = Acquisition(
            a_record(target.device, campaign=target.campaign).id, world.epoch, hex_of(f"lock {world.takings}")
        )
        world.locks[target.device] = (target.campaign, which, True)
    campaign, which, _ = world.locks[target.device]
    if campaign != target.campaign:
        return
    target.lock = which
    yield

    def under_lock(ledger: Ledger) -> Ledger | Refusal:
        if world.locks.get(target.device) != (campaign, which, True):
            return Refusal(Reason.STALE, "the lock is gone")
        return reserve(
            ledger, world.policy(), world.fleet(), a_request(world.record(target, which), campaign=Limits(2, 2))
        )

    yield from world.swap(under_lock)
    if not _is(world, which, State.RESERVED) or target.leaf:
        return
    target.leaf = f"leaf-{which.lock_id[:8]}"
    target.claimed = target.granted = target.settled = False
    target.revision = 0
    yield
    yield from world.swap(lambda ledger: bind_child(ledger, which, child_uid=target.leaf))
    yield from world.swap(
        lambda ledger: grant(ledger, which, ledger_uid=LEDGER_UID, child_uid=target.leaf, revision=target.revision)
    )
    if _is(world, which, State.GRANTED) and target.lock == which:
        target.granted = True


def release(world: World, target: Target) -> Iterator[None]:
    """Give back what is not claimed: lock Releasing, ledger, lock."""
    which, leaf = target.lock, target.leaf
    if which is None or target.claimed:
        return
    target.granted = False
    if target.device in world.locks and world.locks[target.device][1] == which:
        world.locks[target.device] = (target.campaign, which, False)
    yield
    record = world.ledger.get(which.reservation_id)
    if record is not None and record.child_uid:
        proof = Unclaimed(leaf)
        yield from world.swap(
            lambda ledger: revoke_unclaimed_at_epoch(ledger, which, proof=proof, revision=target.revision)
        )
        yield from world.swap(lambda ledger: release_unclaimed_at_epoch(ledger, which, proof=proof))
    else:
        yield from world.swap(lambda ledger: fence_unbound_acquisition(ledger, which))
    _unlock(world, target, which)


def finish(world: World, target: Target) -> Iterator[None]:
    """Outcome proven: lock Releasing, settle, lock."""
    which, leaf = target.lock, target.leaf
    if which is None or not target.claimed:
        return
    world.locks[target.device] = (target.campaign, which, False)
    yield
    target.settled = True
    yield from world.swap(lambda ledger: settle(ledger, which, proof=Settled(leaf)))
    _unlock(world, target, which)


def cancel(world: World, target: Target) -> Iterator[None]:
    """A control of a larger revision revokes claimed work, which keeps its record."""
    which, leaf = target.lock, target.leaf
    if which is None or not leaf:
        return
    target.revision += 1
    yield from world.swap(lambda ledger: revoke(ledger, which, child_uid=leaf, revision=target.revision))


def _unlock(world: World, target: Target, which: Acquisition) -> None:
    gone = all(record.device_uid != f"device-{target.device}" for record in world.ledger.reservations)
    if gone and world.locks.get(target.device) == (target.campaign, which, False):
        del world.locks[target.device]
        target.lock, target.leaf, target.claimed, target.granted = None, "", False, False


def _is(world: World, which: Acquisition, state: State) -> bool:
    record = world.ledger.get(which.reservation_id)
    return record is not None and acquisition_of(record) == which and record.state is state


def claim(world: World) -> None:
    """A worker claims what its leaf was granted."""
    ready = [target for target in world.targets if target.granted and not target.claimed]
    if ready:
        world.chance.choice(ready).claimed = True


def tighten(world: World) -> None:
    """A new epoch: every number is the lower of what was and what the administrator wrote."""
    wish = Limits(world.chance.randint(1, 4), world.chance.randint(1, 4))
    world.limits = Limits(min(world.limits.transfers, wish.transfers), min(world.limits.unavailable, wish.unavailable))
    world.epoch += 1
    world.limits_at[world.epoch] = world.limits


MOVES = (acquire, acquire, acquire, release, finish, finish, cancel)


def move(world: World) -> None:
    """One step of somebody: a new move, the next step of one in flight, a claim, health, now and then an epoch."""
    dice = world.chance.random()
    if dice < 0.25 or not world.flights:
        start = world.chance.choice(MOVES)
        target = world.chance.choice(world.targets)
        world.flights.append((start.__name__, start(world, target)))
    elif dice < 0.31:
        claim(world)
    elif dice < 0.34:
        world.unhealthy = set(world.chance.sample(names(), world.chance.choice((0, 0, 1, 2))))
    elif dice < 0.342:
        tighten(world)
    elif dice < 0.37 and len(world.flights) > 1:
        world.flights.pop(world.chance.randrange(len(world.flights)))  # a crash between two steps
    else:
        flight = world.chance.choice(world.flights)
        if next(flight[1], "end") == "end":
            world.flights.remove(flight)


def assert_laws(world: World, before: Ledger) -> None:
    ledger = world.ledger
    chassis = [record.physical_id for record in ledger.reservations]
    assert len(chassis) == len(set(chassis))
    grown = len(ledger.reservations) > len(before.reservations)
    if grown:  # budgets are judged when one is added: health may sink afterwards
        new = next(record for record in ledger.reservations if before.get(record.id) is None)
        limits, taken = world.limits_at[new.policy_epoch], len(ledger.reservations)
        assert taken <= min(limits.transfers, limits.unavailable, world.policy().max_reservations)
        for campaign in CAMPAIGNS:
            assert sum(record.campaign_uid == f"uid-{campaign}" for record in ledger.reservations) <= 2
        for place in "ab":
            assert sum(dict(record.domains)[ZONE] == place for record in ledger.reservations) <= 2
        assert sum("core" in record.risk_groups for record in ledger.reservations) <= 2
        lock = world.locks.get(new.device_uid.removeprefix("device-"))
        fence = before.last_release_fence
        assert fence is None or fence.topology_lock_id != new.topology_lock_id
        assert lock is not None
        assert lock[1] == acquisition_of(new)
    for target in world.targets:
        if target.claimed and not target.settled:
            record = ledger.get(target.lock.reservation_id) if target.lock else None
            assert record is not None
            assert record.child_uid == target.leaf
            assert record.state in {State.GRANTED, State.REVOKED}


@pytest.mark.parametrize("seed", range(10))
def test_no_interleaving_breaks_a_law_of_the_ledger(seed: int) -> None:
    world = World(random.Random(seed), encode_ledger(Ledger(uid=LEDGER_UID)))
    world.targets = [Target(campaign, device) for campaign in CAMPAIGNS for device in names()]
    seen: set[State] = set()
    for _ in range(1200):
        before = world.ledger
        move(world)
        assert_laws(world, before)
        seen |= {record.state for record in world.ledger.reservations}
    assert seen >= {State.RESERVED, State.BOUND, State.GRANTED, State.REVOKED}
    assert world.version > 40


def test_a_fence_wins_over_a_reserve_that_is_in_flight() -> None:
    world = World(random.Random(0), encode_ledger(Ledger(uid=LEDGER_UID)))
    target = Target("spring", "edge-1")
    flight = acquire(world, target)
    next(flight)  # locked
    next(flight)  # the callback has decided, the write is on its way
    for _ in release(world, target):
        pass
    assert world.ledger.reservations == ()
    assert world.locks == {}

    assert list(flight) == [None]  # the write met a conflict, and the callback refused
    assert world.ledger.reservations == ()
    assert world.refusals == {Reason.STALE}


def test_two_campaigns_that_reserve_one_chassis_at_once_get_one_reservation() -> None:
    text = encode_ledger(Ledger(uid=LEDGER_UID))
    world = World(random.Random(0), text)

    def asking(campaign: str) -> Change:
        return lambda ledger: reserve(ledger, world.policy(), world.fleet(), a_request(_asked(campaign)))

    flights = [world.swap(asking(campaign)) for campaign in CAMPAIGNS]
    for flight in flights:
        next(flight)
    for flight in flights:
        list(flight)

    assert [record.campaign_uid for record in world.ledger.reservations] == ["uid-spring"]
    assert world.refusals == {Reason.ALREADY_RESERVED}


def _asked(campaign: str) -> Reservation:
    return dataclasses.replace(a_record(campaign=campaign, zone=zone("edge-1")))
