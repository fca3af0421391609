"""What holds after every write of anybody, while a campaign runs (rollouts.md, section 23.2)."""

from typing import TYPE_CHECKING, Any

from gitops_ctl.fleet.ledger import Ledger, decode_ledger
from tests.support.admission_world import DEVICES, LEAVES
from tests.support.rollout_planning import NAMESPACE

if TYPE_CHECKING:
    from tests.support.rollout_simulation import RolloutWorld

BUDGET = 2
_STAGES = {"Install": "PrimaryInstall", "Activate": "PrimaryActivation"}


class LawBroken(AssertionError):
    """Something that must never be."""


class Laws:
    """Judges a world; `writes` counts what the processes wrote since the last rest."""

    def __init__(self, world: "RolloutWorld") -> None:
        self._world = world
        self._writes = 0
        self._claims: dict[str, frozenset[str]] = {}
        self.broken: list[str] = []

    def begin_anew(self) -> None:
        """The world is another one: what was claimed there is no news."""
        self._claims = {leaf["metadata"]["uid"]: _stages(leaf) for leaf in self.leaves()}

    def take_writes(self) -> int:
        """How much was written since the last time that somebody asked."""
        found, self._writes = self._writes, 0
        return found

    def leaves(self) -> list[Any]:
        """As they are stored."""
        return [leaf for _, leaf in self._world.api.store.all(LEAVES)]

    def _require(self, holds: bool, text: str) -> None:
        # Kept too, because an error in the middle of a process may be taken for one of the server.
        if not holds:
            self.broken.append(text)
            raise LawBroken(text)

    @property
    def _ledger(self) -> Ledger:
        collection, key = self._world.ledger_key
        tree: Any = self._world.api.store.get(collection, key)
        return decode_ledger(tree["data"]["ledger.json"], "ledger-uid")

    def after_write(self, actor: str) -> None:
        """Called after every write that the server took."""
        self._writes += 1
        ledger, leaves = self._ledger, self.leaves()
        self._reservations(ledger)
        for leaf in leaves:
            self._grant(leaf, ledger)
            self._new_claims(leaf, actor)

    def _reservations(self, ledger: Ledger) -> None:
        """One reservation for a chassis, each with its lock, and no more of them than the budget has."""
        records = ledger.reservations
        self._require(len({one.physical_id for one in records}) == len(records), "two reservations for one chassis")
        self._require(len(records) <= self._world.budget, f"{len(records)} reservations, {self._world.budget} allowed")
        for record in records:
            name = record.device_uid.removesuffix("-uid")
            device: Any = self._world.api.store.get(DEVICES, (NAMESPACE, name))
            lock = device["status"].get("topologyLock", {})
            same = (lock.get("reservationID"), lock.get("acquisitionID")) == (record.id, record.topology_lock_id)
            self._require(same, f"the reservation of {name} has no lock of its own")

    def _grant(self, leaf: Any, ledger: Ledger) -> None:
        """No grant without the reservation that it rests on; a claim keeps its reservation until its outcome."""
        status, name = leaf.get("status", {}), leaf["metadata"]["name"]
        admission = status.get("managerAdmission", {})
        record = ledger.get(admission.get("reservationID", ""))
        mine = (
            record is not None
            and record.child_uid == leaf["metadata"]["uid"]
            and record.topology_lock_id == admission.get("topologyLockID")
        )
        done = "completionTime" in status and (_is_settled(status) or not _stages(leaf))
        if admission.get("state") == "Granted" and not done:
            self._require(mine, f"{name} is granted without a reservation")
        if _stages(leaf) and not done and not self._world.is_restored:
            self._require(mine, f"{name} has claimed {sorted(_stages(leaf))} and its reservation is gone")

    def _new_claims(self, leaf: Any, actor: str) -> None:
        """A claim is made under a grant, in its epoch, and never while a pause, a cancellation or a failure is in force."""
        uid, name, stages = leaf["metadata"]["uid"], leaf["metadata"]["name"], _stages(leaf)
        new = stages - self._claims.get(uid, frozenset())
        self._claims[uid] = stages
        if not new or self._world.is_restored:
            return
        status = leaf["status"]
        admission, control = status["managerAdmission"], status["managerControl"]
        self._require(actor == "worker", f"{actor} claims on {name}")
        self._require(admission["state"] == "Granted", f"{name} claims {new} while {admission['state']}")
        self._require(not control.get("pause") and not control.get("cancel"), f"{name} claims {new} while stopped")
        epochs = {one["policyEpoch"] for one in status["managedMutationClaims"] if one["stage"] in new}
        self._require(epochs == {admission["policyEpoch"]}, f"{name} claims {new} in another epoch")
        rollout = self._world.rollout
        phase = rollout["status"].get("phase") if rollout is not None else "gone"
        effective = rollout["status"].get("control", {}) if rollout is not None else {}
        self._require(phase not in {"Failed", "Cancelled", "gone"}, f"{name} claims {new}, the campaign is {phase}")
        self._require(not effective.get("cancelled"), f"{name} claims {new} after the cancellation was acknowledged")

    def before_call(self, name: str, method: str) -> None:
        """A changing call leaves for a device: it was claimed, in the leaf, before."""
        if method not in {"Install", "Activate", "Commit"}:
            return
        stages = {
            stage
            for leaf in self.leaves()
            if leaf["spec"]["deviceRef"]["name"] == name
            for stage in (*_stages(leaf), *(("Commit",) if "installCommit" in leaf["status"] else ()))
        }
        self._require(_STAGES.get(method, method) in stages, f"{method} is sent to {name}, which nobody claimed")

    def after_turn(self) -> None:
        """No device ever got the same changing call twice, and nothing else was found broken in between."""
        self._require(not self.broken, "; ".join(self.broken))
        for name, switch in self._world.equipment.switches.items():
            device = switch.read()
            self._require(not device["gnoi"]["violations"], f"{name} got a call twice: {device['gnoi']['violations']}")
            self._require(len(device["commits"]) <= 1, f"{name} got {len(device['commits'])} install commits")

    def at_the_end(self) -> None:
        """Everything is settled, or somebody says what is waited for."""
        rollout = self._world.rollout
        self.after_turn()
        records = self._ledger.reservations
        if rollout is None or rollout["status"]["phase"] in {"Succeeded", "Cancelled"}:
            self._require(not records, f"ended, and {[one.child_name for one in records]} are reserved")
            self._require(not self._locked(), f"ended, and {self._locked()} are locked")
            return
        status = rollout["status"]
        blocked = [one for one in status.get("targets", ()) if one["phase"] == "Blocked" and one.get("message")]
        self._require(bool(status.get("message") or blocked), f"{status['phase']} without a reason")
        waiting = [
            one["deviceName"]
            for one in status.get("targets", ())
            if one["phase"] in {"Blocked", "Running", "Admitted"} and not one.get("reason")
        ]
        self._require(not waiting, f"{waiting} wait without a reason")
        for record in records:
            leaf = next((one for one in self.leaves() if one["metadata"]["uid"] == record.child_uid), None)
            honest = leaf is not None and (_stages(leaf) or status["phase"] != "Failed")
            self._require(honest, f"{record.child_name} is reserved, and nothing of it can begin any more")

    def _locked(self) -> list[str]:
        found = self._world.api.store.all(DEVICES)
        return [name for (_, name), tree in found if "topologyLock" in tree["status"]]


def _stages(leaf: Any) -> frozenset[str]:
    return frozenset(one["stage"] for one in leaf.get("status", {}).get("managedMutationClaims", ()))


def _is_settled(status: Any) -> bool:
    return any(
        one["type"] == "DeviceMutationSettled" and one["status"] == "True" for one in status.get("conditions", ())
    )
