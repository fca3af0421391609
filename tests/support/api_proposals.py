"""Proposals for tests: one with the least that it needs, one with every member, and the cases of its rules."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, OTHER_COMMIT, a_condition, with_status
from tests.support.api_case import SHOULD_MATCH, Case

SUBJECT = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster", "namespace": "team-a", "name": "site-1"}
CHANGE = {
    "file": "clusters/site-1/cilium.yaml",
    "document": 0,
    "pointer": "/kubeProxyReplacement",
    "op": "replace",
    "from": False,
    "to": True,
}


def a_proposal(*, name: str = "site-1-cni", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A Proposal of one replaced value."""
    least = {"sourceRef": {"name": "network"}, "subject": SUBJECT, "reason": "cni/site-1/replaced", "changes": [CHANGE]}
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "Proposal",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**least, **spec},
    }


def a_full_proposal() -> dict[str, Any]:
    """A Proposal that has every member."""
    inner = [{"document": 0, "pointer": "/a"}]
    tree = a_proposal(
        subject={**SUBJECT, "uid": "7f1c"},
        changes=[{**CHANGE, "inner": inner, "to": {"any": ["value", 1.5]}}],
        expires=MOMENT,
    )
    review = {"user": "change-approver", "state": "approved", "commit": COMMIT, "at": MOMENT, "counts": True}
    return with_status(
        tree,
        observedGeneration=1,
        lastHandledReopenAt="now",
        phase="Open",
        branch="gitops-ctl/taloscluster-site-1-0123456789abcdef",
        number=7,
        url="https://git.example.net/net/fabric/pulls/7",
        headCommit=COMMIT,
        baseCommit=OTHER_COMMIT,
        contentHash=DIGEST,
        pushing={"branch": "gitops-ctl/x", "commit": COMMIT},
        declined=[DIGEST],
        reviews=[review],
        conditions=[a_condition()],
    )


def _spec(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(f"Proposal {name}", a_proposal(**good), a_proposal(**bad), told)


def _change(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return _spec(f"change {name}", {"changes": [{**CHANGE, **good}]}, {"changes": [{**CHANGE, **bad}]}, told)


def _status(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(f"Proposal status {name}", with_status(a_proposal(), **good), with_status(a_proposal(), **bad), told)


PROPOSAL_CASES = (
    _spec("nothing wanted", {"changes": []}, {"changes": [CHANGE] * 65}, "at most 64"),
    _spec("purpose", {"reason": "cni-consent/site.1"}, {"reason": "cni/Site 1"}, SHOULD_MATCH),
    _spec(
        "subject version",
        {"subject": {**SUBJECT, "apiVersion": "v1"}},
        {"subject": {**SUBJECT, "apiVersion": "x"}},
        SHOULD_MATCH,
    ),
    _spec("subject name", {"subject": {**SUBJECT, "uid": "u-1"}}, {"subject": {**SUBJECT, "name": ".."}}, SHOULD_MATCH),
    _spec("expires", {"expires": MOMENT}, {"expires": "soon"}, SHOULD_MATCH),
    _change("file", {"file": "a/b.yaml"}, {"file": "a/../b.yaml"}, SHOULD_MATCH),
    _change("pointer", {"pointer": "/a~1b/0"}, {"pointer": "/a~2"}, SHOULD_MATCH),
    _change("operation", {"op": "remove"}, {"op": "move"}, "Unsupported value"),
    _change("any value", {"from": None, "to": {"a": [1, "x", None]}}, {"document": -1}, "greater than or equal to 0"),
    _status("phase", {"phase": "Superseded"}, {"phase": "Done"}, "Unsupported value"),
    _status("head", {"headCommit": COMMIT}, {"headCommit": "HEAD" * 10}, SHOULD_MATCH),
    _status("content", {"contentHash": DIGEST}, {"contentHash": "md5:0"}, "at least 71"),
    _status("declined", {"declined": [DIGEST] * 20}, {"declined": [DIGEST] * 21}, "at most 20"),
)
