"""How other versions of Kueue differ, as the stand-in plays them; unconfirmed by a real one (topology-scheduling.md, section 14.4)."""

import json
from typing import Any

import pytest

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.request import Request
from tests.doubles.kueue import KueueStandIn, Variant, variant_crds
from tests.doubles.kueue_objects import assigned_hosts, condition
from tests.doubles.peer_crds import install
from tests.support.kueue import BASE, ZONE, cluster_queue, flavor, groups, local_queue, topology, workload

POOL = {"example.net/pool": "one"}
WORKLOADS = f"{BASE}/namespaces/default/workloads"


class World:
    """A server with one pool of hosts with one CPU each, and the stand-in of a version."""

    def __init__(self, variant: Variant, hosts: dict[str, str]) -> None:
        self.api = ApiServer(lag=0)
        install(self.api, variant_crds(variant))
        self.kueue = KueueStandIn(self.api, variant=variant)
        for host, zone in hosts.items():
            labels = {**POOL, ZONE: zone, "kubernetes.io/hostname": host}
            node = self.ask("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": host, "labels": labels}})
            room = {"cpu": "1", "memory": "1Gi", "pods": "9"}
            ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": room}
            self.ask("PUT", f"/api/v1/nodes/{host}/status", {**node, "status": ready})
        self.ask("POST", f"{BASE}/topologies", topology("one", ZONE))
        self.ask("POST", f"{BASE}/resourceflavors", flavor("one", POOL, levels="one"))

    def ask(self, method: str, path: str, body: Any = None, *, media: str = "application/json") -> Any:
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.api.handle(Request(method, path, {}, {"content-type": media, "user-agent": "tests"}, sent))
        if answer.code >= 300:
            raise ValueError(answer.body)
        return answer.body

    def merge(self, path: str, patch: Any) -> Any:
        return self.ask("PATCH", path, patch, media="application/merge-patch+json")

    def queue(self, quotas: dict[str, int], **spec: Any) -> None:
        self.ask("POST", f"{BASE}/clusterqueues", cluster_queue("queue", quotas, **spec))
        self.ask("POST", f"{BASE}/namespaces/default/localqueues", local_queue("local", "queue"))

    def submit(self, name: str, **how: Any) -> Any:
        self.ask("POST", WORKLOADS, workload(name, "local", **how))
        self.kueue.settle()
        return self.ask("GET", f"{WORKLOADS}/{name}")


def is_admitted(tree: Any) -> bool:
    return condition(tree, "Admitted") == "True"


@pytest.mark.parametrize(
    ("variant", "admits"), [(Variant.V0_17, False), (Variant.UNCONFIRMED_IGNORES_UNDECLARED, True)]
)
def test_a_queue_without_groups_may_admit_everything(variant: Variant, admits: bool) -> None:
    world = World(variant, {"a1": "a"})
    world.queue({})
    assert is_admitted(world.submit("asks", cpu="64")) is admits


@pytest.mark.parametrize(
    ("variant", "admits"), [(Variant.V0_17, False), (Variant.UNCONFIRMED_IGNORES_UNDECLARED, True)]
)
def test_a_resource_that_no_group_covers_may_be_ignored(variant: Variant, admits: bool) -> None:
    world = World(variant, {"a1": "a"})
    world.queue({"one": 1})
    assert is_admitted(world.submit("memory", cpu="1", memory="512Mi")) is admits


@pytest.mark.parametrize(
    ("variant", "twice"), [(Variant.V0_17, False), (Variant.UNCONFIRMED_FORGETS_REMADE_FLAVORS, True)]
)
def test_a_flavor_that_is_made_again_may_have_forgotten_its_usage(variant: Variant, twice: bool) -> None:
    world = World(variant, {"a1": "a"})
    world.queue({"one": 1})
    assert is_admitted(world.submit("first", cpu="1"))
    world.merge(f"{BASE}/clusterqueues/queue", {"spec": {"resourceGroups": None}})
    world.ask("DELETE", f"{BASE}/resourceflavors/one")
    world.kueue.settle()
    world.ask("POST", f"{BASE}/resourceflavors", flavor("one", POOL, levels="one"))
    # The quota is there twice, so only what is known of the hosts can keep the second one out.
    world.merge(f"{BASE}/clusterqueues/queue", {"spec": groups({"one": 2})})
    assert is_admitted(world.submit("second", cpu="1")) is twice


@pytest.mark.parametrize(
    ("variant", "hosts"),
    [(Variant.V0_17, {"a1", "b"}), (Variant.UNCONFIRMED_SHUNS_HOSTS_NAMED_LIKE_DOMAINS, {"a1"})],
)
def test_a_host_named_like_a_domain_may_never_be_used(variant: Variant, hosts: set[str]) -> None:
    world = World(variant, {"a1": "a", "b": "b"})
    world.queue({"one": 2})
    placed = [world.submit(name, cpu="1") for name in ("first", "second")]
    items = [each["status"]["admission"]["podSetAssignments"][0] for each in placed if is_admitted(each)]
    assert {host for item in items for host in assigned_hosts(item)} == hosts


def test_levels_and_labels_may_change_on_main_only() -> None:
    wanted = {"spec": {"levels": [{"nodeLabel": "example.net/hall"}, {"nodeLabel": "kubernetes.io/hostname"}]}}
    labels = {"spec": {"nodeLabels": {"example.net/pool": "two"}}}
    name = {"spec": {"topologyName": "two"}}
    strict, loose = (World(each, {}) for each in (Variant.V0_17, Variant.UNCONFIRMED_MUTABLE_LEVELS))
    for path, patch in ((f"{BASE}/topologies/one", wanted), (f"{BASE}/resourceflavors/one", labels)):
        with pytest.raises(ValueError, match="immutable"):
            strict.merge(path, patch)
        assert loose.merge(path, patch)["spec"].items() >= patch["spec"].items()
    with pytest.raises(ValueError, match="immutable"):
        loose.merge(f"{BASE}/topologies/one", {"spec": {"levels": [{"nodeLabel": "example.net/hall"}]}})
    with pytest.raises(ValueError, match="immutable"):
        loose.merge(f"{BASE}/resourceflavors/one", name)


def test_a_restart_changes_nothing_that_is_stored() -> None:
    world = World(Variant.V0_17, {"a1": "a", "a2": "a"})
    world.queue({"one": 2})
    world.submit("first", cpu="1")
    world.kueue.restart()
    assert world.kueue.settle() == 0
    assert is_admitted(world.submit("second", cpu="1"))
    assert not is_admitted(world.submit("third", cpu="1"))


def test_nothing_happens_while_it_is_away_and_each_step_is_one_write() -> None:
    world = World(Variant.V0_17, {"a1": "a"})
    world.kueue.settle()
    world.kueue.away = True
    world.queue({"one": 1})
    assert not world.kueue.step()
    world.kueue.away = False
    before = len(world.api.audit)
    assert world.kueue.step()
    assert len(world.api.audit) == before + 1
