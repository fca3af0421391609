"""A leaf that waits is granted: first in the ledger, then on the leaf (rollouts.md, section 11.5).

The worker has to have seen exactly what is granted: Pending in this epoch, under this control, with the inputs that are proven to be loaded.
Everything that the admission checked is checked again, inside the ledger's compare-and-swap and again before the leaf is written.  A crash
between the two writes is harmless: a record that is Granted grants nothing by itself, and the next pass writes the leaf.
"""

from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.evidence import Rules, accepted_problem, authority_of, is_authority_current
from gitops_ctl.fleet.leaf import Leaf, NetworkAuthority, leaf_of
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.leafplan import Activation, LeafPlan, acquisition_from, authority_tree, leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.ledger_transitions import grant as grant_record
from gitops_ctl.rollout.lock import device_path, held
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.validation import Facts, Valid, lock_claim, no_workloads, validated


@dataclass(frozen=True, slots=True)
class Granted:
    """The worker may claim; `authority` is None for a campaign without a network gate."""

    acquisition: Acquisition
    authority: NetworkAuthority | None


def ready_for_grant(leaf: Leaf, device: Device, campaign: CampaignState) -> Acquisition | Refusal:
    """Whether worker and manager agree on what would be granted."""
    admission, worker = leaf.admission, leaf.worker_control
    which = acquisition_from(leaf)
    if admission is None or which is None or admission.state not in {"Pending", "Granted"}:
        said = "missing" if admission is None else admission.state
        return Refusal(Reason.NOT_ACKNOWLEDGED, f"the admission of leaf {leaf.name} is {said}")
    if (admission.campaign_uid, admission.plan_hash) != (campaign.uid, campaign.plan_hash):
        return Refusal(Reason.CHILD_CONFLICT, f"leaf {leaf.name} was admitted for another campaign or plan")
    control = leaf.manager_control
    if control is None or control.pause or control.cancel or control.revision != campaign.control.revision:
        return Refusal(
            Reason.NOT_ACKNOWLEDGED, f"the control of leaf {leaf.name} is not the neutral one of the campaign"
        )
    if worker is None:
        return Refusal(Reason.NOT_ACKNOWLEDGED, f"the worker has not looked at leaf {leaf.name} yet")
    revision = device.network_worker_revision
    proven = revision.observed if revision is not None and revision.is_proven else ""
    differences = (
        (worker.admission_state not in {"Pending", admission.state}, f"saw {worker.admission_state or 'no admission'}"),
        (admission.policy_epoch != campaign.effective.number, f"is of epoch {admission.policy_epoch}"),
        (worker.policy_epoch != admission.policy_epoch, f"saw epoch {worker.policy_epoch}"),
        (worker.control_revision != control.revision, f"saw control revision {worker.control_revision}"),
        (worker.effective_state not in {"Ready", "Claimed"}, f"is {worker.effective_state or 'in no state'}"),
        (not proven or worker.worker_config_revision != proven, "loaded inputs that are not the proven ones"),
    )
    for differs, text in differences:
        if differs:
            return Refusal(
                Reason.NOT_ACKNOWLEDGED,
                f"the worker of {leaf.device_name} {text}; the campaign is in epoch {campaign.effective.number} "
                f"at control revision {control.revision}",
            )
    return which


def authority_for(device: Device, campaign: CampaignState, now: datetime) -> NetworkAuthority | Refusal | None:
    """On which accepted sample a grant may rest; None for a campaign without a network gate."""
    if not campaign.plan.network_is_on or campaign.plan.network is None:
        return None
    accepted = device.health.accepted if device.health is not None else None
    reason = accepted_problem(device, rules=Rules.of(campaign.plan.network), now=now, freshness_s=campaign.freshness_s)
    if reason or accepted is None:
        return Refusal(Reason.EVIDENCE_INVALID, f"the network evidence of {device.name} fails: {reason}", check=reason)
    found = authority_of(accepted, freshness_s=campaign.freshness_s)
    if found is None or not is_authority_current(found, accepted, now=now):
        return Refusal(Reason.EVIDENCE_INVALID, f"the network evidence of {device.name} is over", check="EvidenceStale")
    return found


async def grant(
    ports: Ports, begun: CampaignState, target: Target, *, leaf_name: str, activation: Activation | None = None
) -> Granted | Refusal:
    """Grant one leaf, ledger first; repeating it ends in the same.

    Raises:
        TransientError, Conflict: what was written is found out by the next pass.
        Refused: the ledger is not the one that is bound.
    """
    grants = _Grant(ports, begun, target, leaf_name, activation)

    async def on(ledger: Ledger) -> Ledger | Refusal:
        checked = await grants.check()
        if isinstance(checked, Refusal):
            return checked
        return grant_record(
            ledger,
            checked.which,
            ledger_uid=begun.frozen.ledger_uid,
            child_uid=checked.leaf.uid,
            revision=begun.control.revision,
        )

    answer = await ports.ledger(begun).update(on)
    return answer if isinstance(answer, Refusal) else await swapped(ports.client, grants.write)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A leaf that may be granted now, and the tree that it was read from."""

    leaf: Leaf
    tree: JsonObject
    which: Acquisition
    authority: NetworkAuthority | None
    now: datetime


@dataclass(frozen=True, slots=True)
class _Grant:
    ports: Ports
    begun: CampaignState
    target: Target
    leaf_name: str
    activation: Activation | None

    async def check(self) -> _Checked | Refusal:
        """All checks on facts that are read now, the leaf first: whoever revokes it changes its version."""
        account = ""
        plan = LeafPlan(self.begun, self.target, account, self.activation)
        tree = await self.ports.client.find(plan.path)
        if tree is None or plan.name != self.leaf_name:
            return Refusal(Reason.CHILD_CONFLICT, f"leaf {self.leaf_name} is gone, or is not of this run")
        facts = await self.ports.look(self.begun, self.target)
        valid = validated(facts, begun=self.begun, target=self.target)
        if isinstance(valid, Refusal):
            return valid
        return self._judged(facts, valid, tree)

    def _judged(self, facts: Facts, valid: Valid, tree: JsonObject) -> _Checked | Refusal:
        plan = LeafPlan(self.begun, self.target, valid.account, self.activation)
        difference = plan.difference(tree)
        if difference:
            return Refusal(Reason.CHILD_CONFLICT, f"leaf {plan.name} is not the planned one: {difference}")
        leaf = leaf_of(tree)
        which = ready_for_grant(leaf, valid.device, valid.campaign)
        if isinstance(which, Refusal):
            return which
        closed = self.activation.closed(facts.now) if self.activation is not None else None
        refusal = (
            closed or no_workloads(facts, self.target) or held(valid.device, lock_claim(self.begun, self.target), which)
        )
        if refusal is not None:
            return refusal
        authority = authority_for(valid.device, valid.campaign, facts.now)
        if isinstance(authority, Refusal):
            return authority
        return _Checked(leaf, tree, which, authority, facts.now)

    async def write(self) -> Granted | Refusal:
        """The leaf's half: the checks once more, then the write on the version that they saw."""
        checked = await self.check()
        if isinstance(checked, Refusal):
            return checked
        store = self.ports.ledger(self.begun)
        record = (await store.read()).get(checked.which.reservation_id)
        if record is None or record.state != "Granted" or not checked.which.is_of(record):
            return Refusal(Reason.STALE, f"the ledger has no grant for leaf {self.leaf_name} any more")
        if checked.leaf.admission is not None and checked.leaf.admission.state == "Granted":
            return Granted(checked.which, checked.leaf.admission.network)
        admission: dict[str, JsonValue] = {
            **object_at(checked.tree, "status", "managerAdmission"),
            "state": "Granted",
            "controlRevision": self.begun.control.revision,
            "updatedAt": to_rfc3339(checked.now),
        }
        if checked.authority is not None:
            admission |= authority_tree(checked.authority)
        body = swap(checked.tree, {"status": {"managerAdmission": admission}})
        path = LeafPlan(self.begun, self.target, "", self.activation).path
        await self.ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")
        return Granted(checked.which, checked.authority)


async def renew_authority(ports: Ports, begun: CampaignState, target: Target, *, leaf_name: str) -> bool:
    """Put the latest accepted sample into a grant, only if it holds longer than the one that is there.

    Returns:
        Whether the leaf was written.

    Raises:
        TransientError, Conflict: it is tried again in the next pass.
    """
    path = leaf_path(begun.namespace, leaf_name)

    async def one_round() -> bool:
        tree = await ports.client.get(path)
        admission = leaf_of(tree).admission
        if admission is None or admission.state != "Granted" or admission.network is None:
            return False
        device = device_of(await ports.client.get(device_path(begun.namespace, target.device_name)))
        found = authority_for(device, begun, ports.clock.wall())
        if not isinstance(found, NetworkAuthority) or not _holds_longer(found, admission.network):
            return False
        renewed: dict[str, JsonValue] = {
            **object_at(tree, "status", "managerAdmission"),
            **authority_tree(found),
            "updatedAt": to_rfc3339(ports.clock.wall()),
        }
        body = swap(tree, {"status": {"managerAdmission": renewed}})
        await ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status")
        return True

    return await swapped(ports.client, one_round)


def _holds_longer(found: NetworkAuthority, than: NetworkAuthority) -> bool:
    """By whole seconds, which is how the end is stored."""
    if found.not_after is None or than.not_after is None:
        return False
    return found.not_after.replace(microsecond=0) > than.not_after
