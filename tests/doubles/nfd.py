"""A stand-in for nfd-master on the API server in memory (topology-scheduling.md, section 5.4).

It has the merge order, the filter of label prefixes, the bookkeeping in an annotation and the guard at the start of v0.19.0; features,
rules and groups do not exist here.  It is confirmed against the real one by tests/contract/test_topology_peers.py.
"""

import re
from collections.abc import Iterator, Mapping

from tests.doubles.apiserver.api import ApiServer
from tests.doubles.peer import Hands, Sleeper, Tree, Write, patched, settle

GROUP = "nfd.k8s-sigs.io"
NODE_NAME = "nfd.node.kubernetes.io/node-name"
LABELS = "nfd.node.kubernetes.io/feature-labels"
_PREFIX = "feature.node.kubernetes.io"
_OPEN = (_PREFIX, "profile.node.kubernetes.io")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


class NfdStandIn:
    """`step` patches one Node that is due; `settle` goes on until none is; `run` does so for ever.

    Attributes:
        namespace: its own, whose objects are merged first.
        away: it does nothing, as when its process is gone.
    """

    def __init__(self, api: ApiServer, *, namespace: str = "node-feature-discovery") -> None:
        self.namespace = namespace
        self.away = False
        self._api = api
        self._hands = Hands(api, "nfd-master/v0.19.0")
        self.restart()

    def restart(self) -> None:
        """Begin anew: every Node is looked at once, and one without any NodeFeature keeps its labels this time."""
        self._known: dict[tuple[str, str], Tree] = {}
        self._due = {tree["metadata"]["name"]: None for tree in self._hands.all("", "nodes")}
        self._deleted: set[str] = set()
        self._processed: set[str] = set()
        self._seen = -1
        self._look()
        self._deleted.clear()

    def step(self) -> bool:
        """One patch, False when no Node is due."""
        if self.away:
            return False
        if self._seen != self._api.store.version:
            self._look()
        for name in list(self._due):
            node = self._api.store.get(("", "nodes"), ("", name))
            if node is None:
                self._forget(name)
            elif "annotations" not in node["metadata"]:
                continue  # its patch fails, and is tried again
            else:
                del self._due[name]
                if self._hands.next(self._writes(node)):
                    return True
        return False

    def settle(self) -> int:
        """Everything that is due; how many patches that took."""
        return settle(self.step)

    def resync(self) -> None:
        """What happens each hour: every Node is looked at."""
        self._due.update({tree["metadata"]["name"]: None for tree in self._hands.all("", "nodes")})

    async def run(self, clock: Sleeper, *, every_s: float = 1.0) -> None:
        """Work until cancelled; changes are gathered for a while, as by the real one."""
        while True:
            self.settle()
            await clock.sleep(every_s)

    # -- what changed ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Compare the NodeFeatures with those of the last look: Nodes of new, changed and deleted ones are due."""
        self._seen = self._api.store.version
        now = {
            (tree["metadata"].get("namespace", ""), tree["metadata"]["name"]): tree
            for tree in self._hands.all(GROUP, "nodefeatures")
        }
        for key, tree in self._known.items():
            if key not in now:
                self._deleted.add(_node_of(tree))
                self._due[_node_of(tree)] = None
        for key, tree in now.items():
            before = self._known.get(key)
            if before is None or _watched(before) != _watched(tree):
                self._due[_node_of(tree)] = None
        self._known = now

    def _forget(self, node: str) -> None:
        """A Node that does not exist is not waited for; when it comes, nothing tells so."""
        del self._due[node]
        self._deleted.discard(node)
        self._processed.discard(node)

    # -- one Node ----------------------------------------------------------------------------------------------------

    def _writes(self, node: Tree) -> Iterator[Write]:
        name, metadata = node["metadata"]["name"], node["metadata"]
        features = [tree for tree in self._known.values() if _node_of(tree) == name]
        guarded = not features and name not in self._deleted and name not in self._processed
        self._deleted.discard(name)
        self._processed.add(name)
        wanted = merged(features, own=self.namespace)
        listed = ",".join(sorted(key.removeprefix(f"{_PREFIX}/") for key in wanted))
        managed = {
            key if "/" in key else f"{_PREFIX}/{key}" for key in metadata["annotations"].get(LABELS, "").split(",")
        }
        operations = _changes(
            "labels", metadata.get("labels", {}), wanted, going=set() if guarded else managed - set(wanted)
        )
        operations += _changes(
            "annotations",
            metadata["annotations"],
            {LABELS: listed} if wanted else {},
            going=set() if guarded or wanted else {LABELS},
        )
        if operations:
            yield patched(f"/api/v1/nodes/{name}", operations)


def merged(features: list[Tree], *, own: str) -> dict[str, str]:
    """The labels of all objects of a Node: those of its own namespace first, then by name; a later value wins."""
    result: dict[str, str] = {}
    ordered = sorted(
        features,
        key=lambda tree: (
            tree["metadata"]["namespace"] != own,
            tree["metadata"]["name"],
            tree["metadata"]["namespace"],
        ),
    )
    for tree in ordered:
        for key, value in tree["spec"].get("labels", {}).items():
            result[key if "/" in key else f"{_PREFIX}/{key}"] = value
    return {key: value for key, value in result.items() if is_allowed(key) and _VALUE.fullmatch(value)}


def is_allowed(key: str) -> bool:
    """Whether a label of this prefix is put on Nodes without any configuration."""
    prefix = key.partition("/")[0]
    if any(prefix == each or prefix.endswith(f".{each}") for each in _OPEN):
        return True
    return not (prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io"))


def _changes(member: str, now: Mapping[str, str], wanted: Mapping[str, str], *, going: set[str]) -> list[Tree]:
    gone = [
        {"op": "remove", "path": _pointer(member, key)} for key in sorted(going) if key in now and key not in wanted
    ]
    set_ = [
        {"op": "replace" if key in now else "add", "path": _pointer(member, key), "value": value}
        for key, value in wanted.items()
        if now.get(key) != value
    ]
    return [*gone, *set_]


def _pointer(member: str, key: str) -> str:
    return f"/metadata/{member}/{key.replace('~', '~0').replace('/', '~1')}"


def _node_of(tree: Tree) -> str:
    return str(tree["metadata"].get("labels", {}).get(NODE_NAME, ""))


def _watched(tree: Tree) -> tuple[object, object]:
    """What it looks at: a change of other metadata, of the name of the Node too, goes unnoticed."""
    return tree["spec"], tree["metadata"].get("ownerReferences")
