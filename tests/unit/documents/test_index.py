"""Documents of a whole revision or folder.

In scope: selection of files, identities across files, the cache by blob.  Out of scope: single files (test_loader.py).
"""

import pygit2
import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.index import DocumentCache, load_directory, load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import DEFAULT_LIMITS, TreeLimits
from tests.support.documents import codes, config_map


class Repo:
    """A bare repository that holds trees."""

    def __init__(self, path):
        self._repository = pygit2.init_repository(str(path), bare=True)
        self.store = ObjectStore.open(path)

    def tree(self, files, *, modes=None):
        index = pygit2.Index()
        for path, text in files.items():
            blob = self._repository.create_blob(text.encode())
            index.add(pygit2.IndexEntry(path, blob, (modes or {}).get(path, pygit2.enums.FileMode.BLOB)))
        return str(index.write_tree(self._repository))


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "repo.git")


def load_tree(repo, files, *, path="", modes=None, cache=None, tree_limits=DEFAULT_LIMITS):
    tree = repo.tree(files, modes=modes)
    return load_set(repo.store, tree=tree, path=path, cache=cache or DocumentCache(), tree_limits=tree_limits)


def names(found):
    return [document.id.name for document in found.documents]


def test_documents_are_yaml_yml_and_json_below_the_path(repo):
    found = load_tree(
        repo,
        {
            "site/a.yaml": config_map("a"),
            "site/deep/b.yml": config_map("b"),
            "site/c.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}',
            "site/README.md": "no document",
            "site/.hidden.yaml": config_map("d"),
            "site/.github/e.yaml": config_map("e"),
            "other/f.yaml": config_map("f"),
        },
        path="/site/",
    )
    assert sorted(names(found)) == ["a", "b", "c"]
    assert found.problems == ()
    assert found.by_id[ObjectId("", "ConfigMap", "team-a", "a")].file == "site/a.yaml"
    assert found.documents[0].blob


@pytest.mark.parametrize(
    "second",
    [
        {
            "site/b.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: x}\n"
        },
        {
            "site/b.yaml": "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: x}\n"
        },
    ],
    ids=["other version", "same version"],
)
def test_Y10_a_second_declaration_of_one_identity_is_an_error(repo, second):
    first = {
        "site/a.yaml": "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: x}\n"
    }
    found = load_tree(repo, first | second)
    (problem,) = found.problems
    assert (problem.code, problem.file, problem.line) == (ErrorCode.DUPLICATE_IDENTITY, "site/b.yaml", 1)
    assert "first in site/a.yaml:1" in problem.message
    assert list(found.held) == [ObjectId("autoscaling", "HorizontalPodAutoscaler", "x", "a")]


def test_Y09_entries_of_a_list_have_the_identity_rules_of_single_documents(repo):
    listed = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a}}\n"
    found = load_tree(repo, {"a.yaml": config_map("a"), "b.yaml": listed})
    assert codes(found.problems) == [ErrorCode.DUPLICATE_IDENTITY]
    assert (found.problems[0].file, found.problems[0].line) == ("b.yaml", 4)


def test_Y02_a_broken_file_holds_what_it_declares_and_nothing_else(repo):
    files = {f"{number}.yaml": config_map(f"c{number}") for number in range(5)}
    files["broken.yaml"] = "a: [\n"
    files["held.yaml"] = config_map("held", data="{a: 1, a: 2}")
    found = load_tree(repo, files)
    assert len(found.documents) == 5
    assert list(found.unreadable) == ["broken.yaml"]
    assert ObjectId("", "ConfigMap", "team-a", "held") in found.held
    assert ObjectId("", "ConfigMap", "team-a", "held") in found.declared


def test_ignored_files_are_listed_with_their_objects(repo):
    found = load_tree(
        repo,
        {
            ".gitops-ctlignore": "values.yaml\n/old/\n",
            "values.yaml": "replicas: 3\n",
            "app/values.yaml": "replicas: 3\n",
            "app/a.yaml": config_map("a"),
            "old/b.yaml": config_map("b"),
            "new/old/c.yaml": config_map("c"),
        },
    )
    assert names(found) == ["a", "c"]
    assert found.problems == ()
    assert found.hidden == ("app/values.yaml", "old/b.yaml", "values.yaml")
    assert found.hidden_ids == {ObjectId("", "ConfigMap", "team-a", "b")}


def test_an_ignore_file_in_a_folder_counts_from_there_and_its_errors_are_reported(repo):
    found = load_tree(repo, {"a/.gitops-ctlignore": "!x\n/b.yaml\n", "a/b.yaml": "x: 1\n", "b.yaml": config_map("b")})
    assert names(found) == ["b"]
    assert [(problem.code, problem.file) for problem in found.problems] == [(ErrorCode.RULE, "a/.gitops-ctlignore")]


def test_symlinks_and_odd_names_are_reported_and_not_followed(repo):
    link = pygit2.enums.FileMode.LINK
    found = load_tree(
        repo,
        {"a.yaml": config_map("a"), "b.yaml": "/etc/passwd", "folder": "../elsewhere", "tab\t.yaml": config_map("c")},
        modes={"b.yaml": link, "folder": link},
    )
    assert names(found) == ["a"]
    assert codes(found.problems) == [ErrorCode.PATH_REFUSED, ErrorCode.PATH_REFUSED]
    assert [(problem.file, problem.severity) for problem in found.warnings] == [("folder", "warning")]


def test_a_commit_that_changes_one_file_parses_one_file(repo):
    cache = DocumentCache()
    files = {f"{number}.yaml": config_map(f"c{number}") for number in range(20)}
    load_tree(repo, files, cache=cache)
    before = cache.parsed
    found = load_tree(repo, files | {"7.yaml": config_map("c7", data="{a: b}")}, cache=cache)
    assert cache.parsed == before + 1
    assert found.by_id[ObjectId("", "ConfigMap", "team-a", "c7")].tree["data"] == {"a": "b"}


def test_the_cache_is_bounded_by_the_size_of_the_text(repo):
    cache = DocumentCache(limit_bytes=500)
    files = {f"{number}.yaml": config_map(f"c{number}") for number in range(20)}
    load_tree(repo, files, cache=cache)
    load_tree(repo, files, cache=cache)
    assert cache.parsed == 40


def test_a_tree_is_put_together_once_for_all_who_ask_for_it(repo):
    cache = DocumentCache()
    files = {f"{number}.yaml": config_map(f"c{number}") for number in range(3)}
    assert load_tree(repo, files, cache=cache) is load_tree(repo, files, cache=cache)


def test_a_tree_that_was_read_within_wider_limits_is_measured_again(repo):
    cache = DocumentCache()
    files = {f"{number}.yaml": config_map(f"c{number}") for number in range(20)}
    load_tree(repo, files, cache=cache)
    with pytest.raises(Refused) as error:
        load_tree(repo, files, cache=cache, tree_limits=TreeLimits(entries=10))
    assert error.value.code is ErrorCode.TREE_LIMIT


def test_git_only_documents_are_never_among_those_to_apply(repo):
    policy = "apiVersion: gitops-ctl.dev/v1alpha1\nkind: TrustPolicy\n"
    found = load_tree(repo, {"policy.yaml": policy, "a.yaml": config_map("a")})
    assert names(found) == ["a"]
    assert [document.id.kind for document in found.git_only] == ["TrustPolicy"]


def test_a_folder_gives_what_its_commit_would_give(repo, tmp_path):
    files = {
        "a/b.yaml": config_map("a"),
        "c.yaml": config_map("c", data="{a: 1, a: 2}"),
        ".gitops-ctlignore": "x.yaml\n",
        "x.yaml": "a",
    }
    root = tmp_path / "tree"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".git").mkdir()
    (root / "link.yaml").symlink_to("c.yaml")
    from_folder = load_directory(root)
    from_tree = load_tree(repo, files | {"link.yaml": "c.yaml"}, modes={"link.yaml": pygit2.enums.FileMode.LINK})
    assert [document.digest for document in from_folder.documents] == [
        document.digest for document in from_tree.documents
    ]
    assert from_folder.problems == from_tree.problems
    assert from_folder.hidden == from_tree.hidden


def test_consents_and_the_policy_of_the_root_are_read_from_a_folder(tmp_path):
    (tmp_path / ".gitops-ctl/consents").mkdir(parents=True)
    (tmp_path / ".gitops-ctl/trust.yaml").write_text("apiVersion: gitops-ctl.dev/v1alpha1\nkind: TrustPolicy\n")
    (tmp_path / ".gitops-ctl/consents/a.yaml").write_text("apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\n")
    found = load_directory(tmp_path)
    assert [document.file for document in found.git_only] == [".gitops-ctl/consents/a.yaml", ".gitops-ctl/trust.yaml"]


def test_every_file_of_a_helm_chart_says_that_it_has_to_be_rendered(repo):
    found = load_tree(
        repo,
        {
            "app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
            "app/values.yaml": "replicas: 3\n",
            "app/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}-a\n",
            "other/values.yaml": "replicas: 3\n",
        },
    )
    assert [(problem.file, problem.code) for problem in found.problems] == [
        ("app/Chart.yaml", ErrorCode.NOT_RESOLVED),
        ("app/templates/a.yaml", ErrorCode.NOT_RESOLVED),
        ("app/values.yaml", ErrorCode.NOT_RESOLVED),
        ("other/values.yaml", ErrorCode.NOT_AN_OBJECT),
    ]
