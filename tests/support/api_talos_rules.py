"""The rules of the Talos kinds, as cases; keywords are covered by the violations that are made from the schemas."""

from typing import Any

from tests.support.api import MOMENT, with_status
from tests.support.api_case import SHOULD_MATCH, Case
from tests.support.api_talos import ID, a_cluster, a_machine, a_patch, an_operation

_VALUES = {"sourceRef": {"name": "network"}}


def _cni(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *, cel: bool = False) -> Case:
    return Case(f"TalosCluster {name}", a_cluster(cni=good), a_cluster(cni=bad), told, cel)


def _denied(text: str) -> dict[str, Any]:
    return {"deniedVersions": [{"component": "cilium", "versions": text, "reason": "known"}]}


def _status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(
        f"TalosOperation status {name}",
        with_status(an_operation(), **good),
        with_status(an_operation(), **bad),
        told,
    )


_REQUEST = {"id": ID, "action": "observe", "mode": "replaced"}
_CLAIM = {"id": ID, "worker": "w", "at": MOMENT}
_CHANGED = {"kind": "ServiceAccount", "name": "kube-proxy", "uid": "7f", "at": MOMENT}
_MACHINE = {"name": "cp-1", "role": "worker", "state": "Done"}

TALOS_CASES = (
    Case(
        "TalosCluster talosconfig",
        a_cluster(),
        a_cluster(talosconfigSecretRef=None),
        "spec.talosconfigSecretRef",
    ),
    Case("TalosCluster contract", a_cluster(contract="v1.13"), a_cluster(contract="v1.12"), "Unsupported value"),
    _cni("mode", {"kubeProxy": "enabled"}, {"kubeProxy": "partial"}, "Unsupported value"),
    _cni(
        "values need git",
        {"handover": "git", "values": _VALUES},
        {"handover": "disabled", "values": _VALUES},
        "values are looked for with handover: git only",
        cel=True,
    ),
    _cni(
        "shape",
        {"handover": "git", "values": {**_VALUES, "shape": "J"}},
        {"handover": "git", "values": {**_VALUES, "shape": "K"}},
        "Unsupported value",
    ),
    _cni(
        "place of the values",
        {"handover": "git", "values": {**_VALUES, "path": "clusters/north"}},
        {"handover": "git", "values": {**_VALUES, "path": "../north"}},
        SHOULD_MATCH,
    ),
    _cni(
        "proxy image",
        {"proxyImage": "registry.example.net:5000/mirror/kube-proxy:v{version}@sha256:00"},
        {"proxyImage": "registry.example.net/kube-proxy:{tag}"},
        SHOULD_MATCH,
    ),
    *(
        _cni(f"denied versions {good}", _denied(good), _denied(bad), SHOULD_MATCH)
        for good, bad in (
            (">=1.19.0 <1.19.5", ">= <1.19.5"),
            ("1.19.x || ~1.18.4, !=1.18.9", "1.19.x |"),
            ("=v1.14.0-beta.1", "latest"),
            ("*", "**"),
        )
    ),
    _cni("resume", {"operation": {"resume": 3}}, {"operation": {"resume": -1}}, "greater than or equal to 0"),
    _cni("workers", {"maxParallelWorkers": 1}, {"maxParallelWorkers": 0}, "greater than or equal to 1"),
    *(
        Case(f"TalosMachine address {good}", a_machine(address=good), a_machine(address=bad), SHOULD_MATCH)
        for good, bad in (
            ("192.0.2.11", "192.0.2.11:"),
            ("cp-1.example.net:50000", "cp-1.example.net:65536"),
            ("[2001:db8::11]:50001", "[2001:db8::11"),
            ("2001:db8::11", "https://cp-1.example.net"),
        )
    ),
    Case("TalosMachine role", a_machine(role="worker"), a_machine(role="init"), "Unsupported value"),
    Case(
        "TalosOperation commit",
        an_operation(sourceCommit="0a" * 32),
        an_operation(sourceCommit="0a" * 25),
        SHOULD_MATCH,
    ),
    Case("TalosOperation kind", an_operation(), an_operation(kind="upgrade"), "Unsupported value"),
    Case(
        "TalosConfigPatch longest",
        a_patch(patch="a" * 256 * 1024),
        a_patch(patch="a" * (256 * 1024 + 1)),
        "Too long",
    ),
    _status("one request per id", {"requests": [_REQUEST]}, {"requests": [_REQUEST] * 2}, "Duplicate value"),
    _status("one claim per id", {"claims": [_CLAIM]}, {"claims": [_CLAIM] * 2}, "Duplicate value"),
    _status(
        "one receipt per id",
        {"receipts": [{"id": ID, "result": "Unknown", "at": MOMENT}]},
        {"receipts": [{"id": ID, "result": "Unknown", "at": MOMENT}] * 2},
        "Duplicate value",
    ),
    _status(
        "form of an id",
        {"requests": [{**_REQUEST, "id": "enabled/4-restore/north#12"}]},
        {"requests": [{**_REQUEST, "id": "enabled/4-restore/north#0"}]},
        SHOULD_MATCH,
    ),
    _status("step", {"step": "enabled/2-set-mode"}, {"step": "mixed/2-set-mode"}, SHOULD_MATCH),
    _status("objects by uid", {"removed": [_CHANGED]}, {"removed": [_CHANGED] * 2}, "Duplicate value"),
    _status("machines by name", {"machines": [_MACHINE]}, {"machines": [_MACHINE] * 2}, "Duplicate value"),
    _status("phase", {"phase": "AwaitingCNIChange"}, {"phase": "Waiting"}, "Unsupported value"),
)
