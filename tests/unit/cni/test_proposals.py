"""Which changes an operation asks for in Git, and when that is over (cni-switch.md, sections 4 and 11)."""

from dataclasses import replace
from typing import Any

from gitops_ctl.cni.authority import CONSENT
from gitops_ctl.cni.model import Introduction
from gitops_ctl.cni.proposals import (
    cleanup_proposal,
    pull_request_of,
    values_proposal,
    wants_cleanup,
)
from gitops_ctl.cni.reading import cluster_of, operation_of
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.wanted import asked_of, is_watched, proposal_tree, withdrawn
from tests.support.switch_bench import BEGIN, Bench, make_bench


def parts(bench: Bench) -> Any:
    operation = operation_of(bench.operation)
    assert operation is not None
    return cluster_of(bench.cluster), operation


def waiting() -> Bench:
    bench = make_bench("replaced")
    bench.run()
    return bench


def finished() -> Bench:
    bench = make_bench("replaced")
    bench.live.change_cni("true")
    bench.run()
    assert bench.phase == "Succeeded"
    return bench


def values(bench: Bench) -> Any:
    cluster, operation = parts(bench)
    edit = Edit(document=0, pointer="/kubeProxyReplacement", op="replace", before=False, after=True)
    wanted, owner = values_proposal(
        cluster, operation, source="network", edits=(("cni.yaml", edit),), why="one place", expires=BEGIN
    )
    return proposal_tree(wanted, owner=owner)


def test_the_values_are_one_proposal_of_the_operation() -> None:
    bench = waiting()
    tree = values(bench)
    assert tree["spec"]["reason"] == "cni/north/replaced"
    assert tree["spec"]["subject"]["uid"] == "uid-1"
    assert tree["spec"]["expires"] == "2026-03-01T08:00:00Z"
    assert tree["metadata"]["name"] == f"{bench.operation['metadata']['name']}-values"
    assert tree["metadata"]["ownerReferences"][0]["kind"] == "TalosOperation"
    assert [change["to"] for change in tree["spec"]["changes"]] == [True]


def test_the_text_says_what_waits_what_breaks_and_what_stays() -> None:
    text = values(waiting())["metadata"]["annotations"]["gitops-ctl.dev/why"]
    assert "waits for this change" in text
    assert "Existing connections on a node break when Cilium changes mode." in text
    assert "Old kube-proxy rules stay on each node until it reboots." in text
    assert "5 machine(s): cp-1, cp-2, cp-3, node-1, node-2" in text


def test_a_spent_consent_is_taken_away_by_one_removal_that_names_its_value() -> None:
    bench = finished()
    cluster, operation = parts(bench)
    assert wants_cleanup(cluster, operation, bench.authority)
    wanted, owner = cleanup_proposal(cluster, operation, authority=bench.authority, document=2)
    tree: Any = proposal_tree(wanted, owner=owner)
    assert tree["spec"]["reason"] == "cni-consent/north"
    assert tree["spec"]["changes"] == [
        {"file": "clusters/north.yaml", "document": 2, "pointer": CONSENT, "op": "remove", "from": "replaced"}
    ]
    assert tree["metadata"]["ownerReferences"][0]["kind"] == "TalosCluster"


def test_no_clean_up_where_it_is_off_or_the_consent_is_another_one_or_gone() -> None:
    bench = finished()
    cluster, operation = parts(bench)
    known = bench.authority
    assert not wants_cleanup(replace(cluster, cleanup=False), operation, known)
    fresh = replace(known, introduced=Introduction("b" * 40, "network-author"))
    assert not wants_cleanup(cluster, operation, fresh)
    assert not wants_cleanup(cluster, operation, replace(known, consent="", introduced=None))
    assert not wants_cleanup(cluster, operation, replace(known, file=""))


def test_no_clean_up_before_the_end() -> None:
    bench = waiting()
    cluster, operation = parts(bench)
    assert not wants_cleanup(cluster, operation, bench.authority)


def test_a_withdrawn_proposal_asks_for_nothing_and_is_not_withdrawn_again() -> None:
    stored = values(waiting())
    assert is_watched(stored)
    gone = withdrawn(stored)
    assert gone["spec"]["changes"] == []  # type: ignore[index,call-overload]
    assert not is_watched(gone)
    assert is_watched({**stored, "status": {"phase": "Open"}})


def test_a_merged_proposal_is_withdrawn_too_so_that_the_switch_back_is_no_revert_of_it() -> None:
    stored = values(waiting())
    assert is_watched({**stored, "status": {"phase": "Merged"}})
    assert not is_watched({**stored, "status": {"phase": "Closed"}})  # a person's no stays to be seen


def test_what_we_asked_for_is_found_again_in_what_the_server_stores() -> None:
    asked = values(waiting())
    stored = {
        **asked,
        "metadata": {**asked["metadata"], "uid": "p", "resourceVersion": "9", "generation": 1},
        "status": {"phase": "Open"},
    }
    assert asked_of(stored) == asked


def test_the_pull_request_is_mirrored_for_people() -> None:
    stored: Any = {
        "status": {
            "phase": "Open",
            "url": "https://git.example.net/pulls/7",
            "number": 7,
            "headCommit": "e" * 40,
            "contentHash": "sha256:1",
        }
    }
    assert pull_request_of(stored) == {
        "url": "https://git.example.net/pulls/7",
        "number": 7,
        "state": "Open",
        "headSha": "e" * 40,
        "valuesHash": "sha256:1",
    }
    assert pull_request_of({}) == {"state": "Pending"}
