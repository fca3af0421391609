"""What an object must be before anything looks into it, and what is left out of it.

In scope: identity, server fields, nulls, reserved marks, foreign formats.  Out of scope: YAML itself (test_loader.py).
"""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.loader import load
from tests.support.documents import codes, config_map, document, load_text


@pytest.mark.parametrize(
    "text",
    [
        "kind: ConfigMap\nmetadata: {name: a}\n",
        "apiVersion: v1\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: ConfigMap\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: a}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ''}\n",
        "- a\n- b\n",
        "just text\n",
        "replicaCount: 3\nimage: {tag: x}\n",
    ],
)
def test_what_names_no_object_is_an_error(text):
    loaded = load_text(text)
    assert loaded.documents == ()
    assert codes(loaded.problems) == [ErrorCode.NOT_AN_OBJECT]
    assert ".gitops-ctlignore" in loaded.problems[0].advice


@pytest.mark.parametrize(
    ("api_version", "kind", "metadata", "pointer"),
    [
        ("a/b/c", "Foo", '{name: "a"}', "/apiVersion"),
        ("../../api/v1", "Foo", '{name: "a"}', "/apiVersion"),
        ("x" * 254 + "/v1", "Foo", '{name: "a"}', "/apiVersion"),
        ("v1?", "Foo", '{name: "a"}', "/apiVersion"),
        ("v1", "Foo/Bar", '{name: "a"}', "/kind"),
        ("v1", "K" * 64, '{name: "a"}', "/kind"),
        ("v1", "Foo", '{name: "../secrets/a"}', "/metadata/name"),
        ("v1", "Foo", '{name: ".."}', "/metadata/name"),
        ("v1", "Foo", '{name: "a%2fb"}', "/metadata/name"),
        ("v1", "Foo", '{name: "a\\e[31m"}', "/metadata/name"),
        ("v1", "Foo", '{name: "' + "a" * 254 + '"}', "/metadata/name"),
        ("v1", "Foo", '{name: "a", namespace: ".."}', "/metadata/namespace"),
        ("v1", "Foo", '{name: "a", namespace: "b/configmaps/c?"}', "/metadata/namespace"),
        ("v1", "Foo", '{name: "a", namespace: "b\\n"}', "/metadata/namespace"),
    ],
)
def test_an_identity_that_no_server_can_have_is_an_error_of_its_document_alone(api_version, kind, metadata, pointer):
    text = f'apiVersion: "{api_version}"\nkind: "{kind}"\nmetadata: {metadata}\n---\n{config_map("sound")}'
    loaded = load_text(text)
    assert [found.id.name for found in loaded.documents] == ["sound"]
    assert [(found.code, found.pointer, found.object) for found in loaded.problems] == [
        (ErrorCode.SCHEMA, pointer, None)
    ]


def test_names_with_the_signs_that_some_kinds_allow_are_sound():
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:a?b#c'}\n"
    assert load_text(role).problems == ()


def test_S13_a_status_block_is_left_out_with_a_warning():
    loaded = load_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nstatus:\n  replicas: 3\n")
    (only,) = loaded.documents
    assert "status" not in only.tree
    (problem,) = loaded.problems
    assert (problem.code, problem.severity, problem.line) == (ErrorCode.STATUS_IGNORED, "warning", 4)
    assert only.digest == document("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n").digest


def test_S13_what_a_server_writes_into_metadata_is_left_out_with_a_warning():
    loaded = load_text("""
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          uid: 11111111-2222-3333-4444-555555555555
          resourceVersion: "7"
          creationTimestamp: "2026-11-01T08:00:00Z"
          managedFields: []
    """)
    assert loaded.documents[0].tree["metadata"] == {"name": "a"}
    assert {problem.code for problem in loaded.problems} == {ErrorCode.RESERVED_METADATA}
    assert not any(problem.is_error for problem in loaded.problems)


def test_S16_a_null_member_counts_as_left_out_the_same_way_each_time():
    text = "apiVersion: v1\nkind: T\nmetadata: {name: a, creationTimestamp: null}\nspec: {a: null, b: ~, c: , d: [null], e: {f: null}}\n"
    first, second = document(text), document(text)
    assert first.tree["spec"] == {"d": [None], "e": {}}
    assert first.tree["metadata"] == {"name": "a"}
    assert first.nulls == ("/metadata/creationTimestamp", "/spec/a", "/spec/b", "/spec/c", "/spec/e/f")
    assert first.digest == second.digest
    assert first.digest == document("apiVersion: v1\nkind: T\nmetadata: {name: a}\nspec: {d: [null], e: {}}\n").digest


def test_S16_nulls_in_json_are_treated_alike():
    loaded = load(b'{"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"}, "spec": {"a": null}}', file="a.json")
    assert loaded.documents[0].tree["spec"] == {}
    assert loaded.documents[0].nulls == ("/spec/a",)


def test_S21_a_generated_name_is_refused_with_its_place():
    loaded = load_text("apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: run-\n")
    assert [(problem.code, problem.line, problem.column) for problem in loaded.problems] == [
        (ErrorCode.GENERATE_NAME, 4, 3)
    ]
    assert loaded.documents == ()


@pytest.mark.parametrize("value", ["no", "on", "0777", "1_000", "1e3", "3"])
@pytest.mark.parametrize("block", ["labels", "annotations"])
def test_Y05_a_label_or_annotation_that_is_no_string_is_refused_with_the_fix(block, value):
    loaded = load_text(f"apiVersion: v1\nkind: T\nmetadata:\n  name: a\n  {block}:\n    mode: {value}\n")
    (problem,) = loaded.problems
    assert (problem.code, problem.line, problem.column) == (ErrorCode.NOT_A_STRING, 6, 5)
    assert problem.hint == f'quote it: "{value}"'
    assert problem.object == ObjectId("", "T", "", "a")
    assert loaded.documents == ()


@pytest.mark.parametrize("value", ["12:30:45", "2024-01-01", "1.2.3", "0o8"])
def test_Y05_what_only_looks_like_a_date_or_time_stays_a_string(value):
    tree = document(f"apiVersion: v1\nkind: T\nmetadata: {{name: a, annotations: {{mode: {value}}}}}\n").tree
    assert tree["metadata"]["annotations"] == {"mode": value}


def test_an_annotation_without_a_value_is_refused():
    loaded = load_text("apiVersion: v1\nkind: T\nmetadata: {name: a, annotations: {mode: }}\n")
    assert codes(loaded.problems) == [ErrorCode.NOT_A_STRING]


def test_a_name_that_is_a_number_is_refused():
    loaded = load_text("apiVersion: v1\nkind: T\nmetadata: {name: 007}\n")
    assert codes(loaded.problems) == [ErrorCode.NOT_A_STRING]


@pytest.mark.parametrize(
    "name", ["gitops-ctl.dev/owner-id", "gitops-ctl.dev/introduced-by", "gitops-ctl.dev/introduced-commit"]
)
def test_the_marks_of_the_controller_are_refused_in_git(name):
    loaded = load_text(f"apiVersion: v1\nkind: T\nmetadata: {{name: a, annotations: {{{name}: x}}}}\n")
    assert codes(loaded.problems) == [ErrorCode.RESERVED_METADATA]
    assert loaded.documents == ()


def test_the_owner_label_is_refused_in_git():
    loaded = load_text("apiVersion: v1\nkind: T\nmetadata: {name: a, labels: {gitops-ctl.dev/owner: x}}\n")
    assert codes(loaded.problems) == [ErrorCode.RESERVED_METADATA]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x, lastmodified: y}\n",
        "password: ENC[AES256_GCM,data:x]\nsops:\n  kms: []\n  mac: ENC[x]\n",
    ],
)
def test_a_file_encrypted_with_sops_says_so(text):
    loaded = load_text(text)
    assert codes(loaded.problems) == [ErrorCode.ENCRYPTED]
    assert loaded.documents == ()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a/kustomization.yaml", "resources: [a.yaml]\n"),
        ("a/kustomization.yml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"),
        ("a/base.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"),
        ("a/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        (
            "a/templates/x.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}-a\n{{- if .Values.x }}\n{{ end }}\n",
        ),
    ],
)
def test_what_has_to_be_rendered_first_says_so(file, text):
    loaded = load_text(text, file=file)
    assert codes(loaded.problems) == [ErrorCode.NOT_RESOLVED]
    assert "render it before the commit" in loaded.problems[0].advice


def test_a_pointer_of_git_lfs_is_refused():
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    assert codes(load_text(text).problems) == [ErrorCode.PATH_REFUSED]


def test_git_only_kinds_need_no_name():
    assert document("apiVersion: gitops-ctl.dev/v1alpha1\nkind: TrustPolicy\n").id.kind == "TrustPolicy"


def test_identity_has_no_version():
    old = document("apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: b}\n")
    new = document("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: b}\n")
    assert old.id == new.id
    assert old.gvk != new.gvk


def test_a_named_object_whose_kind_ends_in_list_is_an_object():
    text = "apiVersion: example.net/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [1, 2]\n"
    assert document(text).tree["items"] == [1, 2]


def test_a_problem_renders_code_cause_place_and_hint():
    (problem,) = load_text(config_map("a").replace("name: a", "name: a, generateName: b")).problems
    assert problem.render().splitlines() == [
        "error GC1012 generate-name",
        "  metadata.generateName would make a new object at every apply",
        "  place: site/a.yaml:3:21, document 1, /metadata/generateName",
        "  hint:  give the object a fixed metadata.name",
    ]
