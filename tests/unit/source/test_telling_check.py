"""What a check says about the head of a pull request (forges.md, section 11.3)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gitops_ctl.source.pullcheck import check_pull
from gitops_ctl.source.pullreport import PullReport
from tests.support.git_keys import SshKey
from tests.support.telling import MACHINE, Bench
from tests.support.trust import POLICY_PATH, config_map

BROKEN = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"v": 1}})
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
Rule = dict[str, object]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench.make(tmp_path)


def codes(report: PullReport) -> list[str]:
    return [finding.code.split()[1] for finding in report.findings]


def test_a_signed_change_names_its_verbs_who_holds_them_and_what_it_touches(bench: Bench) -> None:
    head = bench.head(
        {"clusters/a.yaml": config_map("a", v="2"), "clusters/c.yaml": config_map("c")}, signer=bench.team["ann"]
    )
    report = check_pull(bench.order(head))
    assert (report.errors, report.findings, report.trusted) == (0, (), True)
    merge, edit = report.needs
    assert (merge.verb, merge.persons) == ("merge", ("adm", "ann"))
    assert (edit.verb, edit.persons, edit.judged) == ("edit", ("ann",), ("ann",))
    assert edit.paths == ("clusters/a.yaml", "clusters/c.yaml")
    assert "rule 4" in edit.rule
    assert [(each.action, each.object.rpartition("/")[2]) for each in report.touched] == [
        ("changed", "a"),
        ("added", "c"),
    ]


def test_a_removed_object_is_told_and_needs_delete(bench: Bench) -> None:
    report = check_pull(bench.order(bench.head(delete=("clusters/b.yaml",), signer=bench.team["ann"])))
    assert [need.verb for need in report.needs] == ["merge", "delete"]
    assert [each.action for each in report.touched] == ["removed"]


def test_only_findings_that_the_base_does_not_have_are_told(bench: Bench) -> None:
    bench.accept({"clusters/old.yaml": BROKEN.replace('"c"', '"old"')})
    report = check_pull(bench.order(bench.head({"clusters/new.yaml": BROKEN}, signer=bench.team["ann"])))
    assert [finding.place.split(":")[0] for finding in report.findings] == ["clusters/new.yaml"]
    assert report.errors == 1
    assert report.findings[0].object.endswith("c")


def test_unsigned_commits_are_named_and_what_would_change_is_left_out(bench: Bench) -> None:
    head = bench.head({"clusters/a.yaml": config_map("a", v="2")})
    report = check_pull(bench.order(head))
    assert [(each.commit, each.reason) for each in report.refused] == [(head, "Unsigned")]
    assert not report.trusted
    assert (report.touched, report.touched_count, report.devices) == ((), 0, ())
    assert [need.verb for need in report.needs] == ["merge", "edit"]


def test_a_fork_is_untrusted_even_when_people_of_the_policy_signed_it(bench: Bench) -> None:
    head = bench.head({"clusters/a.yaml": config_map("a", v="2")}, signer=bench.team["ann"])
    report = check_pull(bench.order(head, is_fork=True))
    assert not report.trusted
    assert report.touched == ()
    assert report.refused == ()


def test_a_commit_beyond_its_signers_rights_is_named_with_its_rule(bench: Bench) -> None:
    head = bench.head({"clusters/a.yaml": config_map("a", v="2")}, signer=bench.team["bob"])
    report = check_pull(bench.order(head))
    assert [each.reason for each in report.refused] == ["PathNotAuthorised"]
    assert "ann" in report.refused[0].message
    assert report.trusted


def test_a_path_that_no_rule_names_is_nobodys(bench: Bench) -> None:
    report = check_pull(bench.order(bench.head({"README.md": "x"}, signer=bench.team["ann"])))
    assert [(need.verb, need.rule, need.persons) for need in report.needs[1:]] == [("edit", "", ())]


def test_a_policy_of_the_head_judges_nothing(bench: Bench) -> None:
    """The head makes eve an author and then signs as eve."""
    repo, eve = bench.story.repo, bench.team["eve"]
    policy = bench.team.policy({"author": ["ann", "eve"], "approver": ["bob"], "admin": ["adm", "eve"], "nobody": []})
    bench.head({POLICY_PATH: policy}, signer=eve)
    repo.switch("topic")
    head = repo.commit({"clusters/a.yaml": config_map("a", v="2")}, signer=eve, message="by eve")
    report = check_pull(bench.order(head))
    assert [each.reason for each in report.refused] == ["PathNotAuthorised", "PathNotAuthorised"]
    assert {need.verb: need.persons for need in report.needs} == {
        "merge": ("adm", "ann"),
        "edit": ("ann",),
        "trust": ("adm",),
    }


def test_a_policy_of_the_head_that_is_wrong_is_a_finding(bench: Bench) -> None:
    report = check_pull(bench.order(bench.head({POLICY_PATH: "{}"}, signer=bench.team["adm"])))
    assert report.errors >= 1
    assert POLICY_PATH in report.findings[0].place


def test_an_ignore_file_of_the_head_hides_nothing(bench: Bench) -> None:
    files = {".gitops-ctlignore": "clusters/\n", "clusters/new.yaml": BROKEN}
    report = check_pull(bench.order(bench.head(files, signer=bench.team["ann"])))
    assert report.errors == 1


def test_a_schema_of_the_head_is_not_used(bench: Bench) -> None:
    """A definition that allows anything, and an object of its kind: the kind stays unknown."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "knobs.example.net"},
        "spec": {
            "group": "example.net",
            "scope": "Namespaced",
            "names": {"plural": "knobs", "singular": "knob", "kind": "Knob"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    knob = {"apiVersion": "example.net/v1", "kind": "Knob", "metadata": {"name": "k", "namespace": "demo"}}
    files = {"clusters/crd.yaml": json.dumps(crd), "clusters/knob.yaml": json.dumps(knob)}
    report = check_pull(bench.order(bench.head(files, signer=bench.team["ann"])))
    assert codes(report) == ["kind-unknown"]
    bench.accept({"clusters/crd.yaml": json.dumps(crd)})
    report = check_pull(bench.order(bench.head({"clusters/knob.yaml": json.dumps(knob)}, signer=bench.team["ann"])))
    assert codes(report) == []


def test_a_head_behind_the_base_is_looked_at_as_merged(bench: Bench) -> None:
    began = bench.base
    bench.accept({"clusters/b.yaml": config_map("b", v="9")})
    head = bench.head({"clusters/a.yaml": config_map("a", v="2")}, signer=bench.team["ann"], at=began)
    report = check_pull(bench.order(head))
    assert [each.object.rpartition("/")[2] for each in report.touched] == ["a"]
    assert report.needs[1].paths == ("clusters/a.yaml",)


def test_conflicts_are_named(bench: Bench) -> None:
    began = bench.base
    bench.accept({"clusters/a.yaml": config_map("a", v="9")})
    head = bench.head({"clusters/a.yaml": config_map("a", v="2")}, signer=bench.team["ann"], at=began)
    report = check_pull(bench.order(head))
    assert report.conflicts == ("clusters/a.yaml",)
    assert report.needs[1].paths == ("clusters/a.yaml",)


def test_a_changed_cluster_touches_its_machines(bench: Bench) -> None:
    cluster = {
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": {"name": "site-1", "namespace": "demo"},
        "spec": {},
    }
    bench.accept({"clusters/machine.yaml": json.dumps(MACHINE), "clusters/cluster.yaml": json.dumps(cluster)})
    cluster["metadata"]["labels"] = {"site": "one"}  # type: ignore[index]
    report = check_pull(
        bench.order(bench.head({"clusters/cluster.yaml": json.dumps(cluster)}, signer=bench.team["ann"]))
    )
    assert [name.rpartition("/")[2] for name in report.devices] == ["site-1-cp-1"]


def test_a_threshold_and_who_must_approve_are_told(tmp_path: Path) -> None:
    rules: list[Rule] = [
        {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
        {
            "paths": ["**"],
            "verbs": ["edit"],
            "roles": ["author", "approver"],
            "threshold": 2,
            "distinctFromAuthor": True,
        },
        {"verbs": ["merge"], "roles": ["author"]},
    ]
    bench = Bench.make(tmp_path, rules=rules)
    report = check_pull(bench.order(bench.head({"clusters/c.yaml": config_map("c")}, signer=bench.team["ann"])))
    need = report.needs[1]
    assert (need.threshold, need.distinct, need.persons) == (2, True, ("ann", "bob"))


def test_a_proposers_commit_waits_for_whoever_merges(tmp_path: Path) -> None:
    robot = SshKey.generate(tmp_path, name="robot")
    entry = {
        "name": "gitops-ctl",
        "keys": [{"ssh": " ".join(robot.public.split()[:2])}],
        "paths": ["clusters/**"],
    }
    bench = Bench.make(tmp_path, proposers=[entry])
    report = check_pull(bench.order(bench.head({"clusters/c.yaml": config_map("c")}, signer=robot)))
    assert (report.proposed, report.refused, report.trusted) == (1, (), False)


# -- hostile heads -------------------------------------------------------------------------------------------------------


def yaml_bomb(bench: Bench) -> str:
    return bench.head({"clusters/bomb.yaml": BOMB})


def symlink(bench: Bench) -> str:
    target = bench.plumb("hash-object", "-w", "--stdin", data="/etc/passwd")
    return bench.write_head(("120000", target, "linked.yaml"))


def huge_file(bench: Bench) -> str:
    return bench.head({"clusters/huge.yaml": b"a: " + b"x" * (17 * 2**20)})


def deep_folders(bench: Bench) -> str:
    blob = bench.plumb("hash-object", "-w", "--stdin", data="x: 1\n")
    tree = bench.plumb("mktree", data=f"100644 blob {blob}\ta.yaml\n")
    for _ in range(70):
        tree = bench.plumb("mktree", data=f"040000 tree {tree}\td\n")
    return bench.write_head(("040000", tree, "deep"))


def billion_files(bench: Bench) -> str:
    blob = bench.plumb("hash-object", "-w", "--stdin", data="x: 1\n")
    tree = bench.plumb("mktree", data="".join(f"100644 blob {blob}\t{n:02}.yaml\n" for n in range(30)))
    for _ in range(8):
        tree = bench.plumb("mktree", data="".join(f"040000 tree {tree}\t{n:02}\n" for n in range(30)))
    return bench.write_head(("040000", tree, "wide"))


def unrelated_history(bench: Bench) -> str:
    repo = bench.story.repo
    return repo.git("commit-tree", repo.tree("main"), "-m", "from nowhere").strip()


def no_yaml(bench: Bench) -> str:
    return bench.head({"clusters/x.yaml": b"\xff\xfe\x00binary"})


def submodule(bench: Bench) -> str:
    return bench.write_head(("160000", bench.base, "sub.yaml"))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (yaml_bomb, "expansion-limit"),
        (symlink, "path-refused"),
        (submodule, "path-refused"),
        (huge_file, "document-too-large"),
        (deep_folders, "tree-limit"),
        (billion_files, "tree-limit"),
        (no_yaml, "yaml-syntax"),
    ],
)
def test_a_hostile_head_ends_in_a_finding(bench: Bench, make: Callable[[Bench], str], code: str) -> None:
    report = check_pull(bench.order(make(bench), entries=2_000))
    assert code in codes(report), report
    assert report.errors >= 1
    assert not report.trusted


def test_a_history_from_nowhere_is_refused_and_never_trusted(bench: Bench) -> None:
    report = check_pull(bench.order(unrelated_history(bench)))
    assert not report.trusted
    assert report.refused_count or report.errors
