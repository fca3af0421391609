"""Branch names, markers and texts: nothing foreign becomes a name, markup or a leaked secret (forges.md, sections 3 and 14)."""

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gitops_ctl.api.gitops import parse_proposal
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.splice import Edit, Inner, SpliceRefused
from gitops_ctl.forge.branchname import MOST_SUFFIX, PREFIX, branch_name, number_of, with_suffix
from gitops_ctl.forge.content import edited, edits_of
from gitops_ctl.forge.marker import (
    BEGIN,
    Marker,
    MarkerState,
    marker_line,
    read_marker,
    same_body,
    search_text,
    with_block,
)
from gitops_ctl.forge.text import MAX_BODY, MAX_TITLE, Told, body_of, by_hand, code, commit_message, diff_of, title_of
from gitops_ctl.forge.wanted import WantedProposal, proposal_tree
from gitops_ctl.git.fetching import Ref
from tests.support.api_proposals import a_proposal
from tests.support.proposals import ADD, PURPOSE, REPLACE, SUBJECT, TEXT, VALUES

HEX, COMMIT = "sha256:" + "0a" * 32, "5f2b" * 10
MARKER = Marker(PURPOSE, "7f1c", HEX, COMMIT, COMMIT, (HEX,))
HOSTILE = [
    "..",
    "@{",
    "a b",
    "x" * 300,
    "-x",
    "refs/heads/main",
    "a..b",
    "ü/ñ",
    "$(touch /tmp/x)",
    "\x00\n",
    "",
    ".lock",
    "~^:?*[\\",
]
SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize("name", HOSTILE)
def test_P14_a_branch_name_comes_from_a_hash_whatever_the_subject_is_called(name: str):
    branch = branch_name(ObjectId("g", "Kind", "ns", name), purpose=name)
    assert re.fullmatch(r"gitops-ctl/[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?-[0-9a-f]{16}", branch)
    Ref("branch", branch)
    assert branch != branch_name(ObjectId("g", "Kind", "ns", name + "x"), purpose=name)
    assert branch != branch_name(ObjectId("g", "Kind", "ns", name), purpose=name + "x")


@pytest.mark.property
@given(st.text(), st.text(), st.text())
def test_P14_every_text_gives_a_safe_name_and_always_the_same(kind: str, name: str, purpose: str):
    branch = branch_name(ObjectId("g", kind, "ns", name), purpose=purpose)
    assert len(branch) <= len(PREFIX) + 40 + 17
    assert re.fullmatch(r"[a-z0-9/-]+", branch)
    assert branch == branch_name(ObjectId("g", kind, "ns", name), purpose=purpose)


def test_suffixes_are_counted_and_only_those_of_the_subject():
    first = branch_name(SUBJECT, purpose=PURPOSE)
    assert [number_of(with_suffix(first, n), first=first) for n in (1, 2, MOST_SUFFIX)] == [1, 2, MOST_SUFFIX]
    assert [number_of(name, first=first) for name in ("main", f"{first}-10", f"{first}x", f"{first}-1", "")] == [0] * 5


def test_a_marker_is_read_back_and_holds_no_two_hyphens():
    marker = Marker("a--b/---->", "u--1", HEX, COMMIT, COMMIT)
    line = marker_line(marker)
    assert "--" not in line.removeprefix("<!--").removesuffix("-->")
    assert line.count(">") == 1
    assert read_marker(f"text\n\n{line}\n") == marker
    assert search_text("a--b/---->") in line


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace('"v":1', '"v":2'),
        lambda line: line.replace('"op":"7f1c",', ""),
        lambda line: line.replace(COMMIT, "HEAD"),
        lambda line: line.replace("}", ',"x":1}'),
        lambda line: line.replace("{", "{{"),
        lambda line: line + "\n" + line,
        lambda line: line.replace(HEX, "md5:0"),
        lambda line: line[:-4],
    ],
)
def test_a_marker_that_somebody_edited_is_damaged(change):
    assert read_marker(f"{BEGIN}\nx\n\n{change(marker_line(MARKER))}") is MarkerState.DAMAGED


def test_a_body_without_our_words_has_no_marker():
    assert read_marker("Just a change.") is MarkerState.ABSENT
    assert read_marker("") is MarkerState.ABSENT


@pytest.mark.property
@given(st.text(max_size=200), st.text(max_size=200))
def test_peoples_text_around_the_block_stays(before: str, after: str):
    first = with_block("", text="one", marker=MARKER)
    body = f"{before}\n{first}\n{after}"
    second = with_block(body, text="two", marker=MARKER)
    if "gitops-ctl" in before + after:
        return
    normal = body.replace("\r\n", "\n").replace("\r", "\n")
    assert second == normal.replace("one", "two", 1) or "one" in before + after
    assert read_marker(second) == MARKER


def test_line_ends_that_a_forge_changes_are_no_difference():
    body = with_block("Hello.", text="one\ntwo", marker=MARKER)
    assert same_body(body, body.replace("\n", "\r\n") + "\r\n")
    assert not same_body(body, body.replace("two", "three"))


def told(why: str = "site-1 waits", **changes: object) -> Told:
    least = {
        "subject": SUBJECT,
        "purpose": PURPOSE,
        "edits": (REPLACE, ADD),
        "notes": (),
        "branch": "gitops-ctl/x-0123456789abcdef",
        "base": "main",
        "expires": None,
    }
    return Told(why=why, **{**least, **changes})  # type: ignore[arg-type]


def test_the_body_says_what_waits_the_exact_values_where_how_to_merge_and_what_comes_next():
    body = body_of(told())
    for words in (
        "TalosCluster.ichor.maesh.dev/team-a/site-1",
        VALUES,
        "`/kubeProxyReplacement`: `false` becomes `true`",
        "`/k8sServicePort`: add `7445`",
        "no limit",
        "git merge --no-ff -S FETCH_HEAD",
        "a fast-forward to it is refused",
        "What happens next",
        "By hand",
    ):
        assert words in body


INJECTIONS = [
    "# Title",
    "@admins please",
    "closes #1",
    "[x](https://evil.example.net)",
    "<img src=x>",
    "```\n# out",
    "<!-- gitops-ctl {}",
    "![](x)",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_P15_markup_from_objects_and_files_stays_inside_code(text: str):
    edit = ("a`b.yaml", Edit(0, "/k", "replace", text, text))
    body = body_of(told(why=f"first\n{text}", edits=(edit,), notes=(text,)))
    outside = _without_code(body)
    for part in ("# Title", "@admins", "closes #1", "evil.example.net", "<img", "# out", "gitops-ctl {", "![]("):
        assert part not in outside
    assert read_marker(with_block("", text=body, marker=MARKER)) == MARKER
    title = title_of(told(why=text))
    assert not set(title) & set("@#<>[]!`*")


def _without_code(body: str) -> str:
    body = re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", "", body, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", body)


def test_P15_a_secret_is_shown_nowhere():
    edit = (VALUES, Edit(0, "/auth/password", "replace", "hunter2hunter2", "hunter3hunter3"))
    token = (VALUES, Edit(0, "/x", "add", after=f"https://u:{SECRET}@git.example.net"))
    texts = told(why=f"use {SECRET}", edits=(edit, token), notes=(f"line 3: {SECRET}",))
    everything = (
        body_of(texts) + title_of(texts) + by_hand(texts.edits) + commit_message(texts, operation="o", content=HEX)
    )
    for secret in (SECRET, "hunter2", "hunter3"):
        assert secret not in everything
    after = edited(
        lambda _: (0o100644, f"a: 1\ntoken: {SECRET}\n".encode()), (("a.yaml", Edit(0, "/a", "replace", 1, 2)),)
    )
    assert SECRET not in diff_of(after)
    assert "+a: 2" in diff_of(after)


def test_P15_long_texts_are_cut():
    edits = tuple((f"f{n}.yaml", Edit(0, "/k", "replace", "a" * 5000, "b" * 5000)) for n in range(64))
    texts = told(why="x" * 100_000, edits=edits, notes=("n" * 9000,) * 300)
    assert len(body_of(texts)) <= MAX_BODY
    assert "and 24 more" in body_of(texts)
    assert len(title_of(texts)) <= MAX_TITLE


@pytest.mark.property
@given(st.text())
def test_P15_a_code_span_has_one_line_and_is_closed(text: str):
    span = code(text)
    assert "\n" not in span
    fence = re.match(r"`+", span)
    assert fence is not None
    assert span.endswith(fence[0])
    assert fence[0] not in span[len(fence[0]) : -len(fence[0])]


def test_the_commit_message_names_operation_and_content():
    message = commit_message(told(), operation="7f1c", content=HEX)
    assert message.splitlines()[-3:] == [
        f"Gitops-Ctl-Purpose: {PURPOSE}",
        "Gitops-Ctl-Operation: 7f1c",
        f"Gitops-Ctl-Content: {HEX}",
    ]


NESTED = (
    "spec:\n  source:\n    helm:\n      values: |\n        a: |\n          kubeProxyReplacement: false\n        b: 1\n"
)


@pytest.mark.parametrize(
    ("text", "edits", "after"),
    [
        (
            TEXT,
            (REPLACE, ADD),
            TEXT.replace("false", "true").replace("# for now\n", "# for now\nk8sServicePort: 7445\n"),
        ),
        (
            "metadata:\n  name: site-1\n  annotations:\n    ichor.maesh.dev/confirm-kube-proxy-switch: replaced\n",
            (
                (
                    VALUES,
                    Edit(0, "/metadata/annotations/ichor.maesh.dev~1confirm-kube-proxy-switch", "remove", "replaced"),
                ),
            ),
            "metadata:\n  name: site-1\n",
        ),
        (
            NESTED,
            ((VALUES, Edit(0, "/spec/source/helm/values", "replace", 1, 2, (Inner(0, "/b"),))),),
            NESTED.replace("b: 1", "b: 2"),
        ),
        (
            NESTED,
            (
                (
                    VALUES,
                    Edit(
                        0,
                        "/spec/source/helm/values",
                        "replace",
                        False,
                        True,
                        (Inner(0, "/a"), Inner(0, "/kubeProxyReplacement")),
                    ),
                ),
            ),
            NESTED.replace("false", "true"),
        ),
    ],
    ids=["replace and add", "clean-up of a consent", "one level inside", "two levels inside"],
)
def test_changes_become_exactly_these_lines(text: str, edits: tuple[tuple[str, Edit], ...], after: str):
    done = edited(lambda path: (0o100644, text.encode()) if path == VALUES else None, edits)
    assert done.files[VALUES][1].decode() == after
    assert edited(lambda _: done.files[VALUES], edits).changed == frozenset()
    assert edits_of([]) == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"op": "add", "from": 1, "to": 2}, "an add has no from"),
        ({"op": "remove", "from": 1, "to": 2}, "a remove has no to"),
    ],
)
def test_a_change_that_says_two_things_is_refused(change: dict[str, object], told: str):
    changes = parse_proposal(a_proposal(changes=[{"file": VALUES, "pointer": "/a", **change}])).spec.changes
    with pytest.raises(Refused, match=told) as error:
        edits_of(changes)
    assert error.value.code is ErrorCode.CHANGE_INVALID
    assert error.value.subject == "changes[0]"


def test_what_a_domain_asks_for_is_what_the_controller_reads():
    edits = (REPLACE, ADD, (VALUES, Edit(1, "/a", "remove", "x", inner=(Inner(0, "/b"),))))
    wanted = WantedProposal("team-a", "site-1-cni", "network", a_proposal()["spec"]["subject"], PURPOSE, "why", edits)
    tree = proposal_tree(wanted, owner={"uid": "u"})
    proposal = parse_proposal(tree)
    assert edits_of(proposal.spec.changes) == edits
    assert proposal.metadata.annotations == {"gitops-ctl.dev/why": "why"}
    assert tree["metadata"]["ownerReferences"] == [{"uid": "u"}]  # type: ignore[index,call-overload]


def test_a_file_that_is_not_there_is_refused_unless_something_is_only_taken_away():
    with pytest.raises(SpliceRefused, match="there is no such file"):
        edited(lambda _: None, (REPLACE,))
    assert edited(lambda _: None, ((VALUES, Edit(0, "/a", "remove", 1)),)).files == {}
