"""Parts of the device worker on their own: who it is, what campaigns ask of it, its turns, its material, the status of a Node."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.device.operational import Apps, InstallState, Platform, Seen
from gitops_ctl.device.worker.campaigns import evidence_for, has_begun, needed_images, orders_for
from gitops_ctl.device.worker.identity import NotAPod, Who, who_am_i
from gitops_ctl.device.worker.material import material_of
from gitops_ctl.device.worker.nodestatus import NodeLook, failed_look, node_tree, writer_problem
from gitops_ctl.device.worker.pace import AFTER_BUG_S, Duty
from gitops_ctl.device.worker.secretreader import SecretSeen
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from tests.support.api_rollouts import HTTPS, a_frozen_plan, a_planned_target, a_rollout, an_activation
from tests.support.device_planes import HOST_KEY, SHA256
from tests.support.simulation_loop import LoopClock, run_virtually
from tests.support.topology_devices import device, node

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
DIGEST = "sha256:" + "0a" * 32


class _Reviewing:
    """A client whose server answers a SelfSubjectReview."""

    def __init__(self, **extra: list[str]) -> None:
        user = {"username": "system:serviceaccount:campus:fleet-network-management", "extra": extra}
        self._answer = {"status": {"userInfo": user}}

    async def create(self, path: str, body: Any) -> Any:
        assert path.endswith("/selfsubjectreviews")
        assert body["kind"] == "SelfSubjectReview"
        return self._answer


async def test_the_worker_is_the_pod_that_its_token_names():
    extra = {"authentication.kubernetes.io/pod-name": ["worker-1"], "authentication.kubernetes.io/pod-uid": ["uid-1"]}
    client: Any = _Reviewing(**extra)
    assert await who_am_i(client) == Who("system:serviceaccount:campus:fleet-network-management", "worker-1", "uid-1")


async def test_a_token_of_no_pod_is_refused():
    client: Any = _Reviewing()
    with pytest.raises(NotAPod, match="is not bound to a Pod") as raised:
        await who_am_i(client)
    assert raised.value.code is ErrorCode.WORKER_WITHOUT_POD


def campaign(uid: str = "r-1", *, phase: str = "AwaitingApproval", device_uid: str = "d-1", **spec: Any) -> Any:
    tree: Any = a_rollout(**spec)
    source = {"name": "everywhere", "priority": 10, "url": HTTPS, "sha256": SHA256}
    target = {**a_planned_target(deviceUID=device_uid), "source": source}
    tree["metadata"]["uid"] = uid
    tree["status"] = {"phase": phase, "frozenPlan": a_frozen_plan(targets=[target])}
    return tree


def leaf(uid: str = "r-1", **annotations: str) -> Any:
    marks = {names.CAMPAIGN_UID: uid, names.DEVICE_UID: "d-1", **annotations}
    return {"metadata": {"annotations": marks}, "spec": {"imageSource": {"sha256": SHA256}}, "status": {}}


def test_a_frozen_campaign_orders_a_preflight_until_its_leaf_is_there():
    (order,) = orders_for("d-1", [campaign()], [])
    assert (order.rollout_uid, order.url, order.sha256, order.preinstalled) == ("r-1", HTTPS, SHA256, False)
    assert orders_for("d-1", [campaign()], [leaf("r-2")])
    assert orders_for("d-1", [campaign()], [leaf()]) == ()
    assert orders_for("d-2", [campaign()], []) == ()
    assert orders_for("d-1", [campaign(phase="Cancelled")], []) == ()
    assert orders_for("d-1", [a_rollout()], []) == ()


def test_an_activation_orders_another_one_without_the_image():
    approved = campaign(phase="Succeeded", activationApproval=an_activation())
    (order,) = orders_for("d-1", [approved], [leaf()])
    assert order.preinstalled
    assert orders_for("d-1", [approved], [leaf(), leaf("r-1", **{names.PREPARED_UPGRADE_UID: "leaf-uid"})]) == ()


def test_evidence_serves_the_smallest_limit_of_the_campaigns_that_name_the_device():
    strict = campaign(
        "r-2", plan={"health": {"maxObservationAgeSeconds": 90, "network": {"requiredInterfaces": ["T1"]}}}
    )
    assert evidence_for("d-1", []).freshness_s == 300
    assert evidence_for("d-1", [campaign(), strict]).freshness_s == 90
    assert evidence_for("d-1", [strict]).interfaces == {"T1"}
    assert evidence_for("d-2", [strict]).freshness_s == 300
    failed: Any = {**strict, "status": {**strict["status"], "phase": "Failed"}}
    assert evidence_for("d-1", [failed]).freshness_s == 90  # what was claimed is settled with it
    ended: Any = {**strict, "status": {**strict["status"], "phase": "Cancelled"}}
    assert evidence_for("d-1", [ended]).freshness_s == 300
    policy: Any = campaign("r-3")
    policy["status"]["frozenPlan"]["policy"]["healthFreshnessSeconds"] = 60
    assert evidence_for("d-1", [policy]).freshness_s == 60


@pytest.mark.parametrize(
    ("phase", "target", "begun"),
    [
        *(("Executing", phase, True) for phase in ("Admitted", "Running", "Soaking")),
        ("Cancelling", "Cancelling", True),
        ("Failed", "Running", True),
        *(
            ("Executing", phase, False)
            for phase in ("Planned", "WaitingForAdmission", "Blocked", "Succeeded", "Failed")
        ),
        ("Cancelled", "Running", False),
    ],
)
def test_a_device_with_which_a_campaign_has_begun_is_known_as_reserved(phase: str, target: str, begun: bool):
    tree: Any = campaign(phase=phase)
    tree["status"]["targets"] = [{"deviceUID": "d-1", "phase": target}, {"deviceUID": "d-2", "phase": "Planned"}]
    assert has_begun("d-1", [tree]) is begun
    assert not has_begun("d-2", [tree])


def test_images_of_open_upgrades_are_kept():
    done: Any = {**leaf(), "status": {"phase": "Succeeded"}}
    assert needed_images([leaf(), done]) == {SHA256}
    assert needed_images([done]) == frozenset()


def a_secret(**data: str) -> SecretSeen:
    values = {"username": "operator", "password": "hidden", "known_hosts": f"[192.0.2.1]:830 {HOST_KEY}\n", **data}
    return SecretSeen("login", "uid", "7", {}, {key: value.encode() for key, value in values.items()})


def test_the_revision_follows_the_versions_of_the_secrets_and_the_template():
    seen = device_of(device())
    first = material_of(seen, {"login": a_secret()}, template_digest=DIGEST)
    other = SecretSeen("login", "uid", "8", {}, a_secret().data)
    assert first.versions.credential == "7"
    assert first.revision != material_of(seen, {"login": other}, template_digest=DIGEST).revision
    assert first.revision != material_of(seen, {"login": a_secret()}, template_digest="sha256:" + "1b" * 32).revision


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"driver": "NXOS"}, "driver NXOS is not supported"),
        ({"credentialSecretRef": {}}, "spec.credentialSecretRef names no Secret"),
        ({"gnoi": {"transportSecurity": "tls"}}, "gNOI over TLS needs spec.gnoi.tls.secretRef"),
        ({}, "gNOI over TLS needs spec.gnoi.tls.secretRef"),
        ({"gnoi": {"tls": {"secretRef": {"name": "login"}}}}, "GnoiMaterialInvalid: "),
        ({"credentialSecretRef": {"name": "absent"}}, "Secret absent does not exist"),
    ],
    ids=["driver", "no-credential", "tls-without-secret", "auto-needs-tls", "no-certificate", "missing"],
)
def test_what_cannot_be_used_is_named_and_opens_nothing(spec: Any, problem: str):
    tree = device()
    tree["spec"] = {**tree["spec"], **spec}
    material = material_of(device_of(tree), {"login": a_secret()}, template_digest=DIGEST)
    assert material.target is None
    assert material.problem.startswith(problem)
    assert "hidden" not in f"{material.problem} {a_secret()!r}"


def test_plaintext_carries_no_login_and_has_its_own_port():
    tree = device()
    tree["spec"]["gnoi"] = {"transportSecurity": "plaintext"}
    material = material_of(device_of(tree), {"login": a_secret()}, template_digest=DIGEST)
    assert not material.problem
    assert material.target is not None
    assert (material.target.port, material.target.login) == (50052, None)
    assert material.endpoint is not None
    assert material.endpoint.port == 830


def a_look(**members: Any) -> NodeLook:
    parts: Any = {
        "platform": Seen(Platform("FOC1")),
        "install": Seen(InstallState(running="17.18.02")),
        "apps": Seen(Apps()),
        **members,
    }
    return NodeLook(**parts)


def conditions(tree: Any) -> Any:
    return {one["type"]: one for one in tree["status"]["conditions"]}


def test_a_node_offers_no_pods_and_says_what_the_device_is():
    tree: Any = node_tree(node(), a_look(), revision="sha256:1", now=NOW)
    assert tree["metadata"]["annotations"] == {names.WORKER_OBSERVED_REVISION: "sha256:1"}
    assert tree["status"]["allocatable"] == tree["status"]["capacity"] == {"pods": "0"}
    assert tree["status"]["nodeInfo"] == {"machineID": "FOC1", "systemUUID": "FOC1", "kernelVersion": "17.18.02"}
    assert conditions(tree)[names.MANAGED_WRITER]["reason"] == names.MANAGED_WRITER_REASON


def test_a_device_that_does_not_answer_is_not_ready_and_keeps_its_identity_and_the_time_of_the_change():
    old: Any = {**node(), "status": node_tree(node(), a_look(), revision="sha256:1", now=NOW)["status"]}
    later = datetime(2026, 2, 1, 13, tzinfo=UTC)
    again: Any = node_tree(old, a_look(), revision="sha256:1", now=later)
    assert conditions(again)["Ready"]["lastTransitionTime"] == "2026-02-01T12:00:00Z"
    assert conditions(again)["Ready"]["lastHeartbeatTime"] == "2026-02-01T13:00:00Z"
    lost: Any = node_tree(old, failed_look("no connection"), revision="sha256:1", now=later)
    assert lost["status"]["nodeInfo"]["machineID"] == "FOC1"
    ready = conditions(lost)["Ready"]
    assert (ready["status"], ready["reason"], ready["lastTransitionTime"]) == (
        "False",
        "DeviceUnreachable",
        "2026-02-01T13:00:00Z",
    )
    assert conditions(lost)[names.APP_INVENTORY]["reason"] == "Incomplete"


@pytest.mark.parametrize(
    ("apps", "status", "reason", "message"),
    [
        (Seen(Apps()), "True", "Empty", "no application"),
        (Seen(Apps(("probe",), (("probe", "RUNNING"), ("other", "STOPPED")))), "True", "Present", "2 on the device"),
        (Seen(Apps(), ("no list",)), "False", "Incomplete", "no list"),
    ],
    ids=["empty", "present", "incomplete"],
)
def test_the_inventory_of_applications_is_a_condition_for_people(apps: Any, status: str, reason: str, message: str):
    found = conditions(node_tree(node(), a_look(apps=apps), revision="sha256:1", now=NOW))[names.APP_INVENTORY]
    assert (found["status"], found["reason"]) == (status, reason)
    assert message in found["message"]


def test_a_device_without_a_serial_number_is_not_ready():
    look = a_look(platform=Seen(Platform(), ("no serial number",)))
    ready = conditions(node_tree(node(), look, revision="sha256:1", now=NOW))["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "IdentityUnknown")


def test_a_node_is_written_only_when_it_is_bound_to_the_device_and_to_this_pod():
    bound = node(**{names.DEVICE_UID: "d-1", names.APP_WORKER_POD_UID: "pod-1"})
    assert writer_problem(bound, device_uid="d-1", pod_uid="pod-1") == ""
    assert writer_problem(bound, device_uid="d-2", pod_uid="pod-1")
    assert writer_problem(bound, device_uid="d-1", pod_uid="pod-2")
    assert writer_problem(node(), device_uid="d-1", pod_uid="pod-1")


def test_a_turn_that_fails_or_has_a_bug_is_not_the_last_one():
    async def story() -> None:
        clock, at = LoopClock(), list[float]()

        async def turn() -> float | None:
            at.append(clock.boot_s())
            if len(at) == 1:
                raise Unavailable("away")
            if len(at) == 2:
                raise KeyError("a bug")
            return None

        duty = Duty("test", turn, clock=clock, retry_s=5)
        task = asyncio.create_task(duty.run())
        await clock.sleep(100)
        began, failed, bug = at
        assert (failed - began, bug - failed) == (5, AFTER_BUG_S)
        duty.ask()
        duty.ask()
        await clock.sleep(10)
        assert len(at) == 4, "asked twice is one turn"
        duty.stop()
        await task

    run_virtually(story())
