"""The rules of CiscoDevices and software rollouts that one object can break, as cases (rollouts.md, sections 3 and 5)."""

from typing import Any

from tests.support.api import MOMENT, with_status
from tests.support.api_case import SHOULD_MATCH, Case
from tests.support.api_devices import a_health, a_sample, a_session
from tests.support.api_rollouts import (
    LATER,
    OTHER_DIGEST,
    SFTP,
    a_control,
    a_device,
    a_frozen_plan,
    a_plan,
    a_planned_target,
    a_policy_snapshot,
    a_recovery,
    a_recovery_status,
    a_rollout,
    a_target_status,
    an_activation,
    an_approval,
    an_https_source,
    an_image,
    an_invalidation,
)

_LABELS = {"matchLabels": {"topology.cisco.vk/managed": "true"}}


def _plan(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = False) -> Case:
    return Case(f"rollout plan {name}", a_rollout(plan=a_plan(**good)), a_rollout(plan=a_plan(**bad)), told, cel)


def _device(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = False) -> Case:
    return Case(f"device {name}", a_device(**good), a_device(**bad), told, cel)


def _device_status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = True) -> Case:
    return Case(f"device status {name}", with_status(a_device(), **good), with_status(a_device(), **bad), told, cel)


def _rollout_status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = False) -> Case:
    return Case(f"rollout status {name}", with_status(a_rollout(), **good), with_status(a_rollout(), **bad), told, cel)


def _expression(**members: Any) -> dict[str, Any]:
    return {"targets": {"selector": {"matchExpressions": [{"key": "topology.cisco.vk/site", **members}]}}}


def _network(**members: Any) -> dict[str, Any]:
    return {"health": {"network": {"enabled": True, **members}}}


def _drained(policy: str, **members: Any) -> dict[str, Any]:
    least = {"namespaces": ["shop"], "timeoutSeconds": 900, "maxPods": 4, "maxTerminationGraceSeconds": 60}
    return {"workloads": {"policy": policy, "drain": {**least, **members}}}


_SFTP_SOURCE = {"name": "north", "priority": 1, "url": SFTP, "urlSecretRef": {"name": "images"}}
_CENTER = {"name": "center", "priority": 1, "catalystCenter": {"imageName": "cat9k"}}
_SCOPED = {**_SFTP_SOURCE, "deviceSelector": _LABELS}
_ALL_AS_WELL = {**_SFTP_SOURCE, "deviceSelector": {}}

_PLAN_CASES = (
    _plan(
        "all devices are meant",
        {"targets": {"selector": {}, "allowAll": True}},
        {"targets": {"selector": {}}},
        "an empty one together with allowAll: true",
        cel=True,
    ),
    _plan(
        "an expression selects too",
        _expression(operator="Exists"),
        {"targets": {"selector": _LABELS, "allowAll": True}},
        "an empty one together with allowAll: true",
        cel=True,
    ),
    _plan(
        "operator and values",
        _expression(operator="In", values=["north"]),
        _expression(operator="NotIn"),
        "In and NotIn need values",
        cel=True,
    ),
    _plan(
        "operator without values",
        _expression(operator="DoesNotExist"),
        _expression(operator="Exists", values=["north"]),
        "In and NotIn need values",
        cel=True,
    ),
    _plan(
        "values once",
        _expression(operator="In", values=["north", "south"]),
        _expression(operator="In", values=["north", "north"]),
        "Duplicate value",
    ),
    _plan(
        "keys of labels",
        {"targets": {"selector": {"matchLabels": {"k" * 96: "v"}}}},
        {"targets": {"selector": {"matchLabels": {"k" * 97: "v"}}}},
        "keys must have 1 to 96 characters",
        cel=True,
    ),
    _plan(
        "most targets",
        {"targets": {"selector": _LABELS, "maxTargets": 100}},
        {"targets": {"selector": _LABELS, "maxTargets": 101}},
        "less than or equal to 100",
    ),
    _plan(
        "one source for all",
        {"image": an_image(_SCOPED, an_https_source())},
        {"image": an_image(_SCOPED)},
        "exactly one source must be for all devices",
        cel=True,
    ),
    _plan(
        "no two sources for all",
        {"image": an_image(_ALL_AS_WELL)},
        {"image": an_image(_ALL_AS_WELL, an_https_source())},
        "exactly one source must be for all devices",
        cel=True,
    ),
    _plan(
        "sources by name",
        {"image": an_image({**_SCOPED, "name": "south"}, an_https_source())},
        {"image": an_image({**_SCOPED, "name": "everywhere"}, an_https_source())},
        "Duplicate value",
    ),
    _plan(
        "url or catalystCenter",
        {"image": an_image({**_CENTER, "deviceSelector": _LABELS}, an_https_source())},
        {"image": an_image({**_CENTER, **an_https_source()})},
        "exactly one of url and catalystCenter",
        cel=True,
    ),
    _plan(
        "neither url nor catalystCenter",
        {"image": an_image(_CENTER)},
        {"image": an_image({"name": "none", "priority": 1})},
        "exactly one of url and catalystCenter",
        cel=True,
    ),
    _plan(
        "sftp with its Secret",
        {"image": an_image(_SFTP_SOURCE)},
        {"image": an_image({"name": "north", "priority": 1, "url": SFTP})},
        "an sftp source needs urlSecretRef",
        cel=True,
    ),
    _plan(
        "https without a Secret",
        {"image": an_image()},
        {"image": an_image(an_https_source(urlSecretRef={"name": "images"}))},
        "any other source must not have it",
        cel=True,
    ),
    *(
        _plan(f"url {bad}", {}, {"image": an_image(an_https_source(url=bad))}, SHOULD_MATCH)
        for bad in (
            "http://images.example.net/a.bin",
            "https://me@images.example.net/a.bin",
            "https://images.example.net/",
            "https://images.example.net/a.bin?x=1",
            "https://images.example.net/a.bin#x",
        )
    ),
    _plan(
        "image family",
        {"image": an_image(imageFamily="cat9k_lite.2")},
        {"image": an_image(imageFamily="-a")},
        SHOULD_MATCH,
    ),
    _plan("version", {"targetVersion": "17.15.01a"}, {"targetVersion": "17"}, SHOULD_MATCH),
    _plan("strategy", {"strategy": "NoReboot"}, {"strategy": "ISSU"}, "Unsupported value"),
    _plan("timeout", {"installTimeoutSeconds": 60}, {"installTimeoutSeconds": 59}, "greater than or equal to 60"),
    _plan(
        "window in order",
        {"maintenanceWindow": {"notBefore": MOMENT, "notAfter": MOMENT}},
        {"maintenanceWindow": {"notBefore": LATER, "notAfter": MOMENT}},
        "notBefore must not be later than notAfter",
        cel=True,
    ),
    _plan("canaries", {}, {"canaries": []}, "at least 1 items"),
    _plan("canaries are named", {}, {"canaries": None}, "spec.plan.canaries"),
    _plan(
        "canary devices once",
        {"canaries": [{"name": "c9300", "devices": ["switch-1", "switch-2"]}]},
        {"canaries": [{"name": "c9300", "devices": ["switch-1", "switch-1"]}]},
        "Duplicate value",
    ),
    _plan(
        "cohorts by name",
        {"canaries": [{"name": "c9300", "devices": ["switch-1"]}, {"name": "c9500", "devices": ["switch-2"]}]},
        {"canaries": [{"name": "c9300", "devices": ["switch-1"]}, {"name": "c9300", "devices": ["switch-2"]}]},
        "Duplicate value",
    ),
    _plan(
        "a domain limits something",
        {"budgets": {"domains": [{"topologyKey": "topology.kubernetes.io/zone", "maxUnavailable": 1}]}},
        {"budgets": {"domains": [{"topologyKey": "topology.kubernetes.io/zone"}]}},
        "a domain needs maxConcurrentTransfers, maxUnavailable, or both",
        cel=True,
    ),
    _plan(
        "drain with Drain",
        _drained("Drain"),
        _drained("BlockIfRunning"),
        "drain is needed with policy: Drain",
        cel=True,
    ),
    _plan(
        "Drain with drain",
        {"workloads": {}},
        {"workloads": {"policy": "Drain"}},
        "drain is needed with policy: Drain",
        cel=True,
    ),
    _plan(
        "time for a drain",
        _drained("Drain", timeoutSeconds=720, maxTerminationGraceSeconds=600),
        _drained("Drain", timeoutSeconds=719, maxTerminationGraceSeconds=600),
        "at least maxTerminationGraceSeconds + 120",
        cel=True,
    ),
    _plan(
        "headroom of an interface",
        _network(minimumHeadroomPercent=0, requiredInterfaces=["GigabitEthernet1/0/1"]),
        _network(minimumHeadroomPercent=0),
        "needs at least one of requiredInterfaces",
        cel=True,
    ),
    _plan("network gate says whether", _network(), {"health": {"network": {}}}, "network.enabled"),
    _plan(
        "interfaces have names",
        _network(requiredInterfaces=["Vlan 1"]),
        _network(requiredInterfaces=[" "]),
        SHOULD_MATCH,
    ),
    _plan("who asks", {}, {"requestedBy": None}, "spec.plan.requestedBy"),
)

_PREPARE = a_plan(strategy="PrepareOnly")
_PUBLISHED = {"phase": "AwaitingApproval", "frozenPlan": a_frozen_plan(), "targets": [a_target_status()]}
_CANCELLED = {**_PUBLISHED, "phase": "Cancelled"}
_WAITING = {**_PUBLISHED, "frozenPlan": a_frozen_plan(hash=OTHER_DIGEST)}


def _block(
    name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, was: dict[str, Any] = _PUBLISHED
) -> Case:
    return Case(
        f"rollout {name}", with_status(a_rollout(**good), **was), with_status(a_rollout(**bad), **was), told, cel=True
    )


_BLOCK_CASES = (
    _block(
        "approval of the published plan",
        {"approval": an_approval()},
        {"approval": an_approval(planHash=OTHER_DIGEST)},
        "approval.planHash must be the hash of the published plan",
    ),
    Case(
        "rollout approval before there is a plan",
        with_status(a_rollout(approval=an_approval()), **_PUBLISHED),
        with_status(a_rollout(approval=an_approval()), phase="Failed"),
        "approval.planHash must be the hash of the published plan",
        cel=True,
    ),
    _block(
        "activation of a preparation",
        {"plan": _PREPARE, "activationApproval": an_activation()},
        {"activationApproval": an_activation()},
        "activationApproval is for plans with strategy: PrepareOnly",
    ),
    _block(
        "activation window",
        {"plan": _PREPARE, "activationApproval": an_activation()},
        {"plan": _PREPARE, "activationApproval": an_activation(notAfter=MOMENT)},
        "notBefore must be earlier than notAfter",
    ),
    _block(
        "invalidation of a cancelled preparation",
        {"plan": _PREPARE, "control": a_control(cancel=True), "preparationInvalidation": an_invalidation()},
        {"plan": _PREPARE, "control": a_control(pause=True), "preparationInvalidation": an_invalidation()},
        "preparationInvalidation is for cancelled plans",
        was=_CANCELLED,
    ),
    Case(
        "rollout invalidation after the end",
        with_status(
            a_rollout(plan=_PREPARE, control=a_control(cancel=True), preparationInvalidation=an_invalidation()),
            **_CANCELLED,
        ),
        with_status(
            a_rollout(plan=_PREPARE, control=a_control(cancel=True), preparationInvalidation=an_invalidation()),
            **_PUBLISHED,
        ),
        "preparationInvalidation needs the hash of the published plan and the phase Cancelled",
        cel=True,
    ),
    Case(
        "rollout recovery of a planned leaf",
        with_status(a_rollout(recovery=a_recovery()), **_PUBLISHED),
        with_status(a_rollout(recovery=a_recovery()), phase="Failed"),
        "recovery needs a campaign that has targets",
        cel=True,
    ),
    Case(
        "rollout control at first",
        a_rollout(control={"revision": 0}),
        a_rollout(control={"revision": 0, "pause": True}),
        "revision 0 asks for nothing",
        cel=True,
        extra_bad=(
            a_rollout(control={"revision": 0, "cancel": True}),
            a_rollout(control={"revision": 0, "reason": "none"}),
            a_rollout(control={"revision": 0, "requestedAt": MOMENT}),
        ),
    ),
    Case(
        "rollout control has a requester",
        a_rollout(control=a_control(pause=True, reason="bad images")),
        a_rollout(control={"revision": 1, "pause": True}),
        "a revision above 0 needs requestedBy and requestedAt",
        cel=True,
    ),
    Case("rollout control has a revision", a_rollout(), a_rollout(control={"pause": True}), "spec.control.revision"),
)

_HTTPS_SNAPSHOT = {k: v for k, v in a_planned_target()["source"].items() if not k.startswith("secret")}


def _frozen(**target: Any) -> dict[str, Any]:
    return {"frozenPlan": a_frozen_plan(targets=[a_planned_target(**target)])}


_STATUS_CASES = (
    _rollout_status("phase", {"phase": "Soaking"}, {"phase": "Running"}, "Unsupported value"),
    _rollout_status(
        "source with its Secret",
        _frozen(),
        _frozen(source=_HTTPS_SNAPSHOT),
        "an sftp source is frozen with name and UID of its Secret",
        cel=True,
    ),
    _rollout_status(
        "next epoch",
        {
            "effectivePolicy": {"epoch": 4, "policy": a_policy_snapshot(), "updatedAt": MOMENT},
            "policyTransition": {"epoch": 5, "policy": a_policy_snapshot(), "startedAt": MOMENT},
        },
        {
            "effectivePolicy": {"epoch": 4, "policy": a_policy_snapshot(), "updatedAt": MOMENT},
            "policyTransition": {"epoch": 6, "policy": a_policy_snapshot(), "startedAt": MOMENT},
        },
        "policyTransition must be to the epoch after the one in force",
        cel=True,
    ),
    _rollout_status(
        "targets by device", {"targets": [a_target_status()]}, {"targets": [a_target_status()] * 2}, "Duplicate value"
    ),
    _rollout_status(
        "recoveries by leaf",
        {"recoveries": [a_recovery_status()]},
        {"recoveries": [a_recovery_status()] * 2},
        "Duplicate value",
    ),
    _rollout_status("counts", {"counts": {"failed": 100}}, {"counts": {"failed": 101}}, "less than or equal to 100"),
)

_GUARD = {"key": "topology.cisco.vk/uninitialized", "effect": "NoSchedule"}
_PROVISIONED = {"certificateID": "ca-1", "secretRef": {"name": "identity"}, "replaceTargetCABundle": True}

_DEVICE_CASES = (
    Case(
        "device name of the Node",
        a_device(name="s" * 64, nodeName="switch-1"),
        a_device(name="s" * 64),
        "the name of the Node must have at most 63 characters",
        cel=True,
    ),
    _device("driver", {"driver": "NXOS"}, {"driver": None}, "spec.driver"),
    _device("port", {"netconfPort": 65535}, {"netconfPort": 65536}, "less than or equal to 65535"),
    _device(
        "taints",
        {"taints": [{"key": "example.net/lab", "effect": "NoExecute"}]},
        {"taints": [_GUARD]},
        "topology.cisco.vk/uninitialized is a taint of the manager",
        cel=True,
    ),
    _device(
        "labels have short keys",
        {"labels": {"example.net/hall": "7"}},
        {"labels": {"k" * 318: "7"}},
        "keys must have 1 to 317 characters",
        cel=True,
    ),
    _device(
        "provisioning needs tls",
        {"gnoi": {"transportSecurity": "tls", "certificateProvisioning": _PROVISIONED}},
        {"gnoi": {"transportSecurity": "auto", "certificateProvisioning": _PROVISIONED}},
        "certificateProvisioning needs transportSecurity: tls",
        cel=True,
    ),
    _device(
        "provisioning replaces",
        {"xe": {"gnoi": {"certificateProvisioning": _PROVISIONED}}},
        {"xe": {"gnoi": {"certificateProvisioning": {**_PROVISIONED, "replaceTargetCABundle": False}}}},
        "Unsupported value",
    ),
    _device_status(
        "incomplete samples say why",
        {
            "healthObservation": a_health(
                acceptedNetwork=None, network=a_sample(complete=False, unknownReason="NoReply")
            )
        },
        {"healthObservation": a_health(acceptedNetwork=None, network=a_sample(complete=False))},
        "an incomplete sample needs unknownReason",
    ),
    _device_status(
        "accepted samples",
        {"healthObservation": a_health()},
        {"healthObservation": a_health(network=None)},
        "a sample is accepted only where there is one",
    ),
    _device_status(
        "purpose of a session",
        {"maintenanceSession": a_session(purpose=None, protocolVersion=None)},
        {"maintenanceSession": a_session(purpose=None)},
        "protocolVersion and purpose come together",
    ),
    _device_status(
        "canonical identity",
        {},
        {"nodeIdentity": {"nodeName": "a", "nodeUID": "u", "deviceUID": "d", "physicalIdentity": "FOC1"}},
        SHOULD_MATCH,
        cel=False,
    ),
)

ROLLOUT_CASES = (*_PLAN_CASES, *_BLOCK_CASES, *_STATUS_CASES, *_DEVICE_CASES)
