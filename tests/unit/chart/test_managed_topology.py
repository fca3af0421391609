"""What the chart gives managed topology: nothing until it is switched on, then the flags and exactly the rights that its room uses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gitops_ctl.cli.deviceoptions import device_options
from gitops_ctl.cli.manager import manager
from gitops_ctl.cli.rolloutoptions import rollout_options
from gitops_ctl.topology.workers_plan import ROLE_PREFIX
from tests.support.device_world import DEVICES, POLICY_NAME, SECRETS, DeviceWorld, in_device_world
from tests.support.topology_devices import NAMESPACE, POLICY
from tools.render_install import CHART, chart_objects

ON: dict[str, Any] = {
    "managedTopology": {
        "enabled": True,
        "namespaces": [NAMESPACE],
        "ledger": POLICY["ledgerName"],
        "options": {
            "network-access": "readOnly",
            "image-source-allow": ["127.0.0.0/8", "::1/128"],
            "topology-resync": 5,
        },
    },
}
Right = tuple[str, str, str, str]
"""Namespace (empty: everywhere), group, resource, verb."""


def ours(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    names = ("gitops-ctl-managed-topology", "gitops-ctl-device-workers", "gitops-ctl-node-heartbeats")
    return [tree for tree in objects if tree["kind"] == kind and tree["metadata"]["name"] in names]


def given() -> set[Right]:
    """Every right of the manager for managed topology, without `bind`."""
    objects = chart_objects(ON)
    return {
        (tree["metadata"].get("namespace", ""), group, resource, verb)
        for kind in ("ClusterRole", "Role")
        for tree in ours(objects, kind)
        for rule in tree["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb != "bind"
    }


def used() -> set[Right]:
    """What the room asked for in a device's life, from its first watch to the removal of the workers."""
    found: set[Right] = set()

    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        await world.admin.patch_merge(f"{SECRETS}/login", {"stringData": {"username": "other"}})
        await world.clock.sleep(150.0)
        await world.device(credentialSecretRef={"name": "other"})
        await world.clock.sleep(60.0)
        await world.admin.delete(f"{DEVICES}/access-1")
        await world.clock.sleep(60.0)
        assert not await world.seen()
        found.update(_rights(world))

    in_device_world(story)
    return found


def _rights(world: DeviceWorld) -> Iterator[Right]:
    for entry in world.api.audit:
        if "manager" in entry.user_agent:
            resource = f"{entry.resource}/{entry.subresource}" if entry.subresource else entry.resource
            yield entry.namespace, entry.group, resource, entry.verb
            # What is applied may have to be made.
            is_applied = entry.verb == "patch" and resource not in ("configmaps", "nodes") and not entry.subresource
            if is_applied and entry.group not in ("cisco.vk", "coordination.k8s.io"):
                yield entry.namespace, entry.group, resource, "create"


def test_nothing_is_there_until_it_is_switched_on() -> None:
    objects = chart_objects({})
    assert not [
        tree for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding") for tree in ours(objects, kind)
    ]
    assert "topology.cisco.vk" not in json.dumps([tree for tree in objects if tree["kind"] == "ConfigMap"])
    assert "--managed-topology" not in json.dumps(objects)


def test_the_rights_are_those_that_the_room_uses_and_no_others() -> None:
    rights, uses = given(), used()

    def covers(use: Right) -> bool:
        return use in rights or ("", *use[1:]) in rights

    # Leaves are read only while somebody asks for maintenance; tests/simulation/test_device_topology.py does.
    uses |= {("", "ops.cisco.vk", "iosxesoftwareupgrades", "get"), (NAMESPACE, "", "secrets", "get")}
    # Made by the node plane before, a heartbeat Lease is bound to its device.
    uses |= {("kube-node-lease", "coordination.k8s.io", "leases", "patch")}
    # The room on the double has no policies and roles to compare; tests/unit/topology/test_admission_proof.py does.
    uses |= {("", "rbac.authorization.k8s.io", "clusterroles", "get")} | {
        ("", "admissionregistration.k8s.io", f"validatingadmission{kind}", "get")
        for kind in ("policies", "policybindings")
    }
    assert [use for use in sorted(uses) if not covers(use)] == []
    spare = {right for right in rights if not any(right[1:] == use[1:] and right[0] in ("", use[0]) for use in uses)}
    assert spare == set()


def test_the_worker_roles_that_may_be_bound_are_named_one_by_one() -> None:
    [role] = ours(chart_objects(ON), "ClusterRole")
    [rule] = [rule for rule in role["rules"] if "bind" in rule["verbs"]]
    assert rule["verbs"] == ["bind", "get"]
    assert len(rule["resourceNames"]) == 8
    assert all(name.startswith(ROLE_PREFIX) for name in rule["resourceNames"])


def test_values_become_flags_that_the_manager_takes() -> None:
    [deployment] = [tree for tree in chart_objects(ON) if tree["kind"] == "Deployment"]
    told: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    with manager.make_context("manager", [text for text in told[1:] if "$" not in text]) as context:
        assert context.params["managed_topology"] is True
        assert context.params["fleet_policy"] == POLICY_NAME
        assert context.params["network_access"] == "readOnly"
        assert context.params["image_source_allow"] == ("127.0.0.0/8", "::1/128")
        assert context.params["topology_resync"] == 5.0
        assert context.params["worker_image"].startswith("gitops-ctl:")


def test_every_flag_can_be_set_by_a_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    named = set(schema["properties"]["managedTopology"]["properties"]["options"]["properties"])

    @device_options
    @rollout_options
    def probe(**_: object) -> None:
        """Only its options count."""

    flags = {parameter.opts[0].removeprefix("--") for parameter in probe.__click_params__}  # type: ignore[attr-defined]
    assert named == flags - {"managed-topology", "fleet-policy", "worker-image"}


def test_the_ledger_is_kept_and_holds_nothing_of_the_chart() -> None:
    [ledger] = [
        tree
        for tree in chart_objects(ON)
        if tree["kind"] == "ConfigMap" and tree["metadata"]["name"] == POLICY["ledgerName"]
    ]
    assert "data" not in ledger
    assert ledger["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize(
    "options",
    [{"network-access": "all"}, {"image-source-allow": ["example.net"]}, {"worker-image": "x"}, {"topology-resync": 0}],
    ids=["access", "network", "image", "resync"],
)
def test_wrong_values_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="managedTopology"):
        chart_objects({"managedTopology": {"enabled": True, "options": options}})
