"""Rules of the contracts about single documents: annotations, names, consents, secrets, our own kinds."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.documents.annotations import depends_on, register_annotation
from gitops_ctl.documents.check import Checker
from gitops_ctl.documents.rules import check_rules, register_check
from gitops_ctl.documents.schema import SchemaCatalog
from gitops_ctl.documents.shape import Flaw
from tests.support.documents import codes, document

UID = "11111111-2222-3333-4444-555555555555"
SYNC = "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata: {{name: a, namespace: x, annotations: {{{note}}}}}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: x, annotations: {{{note}}}}}\n"


def annotated(note, *, text=MAP):
    return document(text.format(note=note))


@pytest.mark.parametrize(
    "note",
    [
        "gitops-ctl.dev/apply: Override",
        "gitops-ctl.dev/apply: IfNotPresent",
        "gitops-ctl.dev/apply: Ignore",
        "gitops-ctl.dev/prune: disabled",
        "gitops-ctl.dev/propagation: Orphan",
        f"gitops-ctl.dev/recreate: {UID}",
        "gitops-ctl.dev/depends-on: 'Namespace/x, Deployment.apps/x/b, ConfigMap/x/c'",
        "example.net/anything: x",
    ],
)
def test_an_annotation_of_the_contract_is_accepted(note):
    assert check_rules(annotated(note)) == []


@pytest.mark.parametrize(
    "note",
    [
        "gitops-ctl.dev/apply: override",
        "gitops-ctl.dev/prune: 'false'",
        "gitops-ctl.dev/propagation: Delete",
        "gitops-ctl.dev/recreate: now",
        "gitops-ctl.dev/depends-on: ''",
        "gitops-ctl.dev/depends-on: Deployment",
        "gitops-ctl.dev/depends-on: a/b/c/d",
        "gitops-ctl.dev/depends-on: ConfigMap/x/a",
        f"gitops-ctl.dev/allow-prune: 'sha256:{'0' * 64}'",
        "gitops-ctl.dev/prunes: disabled",
    ],
)
def test_an_annotation_with_another_value_or_name_is_refused_with_its_place(note):
    (problem,) = check_rules(annotated(note))
    assert (problem.code, problem.line, problem.column) == (ErrorCode.ANNOTATION_INVALID, 3, 49)


def test_a_misspelt_annotation_names_the_near_one():
    (problem,) = check_rules(annotated("gitops-ctl.dev/prunes: disabled"))
    assert problem.hint == "did you mean gitops-ctl.dev/prune?"


@pytest.mark.parametrize(
    ("value", "found"), [("sha256:" + "0" * 64, []), ("sha256:00", [ErrorCode.ANNOTATION_INVALID])]
)
def test_a_consent_to_prune_names_the_digest_of_a_set(value, found):
    assert codes(check_rules(annotated(f"gitops-ctl.dev/allow-prune: '{value}'", text=SYNC))) == found


def test_a_domain_registers_its_annotation_once():
    register_annotation("gitops-ctl.dev/trial", lambda value, _: "" if value == "yes" else "is not yes")
    assert check_rules(annotated("gitops-ctl.dev/trial: 'yes'")) == []
    assert codes(check_rules(annotated("gitops-ctl.dev/trial: other"))) == [ErrorCode.ANNOTATION_INVALID]
    with pytest.raises(ValueError, match="twice"):
        register_annotation("gitops-ctl.dev/trial", lambda _, __: "")


def test_dependencies_are_read_in_the_order_in_which_they_are_written():
    item = annotated("gitops-ctl.dev/depends-on: 'Namespace/x, Deployment.apps/x/b'")
    assert depends_on(item.tree) == (ObjectId("", "Namespace", "", "x"), ObjectId("apps", "Deployment", "x", "b"))


def test_a_plain_secret_is_a_warning():
    (problem,) = check_rules(
        document("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: hidden-value}\n")
    )
    assert (problem.code, problem.severity) == (ErrorCode.PLAIN_SECRET, "warning")
    assert "hidden-value" not in problem.render()


CONSENT = (
    "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\nverb: trust\npath: .gitops-ctl/trust.yaml\n"
    f"blob: {'a' * 40}\nnotAfter: '2026-12-15T00:00:00Z'\n"
)


def checked(text, *, file):
    return Checker(SchemaCatalog()).check(document(text, file=file))


def test_a_consent_in_its_folder_is_fine():
    assert checked(CONSENT, file=".gitops-ctl/consents/a.yaml") == []


def test_a_consent_elsewhere_is_misplaced():
    assert codes(checked(CONSENT, file="site/consent.yaml")) == [ErrorCode.MISPLACED]


def test_a_consent_that_shares_its_file_is_misplaced():
    from gitops_ctl.documents.loader import load

    second = load(f"{CONSENT}---\n{CONSENT}".encode(), file=".gitops-ctl/consents/a.yaml").documents[1]
    assert codes(check_rules(second)) == [ErrorCode.MISPLACED]


def test_a_consent_for_a_verb_that_needs_none_is_refused():
    found = checked(CONSENT.replace("verb: trust", "verb: merge"), file=".gitops-ctl/consents/a.yaml")
    assert codes(found) == [ErrorCode.SCHEMA]


def test_a_sync_that_depends_on_itself_is_refused():
    sync = "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata: {name: a, namespace: x}\nspec: {dependsOn: [b, a]}\n"
    (problem,) = check_rules(document(sync))
    assert (problem.code, problem.pointer) == (ErrorCode.DEPENDENCY_CYCLE, "/spec/dependsOn/1")


def test_a_registered_rule_sees_documents_of_its_kind_only():
    register_check(
        GroupKind("example.net", "Trial"), lambda item: [Flaw(ErrorCode.RULE, f"no {item.id.name}", "/spec")]
    )
    own = document("apiVersion: example.net/v1\nkind: Trial\nmetadata: {name: a}\nspec: {}\n")
    other = document("apiVersion: example.net/v1\nkind: Other\nmetadata: {name: a}\nspec: {}\n")
    assert [(problem.message, problem.line) for problem in check_rules(own)] == [("no a", 4)]
    assert check_rules(other) == []
