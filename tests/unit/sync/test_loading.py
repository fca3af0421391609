"""Checking on the way in: once per document, and what only the server or another unit can know is no error."""

from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.sync.loading import CheckedLoader
from gitops_ctl.trust.provenance import AcceptedRevision
from tests.support.git_repos import RepoBuilder
from tests.support.sync import NOBODY, config_map
from tests.support.sync_cluster import Loader


class Repository:
    """A repository and a loader on it."""

    def __init__(self, folder: Path) -> None:
        self.repo = RepoBuilder(folder / "repo")
        self.reader = Loader()
        self.loader = CheckedLoader(self.reader)

    def load(self, files: dict[str, str], *, delete: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
        commit = self.repo.commit(files, delete=delete)
        tree = self.repo.git("rev-parse", f"{commit}^{{tree}}")
        source = NamespacedName("team", "network")
        revision = AcceptedRevision(
            source,
            "u",
            self.repo.url,
            "main",
            commit,
            tree,
            self.repo.git_dir,
            NOBODY,
            1,
            trusted=True,
            effects_allowed=True,
        )
        return self.loader(revision, "")


def test_one_changed_file_is_read_and_checked_once(tmp_path: Path) -> None:
    site = Repository(tmp_path)
    site.load({f"{name}.yaml": config_map(name) for name in "abc"})
    site.load({"a.yaml": config_map("a", data="2")})
    assert (site.reader.cache.parsed, site.loader.checked) == (4, 4)


def test_S01_what_the_schema_merges_by_key_is_checked_before_the_server_sees_it(tmp_path: Path) -> None:
    env = "[{name: A, value: one}, {name: A, value: two}]"
    pod = f"{{containers: [{{name: w, image: i, env: {env}}}]}}"
    text = f"{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: lab}}, spec: {pod}}}"
    found = Repository(tmp_path).load({"p.yaml": text, "a.yaml": config_map("a")})
    assert [(problem.code, problem.file) for problem in found.problems] == [(ErrorCode.MERGE_KEY_REPEATED, "p.yaml")]
    assert len(found.documents) == 2


def test_kinds_and_objects_that_others_may_know_are_no_errors(tmp_path: Path) -> None:
    custom = "{apiVersion: x.example.net/v1, kind: W, metadata: {name: w, namespace: lab}}"
    elsewhere = config_map("a", annotations={"gitops-ctl.dev/depends-on": "ConfigMap/lab/elsewhere"})
    assert Repository(tmp_path).load({"w.yaml": custom, "a.yaml": elsewhere}).problems == ()


def test_a_definition_of_the_unit_checks_its_resources_also_after_it_changed(tmp_path: Path) -> None:
    def definition(kind: str) -> str:
        schema = f"{{type: object, properties: {{spec: {{type: object, properties: {{size: {{type: {kind}}}}}}}}}}}"
        version = f"{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}"
        names = "{kind: W, listKind: WList, plural: ws, singular: w}"
        spec = f"{{group: example.net, scope: Namespaced, names: {names}, versions: [{version}]}}"
        api = "apiextensions.k8s.io/v1"
        return (
            f"{{apiVersion: {api}, kind: CustomResourceDefinition, metadata: {{name: ws.example.net}}, spec: {spec}}}"
        )

    site = Repository(tmp_path)
    resource = "{apiVersion: example.net/v1, kind: W, metadata: {name: w, namespace: lab}, spec: {size: 1}}"
    assert site.load({"crd.yaml": definition("integer"), "w.yaml": resource}).problems == ()
    (problem,) = site.load({"crd.yaml": definition("string")}).problems
    assert (problem.code, problem.file, problem.pointer) == (ErrorCode.NOT_A_STRING, "w.yaml", "/spec/size")
