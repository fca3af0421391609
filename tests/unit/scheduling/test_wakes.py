"""What wakes a source, and its life (topology-scheduling.md, 3.4 and 3.5; cases 33, 42, 43 and 58)."""

import copy

import pytest

from gitops_ctl.scheduling.wakes import (
    Lifecycle,
    Reference,
    lifecycle,
    woken_by_feature,
    woken_by_node,
    woken_by_reference,
    woken_by_source,
)

FINALIZER = "worker.gpustack.ai/topology-source"
NAMESPACE = "gpustack-system"
MAP = {"configMapRef": {"namespace": NAMESPACE, "name": "hall"}, "key": "k", "maxStaleness": "1m"}
WEB = {
    "caBundleConfigMapRef": {"namespace": NAMESPACE, "name": "ca"},
    "bearerTokenSecretRef": {"namespace": NAMESPACE, "name": "token"},
}


def source(name, *, levels=("a",), generation=1, **arm):
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": generation},
        "spec": {"levels": list(levels), "nodeSelector": {}, **arm},
    }


READER = source("reader", nodeLabels={})
MAPPED = source("mapped", configMap=MAP)
WEBBED = source("webbed", levels=("b",), webhook=WEB)
ALL = [READER, MAPPED, WEBBED]


def node(**labels):
    return {"metadata": {"name": "n", "labels": labels}}


def changed(tree, **metadata):
    other = copy.deepcopy(tree)
    other["metadata"] |= metadata
    return other


def test_a_node_wakes_all_when_it_comes_or_goes_and_readers_when_it_is_relabelled():
    """Case 43."""
    assert woken_by_node(ALL, None, node()) == ("mapped", "reader", "webbed")
    assert woken_by_node(ALL, node(), None) == ("mapped", "reader", "webbed")
    assert woken_by_node(ALL, node(a="1"), node(a="2")) == ("reader",)
    assert woken_by_node(ALL, node(a="1"), {**node(a="1"), "status": {"x": 1}}) == ()


@pytest.mark.parametrize(
    ("reference", "woken"),
    [
        (Reference("ConfigMap", NAMESPACE, "hall"), ("mapped",)),
        (Reference("ConfigMap", NAMESPACE, "ca"), ("webbed",)),
        (Reference("Secret", NAMESPACE, "token"), ("webbed",)),
        (Reference("Secret", NAMESPACE, "other"), ()),
        (Reference("Secret", NAMESPACE, "hall"), ()),
        (Reference("ConfigMap", "default", "hall"), ()),
    ],
)
def test_what_a_source_reads_wakes_it_and_nothing_else_does(reference, woken):
    """Case 58."""
    assert woken_by_reference(ALL, reference) == woken


def test_a_node_feature_wakes_the_source_that_controls_it():
    """Case 33."""
    owner = {"apiVersion": "worker.gpustack.ai/v1", "kind": "TopologySource", "uid": "uid-mapped", "controller": True}
    assert woken_by_feature(ALL, {"metadata": {"ownerReferences": [owner]}}) == ("mapped",)
    assert woken_by_feature(ALL, {"metadata": {"ownerReferences": [{**owner, "controller": False}]}}) == ()
    assert woken_by_feature(ALL, {"metadata": {"ownerReferences": [{**owner, "kind": "Other"}]}}) == ()
    assert woken_by_feature(ALL, {"metadata": {}}) == ()


def test_a_status_write_wakes_nobody():
    """D11."""
    assert woken_by_source(ALL, MAPPED, {**MAPPED, "status": {"x": 1}}) == ()
    assert woken_by_source(ALL, MAPPED, changed(MAPPED, resourceVersion="8", labels={"a": "b"})) == ()


@pytest.mark.parametrize(
    "metadata",
    [
        {"generation": 2},
        {"finalizers": [FINALIZER]},
        {"annotations": {"gitops-ctl.dev/allow-node-drop": "sha256:x"}},
    ],
)
def test_a_source_wakes_itself_on_what_it_acts_on(metadata):
    assert woken_by_source(ALL, MAPPED, changed(MAPPED, **metadata)) == ("mapped",)


def test_writing_sources_with_a_common_level_wake_each_other():
    """D12: creation, change of the spec, deletion."""
    twin = source("twin", configMap=MAP)
    known = [*ALL, twin]
    assert woken_by_source(known, None, twin) == ("mapped", "twin")
    assert woken_by_source(known, twin, None) == ("mapped",)
    moved = source("twin", levels=("b",), generation=2, configMap=MAP)
    assert woken_by_source([*ALL, moved], twin, moved) == ("mapped", "twin", "webbed")
    going = changed(twin, deletionTimestamp="2031-01-01T00:00:00Z")
    assert woken_by_source(known, twin, going) == ("mapped", "twin")
    assert woken_by_source(known, None, source("reader-2", nodeLabels={})) == ("reader-2",)


GOING = {"deletionTimestamp": "2031-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (MAPPED, Lifecycle.ADD_FINALIZER),
        (changed(MAPPED, finalizers=["other"]), Lifecycle.ADD_FINALIZER),
        (changed(MAPPED, finalizers=[FINALIZER]), Lifecycle.NOTHING),
        (changed(WEBBED, finalizers=[FINALIZER]), Lifecycle.NOTHING),
        (changed(READER, finalizers=[FINALIZER]), Lifecycle.REMOVE_FEATURES),
        (READER, Lifecycle.NOTHING),
        (changed(MAPPED, finalizers=[FINALIZER], **GOING), Lifecycle.REMOVE_FEATURES),
        (changed(MAPPED, finalizers=["other"], **GOING), Lifecycle.NOTHING),
    ],
)
def test_a_writing_source_holds_its_finalizer_until_its_features_are_gone(tree, expected):
    """Case 42 is the fifth row."""
    assert lifecycle(tree) is expected
