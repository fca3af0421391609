"""The verbs of each kind that has authorising fields (section 4.4, the table of verbs), and that none of them can hide."""

import copy
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.pointer import steps_of
from gitops_ctl.trust import kindverbs
from gitops_ctl.trust.verbs import authorising_fields, followed_fields, registered_kinds, value_at, verbs_between

CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
LABEL = "topology.cisco.vk/site"


def document(
    kind: GroupKind,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = "one",
    **members: object,
) -> JsonObject:
    metadata: dict[str, object] = {"name": name, "namespace": "demo"}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    metadata |= {"labels": dict(labels)} if labels else {}
    group = f"{kind.group}/" if kind.group else ""
    return {"apiVersion": f"{group}v1alpha1", "kind": kind.kind, "metadata": metadata, **members}  # type: ignore[dict-item]


def talos(*, mode: str = "", confirm: str = "", operation: object = None, **spec: object) -> JsonObject:
    cni: dict[str, object] = {"kubeProxy": mode} if mode else {}
    cni |= {"operation": operation} if operation is not None else {}
    return document(
        kindverbs.TALOS_CLUSTER, annotations={CONFIRM: confirm} if confirm else None, spec={"cni": cni, **spec}
    )


def rollout(**spec: object) -> JsonObject:
    return document(kindverbs.ROLLOUT, spec=spec)


def device(*, labels: Mapping[str, str] | None = None, name: str = "one", **spec: object) -> JsonObject:
    return document(kindverbs.DEVICE, labels=labels, name=name, spec=spec)


def source(*, annotations: Mapping[str, str] | None = None, **webhook: object) -> JsonObject:
    spec: dict[str, object] = {"webhook": webhook} if webhook else {"snapshot": {"name": "s"}}
    return document(kindverbs.TOPOLOGY_SOURCE, annotations=annotations, spec=spec)


def controller(**spec: object) -> JsonObject:
    return document(kindverbs.NETWORK_CONTROLLER, spec=spec)


def policy(data: Mapping[str, str], *, name: str = "fleet", marked: bool = True) -> JsonObject:
    marks = {"topology.cisco.vk/managed-policy": "true"} if marked else None
    return document(kindverbs.CONFIG_MAP, annotations=marks, name=name, data=dict(data))


CASES: dict[str, tuple[JsonObject | None, JsonObject | None, set[str]]] = {
    "a new cluster": (None, talos(mode="enabled"), {"edit"}),
    "a new cluster that steers an operation": (None, talos(operation={"resume": 1}), {"edit", "control"}),
    "a new cluster with a consent": (None, talos(mode="replaced", confirm="replaced"), {"edit", "consent"}),
    "the wanted mode": (talos(mode="enabled"), talos(mode="replaced"), {"edit"}),
    "the consent alone": (talos(mode="replaced"), talos(mode="replaced", confirm="replaced"), {"consent"}),
    "mode and consent": (talos(), talos(mode="replaced", confirm="replaced"), {"edit", "consent"}),
    "a consent for the other mode": (talos(confirm="replaced"), talos(confirm="enabled"), {"consent"}),
    "a spent consent that goes": (talos(confirm="replaced"), talos(), {"edit"}),
    "resuming": (talos(operation={"resume": 0}), talos(operation={"resume": 1}), {"control"}),
    "steering taken back": (talos(operation={"cancel": True}), talos(), {"control"}),
    "a cluster goes": (talos(), None, {"delete"}),
    "a new rollout": (None, rollout(plan={"a": 1}), {"plan"}),
    "a new rollout that is approved already": (
        None,
        rollout(plan={}, approval={}, activationApproval={}, control={}),
        {"plan", "approve", "activate", "control"},
    ),
    "an activation": (rollout(plan={}), rollout(plan={}, activationApproval={"x": 1}), {"activate"}),
    "an invalidation": (rollout(plan={}), rollout(plan={}, preparationInvalidation={"x": 1}), {"recover"}),
    "a recovery": (rollout(plan={}), rollout(plan={}, recovery={"x": 1}), {"recover"}),
    "pausing": (rollout(plan={}), rollout(plan={}, control={"revision": 1, "pause": True}), {"control"}),
    "a rollout goes": (rollout(plan={}), None, {"delete", "control"}),
    "an unknown member of a rollout": (rollout(plan={}), rollout(plan={}, note="n"), {"edit"}),
    "a new device": (None, device(address="192.0.2.1"), {"topology", "edit"}),
    "the address of a device": (device(address="192.0.2.1"), device(address="192.0.2.2"), {"edit"}),
    "a protected label": (device(labels={LABEL: "a"}), device(labels={LABEL: "b"}), {"topology"}),
    "a protected label that goes": (device(labels={LABEL: "a", "x": "1"}), device(labels={"x": "1"}), {"topology"}),
    "a risk label beside an ordinary one": (
        device(labels={"x": "1"}),
        device(labels={"x": "2", "operations.cisco.vk/service-tier": "gold"}),
        {"topology", "edit"},
    ),
    "a zone": (device(), device(labels={"topology.kubernetes.io/zone": "z"}), {"topology"}),
    "the chassis": (device(physicalIdentity="A"), device(physicalIdentity="B"), {"topology"}),
    "a device goes": (device(), None, {"delete"}),
    "a new source with a webhook": (None, source(url="https://192.0.2.1/"), {"endpoint", "edit"}),
    "a new source without one": (None, source(), {"edit"}),
    "another URL": (source(url="https://192.0.2.1/"), source(url="https://192.0.2.2/"), {"endpoint"}),
    "another token": (source(url="u"), source(url="u", bearerTokenSecretRef={"name": "t"}), {"endpoint"}),
    "the webhook goes": (source(url="u"), source(), {"edit"}),
    "the authority of a source goes": (
        source(url="u", caBundleConfigMapRef={"name": "ca"}),
        source(url="u"),
        {"endpoint"},
    ),
    "the webhook goes with its authority": (
        source(url="u", caBundleConfigMapRef={"name": "ca"}),
        source(),
        {"edit"},
    ),
    "how often a webhook is asked": (source(url="u"), source(url="u", pollInterval="5m"), {"edit"}),
    "a node drop that is agreed to": (
        source(),
        source(annotations={"gitops-ctl.dev/allow-node-drop": "sha256:1"}),
        {"consent"},
    ),
    "a new controller": (None, controller(endpoint="https://192.0.2.1"), {"endpoint", "edit"}),
    "the credentials of a controller": (
        controller(endpoint="e", credentialSecretRef={"name": "a"}),
        controller(endpoint="e", credentialSecretRef={"name": "b"}),
        {"endpoint"},
    ),
    "the authority of a controller goes": (
        controller(endpoint="e", tls={"caConfigMapRef": {"name": "a"}}),
        controller(endpoint="e"),
        {"endpoint"},
    ),
    "pausing a controller": (controller(endpoint="e"), controller(endpoint="e", paused=True), {"edit"}),
    "a drain window": (
        document(kindverbs.CLUSTER_QUEUE, spec={}),
        document(kindverbs.CLUSTER_QUEUE, annotations={"gitops-ctl.dev/drain-window": "a/b"}, spec={}),
        {"consent"},
    ),
    "the rollout policy": (policy({"policy.json": "{}"}), policy({"policy.json": "[]"}), {"policy"}),
    "a policy that loses its mark": (policy({"x": "1"}), policy({"x": "1"}, marked=False), {"policy"}),
    "a policy by its name": (None, policy({"policy.json": "{}"}, name="net-topology-policy", marked=False), {"policy"}),
    "the policy goes": (policy({"x": "1"}), None, {"policy", "delete"}),
    "another ConfigMap": (None, policy({"x": "1"}, name="other", marked=False), {"edit"}),
    "another ConfigMap goes": (policy({"x": "1"}, name="other", marked=False), None, {"delete"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verbs_of_a_change(name: str) -> None:
    old, new, expected = CASES[name]
    assert set(verbs_between(old, new)) == expected


def test_a_consent_names_the_field_that_it_speaks_about_so_that_both_are_followed() -> None:
    found = followed_fields(talos(mode="replaced", confirm="replaced", operation={"resume": 1}))
    assert found == (
        ("consent", kindverbs.CONFIRM_SWITCH),
        ("control", "/spec/cni/operation"),
        ("control", "/spec/cni/operation/resume"),
        ("edit", "/spec/cni/kubeProxy"),
    )


KINDS = sorted(
    registered_kinds() - {GroupKind("gitops-ctl.dev", "TrustPolicy"), GroupKind("gitops-ctl.dev", "Consent")}
)
_LEAVES = st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["a", "replaced", "enabled", ""]))
_NAMES = st.sampled_from(
    [
        "cni",
        "operation",
        "kubeProxy",
        "plan",
        "approval",
        "activationApproval",
        "preparationInvalidation",
        "recovery",
        "control",
        "webhook",
        "url",
        "bearerTokenSecretRef",
        "endpoint",
        "credentialSecretRef",
        "tls",
        "deviceAdoption",
        "physicalIdentity",
        "labels",
        "note",
    ]
)
_VALUES = st.recursive(_LEAVES, lambda inner: st.dictionaries(_NAMES, inner, max_size=3) | st.lists(inner, max_size=2))
_MARKS = st.dictionaries(
    st.sampled_from([CONFIRM, LABEL, "gitops-ctl.dev/recreate", "gitops-ctl.dev/allow-node-drop", "note"]),
    st.sampled_from(["a", "b", "replaced"]),
    max_size=3,
)


@st.composite
def documents(draw: st.DrawFn, kind: GroupKind) -> JsonObject:
    return document(
        kind, annotations=draw(_MARKS), labels=draw(_MARKS), spec=draw(st.dictionaries(_NAMES, _VALUES, max_size=4))
    )


@pytest.mark.property
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_change_has_a_verb_and_no_authorising_field_hides_in_an_edit(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    old = data.draw(st.none() | documents(kind))
    new = data.draw(documents(kind))
    verbs = verbs_between(old, new)
    if old == new:
        return
    assert verbs, "a change without a verb would be judged by nobody"
    for verb, pointer in authorising_fields(new):
        before, after = value_at(old, pointer), value_at(new, pointer)
        if before != after or type(before) is not type(after):
            covered = verbs.get(verb, ())
            assert any(pointer == each or pointer.startswith(f"{each}/") for each in covered), (verb, pointer, verbs)


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_no_row_names_is_an_edit(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    old = data.draw(documents(kind))
    new = copy.deepcopy(old)
    new["spec"]["somethingUnheardOf"] = data.draw(_VALUES)  # type: ignore[index]
    assert verbs_between(old, new) == {"edit": ("",)}


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_an_authorising_field_that_goes_is_named_too_unless_it_is_a_consent(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kindverbs.TALOS_CLUSTER, kindverbs.ROLLOUT, kindverbs.NETWORK_CONTROLLER]))
    old = data.draw(documents(kind))
    for verb, pointer in authorising_fields(old):
        new = copy.deepcopy(old)
        *way, last = steps_of(pointer)
        place: dict[str, object] = new  # type: ignore[assignment]
        for step in way:
            place = place[step]  # type: ignore[assignment]
        del place[last]
        assert set(verbs_between(old, new)) == ({"edit"} if verb == "consent" else {verb})
