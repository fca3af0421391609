"""`gitops-ctl check` on manifests that were published by others.

In scope: reading and checking.  Out of scope: applying them (cluster tests of the Sync).
"""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.checkcache import CheckCache
from gitops_ctl.documents.collection import load_directory
from gitops_ctl.documents.repository import CheckRequest, check_repository
from gitops_ctl.documents.schema import SchemaCatalog, is_crd
from tests.support.documents import document
from tests.support.published import published_manifests

pytestmark = pytest.mark.peers


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "repo"
    published_manifests(root)
    return root


def check(root, *, store):
    return check_repository(CheckRequest(root), cache=CheckCache(root, folder=store))


def test_published_manifests_are_read_and_found_in_order(checkout, tmp_path):
    report = check(checkout, store=tmp_path / "cache")
    assert report.problems == ()
    assert report.files >= 18
    assert report.documents >= 20


def test_one_of_them_has_more_than_a_megabyte_and_is_one_document(checkout):
    sizes = {file.name: file.stat().st_size for file in (checkout / "kueue").iterdir()}
    assert max(sizes.values()) > 10**6
    crds = [document for document in load_directory(checkout, path="kueue").documents if is_crd(document)]
    assert len(crds) == len(sizes)


def test_a_kustomization_among_them_is_told_apart(checkout, tmp_path):
    (checkout / "nfd/kustomization.yaml").write_text("resources: [nfd-api-crds.yaml]\n")
    (problem,) = check(checkout, store=tmp_path / "cache").problems
    assert (problem.code, problem.file) == (ErrorCode.NOT_RESOLVED, "nfd/kustomization.yaml")


FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: default
spec:
  nodeLabels:
    pool: {label}
"""


@pytest.mark.parametrize(
    ("label", "codes"), [("a", []), ("'1'", []), ("1", [ErrorCode.NOT_A_STRING]), ("[a]", [ErrorCode.SCHEMA])]
)
def test_objects_of_their_kinds_are_checked_by_their_schemas(checkout, tmp_path, label, codes):
    (checkout / "flavor.yaml").write_text(FLAVOR.format(label=label))
    report = check(checkout, store=tmp_path / "cache")
    assert [problem.code for problem in report.problems] == codes


def test_every_schema_among_them_can_be_used(checkout):
    crds = [document for document in load_directory(checkout).documents if is_crd(document)]
    catalog = SchemaCatalog(crds=crds)
    for crd in crds:
        for version in crd.tree["spec"]["versions"]:
            text = f"apiVersion: {crd.tree['spec']['group']}/{version['name']}"
            item = document(f"{text}\nkind: {crd.tree['spec']['names']['kind']}\nmetadata: {{name: a}}\n")
            assert ErrorCode.SCHEMA_REFUSED not in {problem.code for problem in catalog.check(item)}
