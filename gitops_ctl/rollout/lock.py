"""The topology lock of a device: while it is there nobody changes the device, and no other campaign takes it (rollouts.md, section 8.6).

Taken by an optimistic status patch that needs the lock to be absent.  A lock that says exactly what would be written is adopted with its
acquisition id: that is the replay after a crash.  It is given back in one order only: Releasing, then the ledger record goes and leaves its
fence, then it is proven that the ledger has nothing of this device, then the lock is cleared.  Because the lock leaves Active before the
fence is written, a Reserve that is on its way finds one of the two, whichever ledger it read.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gitops_ctl.core.clock import Clock, to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.fleet.device import LOCK_ACTIVE, LOCK_RELEASING, Device, TopologyLock, device_of
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, LedgerStore, swap, swapped
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.refusal import Reason, Refusal


@dataclass(frozen=True, slots=True)
class LockClaim:
    """What a lock says besides its acquisition id and time."""

    device_namespace: str
    device_name: str
    campaign_namespace: str
    campaign_name: str
    campaign_uid: str
    plan_hash: str
    reservation_id: str
    policy_epoch: int
    device_uid: str
    device_generation: int
    node_uid: str
    projection_hash: str

    @property
    def path(self) -> str:
        return device_path(self.device_namespace, self.device_name)


@dataclass(frozen=True, slots=True)
class ReleaseFirst:
    """A lock of this campaign is half given back: end that, and take it again in a later pass."""

    acquisition: Acquisition


@dataclass(frozen=True, slots=True)
class Free:
    """No lock is there; it may be taken."""


def judged(device: Device, claim: LockClaim) -> Acquisition | Free | ReleaseFirst | Refusal:
    """What the lock of a device means for this claim: adopted, free, to be released first, or somebody else's."""
    changed = _changed(device, claim)
    if changed:
        return Refusal(Reason.TARGET_CHANGED, f"device {claim.device_name} {changed}")
    lock = device.lock
    if lock is None:
        return Free()
    ours = (lock.campaign_uid, lock.plan_hash, lock.reservation_id) == (
        claim.campaign_uid,
        claim.plan_hash,
        claim.reservation_id,
    )
    if ours and lock.state == LOCK_RELEASING:
        return ReleaseFirst(acquisition_in(lock))
    if ours and (lock.policy_epoch, lock.device_generation) == (claim.policy_epoch, claim.device_generation):
        return acquisition_in(lock)
    return Refusal(
        Reason.DEVICE_LOCKED,
        f"device {claim.device_name} is locked by rollout {lock.campaign_namespace}/{lock.campaign_name} "
        f"({lock.state}, epoch {lock.policy_epoch}{f', since {to_rfc3339(lock.acquired_at)}' if lock.acquired_at else ''})",
        holders=(f"{lock.campaign_namespace}/{lock.campaign_name}",),
    )


def _changed(device: Device, claim: LockClaim) -> str:
    if device.uid != claim.device_uid:
        return f"has UID {device.uid}, planned was {claim.device_uid}"
    if device.deleting:
        return "is being deleted"
    if device.retired:
        return "is retired"
    if device.generation != claim.device_generation:
        return f"has generation {device.generation}, planned was {claim.device_generation}"
    return ""


def held(device: Device, claim: LockClaim, acquisition: Acquisition) -> Refusal | None:
    """None while exactly this acquisition holds the device."""
    found = judged(device, claim)
    if found == acquisition:
        return None
    if isinstance(found, Refusal):
        return found
    return Refusal(Reason.STALE, f"the lock {acquisition.lock_id} of device {claim.device_name} is not held any more")


def acquisition_in(lock: TopologyLock) -> Acquisition:
    """The acquisition that a lock stands for."""
    return Acquisition(lock.reservation_id, lock.policy_epoch, lock.acquisition_id)


def unreserved(ledger: Ledger, claim: LockClaim) -> Refusal | None:
    """None when no record is of this device, whoever made it."""
    for record in ledger.reservations:
        if claim.device_uid == record.device_uid or claim.reservation_id == record.id:
            return Refusal(
                Reason.NOT_PROVEN,
                f"device {claim.device_name} is still reserved by {record.child_namespace}/{record.child_name} ({record.state})",
            )
    return None


class DeviceLocks:
    """Takes and gives back the locks of devices.

    Args:
        new_id: 32 lower-case hex characters, new at each call.
    """

    def __init__(self, client: KubeClient, *, clock: Clock, new_id: Callable[[], str]) -> None:
        self._client = client
        self._clock = clock
        self._new_id = new_id

    async def acquire(self, claim: LockClaim) -> Acquisition | ReleaseFirst | Refusal:
        """Take the lock, or adopt the identical one.  A lost answer is answered by the next look.

        Raises:
            Conflict: others wrote the device in each of the rounds.  NotFound: the device is gone.
        """
        lock_id = self._new_id()  # one for all rounds: a write whose answer was lost is found again under it

        async def one_round() -> Acquisition | ReleaseFirst | Refusal:
            tree = await self._client.get(claim.path)
            found = judged(device_of(tree), claim)
            if not isinstance(found, Free):
                return found
            lock = self._lock(claim, lock_id)
            await self._patch(claim, tree, lock)
            return Acquisition(claim.reservation_id, claim.policy_epoch, lock_id)

        return await swapped(self._client, one_round)

    async def check(self, claim: LockClaim, acquisition: Acquisition) -> Refusal | None:
        """None while exactly this acquisition holds the device; read without a cache."""
        return held(device_of(await self._client.get(claim.path)), claim, acquisition)

    async def begin_release(self, claim: LockClaim, acquisition: Acquisition) -> bool:
        """Turn exactly this lock to Releasing.

        Returns:
            Whether it is there and Releasing now; False when it is gone or another acquisition's, which is left alone.
        """

        async def one_round() -> bool:
            tree = await self._client.find(claim.path)
            lock = device_of(tree).lock if tree is not None else None
            if tree is None or lock is None or acquisition_in(lock) != acquisition:
                return False
            if lock.state != LOCK_RELEASING:
                await self._patch(claim, tree, {"state": LOCK_RELEASING})
            return True

        return await swapped(self._client, one_round)

    async def clear(self, claim: LockClaim, acquisition: Acquisition, *, store: LedgerStore) -> Refusal | None:
        """Clear exactly this lock once the ledger, read now, has nothing of the device."""

        async def one_round() -> Refusal | None:
            tree = await self._client.find(claim.path)
            lock = device_of(tree).lock if tree is not None else None
            if tree is None or lock is None or acquisition_in(lock) != acquisition:
                return None
            if lock.state != LOCK_RELEASING:
                return Refusal(Reason.NOT_PROVEN, f"the lock of device {claim.device_name} is not being released")
            refusal = unreserved(await store.read(), claim)
            if refusal is None:
                await self._patch(claim, tree, None)
            return refusal

        return await swapped(self._client, one_round)

    async def _patch(self, claim: LockClaim, tree: JsonObject, lock: JsonObject | None) -> None:
        body = swap(tree, {"status": {"topologyLock": lock}})
        await self._client.patch_merge(claim.path, body, manager=FIELD_MANAGER, subresource="status")

    def _lock(self, claim: LockClaim, lock_id: str) -> dict[str, JsonValue]:
        return {
            "state": LOCK_ACTIVE,
            "policyEpoch": claim.policy_epoch,
            "acquisitionID": lock_id,
            "campaignNamespace": claim.campaign_namespace,
            "campaignName": claim.campaign_name,
            "campaignUID": claim.campaign_uid,
            "planHash": claim.plan_hash,
            "reservationID": claim.reservation_id,
            "deviceUID": claim.device_uid,
            "deviceGeneration": claim.device_generation,
            "nodeUID": claim.node_uid,
            "projectionHash": claim.projection_hash,
            "acquiredAt": to_rfc3339(self._clock.wall()),
        }


def device_path(namespace: str, name: str) -> str:
    """Where the API server has that CiscoDevice."""
    return f"/apis/cisco.vk/v1alpha1/namespaces/{namespace}/ciscodevices/{name}"
