"""Checking a whole checkout: what is taken over from the last run, and when it is not.

In scope: the store of reports, processes, findings between files.  Out of scope: forms of output (test_cli_check.py).
"""

import json
import os
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.check import check_set
from gitops_ctl.documents.checkcache import CheckCache
from gitops_ctl.documents.collection import load_directory
from gitops_ctl.documents.repository import Accepted, CheckRequest, check_repository
from gitops_ctl.documents.schema import SchemaCatalog
from tests.support.documents import codes, config_map


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.root.mkdir()
        self.store = folder / "cache"

    def write(self, path, text):
        """Write a file below the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def check(self, **options):
        cache = CheckCache(self.root, folder=self.store)
        # The clock of the file system: everything that was written so far is old news.
        cache.now_ns = lambda: 2**62
        return check_repository(CheckRequest(self.root, **options), cache=cache)

    @property
    def stored(self):
        (file,) = (self.store / "check").iterdir()
        return file


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_the_second_run_parses_nothing_and_finds_the_same(checkout):
    for number in range(5):
        checkout.write(f"{number}.yaml", config_map(f"c{number}", data="{a: 1}"))
    first, second = checkout.check(), checkout.check()
    assert (first.checked, second.checked) == (5, 0)
    assert first.problems == second.problems
    assert codes(first.problems) == [ErrorCode.NOT_A_STRING] * 5
    assert second.documents == 5


def test_one_changed_file_is_the_only_one_that_is_parsed(checkout):
    for number in range(5):
        checkout.write(f"{number}.yaml", config_map(f"c{number}"))
    checkout.check()
    checkout.write("3.yaml", config_map("c3", data="{a: 1}"))
    again = checkout.check()
    assert again.checked == 1
    assert [problem.file for problem in again.problems] == ["3.yaml"]


def test_a_file_with_a_new_stamp_and_the_same_bytes_is_not_parsed_again(checkout):
    file = checkout.write("a.yaml", config_map("a"))
    checkout.check()
    os.utime(file, ns=(1, 1))
    assert checkout.check().checked == 0


def test_a_file_written_as_fast_as_the_clock_ticks_is_read_again(checkout):
    file = checkout.write("a.yaml", config_map("a"))
    cache = CheckCache(checkout.root, folder=checkout.store)
    check_repository(CheckRequest(checkout.root), cache=cache)
    status = file.stat()
    file.write_text(config_map("b"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    stored = cache.load()
    assert stored.digest_of("a.yaml", (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)) == ""
    assert check_repository(CheckRequest(checkout.root), cache=cache).checked == 1


def test_findings_between_files_follow_a_change_in_another_file(checkout):
    note = "gitops-ctl.dev/depends-on: ConfigMap/team-a/b"
    checkout.write(
        "a.yaml", config_map("a").replace("namespace: team-a", f"namespace: team-a, annotations: {{{note}}}")
    )
    file = checkout.write("b.yaml", config_map("b"))
    assert checkout.check().problems == ()
    file.unlink()
    (problem,) = checkout.check().problems
    assert (problem.code, problem.file, problem.line) == (ErrorCode.REFERENCE, "a.yaml", 3)


def test_a_changed_definition_checks_everything_again(checkout):
    crd = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.net}\n"
        "spec: {group: example.net, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true,"
        " storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: %s}}}}}}}]}\n"
    )
    checkout.write("crd.yaml", crd % "string")
    checkout.write(
        "w.yaml", "apiVersion: example.net/v1\nkind: Widget\nmetadata: {name: w, namespace: x}\nspec: {a: text}\n"
    )
    assert checkout.check().problems == ()
    checkout.write("crd.yaml", crd % "integer")
    (problem,) = checkout.check().problems
    assert (problem.file, problem.code) == ("w.yaml", ErrorCode.SCHEMA)
    (checkout.root / "crd.yaml").unlink()
    assert codes(checkout.check().problems) == [ErrorCode.KIND_UNKNOWN]


@pytest.mark.parametrize("damage", [b"", b"not a store", b"\x00" * 100], ids=["empty", "text", "zeros"])
def test_a_damaged_store_costs_time_and_nothing_else(checkout, damage):
    checkout.write("a.yaml", config_map("a", data="{a: 1}"))
    first = checkout.check()
    checkout.stored.write_bytes(damage)
    assert checkout.check() == first
    assert checkout.check().checked == 0


def test_one_flipped_byte_in_the_store_is_noticed(checkout):
    checkout.write("a.yaml", config_map("a", data="{a: 1}"))
    first = checkout.check()
    raw = bytearray(checkout.stored.read_bytes())
    raw[len(raw) // 2] ^= 1
    checkout.stored.write_bytes(bytes(raw))
    assert checkout.check() == first


def test_a_store_with_a_valid_sum_and_foreign_rows_is_not_believed(checkout):
    import hashlib

    checkout.write("a.yaml", config_map("a", data="{a: 1}"))
    first = checkout.check()
    tree = json.loads(checkout.stored.read_bytes().partition(b"\n")[2])
    tree["files"]["a.yaml"][1][2] = "nonsense"
    payload = json.dumps(tree).encode()
    checkout.stored.write_bytes(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
    assert checkout.check() == first


def test_a_cache_folder_that_cannot_be_written_costs_time_and_nothing_else(checkout):
    checkout.write("a.yaml", config_map("a"))
    checkout.store.write_text("a file where a folder should be")
    assert checkout.check().checked == 1
    assert checkout.check().checked == 1


def test_many_files_are_checked_in_several_processes_with_the_same_result(checkout):
    for number in range(450):
        checkout.write(
            f"{number % 7}/{number}.yaml", config_map(f"c{number}", data="{a: 1}" if number % 50 == 0 else "{}")
        )
    alone = check_repository(CheckRequest(checkout.root, processes=1))
    together = check_repository(CheckRequest(checkout.root, processes=2))
    assert alone == together
    assert len(alone.problems) == 9


def test_the_fast_way_finds_what_the_plain_way_finds(checkout):
    checkout.write(".gitops-ctlignore", "values.yaml\n!x\n")
    checkout.write("values.yaml", "a: 1\n")
    checkout.write("a/a.yaml", config_map("a", data="{a: 1}") + "---\n" + config_map("b"))
    checkout.write("b/a.yaml", config_map("a") + "---\nkind: [\n")
    checkout.write(".gitops-ctl/consents/c.yaml", "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\n")
    plain = check_set(load_directory(checkout.root), catalog=SchemaCatalog())
    assert checkout.check().problems == plain


def test_policies_and_the_accepted_version_are_part_of_what_is_known(checkout):
    policy = checkout.root.parent / "policy.yaml"
    text = (
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n"
        "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}\n"
        '  validations: [{expression: "%s"}]\n'
    )
    checkout.write("a.yaml", config_map("a", data="{v: '2'}"))
    policy.write_text(text % "object.data.v == '2'")
    assert checkout.check(policies=(policy,)).problems == ()
    policy.write_text(text % "oldObject == null || object.data.v < oldObject.data.v")
    accepted = load_directory(checkout.root).by_id
    before = Accepted("t1", lambda: {name: document.tree for name, document in accepted.items()})
    assert checkout.check(policies=(policy,)).problems == ()
    assert codes(checkout.check(policies=(policy,), accepted=before).problems) == [ErrorCode.RULE]
    policy.write_text(text % "object.")
    with pytest.raises(Refused, match="policy p"):
        checkout.check(policies=(policy,))


def test_two_folders_are_checked_as_one_set(checkout):
    checkout.write("a/a.yaml", config_map("a"))
    checkout.write("b/a.yaml", config_map("a"))
    checkout.write("c/a.yaml", "kind: [\n")
    report = checkout.check(folders=("a", "b"))
    assert [(problem.code, problem.file) for problem in report.problems] == [(ErrorCode.DUPLICATE_IDENTITY, "b/a.yaml")]


def test_a_file_full_of_findings_is_read_again_once(tmp_path):
    many = 2000
    note = "annotations: {gitops-ctl.dev/depends-on: ConfigMap/team-a/m-%d}"
    texts = [
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m-{place}, namespace: team-a, {note % ((place + 1) % many)}}}\n"
        for place in range(many)
    ]
    (tmp_path / "a.yaml").write_text("---\n".join(texts))
    report = check_repository(CheckRequest(root=tmp_path))
    assert {problem.code for problem in report.problems} == {ErrorCode.DEPENDENCY_CYCLE}
    assert [problem.line for problem in report.problems] == [3 + 4 * place for place in range(many)]
