"""Objects that break exactly one keyword of a schema, made from the schema itself: no keyword can be forgotten.

A full object has every member; each violation replaces one value of it.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.api import (
    COMMIT,
    DIGEST,
    MOMENT,
    OTHER_COMMIT,
    a_condition,
    a_source,
    a_sync,
    an_entry,
    an_inventory,
    with_status,
)
from tests.support.api_devices import a_full_device
from tests.support.api_leaves import a_full_upgrade
from tests.support.api_proposals import a_full_proposal
from tests.support.api_rollouts import a_full_rollout
from tests.support.api_talos import full_talos_objects
from tests.support.api_topology import a_full_topology_source

_WRONG_TYPE = {"string": 7, "integer": "7", "boolean": "true", "array": {}, "object": []}
IGNORED = frozenset(
    {
        "description",
        "default",
        "properties",
        "items",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "additionalProperties",
        "maxProperties",
        "format",
    }
)
"""Keywords that say nothing, are walked into, or are proven by the table of cases."""


LARGE = frozenset({"CiscoDevice", "IOSXESoftwareRollout", "IOSXESoftwareUpgrade"})
"""Kinds with hundreds of keywords: each is tried on model and schema, and servers are only shown to keep the schema whole."""


def full_objects() -> dict[str, dict[str, Any]]:
    """One object of each kind with every member that it can have (those that exclude each other aside)."""
    name = {"name": "other"}
    source = a_source(
        url="ssh://git@git.example.net/net.git",
        interval="30s",
        timeout="30s",
        credentialsSecretRef=name,
        caConfigMapRef=name,
        knownHostsConfigMapRef=name,
        trust={"policyPath": "trust.yaml", "root": {"commit": COMMIT, "policyDigest": DIGEST}},
        limits={"objects": 10, "bytes": 4096, "entries": 10, "depth": 10, "commitsPerPass": 10},
        forge={
            "provider": "gitea",
            "baseURL": "https://git.example.net",
            "project": "net/fabric",
            "credentialsSecretRef": name,
            "webhookSecretRef": name,
        },
        proposer={
            "name": "gitops-ctl",
            "email": "gitops-ctl@example.net",
            "signingKeySecretRef": name,
            "refresh": "Always",
        },
        maxTipAge="24h",
        suspend=True,
    )
    sync = a_sync(
        path="clusters/a",
        targetNamespace="net",
        kubeConfigSecretRef={"name": "far", "key": "kubeconfig"},
        interval="1m",
        prune={"enabled": True, "maxPercent": 50, "allowEmpty": True},
        deletionPolicy="Delete",
        drift="Report",
        onDocumentError="HoldUnit",
        dryRun=True,
        dependsOn=["other"],
        wait=True,
        timeout="1m",
        healthChecks=[
            {
                "group": "apps",
                "kind": "Deployment",
                "namespace": "net",
                "name": "a",
                "inProgress": "false",
                "failed": "false",
                "current": "true",
            }
        ],
        suspend=True,
    )
    entry = an_entry(
        group="apps", uid="7f", declaredDigest=DIGEST, appliedDigest=DIGEST, pruneDisabled=True, file="a.yaml", line=1
    )
    return {
        "GitSource": with_status(source, **_source_status()),
        "Sync": with_status(sync, **_sync_status()),
        "Inventory": an_inventory(shard=1, entries=[entry]),
        **full_talos_objects(),
        "Proposal": a_full_proposal(),
        "TopologySource": a_full_topology_source(),
        "CiscoDevice": a_full_device(),
        "IOSXESoftwareRollout": a_full_rollout(),
        "IOSXESoftwareUpgrade": a_full_upgrade(),
    }


def _source_status() -> dict[str, Any]:
    reviewer = {"person": "change-approver", "account": "change-approver#17", "at": MOMENT}
    evidence = {"merge": COMMIT, "head": OTHER_COMMIT, "forge": "git.example.net", "number": 7, "readAt": MOMENT}
    return {
        "observedGeneration": 1,
        "lastHandledReconcileAt": "now",
        "observed": {"revision": COMMIT, "at": MOMENT},
        "accepted": {
            "revision": COMMIT,
            "tag": OTHER_COMMIT,
            "policyDigest": DIGEST,
            "keySetDigest": DIGEST,
            "root": COMMIT,
            "verifierVersion": "1",
            "at": MOMENT,
            "reviewEvidence": [{**evidence, "reviewers": [reviewer]}],
        },
        "firstSeen": [{"tip": COMMIT, "firstSeenAt": MOMENT}],
        "rejected": {
            "commit": COMMIT,
            "reason": "Unsigned",
            "path": "a.yaml",
            "verb": "edit",
            "rule": "rules[0]",
            "hint": "sign it",
        },
        "conditions": [a_condition()],
    }


def _sync_status() -> dict[str, Any]:
    counts = ("objects", "applied", "held", "drifted", "unhealthy", "kept", "terminating")
    held = {"object": "ConfigMap/a/b", "reason": "DocumentInvalid", "message": "no", "file": "a.yaml", "line": 1}
    drift = {"object": "ConfigMap/a/b", "change": "Changed", "pointers": ["/data/a"], "more": 1, "manager": "kubectl"}
    return {
        "observedGeneration": 1,
        "lastHandledReconcileAt": "now",
        "lastAttemptedRevision": COMMIT,
        "lastAppliedRevision": COMMIT,
        "counts": dict.fromkeys(counts, 1),
        "inventory": {"name": "fabric", "shards": 1, "entries": 3},
        "held": [{**held, "since": MOMENT}],
        "drift": [{**drift, "since": MOMENT}],
        "lastPrune": {"digest": DIGEST, "count": 1, "at": MOMENT, "consentCommit": COMMIT},
        "conditions": [a_condition()],
    }


@dataclass(frozen=True)
class Violation:
    """A full object in which one keyword at one path does not hold."""

    path: str
    keyword: str
    tree: dict[str, Any]


def violations(schema: dict[str, Any], full: dict[str, Any]) -> Iterator[Violation]:
    """One violation per keyword of `spec` and `status`."""
    for part in ("spec", "status"):
        if part in full:
            yield from _of_node(schema["properties"][part], full, (part,))


def _of_node(node: dict[str, Any], full: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Violation]:
    present = _at(full, path)
    if present is None:
        return
    for keyword in node:
        if keyword in IGNORED or keyword == "x-kubernetes-validations":
            continue
        for value in _breaking(node, keyword, present):
            yield Violation(_text(path), keyword, _replaced(full, path, value))
    for name, part in node.get("properties", {}).items():
        yield from _of_node(part, full, (*path, name))
    if "items" in node:
        yield from _of_node(node["items"], full, (*path, 0))


def _breaking(node: dict[str, Any], keyword: str, present: Any) -> list[Any]:
    return _BREAK[keyword](node, node[keyword], present)


def _too_many(node: dict[str, Any], limit: int, present: list[Any]) -> list[Any]:
    unique = node.get("x-kubernetes-list-type") == "set"
    return [[f"a{n}" for n in range(limit + 1)] if unique else [present[0]] * (limit + 1)]


def _incomplete(node: dict[str, Any], names: list[str], present: dict[str, Any]) -> list[Any]:
    return [{key: value for key, value in present.items() if key != name} for name in names]


_BREAK: dict[str, Callable[[dict[str, Any], Any, Any], list[Any]]] = {
    "type": lambda node, limit, present: [_WRONG_TYPE[limit]],
    "enum": lambda node, limit, present: ["Odd"],
    "pattern": lambda node, limit, present: ["\x01" * max(1, node.get("minLength", 1))],
    "minLength": lambda node, limit, present: [present[: limit - 1]],
    "maxLength": lambda node, limit, present: [present + "a" * (limit + 1 - len(present))],
    "minimum": lambda node, limit, present: [limit - 1],
    "maximum": lambda node, limit, present: [limit + 1],
    "minItems": lambda node, limit, present: [present[: limit - 1]],
    "maxItems": _too_many,
    "required": _incomplete,
}


def _at(tree: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else tree[step]
        if tree is None:
            return None
    return tree


def _replaced(tree: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(tree)
    _at(result, path[:-1])[path[-1]] = value
    return result


def _text(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
