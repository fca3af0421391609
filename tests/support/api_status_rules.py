"""The rules of the status of our kinds, as cases."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, OTHER_COMMIT, a_condition, a_source, a_sync, with_status
from tests.support.api_case import SHOULD_MATCH, Case


def _source_status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(f"GitSource status {name}", with_status(a_source(), **good), with_status(a_source(), **bad), told)


def _sync_status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(f"Sync status {name}", with_status(a_sync(), **good), with_status(a_sync(), **bad), told)


def _accepted(**members: Any) -> dict[str, Any]:
    least = {
        "revision": COMMIT,
        "policyDigest": DIGEST,
        "keySetDigest": DIGEST,
        "root": COMMIT,
        "verifierVersion": "1",
        "at": MOMENT,
    }
    return {"accepted": {**least, **members}}


def _review(**members: Any) -> dict[str, Any]:
    least = {
        "merge": COMMIT,
        "head": OTHER_COMMIT,
        "forge": "git.example.net",
        "number": 7,
        "readAt": MOMENT,
        "reviewers": [],
    }
    return {**least, **members}


def _held(**members: Any) -> dict[str, Any]:
    return {"held": [{"object": "ConfigMap/a/b", "reason": "DocumentInvalid", "since": MOMENT, **members}]}


def _drift(**members: Any) -> dict[str, Any]:
    return {"drift": [{"object": "ConfigMap/a/b", "change": "Changed", "since": MOMENT, **members}]}


STATUS_CASES = (
    _source_status("generation", {"observedGeneration": 1}, {"observedGeneration": -1}, "greater than or equal to 0"),
    _source_status(
        "handled request", {"lastHandledReconcileAt": "x" * 256}, {"lastHandledReconcileAt": "x" * 257}, "Too long"
    ),
    _source_status(
        "observed", {"observed": {"revision": COMMIT, "at": MOMENT}}, {"observed": {"revision": COMMIT}}, "Required"
    ),
    _source_status(
        "time",
        {"observed": {"revision": COMMIT, "at": "2026-11-30T08:00:00.5+02:00"}},
        {"observed": {"revision": COMMIT, "at": "yesterday"}},
        SHOULD_MATCH,
    ),
    _source_status(
        "moment",
        {"observed": {"revision": COMMIT, "at": MOMENT}},
        {"observed": {"revision": COMMIT, "at": "2026-02-30T08:00:00Z"}},
        "must be of type date-time",
    ),
    _source_status("accepted", _accepted(tag=OTHER_COMMIT), _accepted(tag="V1" * 20), SHOULD_MATCH),
    _source_status("verifier", _accepted(verifierVersion="2026.1"), _accepted(verifierVersion=""), "at least 1"),
    _source_status(
        "evidence",
        _accepted(reviewEvidence=[_review()]),
        _accepted(reviewEvidence=[_review(number=-1)]),
        "greater than or equal to 0",
    ),
    _source_status(
        "evidence most",
        _accepted(reviewEvidence=[_review()] * 100),
        _accepted(reviewEvidence=[_review()] * 101),
        "at most 100",
    ),
    _source_status(
        "reviewer",
        _accepted(reviewEvidence=[_review(reviewers=[{"person": "a", "account": "a#1", "at": MOMENT}])]),
        _accepted(reviewEvidence=[_review(reviewers=[{"person": "A", "account": "a", "at": MOMENT}])]),
        SHOULD_MATCH,
    ),
    _source_status(
        "first seen",
        {"firstSeen": [{"tip": COMMIT, "firstSeenAt": MOMENT}] * 200},
        {"firstSeen": [{"tip": COMMIT, "firstSeenAt": MOMENT}] * 201},
        "at most 200",
    ),
    _source_status(
        "rejected",
        {"rejected": {"commit": COMMIT, "reason": "Unsigned"}},
        {"rejected": {"commit": COMMIT, "reason": "not signed"}},
        SHOULD_MATCH,
    ),
    _source_status(
        "condition status",
        {"conditions": [a_condition()]},
        {"conditions": [a_condition(status="Yes")]},
        "supported values",
    ),
    _source_status(
        "condition reason",
        {"conditions": [a_condition()]},
        {"conditions": [a_condition(reason="all good")]},
        SHOULD_MATCH,
    ),
    _source_status(
        "condition message",
        {"conditions": [a_condition(message="x" * 2000)]},
        {"conditions": [a_condition(message="x" * 2001)]},
        "Too long",
    ),
    _source_status(
        "condition type",
        {"conditions": [a_condition(), a_condition(type="Verified")]},
        {"conditions": [a_condition(), a_condition()]},
        "Duplicate value",
    ),
    _source_status(
        "conditions most",
        {"conditions": [a_condition(type=f"A{n}") for n in range(16)]},
        {"conditions": [a_condition(type=f"A{n}") for n in range(17)]},
        "at most 16",
    ),
    _sync_status(
        "revisions",
        {"lastAttemptedRevision": COMMIT, "lastAppliedRevision": COMMIT},
        {"lastAppliedRevision": "main" * 10},
        SHOULD_MATCH,
    ),
    _sync_status(
        "counts", {"counts": {"objects": 3, "applied": 3}}, {"counts": {"objects": -1}}, "greater than or equal to 0"
    ),
    _sync_status(
        "inventory",
        {"inventory": {"name": "fabric", "shards": 1, "entries": 3}},
        {"inventory": {"shards": 1}},
        "Required",
    ),
    _sync_status("held", _held(message="x" * 1000, file="a.yaml", line=1), _held(message="x" * 1001), "Too long"),
    _sync_status("held most", {"held": _held()["held"] * 50}, {"held": _held()["held"] * 51}, "at most 50"),
    _sync_status("drift", _drift(pointers=["/data/a"], manager="kubectl"), _drift(change="Odd"), "supported values"),
    _sync_status("drift pointers", _drift(pointers=["/a"] * 20), _drift(pointers=["/a"] * 21), "at most 20"),
    _sync_status("drift most", {"drift": _drift()["drift"] * 50}, {"drift": _drift()["drift"] * 51}, "at most 50"),
    _sync_status(
        "last prune",
        {"lastPrune": {"digest": DIGEST, "count": 1, "at": MOMENT, "consentCommit": COMMIT}},
        {"lastPrune": {"digest": DIGEST, "count": 1}},
        "Required",
    ),
)
