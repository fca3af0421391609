"""Health, waiting and fairness against a real server: the faults of family H that concern a Sync, and what it survives."""

import asyncio
import time
from typing import Any

import pytest

from gitops_ctl.core.errors import ReplyLost
from gitops_ctl.core.jsonvalue import JsonObject
from tests.support.sync_cluster import Bench, document, sync_site, until

__all__ = ["sync_site"]

pytestmark = pytest.mark.cluster
APPS = "apps/v1"


def deployment(site: Bench, *, replicas: int, name: str = "web") -> str:
    """YAML of a Deployment; with replicas it never gets ready, because no node is there."""
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "example.net/web:1"}]},
        },
    }
    meta = {"name": name, "namespace": site.namespace}
    return document({"apiVersion": APPS, "kind": "Deployment", "metadata": meta, "spec": spec})


async def test_H01_a_fix_is_taken_within_five_seconds_while_the_unit_waits_for_health(site: Bench) -> None:
    site.push({"web.yaml": deployment(site, replicas=1)})
    await site.sync(wait=True, timeout="10m")
    ready = await site.until_reason("Progressing")
    assert (ready["status"], "Deployment.apps" in ready["message"]) == ("Unknown", True)
    began_s = time.monotonic()
    site.push({"web.yaml": deployment(site, replicas=0)})
    await site.until_ready(timeout_s=10)
    assert time.monotonic() - began_s < 5
    assert (await site.condition(kind="Healthy"))["status"] == "True"


async def test_H02_a_good_commit_wins_over_the_retries_of_a_bad_one(site: Bench) -> None:
    bad = site.config_map("n0000").replace(site.namespace, "not-there")
    site.push({"n0000.yaml": bad})
    await site.sync()
    await site.until_held("DependencyNotReady")
    began_s = time.monotonic()
    site.push({"n0000.yaml": site.config_map("n0000")})
    await site.until_ready(timeout_s=10)
    assert time.monotonic() - began_s < 5


async def test_H01_a_wait_ends_at_its_time_limit_and_names_what_is_missing(site: Bench) -> None:
    site.push({"web.yaml": deployment(site, replicas=1), **site.config_maps(1)})
    await site.sync(wait=True, timeout="1s")
    ready = await site.until_reason("HealthCheckFailed")
    assert f"Deployment.apps/{site.namespace}/web: not healthy in time" in ready["message"]
    assert (await site.status())["counts"]["unhealthy"] == 1


async def test_expressions_decide_health_in_their_order(site: Bench) -> None:
    site.push(site.config_maps(1))
    check = {
        "kind": "ConfigMap",
        "failed": "object.data.key == 'broken'",
        "current": "object.data.key == 'done'",
    }
    await site.sync(wait=True, healthChecks=[check])
    ready = await site.until_reason("Progressing")
    assert "the expression current is not true yet" in ready["message"]
    site.push({"n0000.yaml": site.config_map("n0000", "broken")})
    await site.until_reason("HealthCheckFailed")
    site.push({"n0000.yaml": site.config_map("n0000", "done")})
    await site.until_ready()


async def test_H05_objects_of_others_are_waited_for_by_name(site: Bench) -> None:
    site.push(site.config_maps(1))
    checks = [{"kind": "ConfigMap", "name": f"theirs-{number}", "namespace": site.namespace} for number in range(3)]
    others = iter([{"metadata": {"name": f"noise-{number}"}} for number in range(5000)])

    async def fill() -> None:
        for body in others:
            await site.admin.create(site.path("configmaps"), body)

    await asyncio.gather(*(fill() for _ in range(32)))
    await site.sync(healthChecks=checks)
    ready = await site.until_reason("Progressing")
    assert "theirs-2: is not there" in ready["message"]
    lists = site.manager.calls["list", "configmaps"]
    (informer,) = site.room.clusters.local._informers.values()  # type: ignore[union-attr]
    assert [key.name for key in informer.cache if key.namespace == site.namespace] == ["n0000"]
    for check in checks:
        await site.admin.create(site.path("configmaps"), {"metadata": {"name": check["name"]}})
    await site.until_ready()
    assert site.manager.calls["list", "configmaps"] == lists


async def test_H04_failing_units_do_not_delay_healthy_ones(site: Bench) -> None:
    names = [f"{kind}-{number:02}" for number in range(20) for kind in ("bad", "good")]
    files = {}
    for name in names:
        text = site.config_map(name)
        files[f"{name}/a.yaml"] = text.replace(site.namespace, "not-there") if name.startswith("bad") else text
    site.push(files)
    for name in names:
        await site.sync(name, path=name)
    good = [name for name in names if name.startswith("good")]
    for name in good:
        await site.until_ready(name)
    began_s = time.monotonic()
    site.push({f"{name}/a.yaml": site.config_map(name, "2") for name in good})
    for name in good:
        await site.until_ready(name, timeout_s=10)
    assert time.monotonic() - began_s < 10


def job(site: Bench) -> str:
    """YAML of a Job that nobody runs."""
    containers = [{"name": "hook", "image": "example.net/hook:1"}]
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    return document(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "hook", "namespace": site.namespace},
            "spec": spec,
        }
    )


async def test_H03_H07_R13_R14_five_thousand_objects_end_and_their_record_is_in_shards(site: Bench) -> None:
    count = 5000
    parts = [site.config_map(f"n{number:04}") for number in range(count)]
    site.push({f"part-{start:04}.yaml": "".join(parts[start : start + 100]) for start in range(0, count, 100)})
    site.push({"hook.yaml": job(site)})
    await site.sync(prune={"enabled": True}, wait=True, timeout="2s")

    async def ended() -> bool:
        return bool((await site.condition()).get("reason") == "HealthCheckFailed")

    await until(ended, timeout_s=200, what="the wait for the hook ends")
    site.push(delete=["hook.yaml"])

    async def only_the_maps() -> bool:
        return bool((await site.status())["inventory"]["entries"] == count)

    await until(only_the_maps, timeout_s=60, what="the hook is gone")
    status = await site.until_ready(timeout_s=60)
    page: Any = await site.admin.list_all(f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{site.namespace}/inventories")
    assert len(page.items) == status["inventory"]["shards"] >= 2
    assert max(len(str(tree)) for tree in page.items) < 1_500_000
    await site.until_idle()
    site.manager.calls.clear()
    site.push({"part-0000.yaml": "".join(parts[:50]).replace("key: '1'", "key: '2'", 1) + "".join(parts[50:100])})
    await site.until_ready(timeout_s=60)
    assert site.manager.calls["apply", "configmaps"] == 1
    assert site.manager.calls["update", "inventories"] == 1


async def test_S22_a_lost_reply_is_no_failure(site: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    site.push(site.config_maps(3))
    real = site.manager._exchange._once
    lost: list[str] = []

    async def once(call: Any, authorization: str) -> bytes:
        answer = await real(call, authorization)
        if call.verb == "apply" and "/configmaps/" in call.path and call.path not in lost:
            lost.append(call.path)
            raise ReplyLost("the connection was cut", subject=call.subject)
        return answer

    monkeypatch.setattr(site.manager._exchange, "_once", once)
    await site.sync()
    await site.until_ready()
    assert len(lost) == 3
    assert "Warning" not in {event[0] for event in site.events}


def definition(group: str) -> JsonObject:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_H18_a_definition_that_is_deleted_under_its_objects_disturbs_nothing_else(site: Bench) -> None:
    group = f"{site.namespace[-6:]}.eighteen.example.net"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await site.admin.create(definitions, definition(group))
    meta = {"name": "w", "namespace": site.namespace}
    site.push(
        {"w.yaml": document({"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": meta}), **site.config_maps(2)}
    )
    await site.sync()
    await site.until_ready()
    await site.admin.delete(f"{definitions}/widgets.{group}")
    await site.until_held("DependencyNotReady")
    site.push({"n0000.yaml": site.config_map("n0000", "2")})

    async def changed() -> bool:
        return bool((await site.get("configmaps", "n0000"))["data"] == {"key": "2"})

    await until(changed)
    await site.admin.create(definitions, definition(group))
    try:
        await site.until_ready()
    finally:
        await site.admin.delete(f"{definitions}/widgets.{group}")


async def test_H19_a_dead_aggregated_api_stops_its_own_kinds_only_and_prunes_none_of_them(site: Bench) -> None:
    group = f"{site.namespace[-6:]}.nineteen.example.net"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    service = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}"
    await site.admin.create(definitions, definition(group))
    meta = {"name": "w", "namespace": site.namespace}
    site.push(
        {"w.yaml": document({"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": meta}), **site.config_maps(3)}
    )
    await site.sync(prune={"enabled": True})
    await site.until_ready()
    broken = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "insecureSkipTLSVerify": True,
            "service": {"name": "metrics", "namespace": site.namespace},
        },
    }
    await site.admin.delete(f"{definitions}/widgets.{group}")
    await site.until_held("DependencyNotReady")
    await site.admin.apply(service, broken, manager="tests", force=True)
    try:

        async def unavailable() -> bool:
            tree: Any = await site.admin.get(service)
            found = tree.get("status", {}).get("conditions", ())
            return any(item["type"] == "Available" and item["status"] == "False" for item in found)

        await until(unavailable)
        await site.restart()
        site.push({"n0000.yaml": site.config_map("n0000", "2")}, delete=["w.yaml", "n0001.yaml"])
        await site.until_ready()
        assert {entry["name"] for entry in await site.inventory()} == {"w", "n0000", "n0002"}
        assert (await site.get("configmaps", "n0000"))["data"] == {"key": "2"}
    finally:
        await site.admin.delete(service)
