"""What `status` and `explain` make of an object, and how objects are named.  Out of scope: a cluster (tests/cluster)."""

import json
import socket
from pathlib import Path

import pytest

from gitops_ctl.cli import main
from gitops_ctl.cli.explain import Owner, _state, last_apply, owner_of
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC, parse_named
from gitops_ctl.cli.output import Format
from gitops_ctl.cli.status import _write, summary_of
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.declared import declared
from tests.support.sync import documents

READY: JsonObject = {
    "type": "Ready",
    "status": "False",
    "reason": "ObjectsHeld",
    "message": "1 held",
    "lastTransitionTime": "2026-11-30T08:00:00Z",
}
SYNC_TREE: JsonObject = {
    "metadata": {"name": "site", "namespace": "team"},
    "status": {
        "conditions": [READY],
        "lastAppliedRevision": "b" * 40,
        "counts": {"held": 60, "drifted": 1},
        "held": [
            {
                "object": "ConfigMap/lab/a",
                "reason": "FieldConflict",
                "message": "would take .data",
                "file": "a.yaml",
                "line": 3,
            }
        ],
        "drift": [
            {"object": "ConfigMap/lab/b", "change": "Changed", "manager": "kubectl", "pointers": ["/data/x", "/data/y"]}
        ],
    },
}
SOURCE_TREE: JsonObject = {
    "metadata": {"name": "network", "namespace": "team"},
    "status": {
        "conditions": [{**READY, "reason": "Unsigned", "message": "commit c"}],
        "accepted": {"revision": "a" * 40},
        "rejected": {"commit": "c" * 40, "reason": "Unsigned", "path": "", "hint": "sign the commit and push again"},
    },
}


def test_the_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    _write([summary_of(GIT_SOURCE, SOURCE_TREE), summary_of(SYNC, SYNC_TREE)], form=Format.TABLE, repaint=False)
    assert capsys.readouterr().out == (
        "KIND        NAMESPACE   NAME      READY   REASON        REVISION       SINCE                  MESSAGE\n"
        "GitSource   team        network   False   Unsigned      aaaaaaaaaaaa   2026-11-30T08:00:00Z   commit c\n"
        "Sync        team        site      False   ObjectsHeld   bbbbbbbbbbbb   2026-11-30T08:00:00Z   1 held\n"
        "\n"
        "GitSource/team/network: refused commit cccccccccccc\n"
        "  reason: Unsigned\n"
        "  hint:   sign the commit and push again\n"
        "\n"
        "Sync/team/site: 60 held\n"
        "  ConfigMap/lab/a (a.yaml:3): FieldConflict: would take .data\n"
        "  and 59 more; `gitops-ctl explain` says why one of them waits\n"
        "\n"
        "Sync/team/site: 1 drifted\n"
        "  ConfigMap/lab/b: Changed by kubectl /data/x, /data/y\n"
    )


def test_nothing_to_show_is_said_and_not_only_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    _write([], form=Format.TABLE, repaint=False)
    assert "no sources and no syncs" in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_named_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{closed.getsockname()[1]}"
        cluster = {"name": "a", "cluster": {"server": server}}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [{"name": "a", "user": {"token": "none"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(tree))
        assert main.run(["status", "--kubeconfig", str(tmp_path / "kubeconfig")]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error GC2012 cluster-unreachable\n")
    assert server in text
    assert "gitops-ctl up" in text


def test_an_object_without_a_status_is_not_known_to_be_ready() -> None:
    summary = summary_of(SYNC, {"metadata": {"name": "new", "namespace": "team"}})
    assert (summary["ready"], summary["reason"], summary["revision"]) == ("Unknown", "", "")


NAME = ObjectId("", "ConfigMap", "lab", "a")


def marked(mark: str) -> JsonObject:
    return {"metadata": {"annotations": {"gitops-ctl.dev/owner-id": mark}}}


@pytest.mark.parametrize(
    ("mark", "owner"),
    [
        ("uid/team/network/site:/ConfigMap:lab/a", Owner("team", "network", "site")),
        ("uid/team/network/site:/ConfigMap:lab/b", None),
        ("team/network/site:/ConfigMap:lab/a", None),
        ("", None),
    ],
    ids=["ours", "of-another-object", "too-short", "none"],
)
def test_the_owner_is_read_from_a_mark_that_names_the_object_itself(mark: str, owner: Owner | None) -> None:
    assert owner_of(marked(mark), NAME) == owner


def test_the_last_apply_is_ours() -> None:
    fields: list[JsonObject] = [
        {"manager": "gitops-ctl", "operation": "Apply", "time": "2026-11-30T08:00:00Z"},
        {"manager": "gitops-ctl", "operation": "Update", "time": "2026-11-30T09:00:00Z"},
        {"manager": "kubectl", "operation": "Apply", "time": "2026-11-30T10:00:00Z"},
    ]
    assert last_apply({"metadata": {"managedFields": fields}}) == "2026-11-30T08:00:00Z"
    assert last_apply({}) == ""


def test_a_document_without_a_namespace_is_that_of_the_target_namespace() -> None:
    found = documents("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (document,) = found.documents
    assert declared(found, NAME, target="lab") is document
    assert declared(found, NAME, target="other") is None
    named = documents("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: lab}\n")
    assert declared(named, NAME, target="") is named.documents[0]


@pytest.mark.parametrize(("text", "kind"), [("gsrc/a", GIT_SOURCE), ("GitSource/a", GIT_SOURCE), ("gsync/a", SYNC)])
def test_our_kinds_have_short_names(text: str, kind: object) -> None:
    named = parse_named(text, namespace="team")
    assert (named.kind, named.namespace, named.name) == (kind, "team", "a")


@pytest.mark.parametrize("text", ["a", "gsrc/", "gsrc/a/b", "deployment/a"])
def test_another_form_of_a_name_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is not <kind>/<name>"):
        parse_named(text, namespace="team")


def test_a_name_needs_a_namespace() -> None:
    with pytest.raises(Refused, match="no namespace is named"):
        parse_named("gsrc/a", namespace="")


@pytest.mark.parametrize("what", ["GC1003", "gc1003", "duplicate-key"])
def test_explain_knows_every_code_by_number_and_by_slug(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", what]) == 0
    code = ErrorCode.DUPLICATE_KEY
    assert capsys.readouterr().out == (
        f"FACT     VALUE\ncode     GC1003\nslug     duplicate-key\nreason   {code.reason}\nfix      {code.fix}\n"
    )


def test_explain_says_when_a_status_lists_a_part_of_what_is_held_and_how_many_fields_differ() -> None:
    drifted = {
        "object": "ConfigMap/lab/b",
        "change": "Changed",
        "pointers": ["/data/x"],
        "more": 7,
        "manager": "kubectl",
    }
    tree: JsonObject = {"status": {"counts": {"held": 60}, "held": [{"object": "ConfigMap/lab/a"}], "drift": [drifted]}}
    other = ObjectId("", "ConfigMap", "lab", "c")
    assert _state(tree, other) == {
        "drift": "none reported",
        "held": "not known: the status lists 1 of 60 held objects",
    }
    assert _state(tree, ObjectId("", "ConfigMap", "lab", "b")) == {"drift": "Changed /data/x and 7 more fields kubectl"}
    assert _state({"status": {"counts": {"held": 0}}}, other) == {"drift": "none reported"}
