"""Hardware identity and ResourceFlavors (topology-scheduling.md, 7.2 and 7.3)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.contributions import Contributions
from gitops_ctl.scheduling.flavor import (
    Action,
    flavor_object,
    flavors_of,
    node_labels,
    retiring_siblings,
    step_for,
    step_without_contributors,
)
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.options import Options

PROFILE = "topology.gpustack.ai/profile"
HOST = "fnv64-87bf574bea2a4f23"
GENERAL, ACCELERATOR = "general.feature.gpustack.ai/", "acceleratable.feature.gpustack.ai/"


def cpu(*, cores="96", profile=HOST, **more):
    labels = {
        "gpustack.ai/managed": "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        f"{GENERAL}amd": "true",
        f"{GENERAL}amd-epyc-7r32": "true",
        f"{GENERAL}amd-epyc-7r32.count": cores,
        PROFILE: profile,
    }
    return {key: value for key, value in {**labels, **more}.items() if value is not None}


def gpu(*, devices="6", **more):
    return cpu(
        **{
            "feature.gpustack.ai/acceleratable": "true",
            f"{ACCELERATOR}nvidia": "true",
            f"{ACCELERATOR}nvidia-a10g": "true",
            f"{ACCELERATOR}nvidia-a10g.count": devices,
            f"{ACCELERATOR}nvidia-a10g.product": "NVIDIA-A10G",
            f"{ACCELERATOR}nvidia-a10g.memory": "24Gi",
        },
        **more,
    )


def names(labels, **options):
    return [identity.name for identity in fed_by(labels, options=Options(**options)).flavors]


def only(nodes, **options):
    (flavor,) = flavors_of(nodes, options=Options(**options)).values()
    return flavor


def test_a_node_feeds_one_cpu_flavor_and_one_for_each_accelerator():
    assert names(cpu()) == [f"gpustack--amd-epyc-7r32-linux-amd64-96c-{HOST}"]
    assert names(gpu()) == [
        f"gpustack--amd-epyc-7r32-linux-amd64-96c-{HOST}",
        f"gpustack--amd-epyc-7r32--nvidia-a10g-linux-amd64-6d-{HOST}",
    ]


@pytest.mark.parametrize("missing", ["gpustack.ai/managed", PROFILE, "kubernetes.io/os", "kubernetes.io/arch"])
def test_without_mark_profile_or_system_a_node_feeds_nothing(missing):
    assert names(cpu(**{missing: None})) == []


@pytest.mark.parametrize("cores", ["04", "0", "-1", "1_0", " 1", "1\n", "1000000000", "4.0", None, "\u0661"])
def test_a_count_that_is_not_canonical_feeds_nothing_and_warns(cores):
    """D19, D20."""
    fed = fed_by(cpu(cores=cores), options=Options())
    assert fed.flavors == ()
    assert len(fed.warnings) == 1


def test_two_general_keys_feed_nothing_and_are_named():
    """D19."""
    labels = gpu(**{f"{GENERAL}intel-x": "true", f"{GENERAL}intel-x.count": "4"})
    fed = fed_by(labels, options=Options())
    assert fed.flavors == ()
    assert "amd-epyc-7r32, general.feature.gpustack.ai/intel-x" in fed.warnings[0]


@pytest.mark.parametrize("key", ["other-x1", "nvidia", "NVIDIA-a10g"])
def test_unknown_manufacturers_identify_nothing(key):
    labels = cpu(**{f"{ACCELERATOR}{key}": "true", f"{ACCELERATOR}{key}.count": "2"})
    assert len(names(labels)) == 1


@pytest.mark.parametrize("key", ["nvidia-a_b", "nvidia-A10", f"nvidia-{'a' * 50}"])
def test_a_name_that_no_flavor_can_have_is_left_out_with_a_warning(key):
    """D21."""
    labels = cpu(**{f"{ACCELERATOR}{key}": "true", f"{ACCELERATOR}{key}.count": "2"})
    fed = fed_by(labels, options=Options())
    assert [identity.accelerator for identity in fed.flavors] == [""]
    assert key in fed.warnings[0]


def test_without_mixing_accelerated_nodes_feed_no_cpu_flavor():
    """D18."""
    assert names(gpu(), mixed_on_node=False) == [f"gpustack--amd-epyc-7r32--nvidia-a10g-linux-amd64-6d-{HOST}"]
    plain = only({"a": cpu()}, mixed_on_node=False)
    assert plain.identity.node_labels["feature.gpustack.ai/cpu-only"] == "true"
    accelerated = only({"a": gpu()}, mixed_on_node=False)
    assert "feature.gpustack.ai/cpu-only" not in accelerated.identity.node_labels


def test_a_cpu_flavor_is_whole():
    flavor = only({"b": cpu(), "a": cpu()})
    assert flavor.contributors == ("a", "b")
    assert flavor_object(flavor) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {
            "name": f"gpustack--amd-epyc-7r32-linux-amd64-96c-{HOST}",
            "labels": {
                f"{GENERAL}amd-epyc-7r32": "true",
                f"{GENERAL}amd-epyc-7r32.count": "96",
                f"{GENERAL}amd-epyc-7r32.capacity": "192",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                PROFILE: HOST,
                "feature.gpustack.ai/acceleratable": "false",
                "resource.gpustack.ai/type": "nodes",
            },
            "annotations": {
                "note.gpustack.ai/acceleratable": "false",
                "note.gpustack.ai/generalGroup": "amd-epyc-7r32",
                "note.gpustack.ai/acceleratorGroup": "",
                "note.gpustack.ai/manufacturer": "amd",
                "note.gpustack.ai/topologyProfile": HOST,
            },
        },
        "spec": {
            "nodeLabels": {
                "gpustack.ai/managed": "true",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                f"{GENERAL}amd-epyc-7r32": "true",
                f"{GENERAL}amd-epyc-7r32.count": "96",
                PROFILE: HOST,
            },
            "tolerations": [{"operator": "Exists"}],
            "topologyName": f"gpustack-{HOST}",
        },
    }


def test_an_accelerator_flavor_carries_both_keys_and_its_notes():
    flavor = flavors_of({"a": gpu()}, options=Options())[f"gpustack--amd-epyc-7r32--nvidia-a10g-linux-amd64-6d-{HOST}"]
    made = flavor_object(flavor)
    assert len(made["spec"]["nodeLabels"]) == 7
    assert made["spec"]["nodeLabels"][f"{GENERAL}amd-epyc-7r32"] == "true"
    assert made["metadata"]["labels"][f"{GENERAL}amd-epyc-7r32"] == "true"
    assert made["metadata"]["labels"][f"{ACCELERATOR}nvidia-a10g.capacity"] == "6"
    notes = made["metadata"]["annotations"]
    assert notes["note.gpustack.ai/product"] == "NVIDIA-A10G"
    assert notes["note.gpustack.ai/memory"] == "24Gi"
    assert notes["note.gpustack.ai/manufacturer"] == "nvidia"
    assert "note.gpustack.ai/cpuDetail" not in notes


def test_shapes_of_hierarchy_are_never_mixed():
    found = flavors_of({"a": cpu(), "b": cpu(profile="fnv64-570aeab478df5111")}, options=Options())
    assert sorted(flavor.contributors for flavor in found.values()) == [("a",), ("b",)]


def live(flavor):
    made = copy.deepcopy(flavor_object(flavor))
    made["metadata"] |= {"resourceVersion": "7"}
    return made


def test_a_missing_flavor_is_created_and_a_right_one_left_alone():
    flavor = only({"a": cpu()})
    assert step_for(flavor, None).action is Action.CREATE
    assert step_for(flavor, live(flavor)).action is Action.NOTHING


def test_labels_and_notes_are_updated_in_place_and_those_of_others_stay():
    flavor, grown = only({"a": cpu()}), only({"a": cpu(), "b": cpu()})
    old = live(flavor)
    old["metadata"]["annotations"] |= {"note.gpustack.ai/old": "x", "theirs": "y"}
    old["metadata"]["labels"]["theirs"] = "z"
    step = step_for(grown, old)
    assert step.action is Action.UPDATE
    assert step.object["metadata"]["labels"][f"{GENERAL}amd-epyc-7r32.capacity"] == "192"
    assert step.object["metadata"]["labels"]["theirs"] == "z"
    assert step.object["metadata"]["annotations"]["theirs"] == "y"
    assert "note.gpustack.ai/old" not in step.object["metadata"]["annotations"]
    assert step.object["metadata"]["resourceVersion"] == "7"
    assert step_for(grown, step.object).action is Action.NOTHING


@pytest.mark.parametrize(
    "edit",
    [
        lambda spec: spec.update(topologyName="gpustack-other"),
        lambda spec: spec["nodeLabels"].update(more="x"),
        lambda spec: spec["nodeLabels"].pop("kubernetes.io/os"),
        lambda spec: spec.update(tolerations=[]),
        lambda spec: spec.update(nodeTaints=[{"key": "a", "effect": "NoSchedule"}]),
        lambda spec: spec["nodeLabels"].update({"feature.gpustack.ai/acceleratable": "true"}),
    ],
)
def test_a_spec_that_differs_is_an_error_and_nothing_is_written(edit):
    flavor = only({"a": cpu()})
    old = live(flavor)
    edit(old["spec"])
    step = step_for(flavor, old)
    assert (step.action, step.object) == (Action.DRIFT, None)
    assert step.why.startswith("immutable topology drift")


@pytest.mark.parametrize("key", ["feature.gpustack.ai/cpu-only", "feature.gpustack.ai/acceleratable"])
def test_the_selector_of_the_mixing_setting_alone_recreates(key):
    flavor = only({"a": cpu()})
    old = live(flavor)
    old["spec"]["nodeLabels"][key] = "false" if key.endswith("acceleratable") else "true"
    assert step_for(flavor, old).action is Action.RECREATE
    assert step_for(only({"a": cpu()}, mixed_on_node=False), live(flavor)).action is Action.RECREATE


def test_a_terminating_flavor_is_left_alone():
    flavor = only({"a": cpu()})
    old = live(flavor)
    old["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"
    old["spec"]["topologyName"] = "other"
    assert step_for(flavor, old).action is Action.NOTHING
    assert step_without_contributors(old, []).action is Action.NOTHING


def test_a_flavor_without_contributors_goes_unless_a_node_lost_its_profile():
    old = live(only({"a": cpu()}))
    assert step_without_contributors(old, [cpu(profile="fnv64-570aeab478df5111"), {}]).action is Action.DELETE
    waiting = step_without_contributors(old, [cpu(profile=None)])
    assert (waiting.action, waiting.requeue_s) == (Action.WAIT, 10.0)
    assert step_without_contributors(old, [cpu(profile=None, cores="48")]).action is Action.DELETE
    foreign = copy.deepcopy(old)
    del foreign["metadata"]["labels"]["resource.gpustack.ai/type"]
    assert step_without_contributors(foreign, []).action is Action.NOTHING


def test_a_flavor_outlives_the_hardware_labels_of_its_nodes_for_a_while():
    """Whoever writes them may take them away and set them again."""
    old = live(only({"a": cpu()}))
    bare = {PROFILE: HOST, "kubernetes.io/os": "linux"}
    waiting = step_without_contributors(old, [bare], is_missed=True)
    assert (waiting.action, waiting.requeue_s) == (Action.WAIT, 10.0)
    assert step_without_contributors(old, [bare]).action is Action.DELETE


def test_a_flavor_is_missed_while_a_node_that_fed_it_is_there_and_feeds_nothing():
    contributions = Contributions(options=Options())
    (name,) = contributions.change("a", cpu())
    assert not contributions.is_missed(name)
    contributions.change("a", {PROFILE: HOST})
    assert contributions.is_missed(name)
    contributions.change("a", {PROFILE: HOST, "example.net/more": "x"})
    assert contributions.is_missed(name)
    contributions.change("a", cpu(cores="48"))
    assert not contributions.is_missed(name)
    contributions.change("a", {})
    contributions.change("a", None)
    assert not contributions.is_missed(name)


def test_siblings_without_contributors_retire_after_the_replacement():
    new = only({"a": cpu(profile="fnv64-570aeab478df5111")})
    old, other = live(only({"a": cpu()})), live(only({"a": cpu(cores="48")}))
    known = [live(new), old, other]
    assert retiring_siblings(new.name, known, {new.name}) == (old["metadata"]["name"],)
    assert retiring_siblings(new.name, known, {new.name, old["metadata"]["name"]}) == ()
    old["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"
    assert retiring_siblings(new.name, known, {new.name}) == ()


def test_a_node_event_concerns_the_flavors_of_both_its_versions():
    before, after = cpu(), cpu(profile="fnv64-570aeab478df5111")
    contributions = Contributions(options=Options())
    assert contributions.change("a", before) == contributions.names == set(names(before))
    assert contributions.change("a", after) == {*names(before), *names(after)}
    assert contributions.names == set(names(after))
    assert contributions.change("a", None) == set(names(after))
    assert contributions.names == set()


NODES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.builds(
        lambda make, cores, profile: make(cores=cores, profile=profile),
        st.sampled_from([cpu, gpu]),
        st.sampled_from(["4", "8"]),
        st.sampled_from([HOST, "fnv64-570aeab478df5111", None]),
    ),
)


@pytest.mark.property
@given(NODES, st.booleans())
def test_flavors_of_one_kind_are_disjoint_and_hold_what_their_nodes_have(nodes, mixed):
    options = Options(mixed_on_node=mixed)
    found = flavors_of(nodes, options=options)
    for accelerated in (False, True):
        fed = [
            node
            for flavor in found.values()
            if flavor.identity.is_accelerated == accelerated
            for node in flavor.contributors
        ]
        assert len(fed) == len(set(fed))
    for flavor in found.values():
        selector = node_labels(flavor_object(flavor))
        chosen = {node for node, labels in nodes.items() if selector.items() <= labels.items()}
        # With mixing off somebody else publishes the label that CPU flavors ask for.
        assert chosen == (set() if flavor.identity.cpu_only else set(flavor.contributors))
        assert flavor.capacity == len(flavor.contributors) * flavor.identity.count
        assert len(selector) <= 8
