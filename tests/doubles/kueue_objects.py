"""Reading and building what Kueue keeps in its objects, for the stand-in and for tests of the real one alike."""

from collections.abc import Mapping
from fractions import Fraction

from tests.doubles.kueue_placement import HOSTNAME, amount
from tests.doubles.peer import Tree


def condition(tree: Tree, kind: str) -> str:
    """The status of a condition, empty when it is not there."""
    found = tree.get("status", {}).get("conditions", ())
    return next((str(each["status"]) for each in found if each["type"] == kind), "")


def set_condition(
    conditions: list[Tree], kind: str, status: str, reason: str, message: str, *, generation: int, now: str
) -> list[Tree]:
    """The list with this entry; its time changes with its status only."""
    before = next((each for each in conditions if each["type"] == kind), None)
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    entry = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
    if before is None:
        return [*conditions, entry]
    return [entry if each is before else each for each in conditions]


def requests_of(pods: Tree) -> dict[str, Fraction]:
    """What one pod asks for, 0 left out."""
    total: dict[str, Fraction] = {}
    for container in pods.get("template", {}).get("spec", {}).get("containers", ()):
        for name, value in container.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, Fraction(0)) + amount(value)
    return {name: value for name, value in total.items() if value}


def topology_assignment(placed: Mapping[str, int]) -> Tree:
    """Pods by host in the form of v1beta2."""
    hosts = sorted(placed)
    values = {"individual": {"roots": hosts}}
    counts = {"individual": [placed[host] for host in hosts]}
    slices = [{"domainCount": len(hosts), "valuesPerLevel": [values], "podCounts": counts}]
    return {"levels": [HOSTNAME], "slices": slices}


def assigned_hosts(item: Tree) -> dict[str, int]:
    """Pods by value of the last level, whatever form the assignment of a pod set has."""
    result: dict[str, int] = {}
    for part in (item.get("topologyAssignment") or {}).get("slices", ()):
        number, last = part["domainCount"], part["valuesPerLevel"][-1]
        if "universal" in last:
            names = [last["universal"]] * number
        else:
            one = last["individual"]
            names = [f"{one.get('prefix', '')}{root}{one.get('suffix', '')}" for root in one["roots"]]
        counts = part["podCounts"]
        each = [counts["universal"]] * number if "universal" in counts else counts["individual"]
        for name, count in zip(names, each, strict=True):
            result[name] = result.get(name, 0) + count
    return result
