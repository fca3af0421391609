"""The receipt of a prepared device: its hashes, and whether it proves what it says (rollouts.md, sections 4.5 and 12.2).

A worker writes it, a manager judges it, and both must see the same thing: an image that is installed, and not running.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.encoding import ordered, sha256_of, without_empty
from gitops_ctl.fleet.forms import is_hash
from gitops_ctl.fleet.trees import moment_at

PREPARE_PROTOCOL: Final = "prepare-v1"
CONTENT_BINDING: Final = "source-digest-install-claim-v1"
PREPARING_STAGES: Final = ("Staging", "PrimaryInstall", "StandbyInstall")
_FIRST_STAGES: Final = frozenset({"Staging", "PrimaryInstall"})

_MEMBERS: Final = (
    *("protocolVersion", "upgradeUID", "deviceUID", "nodeUID", "physicalIdentity", "deviceGeneration", "campaignUID"),
    *("planHash", "managedProtocolVersion", "policyUID", "policyResourceVersion", "policyEpoch", "workerRevision"),
    *("sourceDigest", "sourceSize", "sourceIdentityHash", "sourceSecretUID", "trustIdentityHash", "contentBinding"),
    *("targetVersion", "validatedVersion", "runningVersion", "individualSupervisorInstall"),
    *("primarySupervisorInstalled", "standbySupervisorInstalled", "standbySupervisorID", "standbyRunningVersion"),
    *("installStartedAt", "stagingOperationID", "managedMutationClaims", "preparedAt", "receiptHash"),
)
_ALWAYS: Final = (
    *("protocolVersion", "upgradeUID", "deviceUID", "sourceDigest", "sourceIdentityHash", "contentBinding"),
    *("targetVersion", "validatedVersion", "runningVersion", "primarySupervisorInstalled", "installStartedAt"),
    *("preparedAt", "receiptHash"),
)
"""Written also when empty or false."""
_CLAIM_MEMBERS: Final = ("stage", "reservationID", "policyEpoch", "controlRevision", "claimedAt")
_NEEDED: Final = ("upgradeUID", "deviceUID", "sourceDigest", "sourceIdentityHash", "targetVersion", "runningVersion")
_MANAGED: Final = (
    *("nodeUID", "physicalIdentity", "managedProtocolVersion", "policyUID", "policyResourceVersion"),
    *("workerRevision", "trustIdentityHash"),
)


def receipt_hash(receipt: JsonObject) -> str:
    """The hash that a receipt carries, whatever it carries now."""
    return sha256_of(receipt_hash_input(receipt))


def receipt_hash_input(receipt: JsonObject) -> JsonObject:
    """What the hash is taken over: members in their order, the hash itself as an empty text, claims sorted by stage."""
    claims = sorted(objects_at(receipt, "managedMutationClaims"), key=lambda claim: text_at(claim, "stage"))
    tree: dict[str, JsonValue] = {
        **receipt,
        "managedMutationClaims": [ordered(claim, _CLAIM_MEMBERS) for claim in claims],
        "receiptHash": "",
    }
    return without_empty(ordered(tree, _MEMBERS), keep=_ALWAYS)


def source_identity_hash(image_source: JsonObject) -> str:
    """Which image, from where, a leaf installs: over its `spec.imageSource`, empty members left out."""
    file = object_at(image_source, "deviceFile")
    tree: dict[str, JsonValue] = {
        "url": text_at(image_source, "url"),
        "sha256": text_at(image_source, "sha256"),
        "urlSecretName": text_at(image_source, "urlSecretRef", "name"),
        "configMapName": text_at(image_source, "configMapRef", "name"),
        "deviceFilePath": text_at(file, "path"),
        "deviceFileSHA256": text_at(file, "sha256"),
        "legacyLocalPath": text_at(image_source, "localPath"),
        "legacyLocalSHA256": text_at(image_source, "localPathSHA256"),
        "preinstalledIntent": "preinstalled" in image_source,
    }
    return sha256_of(without_empty(tree))


def trust_identity_hash(*, credential: str, tls: str, provisioning: str) -> str:
    """Which material the device was reached with: resourceVersions of its Secrets, "" where there is none."""
    return sha256_of({"credential": credential, "tls": tls, "provisioning": provisioning})


def matches_target(found: str, wanted: str) -> bool:
    """Whether a version that a device names is the wanted one: the same, or longer by further parts (rollouts.md, section 13.3)."""
    return bool(wanted) and (found == wanted or found.startswith(f"{wanted}."))


def receipt_problem(receipt: JsonObject, *, managed: bool = True) -> str:
    """Why a receipt proves nothing, in words; empty when it proves a prepared device.

    Args:
        managed: of a campaign: more has to be in it.
    """
    return next(_problems(receipt, managed), "")


def _problems(receipt: JsonObject, managed: bool) -> Iterator[str]:
    needed = (*_NEEDED, *(_MANAGED if managed else ()))
    missing = [name for name in needed if not text_at(receipt, name)]
    if missing:
        yield f"the receipt lacks {', '.join(missing)}"
    if text_at(receipt, "protocolVersion") != PREPARE_PROTOCOL or text_at(receipt, "contentBinding") != CONTENT_BINDING:
        yield "the receipt is of another protocol"
    if not is_hash(text_at(receipt, "receiptHash")) or text_at(receipt, "receiptHash") != receipt_hash(receipt):
        yield "the receipt was changed: its hash is that of another one"
    yield from _time_problems(moment_at(receipt, "installStartedAt"), moment_at(receipt, "preparedAt"))
    target, validated = text_at(receipt, "targetVersion"), text_at(receipt, "validatedVersion")
    if not matches_target(validated, target):
        yield f"{validated or 'nothing'} was validated, the target is {target}"
    if matches_target(text_at(receipt, "runningVersion"), target):
        yield f"the device runs {target} already"
    yield from _supervisor_problems(receipt)
    if managed:
        yield from _managed_problems(receipt)


def _time_problems(started: datetime | None, prepared: datetime | None) -> Iterator[str]:
    if started is None or prepared is None or prepared < started:
        yield "the receipt was made before the installation began"


def _supervisor_problems(receipt: JsonObject) -> Iterator[str]:
    if not bool_at(receipt, "primarySupervisorInstalled"):
        yield "the primary supervisor was not installed"
    standby = bool_at(receipt, "standbySupervisorInstalled") and bool(text_at(receipt, "standbySupervisorID"))
    any_of_it = bool_at(receipt, "standbySupervisorInstalled") or bool(text_at(receipt, "standbySupervisorID"))
    if bool_at(receipt, "individualSupervisorInstall") and not standby:
        yield "the standby supervisor was not installed"
    if not bool_at(receipt, "individualSupervisorInstall") and any_of_it:
        yield "it names a standby supervisor that is not installed by itself"


def _managed_problems(receipt: JsonObject) -> Iterator[str]:
    if int_at(receipt, "deviceGeneration") < 1 or int_at(receipt, "policyEpoch") < 1:
        yield "the receipt names no generation of the device, or no policy epoch"
    stages = {text_at(claim, "stage") for claim in objects_at(receipt, "managedMutationClaims")}
    if not stages <= set(PREPARING_STAGES) or not stages & _FIRST_STAGES:
        yield "its claims are not those of a preparation"
