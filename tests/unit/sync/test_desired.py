"""From documents to desired objects: marks, namespaces, consents, document errors.  Parsing itself belongs to documents."""

from dataclasses import replace
from typing import Any

import pytest

import gitops_ctl.cni.holds  # noqa: F401 - registers the rules of a TalosCluster
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.desired import Elsewhere, UnitSpec, desired_state, is_consented
from gitops_ctl.sync.model import OwnerId, Standing
from tests.support.sync import NOBODY, OTHER, OWNER, config_map, consent_by, desired, documents, is_namespaced, state_of

RECREATE = "gitops-ctl.dev/recreate"


def test_the_body_carries_owner_label_and_full_mark_beside_what_git_says() -> None:
    metadata = desired(config_map(annotations={"note": "x"})).body()["metadata"]
    assert metadata == {
        "name": "a",
        "namespace": "lab",
        "labels": {"gitops-ctl.dev/owner": OWNER.label},
        "annotations": {
            "note": "x",
            "gitops-ctl.dev/owner-id": "11111111-2222-3333-4444-555555555555/team/network/site:/ConfigMap:lab/a",
        },
    }
    assert len(OWNER.label) == 32


def test_a_mark_that_names_another_object_is_no_mark() -> None:
    one, other = ObjectId("", "ConfigMap", "lab", "a"), ObjectId("", "ConfigMap", "lab", "b")
    assert OwnerId.of_mark(OWNER.mark(one), identity=one) == OWNER
    assert OwnerId.of_mark(OWNER.mark(one), identity=other) is None
    assert OwnerId.of_mark("nonsense", identity=one) is None


def test_the_target_namespace_is_for_namespaced_documents_that_name_none() -> None:
    text = (
        "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}\n"
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: lab}}\n" + config_map("placed", namespace="own")
    )
    state = state_of(text, unit=UnitSpec(OWNER, target_namespace="lab"))
    assert sorted(str(item) for item in state.objects) == [
        "ConfigMap/lab/bare",
        "ConfigMap/own/placed",
        "Namespace/lab",
    ]


def test_without_any_namespace_the_object_is_held_and_prune_stops() -> None:
    state = state_of("{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}")
    assert not state.objects
    assert not state.complete
    assert "targetNamespace" in state.held[0].message
    assert (state.held[0].file, state.held[0].line) == ("site.yaml", 1)


def test_the_scope_of_a_kind_that_is_not_served_comes_from_its_definition_in_the_unit() -> None:
    text = (
        "---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ws.example.net},"
        " spec: {group: example.net, scope: Cluster, names: {kind: W}}}\n"
        "---\n{apiVersion: example.net/v1, kind: W, metadata: {name: w}}\n"
    )
    state = state_of(text, unit=UnitSpec(OWNER, target_namespace="lab"))
    assert ObjectId("example.net", "W", "", "w") in state.objects


def test_Y02_a_broken_document_holds_its_object_and_the_others_are_there() -> None:
    text = (
        config_map("good")
        + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, namespace: lab}\ndata: {a: 1, a: 2}\n"
    )
    state = state_of(text)
    assert [item.name for item in state.objects] == ["good"]
    assert [(item.id.name, item.why) for item in state.held] == [("bad", "DocumentInvalid")]
    assert not state.complete
    assert not state.unit_held


def test_hold_unit_applies_nothing_while_a_document_has_an_error() -> None:
    state = state_of("---\nkind: [\n", unit=UnitSpec(OWNER, hold_unit=True))
    assert state.unit_held
    assert set(state.broken_files) == {"site.yaml"}


def test_a_document_of_its_own_git_source_is_held() -> None:
    text = (
        "{apiVersion: gitops-ctl.dev/v1alpha1, kind: GitSource, metadata: {name: network, namespace: team}, spec: {}}"
    )
    (held,) = state_of(text).held
    assert held.code is ErrorCode.OWN_SOURCE


@pytest.mark.parametrize("annotation", [{"gitops-ctl.dev/apply": "Sometimes"}, {"gitops-ctl.dev/depends-on": "a"}])
def test_an_annotation_that_cannot_be_read_holds_the_object(annotation: dict[str, str]) -> None:
    state = state_of(config_map(annotations=annotation))
    assert [item.code for item in state.held] == [ErrorCode.ANNOTATION_INVALID]


def test_a_consent_counts_only_when_a_person_introduced_its_present_value() -> None:
    text = config_map(annotations={RECREATE: "uid-1"})
    alone = desired(text)
    identity = ObjectId("", "ConfigMap", "lab", "a")
    signed = desired(text, provenance=consent_by("change-approver", identity, RECREATE))
    assert not is_consented(alone, RECREATE, "uid-1")
    assert is_consented(signed, RECREATE, "uid-1")
    assert not is_consented(signed, RECREATE, "uid-2")
    annotations = signed.body()["metadata"]["annotations"]  # type: ignore[index,call-overload]
    assert annotations["gitops-ctl.dev/introduced-by"] == "consent=change-approver"
    assert annotations["gitops-ctl.dev/introduced-commit"] == "consent=" + "c" * 40


def test_the_declared_digest_follows_content_and_owner_and_not_the_place_in_the_file() -> None:
    one = desired(config_map())
    moved = desired("# a comment\n\n" + config_map())
    changed = desired(config_map(data="2"))
    elsewhere = desired(config_map(), unit=UnitSpec(replace(OWNER, sync="other")))
    assert one.digest == moved.digest
    assert len({one.digest, changed.digest, elsewhere.digest}) == 3


def test_S21_generate_name_never_becomes_a_desired_object() -> None:
    state = state_of("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, namespace: lab}}")
    assert not state.objects
    assert not state.complete


def test_S13_a_status_block_is_not_part_of_the_body() -> None:
    text = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: lab}, spec: {replicas: 0}, status: {replicas: 9}}"
    assert "status" not in desired(text).body()


def test_S16_an_explicit_null_is_the_same_as_leaving_it_out() -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: lab}, data: {key: '1'}, binaryData: null}"
    assert desired(text).digest == desired(config_map()).digest


def test_objects_of_the_same_document_are_taken_over_from_the_revision_before() -> None:
    found = documents(config_map("a") + config_map("b", annotations={RECREATE: "uid-1"}))
    arguments: dict[str, Any] = {"unit": UnitSpec(OWNER), "provenance": NOBODY, "is_namespaced": is_namespaced}
    before = desired_state(found, **arguments)
    after = desired_state(found, **arguments, known=before.objects)
    other = desired_state(found, **{**arguments, "unit": UnitSpec(OTHER)}, known=before.objects)
    one, consented = sorted(before.objects)
    assert after.objects[one] is before.objects[one]
    assert after.objects[consented] is not before.objects[consented]
    assert other.objects[one].digest != before.objects[one].digest


CLUSTER = "---\n{apiVersion: ichor.maesh.dev/v1alpha1, kind: TalosCluster, metadata: {name: north%s}, spec: {}}\n"
CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
CONFIRM_AT = f"/metadata/annotations/{CONFIRM.replace('/', '~1')}"


def consented_in(namespace: str, *elsewhere: Elsewhere, file: str = "clusters/north.yaml") -> Standing:
    text = CLUSTER % (f", namespace: {namespace}" if namespace else "")
    provenance = consent_by("ann", ObjectId("ichor.maesh.dev", "TalosCluster", namespace, "north"), CONFIRM)
    unit = UnitSpec(OWNER, target_namespace="lab", elsewhere=elsewhere)
    return desired(text, unit=unit, provenance=provenance, file=file).standing


@pytest.mark.parametrize("folder", ["", "clusters", "/clusters/"])
def test_one_consent_for_the_objects_of_two_syncs_counts_for_neither(folder: str) -> None:
    for namespace, twin in (
        ("", Elsewhere("south", folder, "hall", is_other_cluster=False)),
        ("", Elsewhere("south", folder, "", is_other_cluster=True)),
        ("lab", Elsewhere("south", folder, "", is_other_cluster=True)),
    ):
        standing = consented_in(namespace, twin)
        assert standing.of(CONFIRM_AT) is None
        assert "Sync south makes another object of this document" in standing.why_void(CONFIRM_AT)


@pytest.mark.parametrize(
    ("namespace", "other"),
    [
        ("lab", Elsewhere("south", "", "hall", is_other_cluster=False)),
        ("", Elsewhere("south", "", "lab", is_other_cluster=False)),
        ("", Elsewhere("south", "", "", is_other_cluster=False)),
        ("", Elsewhere("south", "cluster", "hall", is_other_cluster=False)),
    ],
)
def test_a_consent_counts_where_no_other_sync_makes_another_object_of_its_document(
    namespace: str, other: Elsewhere
) -> None:
    assert consented_in(namespace).of(CONFIRM_AT) is not None
    assert consented_in(namespace, other).of(CONFIRM_AT) is not None
