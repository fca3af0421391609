"""The rules of leaves that one object can break, as cases (rollouts.md, section 4)."""

from typing import Any

from tests.support.api import DIGEST, MOMENT, with_status
from tests.support.api_case import SHOULD_MATCH, Case
from tests.support.api_leaves import (
    EVIDENCE,
    a_claim,
    a_drain,
    a_drain_pod,
    a_manager_control,
    a_manager_invalidation,
    a_manager_recovery,
    a_prepared_invalidation,
    a_receipt,
    a_worker_drain,
    an_admission,
)
from tests.support.api_rollouts import HEX, HTTPS, LATER, LOCK, OTHER_DIGEST, SFTP, an_upgrade

STAGED = "rollout-staged-activation-v1"
GATED = "rollout-network-evidence-v1"


def _image(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = True) -> Case:
    return Case(f"leaf image {name}", an_upgrade(imageSource=good), an_upgrade(imageSource=bad), told, cel)


def _status(
    name: str,
    good: dict[str, Any],
    bad: dict[str, Any],
    told: str,
    *,
    cel: bool = True,
    spec: dict[str, Any] | None = None,
) -> Case:
    tree = an_upgrade(**(spec or {}))
    return Case(f"leaf status {name}", with_status(tree, **good), with_status(tree, **bad), told, cel)


def _admission(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return _status(
        f"admission {name}", {"managerAdmission": an_admission(**good)}, {"managerAdmission": an_admission(**bad)}, told
    )


_HTTPS = {"url": HTTPS, "sha256": HEX}
_SPEC_CASES = (
    _image("one form", {"preinstalled": {}}, {"preinstalled": {}, **_HTTPS}, "give exactly one of url, configMapRef"),
    _image("no form", {"configMapRef": {"name": "image"}}, {}, "give exactly one of url, configMapRef"),
    _image("digest of a url", _HTTPS, {"url": HTTPS}, "sha256 is needed with url, and with nothing else"),
    _image(
        "digest of nothing",
        {"deviceFile": {"path": "flash:cat9k.bin", "sha256": HEX}},
        {"preinstalled": {}, "sha256": HEX},
        "sha256 is needed with url, and with nothing else",
    ),
    _image(
        "Secret of a url",
        {"url": SFTP, "sha256": HEX, "urlSecretRef": {"name": "images"}},
        {**_HTTPS, "urlSecretRef": {"name": "images"}},
        "urlSecretRef is for ftp, scp and sftp",
    ),
    _image(
        "digest of a path",
        {"localPath": "bootflash:cat9k.bin", "localPathSHA256": HEX},
        {"preinstalled": {}, "localPathSHA256": HEX},
        "localPathSHA256 is for localPath",
    ),
    _image("user information", _HTTPS, {**_HTTPS, "url": "https://me@images.example.net/a"}, SHOULD_MATCH, cel=False),
    _image(
        "device file",
        {"deviceFile": {"path": "harddisk:a", "sha256": HEX}},
        {"deviceFile": {"path": "usb:a", "sha256": HEX}},
        SHOULD_MATCH,
        cel=False,
    ),
    Case("leaf strategy", an_upgrade(strategy="ISSU"), an_upgrade(strategy="Later"), "Unsupported value"),
    Case("leaf device", an_upgrade(), an_upgrade(deviceRef=None), "spec.deviceRef"),
    Case(
        "leaf rate",
        an_upgrade(maxTransferBytesPerSecond=1099511627776),
        an_upgrade(maxTransferBytesPerSecond=1099511627777),
        "less than or equal to",
    ),
)

_ADMISSION_CASES = (
    _admission(
        "grants with all identities", {}, {"nodeUID": None}, "a Granted admission needs its protocol, all identities"
    ),
    _admission("grants with a revision", {}, {"controlRevision": None}, "a Granted admission needs its protocol"),
    _admission(
        "waits with a lock", {"state": "Pending"}, {"state": "Pending", "topologyLockID": None}, "needs topologyLockID"
    ),
    _admission(
        "revoked for a reason",
        {"state": "Revoked"},
        {"state": "Revoked", "revocationReason": None},
        "revocationReason is needed with the state Revoked",
    ),
    _admission(
        "no reason without revocation",
        {"state": "Settled"},
        {"state": "Settled", "revocationReason": "RecoveryAttested"},
        "revocationReason is needed with the state Revoked",
    ),
    _admission(
        "whole evidence",
        EVIDENCE,
        {**EVIDENCE, "networkEvidenceNotAfter": None},
        "the five members of the network evidence come together",
    ),
    _admission(
        "evidence without hash",
        EVIDENCE,
        {**EVIDENCE, "networkEvidenceHash": None},
        "the five members of the network evidence come together",
    ),
    _admission(
        "waits without evidence",
        {"state": "Pending"},
        {"state": "Pending", **EVIDENCE},
        "a Pending admission must not carry network evidence",
    ),
    _status(
        "grant with evidence",
        {"managerAdmission": an_admission(protocolVersion=GATED, **EVIDENCE)},
        {"managerAdmission": an_admission(protocolVersion=GATED)},
        "a grant with requireNetworkEvidence needs networkEvidenceHash",
        spec={"requireNetworkEvidence": True},
    ),
    _status(
        "grant with a protocol that checks evidence",
        {"managerAdmission": an_admission(protocolVersion=STAGED, **EVIDENCE)},
        {"managerAdmission": an_admission(protocolVersion="rollout-byte-pacing-v1", **EVIDENCE)},
        "a grant with requireNetworkEvidence needs networkEvidenceHash",
        spec={"requireNetworkEvidence": True},
    ),
    _status(
        "grant of a preparation",
        {"managerAdmission": an_admission(protocolVersion=STAGED)},
        {"managerAdmission": an_admission(protocolVersion="rollout-v1")},
        f"needs {STAGED}",
        spec={"strategy": "PrepareOnly"},
    ),
    _status(
        "grant of a preinstalled version",
        {"managerAdmission": an_admission("Pending")},
        {"managerAdmission": an_admission(protocolVersion="rollout-v1")},
        f"needs {STAGED}",
        spec={"imageSource": {"preinstalled": {}}},
    ),
)

_PREPARED = {"phase": "Prepared", "preparedReceipt": a_receipt()}
_OVER = {
    "preparedReceipt": a_receipt(),
    "managerAdmission": an_admission("Settled", controlRevision=1),
    "managerControl": a_manager_control(1, cancel=True),
    "managerInvalidation": a_manager_invalidation(),
}
_INVALIDATED = {**_OVER, "phase": "PreparedInvalidated", "preparedInvalidation": a_prepared_invalidation()}


def _without(members: dict[str, Any], *names: str, **changed: Any) -> dict[str, Any]:
    return {**{key: value for key, value in members.items() if key not in names}, **changed}


_RECEIPT_CASES = (
    _status("Prepared", _PREPARED, {"phase": "Prepared"}, "the phase Prepared needs preparedReceipt"),
    _status(
        "campaign of a receipt",
        {"preparedReceipt": a_receipt(campaignUID=None, planHash=None)},
        {"preparedReceipt": a_receipt(planHash=None)},
        "campaignUID and planHash come together",
    ),
    _status(
        "PreparedInvalidated",
        _INVALIDATED,
        _without(_INVALIDATED, "preparedInvalidation"),
        "the phase PreparedInvalidated needs preparedReceipt and preparedInvalidation",
    ),
    _status(
        "evidence after the request",
        _INVALIDATED,
        _without(_INVALIDATED, "managerInvalidation"),
        "preparedInvalidation needs its request",
    ),
    _status(
        "evidence of the running version",
        _INVALIDATED,
        _without(_INVALIDATED, preparedInvalidation=a_prepared_invalidation(runningVersion="17.18.03")),
        "preparedInvalidation needs its request",
    ),
    _status(
        "request for its receipt",
        _OVER,
        _without(_OVER, managerInvalidation=a_manager_invalidation(receiptHash=OTHER_DIGEST)),
        "managerInvalidation must name the receipt",
    ),
    _status(
        "request after settlement",
        _OVER,
        _without(_OVER, managerAdmission=an_admission("Granted", controlRevision=1)),
        "managerInvalidation needs a settled admission under a cancelled control",
    ),
    _status(
        "request under cancellation",
        _OVER,
        _without(_OVER, managerControl=a_manager_control(1, cancel=True, pause=True)),
        "managerInvalidation needs a settled admission under a cancelled control",
    ),
    _status(
        "request after a drain",
        _without(
            _OVER,
            managerControl=a_manager_control(0),
            managerDrain=a_drain("Settled", pods=[a_drain_pod("Complete")]),
        ),
        _without(_OVER, managerControl=a_manager_control(0), managerDrain=a_drain("Settled")),
        "managerInvalidation needs a settled admission under a cancelled control, or a settled drain",
    ),
)

_BUDGET = a_drain_pod()["pdbs"][0]


def _pods(**members: Any) -> dict[str, Any]:
    return {"managerDrain": a_drain(pods=[a_drain_pod(**members)])}


_DRAIN_CASES = (
    _status(
        "budget of its generation", _pods(), _pods(pdbs=[{**_BUDGET, "generation": 2}]), "must be of its generation"
    ),
    _status("budget counts", _pods(), _pods(pdbs=[{**_BUDGET, "desiredHealthy": 4}]), "the counts of the budget"),
    _status(
        "clean after another look",
        _pods(deletionObservedInventoryRevision=1, deviceCleanAt=MOMENT, deviceCleanInventoryRevision=2),
        _pods(deletionObservedInventoryRevision=2, deviceCleanAt=MOMENT, deviceCleanInventoryRevision=2),
        "a clean device needs an inventory that is newer",
    ),
    _status(
        "drain deadline",
        {"managerDrain": a_drain()},
        {"managerDrain": a_drain(drainDeadline=MOMENT)},
        "drainDeadline must be later than startedAt",
    ),
    _status(
        "recovery deadline",
        {"managerDrain": a_drain("Recovering")},
        {"managerDrain": a_drain("Recovering", recoveryDeadline=None)},
        "recoveryDeadline is needed in Recovering and Settled",
    ),
    _status(
        "inventory of the session",
        {"managerDrain": a_drain(), "workerDrain": a_worker_drain()},
        {"managerDrain": a_drain(), "workerDrain": a_worker_drain(observedPolicyEpoch=2)},
        "workerDrain must be of the session and the epoch of managerDrain",
    ),
    _status(
        "inventory without a session",
        {},
        {"workerDrain": a_worker_drain()},
        "workerDrain must be of the session and the epoch of managerDrain",
    ),
    _status(
        "token of a drain",
        {"managerDrain": a_drain()},
        {"managerDrain": a_drain(sessionToken="6f1d1f5e-7f1c-1a5e-9d2c-0d8f5b7a1c2e")},
        SHOULD_MATCH,
        cel=False,
    ),
)

_OTHER_CASES = (
    _status(
        "commit that was asked for",
        {"installCommit": {"state": "Requested", "requestedAt": MOMENT}},
        {"installCommit": {"state": "Requested"}},
        "a requested commit needs requestedAt",
    ),
    _status(
        "commit that was never ours",
        {"installCommit": {"state": "Committed", "observedAt": LATER}},
        {"installCommit": {"state": "Done"}},
        "Unsupported value",
        cel=False,
    ),
    _status("phase", {"phase": "TransferInterrupted"}, {"phase": "Torn"}, "Unsupported value", cel=False),
    _status(
        "one claim of a stage",
        {"managedMutationClaims": [a_claim(), a_claim("PrimaryActivation")]},
        {"managedMutationClaims": [a_claim(), a_claim()]},
        "Duplicate value",
        cel=False,
    ),
    _status(
        "two persons",
        {"managerRecovery": a_manager_recovery()},
        {"managerRecovery": a_manager_recovery(persons=["network-author"])},
        "at least 2 items",
        cel=False,
    ),
    _status("lock id", {}, {"managerAdmission": an_admission(topologyLockID=LOCK.upper())}, SHOULD_MATCH, cel=False),
    _status("digest", {"sourceDigest": DIGEST}, {"sourceDigest": DIGEST.upper()}, SHOULD_MATCH, cel=False),
)

LEAF_CASES = (*_SPEC_CASES, *_ADMISSION_CASES, *_RECEIPT_CASES, *_DRAIN_CASES, *_OTHER_CASES)
