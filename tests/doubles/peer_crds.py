"""The definitions of Kueue v0.17.0 and Node Feature Discovery v0.19.0 for the API server in memory.

`peer_crds.json` is what `python -m tests.doubles.peer_crds` takes out of the pinned Go modules: the kinds that the product or its tests
touch, without descriptions, and with the Pod template of a Workload left open.  A test compares the file with the modules.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from gitops_ctl.local.kueue import KUEUE_CRDS
from gitops_ctl.local.nfd import NFD_CRDS
from gitops_ctl.local.published import published_files
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.request import Request

FILE = Path(__file__).with_name("peer_crds.json")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = (
    *("AdmissionCheck", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Topology", "Workload"),
    *("NodeFeature", "NodeFeatureRule"),
)


def peer_crds() -> list[dict[str, Any]]:
    """The definitions of both projects, in the order of their names."""
    trees: list[dict[str, Any]] = json.loads(FILE.read_bytes())
    return trees


def kueue_crds() -> list[dict[str, Any]]:
    """Those of Kueue."""
    return [tree for tree in peer_crds() if tree["spec"]["group"] == "kueue.x-k8s.io"]


def nfd_crds() -> list[dict[str, Any]]:
    """Those of Node Feature Discovery."""
    return [tree for tree in peer_crds() if tree["spec"]["group"] == "nfd.k8s-sigs.io"]


def install(api: ApiServer, trees: list[dict[str, Any]] | None = None) -> None:
    """Create definitions on a server in memory; without any, those of both projects."""
    for tree in peer_crds() if trees is None else trees:
        answer = api.handle(Request("POST", DEFINITIONS, {}, {"content-type": "application/json"}, _encoded(tree)))
        assert answer.code == 201, answer.body


def reduced(tree: dict[str, Any]) -> dict[str, Any]:
    """A published definition as the file has it."""
    found: dict[str, Any] = _without_descriptions(tree)
    for version in found["spec"]["versions"]:
        if found["spec"]["names"]["kind"] == "Workload":
            sets = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["podSets"]
            sets["items"]["properties"]["template"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    metadata = {"name": found["metadata"]["name"], "annotations": found["metadata"].get("annotations", {})}
    return {**found, "metadata": metadata}


async def published() -> list[dict[str, Any]]:
    """What the file should hold today.

    Raises:
        GitopsError: as `published_files`.
    """
    found = []
    for source in (KUEUE_CRDS, NFD_CRDS):
        for path in (await published_files(source)).values():
            found += list(yaml.load_all(path.read_bytes(), yaml.CSafeLoader))
    wanted = [reduced(tree) for tree in found if tree and tree.get("spec", {}).get("names", {}).get("kind") in KINDS]
    return sorted(wanted, key=_name)


def rendered(trees: list[dict[str, Any]]) -> str:
    """The text of the file: one definition a line."""
    return "[\n" + ",\n".join(json.dumps(tree, sort_keys=True) for tree in trees) + "\n]\n"


def _without_descriptions(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            name: _without_descriptions(item)
            for name, item in tree.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [_without_descriptions(item) for item in tree] if isinstance(tree, list) else tree


def _name(tree: dict[str, Any]) -> str:
    return str(tree["metadata"]["name"])


def _encoded(tree: Any) -> bytes:
    return json.dumps(tree).encode()


if __name__ == "__main__":
    FILE.write_text(rendered(asyncio.run(published())))
