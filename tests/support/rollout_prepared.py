"""A campaign that only prepares: its frozen plan, its receipts, and the approval that would activate them."""

import json

from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.receipt import receipt_hash, source_identity_hash, trust_identity_hash
from gitops_ctl.rollout.freeze import freeze
from tests.support.rollout_planning import NOW, SHA256, ago, fleet, given, rollout

URL = "https://images.example.net/cat9k.bin"


def prepared_campaign(strategy="PrepareOnly"):
    """A frozen campaign of two devices that is prepared."""
    tree = rollout(strategy=strategy)
    plan = freeze(given(fleet(2), plan=tree)).to_json(created_at=NOW)
    effective = {"epoch": 1, "policy": plan["policy"], "updatedAt": ago(0)}
    return json.loads(json.dumps({**tree, "status": {"frozenPlan": plan, "effectivePolicy": effective}}))


def a_receipt(target, plan_hash, **changed):
    """The receipt of a prepared target."""
    tree = {
        "protocolVersion": "prepare-v1",
        "upgradeUID": f"{target['deviceName']}-leaf",
        "deviceUID": target["deviceUID"],
        "nodeUID": target["nodeUID"],
        "physicalIdentity": target["physicalIdentity"],
        "deviceGeneration": 3,
        "campaignUID": "rollout-uid",
        "planHash": plan_hash,
        "managedProtocolVersion": "rollout-staged-activation-v1",
        "policyUID": "policy-uid",
        "policyResourceVersion": "900",
        "policyEpoch": 1,
        "workerRevision": f"sha256:{'5' * 64}",
        "sourceDigest": f"sha256:{SHA256}",
        "sourceSize": 1_249_368_115,
        "sourceIdentityHash": source_identity_hash({"url": URL, "sha256": SHA256}),
        "trustIdentityHash": trust_identity_hash(credential="5", tls="", provisioning=""),
        "contentBinding": "source-digest-install-claim-v1",
        "targetVersion": "17.18.03",
        "validatedVersion": "17.18.03.0.5496",
        "runningVersion": "17.12.04.0.1",
        "primarySupervisorInstalled": True,
        "installStartedAt": ago(600),
        "managedMutationClaims": [
            {"stage": "PrimaryInstall", "reservationID": "r", "policyEpoch": 1, "claimedAt": ago(599)}
        ],
        "preparedAt": ago(300),
    }
    tree |= changed
    return {**{name: value for name, value in tree.items() if value is not None}, "receiptHash": receipt_hash(tree)}


def prepared_leaves(tree, **changed):
    """The leaves; `changed` is about the receipt of the first one."""
    found = {}
    for place, target in enumerate(tree["status"]["frozenPlan"]["targets"]):
        made = a_receipt(target, tree["status"]["frozenPlan"]["hash"], **(changed if place == 0 else {}))
        found[target["deviceUID"]] = leaf_of(
            {
                "metadata": {"name": target["childName"], "uid": made["upgradeUID"]},
                "status": {"phase": "Prepared", "preparedReceipt": made},
            }
        )
    return found


def activation_approval(tree, leaves, **changed):
    """An approval of everything that is prepared."""
    receipts = [
        {"deviceUID": uid, "upgradeUID": leaf.uid, "receiptHash": leaf.receipt["receiptHash"]}
        for uid, leaf in leaves.items()
    ]
    block = {
        "planHash": tree["status"]["frozenPlan"]["hash"],
        "receipts": receipts,
        "notBefore": ago(60),
        "notAfter": ago(-3600),
        "approvedBy": "gitops-ctl:window-owner",
        "approvedAt": ago(30),
    }
    return {**block, **changed}
