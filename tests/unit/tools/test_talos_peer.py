"""The stand-in for a machine refuses, warns and renders as published (cni-switch.md, 7.3, 8.1 and 16.1)."""

import re

import pytest

from tests.support.talos_configs import machine_config
from tools.peers.talos.config import Config, InvalidError, ParseError
from tools.peers.talos.objects import inventory_key, kube_proxy
from tools.peers.talos.state import StateFile

LEGACY = b"version: v1alpha1\nmachine:\n  type: controlplane\n"
DOCUMENT = b"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\n"
REFUSED = {
    "both forms": (
        LEGACY + b"cluster:\n  proxy: {}\n" + DOCUMENT + b"enabled: false\n",
        "cluster proxy config in v1alpha1 config (.machine.cluster.proxy) can't be used with KubeProxyConfig document,"
        " please remove it to avoid conflicts",
    ),
    "both forms of KubePrism": (
        LEGACY + b"  features:\n    kubePrism:\n      enabled: true\n---\nkind: KubePrismConfig\nport: 7445\n",
        "KubePrism config in v1alpha1 config (.machine.features.kubePrism) can't be used with KubePrismConfig document,"
        " please remove it to avoid conflicts",
    ),
    "no image": (LEGACY + DOCUMENT + b"enabled: true\n", "proxy image cannot be empty"),
    "no image and no flag": (LEGACY + DOCUMENT, "proxy image cannot be empty"),
    "a mode that does not exist": (
        LEGACY + DOCUMENT + b"image: a:1\nmode: fast\n",
        'invalid proxy mode "fast": supported modes are iptables, ipvs and nftables',
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_talos_refuses_is_refused_with_its_words(what: str) -> None:
    text, message = REFUSED[what]
    with pytest.raises(InvalidError, match=re.escape(f"1 error occurred:\n\t* {message}\n")):
        Config(text).validate("controlplane")


def test_a_worker_has_no_documents_of_control_planes() -> None:
    with pytest.raises(InvalidError, match=re.escape("only allowed on control plane machines: [KubeProxyConfig]")):
        Config(LEGACY + DOCUMENT + b"enabled: false\n").validate("worker")


def test_a_disabled_document_is_not_looked_at_any_further() -> None:
    assert Config(LEGACY + DOCUMENT + b"enabled: false\nmode: fast\n").validate("controlplane") == []


def test_all_errors_come_together() -> None:
    text = LEGACY + b"cluster:\n  proxy: {}\n" + DOCUMENT + b"mode: fast\n"
    with pytest.raises(InvalidError, match="3 errors occurred"):
        Config(text).validate("controlplane")


@pytest.mark.parametrize("mode", ["iptables", "ipvs"])
def test_older_modes_give_a_warning(mode: str) -> None:
    (warning,) = Config(LEGACY + DOCUMENT + f"image: a:1\nmode: {mode}\n".encode()).validate("controlplane")
    assert warning == f'proxy mode "{mode}" is not recommended, please switch to nftables if possible'


@pytest.mark.parametrize("text", [b"a: [", b"- list\n", b"\xff", LEGACY + b"---\n" + LEGACY])
def test_what_is_no_configuration_does_not_parse(text: bytes) -> None:
    with pytest.raises(ParseError):
        Config(text)


@pytest.mark.parametrize(("form", "enabled"), [("none", True), ("legacy", True), ("document", False)])
def test_without_either_form_kube_proxy_runs(form: str, enabled: bool) -> None:
    config = Config(machine_config(form=form, enabled=enabled))  # type: ignore[arg-type]
    assert config.proxy.enabled is enabled
    assert config.kubeprism_port == 7445


def test_the_document_form_renders_a_config_map_whose_name_follows_its_content() -> None:
    names = []
    for extra in (b"", b"config:\n  clusterCIDR: 192.0.2.0/24\n"):
        objects = kube_proxy(Config(LEGACY + DOCUMENT + b"image: a:1\n" + extra).proxy)
        assert [tree["kind"] for tree in objects] == ["ConfigMap", "DaemonSet", "ServiceAccount", "ClusterRoleBinding"]
        names.append(objects[0]["metadata"]["name"])
        assert objects[1]["spec"]["template"]["spec"]["volumes"][1]["configMap"]["name"] == names[-1]
    assert all(re.fullmatch(r"kube-proxy-config-[0-9a-f]{16}", name) for name in names)
    assert names[0] != names[1]


def test_the_older_form_renders_no_config_map() -> None:
    objects = kube_proxy(Config(machine_config(form="legacy", image="a:1")).proxy)
    assert [tree["kind"] for tree in objects] == ["DaemonSet", "ServiceAccount", "ClusterRoleBinding"]


def test_the_inventory_is_written_as_published() -> None:
    keys = [inventory_key(tree) for tree in kube_proxy(Config(machine_config(form="legacy", image="a:1")).proxy)]
    assert keys == [
        "kube-system_kube-proxy_apps_DaemonSet",
        "kube-system_kube-proxy__ServiceAccount",
        "_kube-proxy_rbac.authorization.k8s.io_ClusterRoleBinding",
    ]


def test_a_machine_keeps_what_it_saved(tmp_path) -> None:
    state = StateFile(tmp_path / "m.json", "north-cp-1", "controlplane", "v1.14.0", b"\x00\xff", boots=3)
    state.applies.append({"mode": "NO_REBOOT", "sha256": "sha256:x"})
    state.save()
    assert StateFile.load(state.path) == state
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_the_product_never_imports_it() -> None:
    from tests.support.talos_peer import ROOT

    sources = [path.read_text() for path in (ROOT / "gitops_ctl").rglob("*.py")]
    assert not any(re.search(r"^\s*(?:from|import) tools\b", text, re.MULTILINE) for text in sources)
