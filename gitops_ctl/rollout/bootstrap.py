"""Policy and ledger are bound to each other, once (rollouts.md, section 7.4).

The ledger is made first, with its own UID in it; the annotation on the policy comes second.  A crash in between leaves a ledger that is
empty and bound to nothing, which the next pass finds and binds.  Once the annotation is there, another ledger, or an empty one in its
place, is an identity error that only a person may clear: an empty ledger would forget what is reserved.
"""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.ledger import Ledger, decode_ledger, encode_ledger
from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, LedgerAt, LedgerIdentity, config_map_path, swap, swapped
from gitops_ctl.rollout.snapshot import PolicyRecord

TRUE: Final = "true"


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy and the one ledger that belongs to it."""

    record: PolicyRecord
    ledger: LedgerAt


def policy_record(tree: JsonObject) -> PolicyRecord:
    """The policy in a ConfigMap.

    Raises:
        Refused: the ConfigMap is not marked as a policy, its annotations disagree with the text, or the text breaks a rule.
    """
    subject = f"ConfigMap {text_at(tree, 'metadata', 'namespace')}/{text_at(tree, 'metadata', 'name')}"
    annotations = object_at(tree, "metadata", "annotations")
    policy = parse_policy(text_at(object_at(tree, "data"), names.POLICY_KEY))
    wanted = {
        names.MANAGED_POLICY: TRUE,
        names.APP_HOSTING_ACCOUNT: policy.app_hosting_account,
        names.NETWORK_MANAGEMENT_ACCOUNT: policy.network_management_account,
        names.CONFIG_LEASE_NAMESPACE: policy.config_lease_namespace,
    }
    for key, value in wanted.items():
        if annotations.get(key) != value:
            raise Refused(
                f"annotation {key} is {annotations.get(key)!r}, the policy needs {value!r}",
                code=ErrorCode.FLEET_POLICY_INVALID,
                subject=subject,
            )
    return PolicyRecord(
        policy=policy,
        name=text_at(tree, "metadata", "name"),
        namespace=text_at(tree, "metadata", "namespace"),
        uid=text_at(tree, "metadata", "uid"),
        resource_version=text_at(tree, "metadata", "resourceVersion"),
        ledger_uid=text_at(annotations, names.LEDGER_UID),
    )


async def bind(client: KubeClient, *, namespace: str, name: str) -> BoundPolicy:
    """The policy with its ledger, made and bound where that was not done yet.  Conflicts are tried again.

    Raises:
        Refused: the policy is invalid; LedgerIdentity: the ledger is not the one that was bound.
        NotFound: one of the two ConfigMaps is not there.
    """

    async def one_round() -> BoundPolicy:
        tree = await client.get(config_map_path(namespace, name))
        found = policy_record(tree)
        at = await _ledger(client, found)
        if not found.ledger_uid:
            change: JsonObject = {"metadata": {"annotations": {names.LEDGER_UID: at.uid}}}
            tree = await client.patch_merge(config_map_path(namespace, name), swap(tree, change), manager=FIELD_MANAGER)
        return BoundPolicy(policy_record(tree), at)

    return await swapped(client, one_round)


async def _ledger(client: KubeClient, policy: PolicyRecord) -> LedgerAt:
    path = config_map_path(policy.namespace, policy.policy.ledger_name)
    subject = f"ConfigMap {policy.namespace}/{policy.policy.ledger_name}"
    tree = await client.get(path)
    at = LedgerAt(policy.namespace, policy.policy.ledger_name, text_at(tree, "metadata", "uid"))
    if not at.uid or not text_at(tree, "metadata", "resourceVersion"):
        raise LedgerIdentity("has no UID or no resourceVersion", subject=subject)
    if text_at(tree, "metadata", "annotations", names.MANAGED_LEDGER) != TRUE:
        raise LedgerIdentity(f"has no annotation {names.MANAGED_LEDGER}: {TRUE}", subject=subject)
    if policy.ledger_uid and policy.ledger_uid != at.uid:
        raise LedgerIdentity(f"has UID {at.uid}, the policy is bound to {policy.ledger_uid}", subject=subject)
    text = text_at(object_at(tree, "data"), names.LEDGER_KEY)
    if text.strip():
        decode_ledger(text, at.uid)
    elif policy.ledger_uid:
        raise LedgerIdentity("is empty although the policy is bound to it", subject=subject)
    else:
        empty = encode_ledger(Ledger(uid=at.uid))
        await client.patch_merge(path, swap(tree, {"data": {names.LEDGER_KEY: empty}}), manager=FIELD_MANAGER)
    return at
