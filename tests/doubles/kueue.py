"""A stand-in for Kueue on the API server in memory: counters, Active, admission into topologies, hold and drain (topology-scheduling.md, section 7.7).

What it shows is that of v0.17.0 and is confirmed against the real one by tests/contract/test_topology_peers.py.  Each step is one write, so
that what it counts may lag behind what it admits, as with the real one.  Everything that it knows is read from the server at each step; a
restart therefore forgets nothing that matters.  Cohorts, borrowing, preemption and priorities do not exist here.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.kueue_objects import assigned_hosts, condition, requests_of, set_condition, topology_assignment
from tests.doubles.kueue_placement import HOSTNAME, Host, PodSet, amount, most, place, shown
from tests.doubles.peer import Hands, Sleeper, Tree, Write, replaced, settle
from tests.doubles.peer_crds import kueue_crds

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
IN_USE = f"{GROUP}/resource-in-use"
_BASE = f"/apis/{GROUP}/{VERSION}"


class Variant(enum.Enum):
    """How another version differs.  Only the first is confirmed by a real one."""

    V0_17 = "0.17.0"
    UNCONFIRMED_IGNORES_UNDECLARED = "0.18 and 0.19 with quotaCheckStrategy IgnoreUndeclared"
    UNCONFIRMED_FORGETS_REMADE_FLAVORS = "0.18.0"
    UNCONFIRMED_SHUNS_HOSTS_NAMED_LIKE_DOMAINS = "up to the fix in 0.18 and 0.19"
    UNCONFIRMED_MUTABLE_LEVELS = "main, 0.20-devel"


def variant_crds(variant: Variant) -> list[Tree]:
    """The definitions of that version."""
    trees = kueue_crds()
    if variant is Variant.UNCONFIRMED_MUTABLE_LEVELS:
        for tree in trees:
            if tree["spec"]["names"]["kind"] in ("Topology", "ResourceFlavor"):
                _loosen(tree)
    return trees


class KueueStandIn:
    """`step` writes what is due first; `settle` goes on until nothing is; `run` does so for ever.

    Attributes:
        away: it does nothing, as when its process is gone.
    """

    def __init__(self, api: ApiServer, *, variant: Variant = Variant.V0_17) -> None:
        self.away = False
        self.variant = variant
        self._api = api
        self._hands = Hands(api, "kueue/v0.17.0")
        # Name of a workload to the uid of its flavor at its admission: all that one version forgets by.
        self._flavor_of: dict[str, str] = {}
        self._seen = -1

    def step(self) -> bool:
        """One write, False when none is due."""
        if self.away or self._seen == self._api.store.version:
            return False
        version = self._api.store.version
        if self._hands.next(self._due()):
            return True
        self._seen = version
        return False

    def settle(self) -> int:
        """Everything that is due; how many writes that took."""
        return settle(self.step)

    async def run(self, clock: Sleeper, *, every_s: float = 0.5) -> None:
        """Work until cancelled: each time a few writes, so that others act in between."""
        while True:
            for _ in range(8):
                self.step()
            await clock.sleep(every_s)

    def restart(self) -> None:
        """Begin anew, from what the server has."""
        self._flavor_of.clear()
        self._seen = -1

    # -- what is due -------------------------------------------------------------------------------------------------

    def _due(self) -> Iterator[Write]:
        view = View(self._api, self.variant, self._flavor_of)
        yield from _finalizers(view)
        for workload in view.workloads:
            yield from self._workload(view, workload)
        for queue in view.queues.values():
            if "deletionTimestamp" not in queue["metadata"]:
                yield from _status_of(view, queue)

    def _workload(self, view: "View", workload: Tree) -> Iterator[Write]:
        queue = view.queue_of(workload)
        policy = queue["spec"].get("stopPolicy", "None") if queue else ""
        if view.admitted_queue(workload):
            if condition(workload, "Admitted") != "True":
                yield from _reserved(view, workload, queue, policy)
            elif policy == "HoldAndDrain" and condition(workload, "Evicted") != "True":
                told = ("Evicted", "True", "ClusterQueueStopped", "The ClusterQueue is stopped")
                yield view.with_conditions(workload, told)
        elif queue is None:
            yield from _pending(view, workload, "Inadmissible", "its LocalQueue or ClusterQueue doesn't exist")
        elif view.active(queue)[0] != "True":
            name = queue["metadata"]["name"]
            yield from _pending(view, workload, "Inadmissible", f"ClusterQueue {name} is inactive")
        else:
            yield from self._schedule(view, workload, queue)

    def _schedule(self, view: "View", workload: Tree, queue: Tree) -> Iterator[Write]:
        assigned, problem = assignment(view, workload, queue)
        if problem:
            yield from _pending(view, workload, "Pending", f"couldn't assign flavors to pod set {problem}")
            return
        name = queue["metadata"]["name"]
        for flavor in {flavor for item in assigned for flavor in item.get("flavors", {}).values()}:
            self._flavor_of[workload["metadata"]["name"]] = view.flavors[flavor]["metadata"]["uid"]
        checks = [each["name"] for each in _strategy(queue)]
        told = [("QuotaReserved", "True", "QuotaReserved", f"Quota reserved in ClusterQueue {name}")]
        if condition(workload, "Evicted") == "True":
            told.append(("Evicted", "False", "QuotaReserved", "Previously: The ClusterQueue is stopped"))
        if not checks:
            told.append(("Admitted", "True", "Admitted", "The workload is admitted"))
        members: Tree = {"admission": {"clusterQueue": name, "podSetAssignments": assigned}}
        if checks:
            members["admissionChecks"] = [
                {"name": each, "state": "Pending", "message": "", "lastTransitionTime": view.now} for each in checks
            ]
        yield view.with_conditions(workload, *told, **members)


class View:
    """What the server has, read once for a step."""

    def __init__(self, api: ApiServer, variant: Variant, flavor_of: Mapping[str, str]) -> None:
        hands = Hands(api, "")
        self.variant = variant
        self.now = api.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        self.queues = _named(hands.all(GROUP, "clusterqueues"))
        self.flavors = _named(hands.all(GROUP, "resourceflavors"))
        self.topologies = _named(hands.all(GROUP, "topologies"))
        self.checks = _named(hands.all(GROUP, "admissionchecks"))
        self.nodes = hands.all("", "nodes")
        self.workloads = sorted(hands.all(GROUP, "workloads"), key=_age)
        self._flavor_of = flavor_of
        self._local = {
            (tree["metadata"]["namespace"], tree["metadata"]["name"]): tree["spec"]["clusterQueue"]
            for tree in hands.all(GROUP, "localqueues")
        }

    def queue_of(self, workload: Tree) -> Tree | None:
        """The ClusterQueue that it is in or waits for."""
        at = (workload["metadata"]["namespace"], workload["spec"].get("queueName", ""))
        return self.queues.get(self.admitted_queue(workload) or self._local.get(at, ""))

    @staticmethod
    def admitted_queue(workload: Tree) -> str:
        """The name of the queue in which it has a reservation, empty when it has none."""
        return str((workload.get("status", {}).get("admission") or {}).get("clusterQueue", ""))

    def active(self, queue: Tree) -> tuple[str, str, str]:
        """Status, reason and message of Active; the first reason that applies is the one that is told."""
        flavors = _flavors(queue)
        missing = [name for name in flavors if name not in self.flavors]
        checks = [each["name"] for each in _strategy(queue)]
        lacking = [
            name
            for name in flavors
            if name in self.flavors and not self.levels(name) and self.flavors[name]["spec"].get("topologyName")
        ]
        found = [
            ("Stopped", "is stopped", queue["spec"].get("stopPolicy", "None") != "None"),
            ("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}", missing),
            ("AdmissionCheckNotFound", "references missing AdmissionCheck(s)", set(checks) - set(self.checks)),
            (
                "AdmissionCheckInactive",
                "references inactive AdmissionCheck(s)",
                [name for name in checks if condition(self.checks.get(name, {}), "Active") != "True"],
            ),
            ("TopologyNotFound", f"there is no Topology for {','.join(lacking)}", lacking),
        ]
        told = [(reason, text) for reason, text, applies in found if applies]
        if not told:
            return "True", "Ready", "Can admit new workloads"
        return "False", told[0][0], f"Can't admit new workloads: {', '.join(text for _, text in told)}."

    def levels(self, flavor: str) -> tuple[str, ...]:
        """The level keys of its Topology, none when it has no Topology that exists."""
        topology = self.topologies.get(self.flavors[flavor]["spec"].get("topologyName", ""))
        return tuple(level["nodeLabel"] for level in topology["spec"]["levels"]) if topology else ()

    def hosts(self, flavor: str) -> list[Host]:
        """The Nodes that count for it: ready, schedulable, with its labels and every level key; what is free counts this flavor only."""
        levels, spec = self.levels(flavor), self.flavors[flavor]["spec"]
        used = self._used(flavor)
        hosts = []
        for node in self.nodes:
            labels = node["metadata"].get("labels", {})
            wanted = spec.get("nodeLabels", {}).items() <= labels.items() and all(key in labels for key in levels)
            name = labels.get(HOSTNAME, node["metadata"]["name"])
            if wanted and _usable(node, spec.get("tolerations", ())) and not self._shunned(name, levels):
                given = {key: amount(value) for key, value in node.get("status", {}).get("allocatable", {}).items()}
                free = {key: value - used.get(name, {}).get(key, Fraction(0)) for key, value in given.items()}
                hosts.append(Host(name, tuple(labels[key] for key in levels), free))
        return hosts

    def _shunned(self, name: str, levels: tuple[str, ...]) -> bool:
        if self.variant is not Variant.UNCONFIRMED_SHUNS_HOSTS_NAMED_LIKE_DOMAINS or not levels:
            return False
        return any(node["metadata"].get("labels", {}).get(levels[0]) == name for node in self.nodes)

    def _used(self, flavor: str) -> dict[str, dict[str, Fraction]]:
        """What reservations in the flavor take on each host."""
        uid = self.flavors[flavor]["metadata"]["uid"]
        used: dict[str, dict[str, Fraction]] = {}
        for workload in self.workloads:
            before = self._flavor_of.get(workload["metadata"]["name"], uid)
            if self.variant is Variant.UNCONFIRMED_FORGETS_REMADE_FLAVORS and before != uid:
                continue
            for pods, item in zip(workload["spec"]["podSets"], _assignments(workload), strict=False):
                if flavor in item.get("flavors", {}).values():
                    for host, count in assigned_hosts(item).items():
                        place_ = used.setdefault(host, {})
                        for key, value in {**requests_of(pods), "pods": Fraction(1)}.items():
                            place_[key] = place_.get(key, Fraction(0)) + value * count
        return used

    def usage(self, queue: Tree, *, admitted: bool) -> dict[tuple[str, str], Fraction]:
        """What its workloads reserve, or use, by flavor and resource."""
        total: dict[tuple[str, str], Fraction] = {}
        for workload in self.in_queue(queue, admitted=admitted):
            for item in _assignments(workload):
                for resource, flavor in item.get("flavors", {}).items():
                    quantity = amount(item.get("resourceUsage", {}).get(resource, 0))
                    total[flavor, resource] = total.get((flavor, resource), Fraction(0)) + quantity
        return total

    def in_queue(self, queue: Tree, *, admitted: bool) -> list[Tree]:
        """The workloads with a reservation in it, or those that are admitted."""
        name = queue["metadata"]["name"]
        return [
            each
            for each in self.workloads
            if self.admitted_queue(each) == name and (not admitted or condition(each, "Admitted") == "True")
        ]

    def with_conditions(self, workload: Tree, *told: tuple[str, str, str, str], **members: Any) -> Write:
        """A status update of a workload; a member that is None goes."""
        conditions = list(workload.get("status", {}).get("conditions", ()))
        for entry in told:
            conditions = set_condition(conditions, *entry, generation=_generation(workload), now=self.now)
        status = {**workload.get("status", {}), "conditions": conditions, **members}
        metadata = workload["metadata"]
        path = f"{_BASE}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"
        return replaced(path, workload, status={key: value for key, value in status.items() if value is not None})


def assignment(view: View, workload: Tree, queue: Tree) -> tuple[list[Tree], str]:
    """The assignment of each pod set, or what stands in the way."""
    found = []
    for pods in workload["spec"]["podSets"]:
        item, problem = _assign(view, pods, queue)
        if problem:
            return [], f"{pods['name']}: {problem}"
        found.append(item)
    return found, ""


def _assign(view: View, pods: Tree, queue: Tree) -> tuple[Tree, str]:
    requests, groups = requests_of(pods), queue["spec"].get("resourceGroups", ())
    covered = {name for group in groups for name in group["coveredResources"]}
    ignores = view.variant is Variant.UNCONFIRMED_IGNORES_UNDECLARED
    for name in requests:
        if name not in covered and not ignores:
            return {}, f"resource {name} unavailable in ClusterQueue"
    wanted = {name: value * pods["count"] for name, value in requests.items() if name in covered}
    plain: Tree = {"name": pods["name"], "count": pods["count"]}
    if not wanted:
        return plain, ""
    usage, problems = view.usage(queue, admitted=False), []
    for flavor in groups[0]["flavors"]:
        problem, placed = _try(view, flavor, pods, wanted, usage)
        if not problem:
            result = {
                **plain,
                "flavors": dict.fromkeys(wanted, flavor["name"]),
                "resourceUsage": {name: shown(value) for name, value in wanted.items()},
            }
            return {**result, **({"topologyAssignment": topology_assignment(placed)} if placed else {})}, ""
        problems.append(problem)
    return {}, ", ".join(problems)


def _try(
    view: View, flavor: Tree, pods: Tree, wanted: Mapping[str, Fraction], usage: Mapping[tuple[str, str], Fraction]
) -> tuple[str, dict[str, int]]:
    """What stands in the way of one flavor, and else the pods by host where it has a Topology."""
    name, levels = flavor["name"], view.levels(flavor["name"])
    quota = {each["name"]: amount(each["nominalQuota"]) for each in flavor["resources"]}
    for resource, value in wanted.items():
        if usage.get((name, resource), Fraction(0)) + value > quota[resource]:
            return f"insufficient unused quota for {resource} in flavor {name}", {}
    request = pods.get("topologyRequest", {})
    level = request.get("required") or request.get("preferred")
    if level is not None and level not in levels:
        return f'Topology of flavor "{name}" does not contain the requested level', {}
    if not levels:
        return "", {}
    placing = PodSet(pods["count"], requests_of(pods), levels.index(level) if level else None, "required" in request)
    hosts = view.hosts(name)
    placed = place(placing, hosts)
    if placed is None:
        fitting = most(placing, hosts)
        told = f"to fit only {fitting} out of {placing.count}" if fitting else f"to fit any of {placing.count}"
        return f"the topology {'allows' if fitting else 'does not allow'} {told} pod(s)", {}
    return "", placed


# -- writes of one kind ----------------------------------------------------------------------------------------------


def _finalizers(view: View) -> Iterator[Write]:
    """An object that something refers to stays; see section 7.7."""
    in_flavors = {tree["spec"].get("topologyName") for tree in view.flavors.values()}
    in_queues = {name for queue in view.queues.values() for name in _flavors(queue)}
    in_workloads = {view.admitted_queue(each) for each in view.workloads}
    kinds: tuple[tuple[str, Mapping[str, Tree], Callable[[str], bool]], ...] = (
        ("topologies", view.topologies, lambda name: name in in_flavors),
        ("resourceflavors", view.flavors, lambda name: name in in_queues),
        ("clusterqueues", view.queues, lambda name: name in in_workloads),
    )
    for plural, trees, is_used in kinds:
        for name, tree in trees.items():
            metadata, held = tree["metadata"], IN_USE in tree["metadata"].get("finalizers", ())
            left = [each for each in metadata.get("finalizers", ()) if each != IN_USE]
            if "deletionTimestamp" not in metadata and not held:
                left = [*left, IN_USE]
            elif "deletionTimestamp" not in metadata or not held or is_used(name):
                continue
            yield replaced(f"{_BASE}/{plural}/{name}", tree, metadata={**metadata, "finalizers": left})


def _reserved(view: View, workload: Tree, queue: Tree | None, policy: str) -> Iterator[Write]:
    """A workload that waits for its checks: it loses the reservation when the queue stops, and is admitted when they are ready."""
    if queue is None or policy != "None":
        name = view.admitted_queue(workload)
        yield from _pending(view, workload, "Inadmissible", f"ClusterQueue {name} is stopped")
    elif all(each["state"] == "Ready" for each in workload["status"].get("admissionChecks", ())):
        yield view.with_conditions(workload, ("Admitted", "True", "Admitted", "The workload is admitted"))


def _pending(view: View, workload: Tree, reason: str, message: str) -> Iterator[Write]:
    """It has no reservation, or none any more, and why."""
    told = [("QuotaReserved", "False", reason, message)]
    if condition(workload, "Admitted") == "True":
        told.append(("Admitted", "False", "NoReservation", "The workload has no reservation"))
    status = workload.get("status", {})
    conditions: list[Tree] = status.get("conditions", [])
    before = next((each for each in conditions if each["type"] == "QuotaReserved"), {})
    same = (before.get("status"), before.get("reason"), before.get("message")) == ("False", reason, message)
    if not same or "admission" in status:
        yield view.with_conditions(workload, *told, admission=None)


def _status_of(view: View, queue: Tree) -> Iterator[Write]:
    """All counters and Active in one update, as the real one writes them: so they are current exactly when Active is."""
    name, status = queue["metadata"]["name"], queue.get("status", {})
    reserved, used = view.usage(queue, admitted=False), view.usage(queue, admitted=True)
    waiting = [each for each in view.workloads if not view.admitted_queue(each) and view.queue_of(each) is queue]
    conditions = set_condition(
        list(status.get("conditions", ())), "Active", *view.active(queue), generation=_generation(queue), now=view.now
    )
    counted = {
        "reservingWorkloads": len(view.in_queue(queue, admitted=False)),
        "admittedWorkloads": len(view.in_queue(queue, admitted=True)),
        "pendingWorkloads": len(waiting),
        "flavorsReservation": _listed(queue, reserved),
        "flavorsUsage": _listed(queue, used),
    }
    if {**status, **counted, "conditions": conditions} != status:
        yield replaced(
            f"{_BASE}/clusterqueues/{name}/status", queue, status={**status, **counted, "conditions": conditions}
        )


def _listed(queue: Tree, usage: Mapping[tuple[str, str], Fraction]) -> list[Tree]:
    """Every flavor of the spec, in its order; others do not exist any more for these lists."""
    return [
        {
            "name": flavor["name"],
            "resources": [
                {"name": each, "total": shown(usage.get((flavor["name"], each), Fraction(0))), "borrowed": "0"}
                for each in sorted(group["coveredResources"])
            ],
        }
        for group in queue["spec"].get("resourceGroups", ())
        for flavor in group["flavors"]
    ]


def _assignments(workload: Tree) -> list[Tree]:
    found: list[Tree] = (workload.get("status", {}).get("admission") or {}).get("podSetAssignments", [])
    return found


def _flavors(queue: Tree) -> list[str]:
    return [each["name"] for group in queue["spec"].get("resourceGroups", ()) for each in group["flavors"]]


def _strategy(queue: Tree) -> list[Tree]:
    found: list[Tree] = queue["spec"].get("admissionChecksStrategy", {}).get("admissionChecks", [])
    return found


def _usable(node: Tree, tolerations: Any) -> bool:
    """Ready, schedulable, and without a taint that is not tolerated."""
    spec = node.get("spec", {})
    open_taints = [each for each in spec.get("taints", ()) if each["effect"] in ("NoSchedule", "NoExecute")]
    tolerated = any(each.get("operator") == "Exists" and not each.get("key") for each in tolerations)
    return condition(node, "Ready") == "True" and not spec.get("unschedulable") and (tolerated or not open_taints)


def _named(trees: list[Tree]) -> dict[str, Tree]:
    return {tree["metadata"]["name"]: tree for tree in trees}


def _age(workload: Tree) -> tuple[str, str, str]:
    metadata = workload["metadata"]
    return metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


def _generation(tree: Tree) -> int:
    return int(tree["metadata"].get("generation", 1))


def _loosen(definition: Tree) -> None:
    """Levels may change while the host name is last; of a flavor only the name of its Topology may not."""
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        rules = spec.get("x-kubernetes-validations", [])
        spec["x-kubernetes-validations"] = [each for each in rules if not _freezes_labels(each["rule"])]
        for each in spec["properties"].get("levels", {}).get("x-kubernetes-validations", ()):
            if each["rule"] == "self == oldSelf":
                last = f"{{}}[size({{}}) - 1].nodeLabel == '{HOSTNAME}'"
                each["rule"] += f" || ({last.format('self', 'self')} && {last.format('oldSelf', 'oldSelf')})"


def _freezes_labels(rule: str) -> bool:
    return "self.nodeLabels == oldSelf.nodeLabels" in rule or "self.tolerations == oldSelf.tolerations" in rule
