"""What a CiscoDevice may become, and what not (rollouts.md, sections 5, 8.6 and 13.6)."""

from typing import Any

from tests.support.api import with_status
from tests.support.api_devices import a_drain_session, a_lock, a_node_identity, a_retirement, a_session
from tests.support.api_rollouts import LATER, LEAF_UID, OTHER_DIGEST, OTHER_LOCK, a_device
from tests.support.api_step import Step


def _device(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    tree = a_device()
    return Step(
        f"device {name}",
        with_status(tree, **old),
        with_status(tree, **good),
        tuple(with_status(tree, **item) for item in bad),
        told,
    )


def _spec(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    return Step(
        f"device {name}", a_device(**old), a_device(**good), tuple(a_device(**item) for item in bad), told, "spec"
    )


def _locked(*members: Any, **changed: Any) -> dict[str, Any]:
    return {"topologyLock": a_lock(*members, **changed)}


def _session(*members: Any, **changed: Any) -> dict[str, Any]:
    return {"maintenanceSession": a_session(*members, **changed)}


def _draining(*members: Any, **changed: Any) -> dict[str, Any]:
    return {"maintenanceSession": a_drain_session(*members, **changed)}


_READY = {"phase": "Ready"}
_OTHERS = {
    "policyEpoch": 2,
    "acquisitionID": OTHER_LOCK,
    "campaignNamespace": "team-b",
    "campaignName": "other",
    "campaignUID": "other",
    "planHash": OTHER_DIGEST,
    "reservationID": "other",
    "deviceUID": "other",
    "deviceGeneration": 2,
    "nodeUID": "other",
    "projectionHash": OTHER_DIGEST,
    "acquiredAt": LATER,
}
_FORWARD = "a session goes from Acknowledged to Active to Settled"
_SAME = "a session must not change before it is settled"
_UPGRADE = {**a_session()["lease"], "holder": f"software-upgrade/{LEAF_UID}"}
_FOREIGN = {**a_session()["lease"], "holder": "software-upgrade/other"}

DEVICE_STEPS = (
    _spec(
        "identity is written once",
        {"physicalIdentity": "FOC0000A1B2"},
        {"physicalIdentity": "FOC0000A1B2", "port": 443},
        {"physicalIdentity": "FOC9999Z9Z9"},
        {},
        told="physicalIdentity is written once",
    ),
    _spec(
        "identity is declared later",
        {},
        {"physicalIdentity": "FOC0000A1B2"},
        {"physicalIdentity": ""},
        told="at least 1",
    ),
    _spec(
        "name of the Node",
        {},
        {"nodeName": "switch-1"},
        {"nodeName": "other"},
        told="nodeName must not change: another Node is another CiscoDevice",
    ),
    Step(
        "device status stays",
        with_status(a_device(), **_READY),
        with_status(a_device(), phase="Error"),
        (a_device(),),
        "the status must not be taken away",
    ),
    _device(
        "Node identity",
        {"nodeIdentity": a_node_identity()},
        {"nodeIdentity": a_node_identity(), **_READY},
        _READY,
        {"nodeIdentity": a_node_identity(nodeUID="other")},
        told="nodeIdentity must not change or go away once it is set",
    ),
    _device(
        "retirement",
        {"retired": a_retirement()},
        {"retired": a_retirement(), **_READY},
        _READY,
        {"retired": a_retirement(leafUID="other")},
        told="retired must not change or go away once it is set",
    ),
    _device("lock is released", _locked(), _locked("Releasing"), _READY, told="a lock is cleared only after Releasing"),
    _device("lock is cleared", _locked("Releasing"), _READY, _locked(), told="a lock goes from Active to Releasing"),
    _device("lock is new", _READY, _locked(), _locked("Releasing"), told="a new lock is Active"),
    *(
        _device(
            f"lock {member}", _locked(), _locked("Releasing"), _locked(**{member: other}), told="a lock must not change"
        )
        for member, other in _OTHERS.items()
    ),
    _device(
        "lock of a retired device",
        {**_READY, "retired": a_retirement()},
        {"retired": a_retirement(), "phase": "Error"},
        {**_locked(), "retired": a_retirement()},
        told="a retired device takes no new lock",
    ),
    _device(
        "lock while it retires",
        _locked(),
        {**_locked(), "retired": a_retirement()},
        {"retired": a_retirement()},
        told="a lock is cleared only after Releasing",
    ),
    _device("session begins", _session(), _session("Active"), _session("Active", nodeUID="other"), told=_SAME),
    _device("session holder", _session(), _session("Active"), _session("Active", lease=_FOREIGN), told=_SAME),
    _device("session ends", _session("Active"), _session("Settled"), _session("Acknowledged"), told=_FORWARD),
    _device("session recovers", _session("Recovering"), _session("Settled"), _session("Active"), told=_FORWARD),
    _device(
        "session is followed",
        _session("Settled"),
        _session(sessionToken="another-session-token"),
        _session("Active"),
        _session("Settled", message="other"),
        told="a settled session must not change",
    ),
    _device("session stays", _session("Active"), _session("Settled"), _READY, told="a session must not go away"),
    _device("session may go", _session("Settled"), _READY, _session(), told="a settled session must not change"),
    _device(
        "drain becomes a change",
        _draining(),
        _draining(purpose="SoftwareMutation", lease=_UPGRADE),
        _draining(purpose="SoftwareMutation"),
        _draining(purpose="SoftwareMutation", lease=_FOREIGN),
        told=_SAME,
    ),
    _device(
        "change does not become a drain",
        _session("Active"),
        _session("Settled"),
        _draining(),
        told=_SAME,
    ),
    _device(
        "drain recovers",
        _draining(),
        _draining("Recovering"),
        _draining("Settled"),
        told="a drain session is settled only after Recovering",
    ),
)
