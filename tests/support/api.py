"""Documents of our kinds that are valid as they are; tests change one member."""

from collections.abc import Mapping
from typing import Any

COMMIT = "5f2b" * 10
OTHER_COMMIT = "90ce" * 10
DIGEST = "sha256:" + "0a" * 32
MOMENT = "2026-11-30T08:00:00Z"


def _object(kind: str, name: str, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def a_source(*, name: str = "network", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A GitSource with the least that it needs."""
    least = {"url": "https://git.example.net/net.git", "ref": {"branch": "main"}}
    return _object("GitSource", name, namespace, {**least, **spec})


def a_sync(*, name: str = "fabric", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A Sync with the least that it needs."""
    least = {"sourceRef": {"name": "network"}, "serviceAccountName": "applier"}
    return _object("Sync", name, namespace, {**least, **spec})


def an_entry(**members: Any) -> dict[str, Any]:
    """One entry of an inventory."""
    return {"version": "v1", "kind": "ConfigMap", "namespace": "team-a", "name": "settings", **members}


def an_inventory(*, name: str = "fabric-0", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """An Inventory with one entry."""
    owner = {"sync": "fabric", "uid": "7f1c", "id": "c1/team-a/network/fabric"}
    return _object("Inventory", name, namespace, {"owner": owner, "shard": 0, "entries": [an_entry()], **spec})


def a_policy(**members: Any) -> dict[str, Any]:
    """A TrustPolicy of one person."""
    key = {"ssh": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAA"}
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "TrustPolicy",
        "people": [{"name": "network-author", "keys": [key]}],
        "roles": {"author": ["network-author"]},
        "rules": [{"paths": ["**"], "verbs": ["edit"], "roles": ["author"]}],
        **members,
    }


def a_consent(**members: Any) -> dict[str, Any]:
    """A Consent to a change of the trust policy."""
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "Consent",
        "verb": "trust",
        "path": ".gitops-ctl/trust.yaml",
        "blob": COMMIT,
        "notAfter": "2026-12-15T00:00:00Z",
        **members,
    }


def with_status(tree: dict[str, Any], **status: Any) -> dict[str, Any]:
    """The same object with a status."""
    return {**tree, "status": status}


def a_condition(**members: Any) -> dict[str, Any]:
    """A condition that says Ready."""
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Succeeded",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": MOMENT,
        **members,
    }
