"""What differs between a machine and its supplied base is named by path and class, never by value (cni-switch.md, 5.2 and 7.4)."""

import pytest

from gitops_ctl.talos.errors import ConfigRefused
from gitops_ctl.talos.machineconfig import edited
from gitops_ctl.talos.pending import PendingPath, is_kube_proxy_path, path_class, pending_paths, redacted_diff
from tests.support.talos_configs import KEY, SECRET, machine_config

IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"


def replaced(base: bytes, contract: str = "v1.14") -> bytes:
    return edited(base, mode="replaced", contract=contract, role="controlplane")


def test_equal_configurations_have_no_pending_path():
    assert pending_paths(machine_config(), machine_config()) == ()


def test_a_comment_is_no_difference():
    assert pending_paths(machine_config(), machine_config() + b"# a comment\n") == ()


@pytest.mark.parametrize(
    ("form", "contract", "paths"),
    [
        ("document", "v1.14", ["KubeProxyConfig.enabled"]),
        ("legacy", "v1.13", ["cluster.proxy.disabled"]),
        ("none", "v1.14", ["KubeProxyConfig"]),
        ("none", "v1.13", ["cluster.proxy.disabled"]),
        ("legacy", "v1.14", ["KubeProxyConfig", "cluster.proxy.disabled", "cluster.proxy.image"]),
    ],
)
def test_the_switch_itself_is_told_apart(form, contract, paths):
    base = machine_config(form=form, image=IMAGE)
    found = pending_paths(base, replaced(base, contract))
    assert found == tuple(PendingPath(path, "kube-proxy") for path in paths)
    assert all(is_kube_proxy_path(one.path) for one in found)


@pytest.mark.parametrize(
    ("path", "cls"),
    [
        ("cluster.inlineManifests", "safe"),
        ("machine.nodeLabels.rack", "safe"),
        ('machine.nodeLabels."topology.example.net/rack"', "safe"),
        ("machine.sysctls", "safe"),
        ("machine.install.disk", "install"),
        ("cluster.apiServer.extraArgs.v", "api-server"),
        ("cluster.etcd.image", "api-server"),
        ("machine.files", "reboot"),
        ("machine.type", "reboot"),
        ("cluster.proxy.disabled", "kube-proxy"),
        ("KubeProxyConfig", "kube-proxy"),
        ("cluster.proxyprotocol", "unknown"),
        ("machine.somethingNew", "unknown"),
        ("machine.features.kubePrism.enabled", "unknown"),
        ("KubePrismConfig.port", "unknown"),
        ("SomethingNew.list", "unknown"),
        ("VolumeConfig[EPHEMERAL].provisioning", "unknown"),
    ],
)
def test_a_path_has_the_class_of_the_longest_known_place_above_it(path, cls):
    assert path_class(path, version="v1.14.0") == cls


@pytest.mark.parametrize(
    ("version", "cls"), [("v1.13.5", "unsupported"), ("v1.14.0", "kube-proxy"), ("", "kube-proxy")]
)
def test_a_document_that_the_machine_does_not_know_is_unsupported(version, cls):
    assert path_class("KubeProxyConfig.enabled", version=version) == cls


def test_every_difference_is_named_with_its_class():
    active = machine_config(form="document", image=IMAGE)
    wanted = (
        replaced(active)
        .replace(b"debug: false\n", b"debug: true\n")
        .replace(b"/dev/sda", b"/dev/sdb")
        .replace(b"clusterName: north\n", b"clusterName: north\n    inlineManifests:\n        - name: cilium\n")
        .replace(b"list: [ 1,2 ,3 ]", b"list: [1]")
        + b"---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"
    )
    assert {one.path: one.cls for one in pending_paths(active, wanted)} == {
        "KubeProxyConfig.enabled": "kube-proxy",
        "SomethingNew.list": "unknown",
        "VolumeConfig[EPHEMERAL]": "unknown",
        "cluster.inlineManifests": "safe",
        "debug": "safe",
        "machine.install.disk": "install",
    }


def test_documents_of_one_kind_are_told_apart_by_name_or_number():
    one = "---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: {}\nsize: {}\n"
    active = ("version: v1alpha1\n" + one.format("A", 1) + one.format("B", 1)).encode()
    assert [p.path for p in pending_paths(active, active.replace(b"B\nsize: 1", b"B\nsize: 2"))] == [
        "VolumeConfig[B].size"
    ]


def test_a_value_that_changes_its_type_is_a_difference():
    active = b"version: v1alpha1\nmachine:\n  sysctls:\n    a: 1\n"
    assert [p.path for p in pending_paths(active, active.replace(b": 1", b': "1"'))] == ["machine.sysctls.a"]


def test_there_are_never_more_than_two_hundred_paths():
    labels = "".join(f"    label-{number}: x\n" for number in range(500))
    wanted = f"version: v1alpha1\nmachine:\n  nodeLabels:\n{labels}".encode()
    assert len(pending_paths(b"version: v1alpha1\n", wanted)) == 200


def test_the_diff_shows_the_switch_and_no_other_value():
    active = machine_config(form="document", enabled=False)
    wanted = edited(active, mode="enabled", contract="v1.14", role="controlplane", image=IMAGE)
    wanted = wanted.replace(SECRET.encode(), b"another.token0value").replace(KEY.encode(), b"QW5vdGhlcg==")
    shown = redacted_diff(active, wanted)
    assert shown.splitlines() == [
        "kube-proxy mode: disabled -> enabled",
        f"kube-proxy image: none -> {IMAGE}",
        "cluster.secret changes",
        "cluster.token changes",
        "machine.ca.key changes",
        "machine.token changes",
    ]


def test_a_configuration_that_cannot_be_read_is_refused():
    with pytest.raises(ConfigRefused):
        pending_paths(machine_config(), b"a: [\n")
