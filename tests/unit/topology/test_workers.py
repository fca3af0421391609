"""The workers of a namespace, and the proof that one has loaded what a device needs (rollouts.md, 17.1 and 17.2)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.topology.options import Access, Options
from gitops_ctl.topology.revision_plan import (
    Gnoi,
    Proof,
    Workplace,
    app_proof,
    desired_revision,
    gnoi_condition,
    network_proof,
    spec_problem,
)
from gitops_ctl.topology.workers_plan import (
    Plane,
    Tenant,
    Wanted,
    desired_digest,
    no_objects,
    pod_template,
    selected,
    template_digest,
    username,
    wanted_objects,
)
from tests.support.topology_devices import (
    APP_ACCOUNT,
    NAMESPACE,
    NETWORK_ACCOUNT,
    NOW,
    bound,
    deployment,
    device,
    node,
    pod,
)

OPTIONS = Options(worker_image="gitops-ctl:1")
TENANT = Tenant(
    namespace=NAMESPACE,
    accounts={Plane.NODE: APP_ACCOUNT, Plane.NETWORK: NETWORK_ACCOUNT},
    secrets=("login",),
    lease_namespace="leases",
)


def objects(options: Options = OPTIONS, tenant: Tenant = TENANT) -> dict[str, Any]:
    """Everything that is wanted, by kind and name; None where it has to be absent."""
    return {f"{one.resource.gvk.kind}/{one.name}": one.tree for one in wanted_objects(tenant, options)}


def test_two_accounts_and_two_deployments_serve_a_namespace() -> None:
    found = objects()
    for account in (APP_ACCOUNT, NETWORK_ACCOUNT):
        spec = found[f"Deployment/{account}"]["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        assert spec["template"]["spec"]["serviceAccountName"] == account
        assert f"ServiceAccount/{account}" in found
    arguments = found[f"Deployment/{NETWORK_ACCOUNT}"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[:4] == ["worker", "device", "--plane=network", "--namespace=campus"]


def test_secrets_are_granted_by_name_and_mounted_nowhere() -> None:
    found = objects()
    assert found[f"Role/{NETWORK_ACCOUNT}-secrets"]["rules"][0]["resourceNames"] == ["login"]
    assert not [text for text in (json.dumps(tree) for tree in found.values()) if '"secret"' in text]


def test_a_namespace_without_secrets_has_no_role_for_them() -> None:
    found = objects(tenant=replace(TENANT, secrets=()))
    assert found[f"Role/{NETWORK_ACCOUNT}-secrets"] is None
    assert found[f"RoleBinding/{NETWORK_ACCOUNT}-secrets"] is None


def test_another_device_or_secret_changes_no_template() -> None:
    more = replace(TENANT, secrets=("login", "login-2"))
    for plane in Plane:
        assert desired_digest(TENANT, plane, OPTIONS) == desired_digest(more, plane, OPTIONS)


def test_leases_elsewhere_get_the_lease_role_only() -> None:
    elsewhere = [one for one in wanted_objects(TENANT, OPTIONS) if one.namespace == "leases"]
    [binding] = elsewhere
    tree: Any = binding.tree
    assert tree["roleRef"]["name"] == "cisco-virtual-kubelet-network-management-lease-read-write"


def test_a_disabled_plane_has_no_account_and_no_worker() -> None:
    found = objects(replace(OPTIONS, app_hosting=Access.DISABLED))
    assert found[f"ServiceAccount/{APP_ACCOUNT}"] is None
    assert found[f"Deployment/{APP_ACCOUNT}"] is None
    assert found[f"Deployment/{NETWORK_ACCOUNT}"] is not None


def test_read_only_is_an_identity_without_a_node_writer_and_a_network_worker_that_claims_nothing() -> None:
    found = objects(replace(OPTIONS, app_hosting=Access.READ_ONLY, network=Access.READ_ONLY))
    assert found[f"ServiceAccount/{APP_ACCOUNT}"] is not None
    assert found[f"Deployment/{APP_ACCOUNT}"] is None
    container = found[f"Deployment/{NETWORK_ACCOUNT}"]["spec"]["template"]["spec"]["containers"][0]
    assert "--read-only" in container["args"]
    roles = {tree["roleRef"]["name"] for name, tree in found.items() if "Binding/" in name and tree}
    assert not [role for role in roles if "read-write" in role]


def test_the_journal_outlives_the_plane_and_the_last_device() -> None:
    assert objects()[f"PersistentVolumeClaim/{NETWORK_ACCOUNT}-journal"] is not None
    without_plane = wanted_objects(TENANT, replace(OPTIONS, network=Access.DISABLED, app_hosting=Access.DISABLED))
    for gone in (without_plane, no_objects(TENANT, OPTIONS)):
        assert [one.tree for one in gone if one.name == NETWORK_ACCOUNT] == [None, None, None]
        assert "PersistentVolumeClaim" not in {one.resource.gvk.kind for one in gone}


def test_an_empty_namespace_loses_everything_but_the_journal_its_accounts_last() -> None:
    gone = no_objects(TENANT, OPTIONS)
    assert not [one for one in gone if one.tree is not None]
    assert next(one.resource.gvk.kind for one in gone) == "Deployment"
    assert [one.resource.gvk.kind for one in gone][-2:] == ["ServiceAccount", "ServiceAccount"]
    kept = {one.name for one in wanted_objects(TENANT, OPTIONS)} - {one.name for one in gone}
    assert kept == {f"{NETWORK_ACCOUNT}-journal"}


def carrier(one: Wanted) -> tuple[Any, Any]:
    tree: Any = one.tree
    template = tree["spec"]["template"]
    [container] = template["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    return template["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST], environment


def test_the_digest_is_that_of_the_template_without_its_carriers() -> None:
    for plane in Plane:
        [one] = [
            each
            for each in wanted_objects(TENANT, OPTIONS)
            if each.resource.gvk.kind == "Deployment" and each.name == TENANT.accounts[plane]
        ]
        annotation, environment = carrier(one)
        assert (
            annotation
            == environment[names.ENV_WORKER_TEMPLATE_DIGEST]
            == template_digest(pod_template(TENANT, plane, OPTIONS))
        )
        assert environment[names.ENV_MANAGED_TOPOLOGY] == "true"
        assert environment[names.ENV_WORKER_NAMESPACE] == NAMESPACE


def test_another_image_or_allowed_network_is_another_digest() -> None:
    digests = {
        desired_digest(TENANT, Plane.NETWORK, options)
        for options in (
            OPTIONS,
            replace(OPTIONS, worker_image="gitops-ctl:2"),
            replace(OPTIONS, image_source_allow=("127.0.0.0/8",)),
        )
    }
    assert len(digests) == 3


def test_a_strict_policy_and_a_lenient_option_reach_the_workers_and_the_defaults_say_nothing() -> None:
    def arguments(plane: Plane, tenant: Tenant, options: Options) -> list[str]:
        container: Any = pod_template(tenant, plane, options)["spec"]
        return [one for one in container["containers"][0]["args"] if one.partition("=")[0] in wanted]

    wanted = {"--heartbeat-interval", "--evidence-freshness", "--unsaved-configuration"}
    wanted |= {"--worker-poll", "--preflight-interval"}
    brisk = replace(OPTIONS, worker_poll_s=2.5, preflight_s=600.0)
    strict, lenient = replace(TENANT, freshness_s=60), replace(OPTIONS, unsaved_blocks=False)
    assert arguments(Plane.NODE, TENANT, OPTIONS) == arguments(Plane.NETWORK, TENANT, OPTIONS) == []
    assert arguments(Plane.NODE, strict, lenient) == ["--heartbeat-interval=12"]
    assert arguments(Plane.NETWORK, strict, OPTIONS) == ["--evidence-freshness=60"]
    assert arguments(Plane.NETWORK, TENANT, lenient) == ["--unsaved-configuration=warn"]
    assert arguments(Plane.NETWORK, TENANT, brisk) == ["--worker-poll=2.5", "--preflight-interval=600"]
    assert arguments(Plane.NODE, TENANT, brisk) == []


def test_the_order_of_members_makes_no_other_digest() -> None:
    assert template_digest({"a": 1, "b": {"c": 1, "d": 2}}) == template_digest({"b": {"d": 2, "c": 1}, "a": 1})


# -- the proof -----------------------------------------------------------------------------------------------------


DIGEST = desired_digest(TENANT, Plane.NETWORK, OPTIONS)
VERSIONS = {"login": "5"}


def workplace(plane: Plane = Plane.NETWORK, **changes: Any) -> Workplace:
    account = TENANT.accounts[plane]
    digest = desired_digest(TENANT, plane, OPTIONS)
    made = Workplace(
        plane=plane,
        account=account,
        username=username(NAMESPACE, account),
        digest=digest,
        deployment=deployment(account, digest=digest),
        pods=(pod(account, digest=digest, labels=selected(account, plane)),),
    )
    return replace(made, **changes)


def one_pod(**changes: Any) -> Any:
    return pod(NETWORK_ACCOUNT, **{"digest": DIGEST, "labels": selected(NETWORK_ACCOUNT, Plane.NETWORK), **changes})


DESIRED = desired_revision(device(), digest=DIGEST, versions=VERSIONS)


def reporting(revision: str = DESIRED, *, pod_uid: str = "pod-uid-1", material: bool = True) -> Any:
    return bound(
        device(),
        workerReport={"podUID": pod_uid, "observedRevision": revision, "materialValid": material, "message": "key"},
    )


def proof(tree: Any = None, place: Workplace | None = None) -> Proof:
    return network_proof(tree or reporting(), place or workplace(), desired=DESIRED, now=NOW)


def test_the_revision_depends_on_template_and_versions_of_the_devices_secrets_only() -> None:
    assert desired_revision(device(), digest=DIGEST, versions={**VERSIONS, "other": "9"}) == DESIRED
    assert desired_revision(device(), digest=DIGEST, versions={"login": "6"}) != DESIRED
    assert desired_revision(device(), digest="sha256:0", versions=VERSIONS) != DESIRED


def test_a_report_of_the_sole_ready_pod_of_the_complete_deployment_proves_the_revision() -> None:
    found = proof()
    assert found.problem == ""
    stored = device_of(bound(device(), networkWorkerRevision=found.revision)).network_worker_revision
    assert stored is not None
    assert stored.is_proven


def test_a_proof_that_holds_is_not_written_again() -> None:
    first = proof()
    again = reporting()
    again["status"]["networkWorkerRevision"] = first.revision
    assert network_proof(again, workplace(), desired=DESIRED, now=NOW.replace(hour=1)).revision == first.revision


@pytest.mark.parametrize(
    "place",
    [
        workplace(deployment=None),
        workplace(deployment=deployment(NETWORK_ACCOUNT, digest="sha256:0")),
        workplace(deployment=deployment(NETWORK_ACCOUNT, digest=DIGEST, generation=2)),
        workplace(deployment=deployment(NETWORK_ACCOUNT, digest=DIGEST, updatedReplicas=0)),
        workplace(pods=()),
        workplace(pods=(one_pod(ready="False"),)),
        workplace(pods=(one_pod(deletionTimestamp="2026-02-01T00:00:00Z"),)),
        workplace(pods=(one_pod(), one_pod(uid="pod-uid-2", deletionTimestamp="2026-02-01T00:00:00Z"))),
        workplace(pods=(one_pod(digest="sha256:0"),)),
        workplace(pods=(one_pod(ownerReferences=[]),)),
    ],
    ids=[
        "absent",
        "template",
        "generation",
        "incomplete",
        "none",
        "unready",
        "terminating",
        "two",
        "old-pod",
        "foreign",
    ],
)
def test_anything_but_one_ready_pod_of_the_complete_deployment_proves_nothing(place: Workplace) -> None:
    found = proof(place=place)
    assert found.problem
    stored = device_of(bound(device(), networkWorkerRevision=found.revision)).network_worker_revision
    assert place.worker.pod_uid == ""
    assert stored is not None
    assert not stored.is_proven


def test_a_pod_that_has_ended_is_no_second_one() -> None:
    over = one_pod(uid="pod-uid-2", ready="False")
    over["status"]["phase"] = "Failed"
    assert proof(place=workplace(pods=(one_pod(), over))).problem == ""


def test_a_report_of_another_pod_is_not_taken_over() -> None:
    found = proof(reporting(pod_uid="pod-uid-0"))
    assert found.problem
    assert "observedRevision" not in found.revision


def test_a_rotated_secret_blocks_until_the_worker_has_loaded_it() -> None:
    rotated = desired_revision(device(), digest=DIGEST, versions={"login": "6"})
    found = network_proof(reporting(), workplace(), desired=rotated, now=NOW)
    assert "older configuration" in found.problem
    assert network_proof(reporting(rotated), workplace(), desired=rotated, now=NOW).problem == ""


def written(heartbeat: str, **annotations: str) -> Any:
    tree = node(**{names.APP_WORKER_POD_UID: "pod-uid-1", names.WORKER_OBSERVED_REVISION: DESIRED, **annotations})
    tree["status"] = {"conditions": [{"type": names.MANAGED_WRITER, "status": "True", "lastHeartbeatTime": heartbeat}]}
    return tree


@pytest.mark.parametrize(
    ("seen", "proves"),
    [
        (written("2026-02-01T00:00:00Z"), True),
        (written("2026-01-31T23:58:59Z"), False),
        (written("2026-02-01T00:00:00Z", **{names.APP_WORKER_POD_UID: "pod-uid-0"}), False),
        (written("2026-02-01T00:00:00Z", **{names.WORKER_OBSERVED_REVISION: "sha256:0"}), False),
        (None, False),
    ],
    ids=["proven", "before-the-pod", "another-pod", "another-revision", "no-node"],
)
def test_the_node_plane_proves_by_a_heartbeat_after_its_pod_began(seen: Any, proves: bool) -> None:
    found = app_proof(device(), seen, workplace(Plane.NODE), desired=DESIRED, now=NOW)
    assert (found.problem == "") is proves


def gnoi(tree: Any = None, *, versions: Any = None, problem: str = "") -> Any:
    tree = tree or reporting()
    known = VERSIONS if versions is None else versions
    return gnoi_condition(Gnoi(device=tree, spec_problem=problem, versions=known, proof=proof(tree)))


def test_gnoi_is_ready_when_spec_secrets_proof_and_material_are_good() -> None:
    assert (gnoi().status, gnoi().reason) == ("True", "Validated")
    assert gnoi(problem="no").reason == "SpecInvalid"
    assert gnoi(versions={}).reason == "SecretMissing"
    assert gnoi(bound(device())).reason == "WorkerRolloutPending"
    assert (gnoi(reporting(material=False)).reason, gnoi(reporting(material=False)).message) == (
        "WorkerMaterialInvalid",
        "key",
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"driver": "XR"},
        {"maxPods": 0},
        {"maxPods": 111},
        {"taints": [{"key": names.UNINITIALIZED}]},
        {"credentialSecretRef": {}},
    ],
    ids=["driver", "no-pods", "pods", "guard", "credential"],
)
def test_a_spec_that_gnoi_cannot_use_is_named(spec: Any) -> None:
    tree = device()
    assert spec_problem(tree) == ""
    tree["spec"] |= spec
    assert spec_problem(tree)
