"""Objects of a cluster from files: what `kubectl get … -o yaml` (or `-o json`) has written."""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at

_TIME = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.CSafeLoader):
    """Reads a time as the text that it is: JSON has no times."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != _TIME]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def objects_in(path: Path, *, kind: str = "") -> tuple[JsonObject, ...]:
    """The objects of a file: one, a List of them, or several documents; of any kind when none is named.

    Raises:
        Refused: the file is not what kubectl writes, or holds another kind (USAGE); the message says the place in it.
    """
    found = tuple(item for document in _documents(path, kind) for item in _flattened(document))
    for item in found:
        if not text_at(item, "kind") or (kind and text_at(item, "kind") != kind):
            raise _refused(
                path,
                kind,
                f"it holds {text_at(item, 'kind') or 'something that is no object'}, not {kind or 'objects'}",
            )
        if not text_at(item, "metadata", "name"):
            raise _refused(path, kind, f"it holds a {text_at(item, 'kind')} without a name")
    return found


def _documents(path: Path, kind: str) -> Iterator[JsonObject]:
    try:
        text = path.read_text(encoding="utf-8")
        trees = [json.loads(text)] if text.lstrip().startswith("{") else list(yaml.load_all(text, Loader=_Loader))
    except UnicodeDecodeError as error:
        raise _refused(path, kind, "it is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _refused(path, kind, f"it is not JSON: {error.msg}", line=error.lineno) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _refused(path, kind, "it is not YAML", line=mark.line + 1 if mark is not None else 0) from error
    if not any(trees):
        raise _refused(path, kind, "it is empty")
    for tree in trees:
        if tree is not None and not isinstance(tree, dict):
            raise _refused(path, kind, "it holds no objects")
        yield tree or {}


def _flattened(tree: JsonObject) -> Iterator[JsonObject]:
    items: JsonValue = tree.get("items")
    if not text_at(tree, "kind").endswith("List"):
        if tree:
            yield tree
        return
    listed = text_at(tree, "kind").removesuffix("List")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            # The entries of a typed list carry no kind of their own.
            yield item if text_at(item, "kind") or not listed else {**item, "kind": listed}


def _refused(path: Path, kind: str, why: str, *, line: int = 0) -> Refused:
    hint = f"give it what `kubectl get {_PLURALS[kind]} -o yaml` writes" if kind else "give it what kubectl writes"
    return Refused(
        f"the file for {kind or 'object'}s cannot be used: {why}",
        code=ErrorCode.USAGE,
        subject=_place(path, line),
        hint=hint,
    )


def _place(path: Path, line: int) -> str:
    return f"{path}:{line}" if line else str(path)


_PLURALS = {
    "CiscoDevice": "ciscodevices --all-namespaces",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues --all-namespaces",
    "Node": "nodes",
    "NodeFeature": "nodefeatures --all-namespaces",
    "IOSXESoftwareUpgrade": "iosxesoftwareupgrades --all-namespaces",
    "ResourceFlavor": "resourceflavors",
    "Secret": "secrets",
    "Topology": "topologies",
    "TopologySource": "topologysources",
    "Workload": "workloads --all-namespaces",
}
