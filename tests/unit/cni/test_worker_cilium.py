"""What the worker reads from the objects of Cilium, trap by trap (cni-switch.md, sections 9.1, 9.4 and 9.5)."""

from typing import Any

import pytest

from gitops_ctl.cni.worker.cilium import CiliumObjects, live_mode, mode_of, see_cilium
from gitops_ctl.cni.worker.selectors import selects

WRITTEN, BEFORE, AFTER = "2026-01-01T10:00:00Z", "2026-01-01T09:59:59Z", "2026-01-01T10:00:01Z"


def config(value: str | None = "true", *owners: tuple[str, str, bool]) -> dict[str, Any]:
    """cilium-config; each owner is its name, the time of its last write, and whether it owns the key."""
    data = {"cluster-name": "north", **({} if value is None else {"kube-proxy-replacement": value})}
    fields = [
        {
            "manager": name,
            "time": time,
            "fieldsV1": {"f:data": {"f:kube-proxy-replacement": {}} if owns else {"f:cluster-name": {}}},
        }
        for name, time, owns in owners or (("helm", WRITTEN, True),)
    ]
    return {"metadata": {"name": "cilium-config", "managedFields": fields}, "data": data}


def daemonset(*, desired: int = 2, generation: int = 4, template: str = "3", **annotations: str) -> dict[str, Any]:
    container = {
        "name": "cilium-agent",
        "image": "registry.example.net:5000/cilium/cilium:v1.18.2@sha256:00",
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "7445"},
        ],
    }
    marks = {"deprecated.daemonset.template.generation": template}
    fields = [
        {"manager": "helm", "time": AFTER, "fieldsV1": {"f:spec": {"f:template": {}}}},
        {"manager": "kube-controller-manager", "time": "2026-01-01T12:00:00Z", "fieldsV1": {"f:status": {}}},
    ]
    counts = dict.fromkeys(
        (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberReady",
            "numberAvailable",
        ),
        desired,
    )
    return {
        "metadata": {"name": "cilium", "generation": generation, "annotations": marks, "managedFields": fields},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}},
        "status": {"observedGeneration": generation, **counts},
    }


def agent(name: str, started: str | None = AFTER, *, ready: bool = True, template: str = "3") -> dict[str, Any]:
    state = {"running": {"startedAt": started}} if started else {"waiting": {"reason": "CrashLoopBackOff"}}
    return {
        "metadata": {"name": name, "labels": {"k8s-app": "cilium", "pod-template-generation": template}},
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"name": "other", "state": {}}, {"name": "cilium-agent", "state": state}],
        },
    }


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        ("true", "replaced"),
        ("strict", "replaced"),
        ("True", "replaced"),
        ("false", "enabled"),
        ("disabled", "enabled"),
        ("", "enabled"),
        ("partial", "mixed"),
        ("probe", "mixed"),
        ("yes", "mixed"),
    ],
)
def test_every_value_has_its_mode(value: str, mode: str) -> None:
    assert mode_of(value) == mode


def test_a_missing_key_means_kube_proxy_and_a_missing_configuration_is_not_known() -> None:
    assert live_mode(config(None)) == "enabled"
    assert live_mode(None) == "unknown"
    seen = see_cilium(CiliumObjects(config(None)))
    assert (seen.present, seen.value) == (True, None)
    assert see_cilium(CiliumObjects(None)).present is False


def test_the_facts_of_a_running_cilium() -> None:
    objects = CiliumObjects(
        config(), daemonset(**{"cilium.io/cilium-configmap-checksum": "abc"}), None, [agent("a"), agent("b")]
    )
    seen = see_cilium(objects)
    assert (seen.checksum, seen.version, seen.service_host, seen.service_port) == ("abc", "1.18.2", "localhost", "7445")
    assert (seen.template_generation, seen.template_written_at) == (3, AFTER)
    assert (seen.config_written_at, seen.oldest_agent_start) == (WRITTEN, AFTER)
    assert seen.agents is not None
    assert (seen.agents.generation, seen.agents.desired) == (4, 2)
    assert seen.operator is None
    assert seen.lagging == ()


def test_the_write_of_a_manager_that_does_not_own_the_key_does_not_count() -> None:
    owners = (("helm", WRITTEN, True), ("kubectl", "2026-01-01T11:00:00Z", False))
    assert see_cilium(CiliumObjects(config("true", *owners))).config_written_at == WRITTEN


def test_of_several_owners_of_the_key_the_latest_counts() -> None:
    owners = (("helm", BEFORE, True), ("kubectl", WRITTEN, True))
    assert see_cilium(CiliumObjects(config("true", *owners))).config_written_at == WRITTEN


def test_when_the_key_was_removed_the_last_write_of_anybody_counts() -> None:
    owners = (("helm", BEFORE, False), ("kubectl", WRITTEN, False))
    assert see_cilium(CiliumObjects(config(None, *owners))).config_written_at == WRITTEN


def test_the_agent_that_runs_longest_counts() -> None:
    objects = CiliumObjects(config(), daemonset(), None, [agent("a", AFTER), agent("b", BEFORE)])
    assert see_cilium(objects).oldest_agent_start == BEFORE


@pytest.mark.parametrize(
    "pods", [[agent("a")], [agent("a"), agent("b", None)], []], ids=["one is missing", "one does not run", "none"]
)
def test_while_an_agent_does_not_run_no_start_is_told(pods: list[dict[str, Any]]) -> None:
    assert see_cilium(CiliumObjects(config(), daemonset(), None, pods)).oldest_agent_start is None


def test_pods_that_are_old_or_not_ready_lag_and_at_most_twenty_are_named() -> None:
    late = [agent("old", template="2"), agent("broken", ready=False), agent("fine")]
    gone = {**agent("going"), "metadata": {**agent("going")["metadata"], "deletionTimestamp": WRITTEN}}
    assert see_cilium(CiliumObjects(config(), daemonset(), None, [*late, gone])).lagging == ("broken", "going", "old")
    many = [agent(f"pod-{n:02}", ready=False) for n in range(30)]
    assert len(see_cilium(CiliumObjects(config(), daemonset(), None, many)).lagging) == 20


def test_an_override_is_listed_with_the_nodes_that_it_chooses() -> None:
    nodes = {
        name: {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}} for name in ("cp-1", "worker-1")
    }
    chosen = {
        "metadata": {"namespace": "kube-system", "name": "canary"},
        "spec": {
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "worker-1"}},
            "defaults": {"kube-proxy-replacement": "true"},
        },
    }
    other = {"metadata": {"namespace": "kube-system", "name": "debug"}, "spec": {"defaults": {"debug": "true"}}}
    seen = see_cilium(CiliumObjects(config("false"), node_configs=[other, chosen], nodes=nodes))
    assert [(item.object, item.value, item.nodes) for item in seen.overrides] == [
        ("kube-system/canary", "true", ("worker-1",))
    ]


@pytest.mark.parametrize(
    ("selector", "is_chosen"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "Later"}]}, True),
    ],
)
def test_selectors(selector: dict[str, Any], is_chosen: bool) -> None:
    assert selects(selector, {"metadata": {"labels": {"a": "1"}}}) is is_chosen


def test_values_of_another_type_or_an_endless_one_do_not_break_a_look() -> None:
    broken = {"metadata": {"managedFields": "none"}, "data": {"kube-proxy-replacement": "x" * 5000}}
    seen = see_cilium(CiliumObjects(broken, {"spec": 1}, {"status": []}, [{"metadata": {"name": "a"}}]))
    assert seen.mode == "mixed"
    assert seen.value is not None
    assert len(seen.value) <= 256
