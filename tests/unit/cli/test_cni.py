"""`gitops-ctl cni` shows and prepares; it writes two fields of one document, and opens no connection (cni-switch.md, 5.3)."""

import json
import subprocess
from pathlib import Path

import pytest

from gitops_ctl.cli.main import run

CLUSTER = """\
# the northern site
apiVersion: ichor.maesh.dev/v1alpha1
kind: TalosCluster
metadata:
  name: north   # agreed name
  namespace: net
spec:
  talosconfigSecretRef: {name: north}
"""
MACHINES = "---\n".join(
    f"""\
apiVersion: ichor.maesh.dev/v1alpha1
kind: TalosMachine
metadata: {{name: {name}, namespace: net}}
spec: {{clusterRef: {{name: {cluster}}}, address: 192.0.2.{number}, role: worker}}
"""
    for number, (name, cluster) in enumerate((("worker-2", "north"), ("worker-1", "north"), ("other", "south")))
)
RELEASE = """\
kind: HelmRelease
metadata: {name: cilium}
spec:
  chart: {spec: {chart: cilium, version: 1.18.3}}
  values:
    kubeProxyReplacement: false   # agreed
"""


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch) -> Path:
    """A checkout, and no way to the network."""
    root = tmp_path / "repo"
    (root / "net").mkdir(parents=True)
    (root / "net" / "cluster.yaml").write_text(CLUSTER)
    (root / "net" / "machines.yaml").write_text(MACHINES)
    (root / "flux").mkdir()
    (root / "flux" / "cilium.yaml").write_text(RELEASE)
    subprocess.run(["git", "init", "-q", root], check=True)
    monkeypatch.chdir(root)

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_kube_proxy_writes_field_and_consent_and_says_what_happens(root, capsys):
    before = snapshot(root)
    assert run(["cni", "kube-proxy", "replaced"]) == 2
    out = capsys.readouterr().out
    assert (root / "net" / "cluster.yaml").read_text() == CLUSTER.replace(
        "  namespace: net\n",
        "  namespace: net\n  annotations:\n    ichor.maesh.dev/confirm-kube-proxy-switch: replaced\n",
    ) + "  cni:\n    kubeProxy: replaced\n"
    assert {name for name, data in snapshot(root).items() if before.get(name) != data} == {
        str(root / "net" / "cluster.yaml")
    }
    assert "+    ichor.maesh.dev/confirm-kube-proxy-switch: replaced" in out
    assert (
        "Switch kube-proxy on cluster north from enabled to replaced. Configuration is applied without a reboot; the "
        "kubelet and control plane components restart on each machine. 2 machine(s): worker-1, worker-2\n"
        "Existing connections on a node break when Cilium changes mode. Old kube-proxy rules stay on each node until it "
        "reboots.\n"
    ) in out
    assert "commit -S" in out


def test_kube_proxy_run_again_changes_nothing(root, capsys):
    assert run(["cni", "kube-proxy", "replaced"]) == 2
    before = snapshot(root)
    assert run(["cni", "kube-proxy", "replaced", "--cluster", "north"]) == 0
    assert snapshot(root) == before
    assert "nothing to do" in capsys.readouterr().out


def test_kube_proxy_leads_back_with_two_changed_lines(root, capsys):
    assert run(["cni", "kube-proxy", "replaced"]) == 2
    before = (root / "net" / "cluster.yaml").read_text()
    assert run(["cni", "kube-proxy", "enabled"]) == 2
    assert (root / "net" / "cluster.yaml").read_text() == before.replace("replaced", "enabled")
    assert "from replaced to enabled" in capsys.readouterr().out


def test_kube_proxy_adds_a_missing_consent_alone(root, capsys):
    file = root / "net" / "cluster.yaml"
    file.write_text(f"{CLUSTER}  cni: {{kubeProxy: replaced}}\n")
    assert run(["cni", "kube-proxy", "replaced"]) == 2
    assert "  cni: {kubeProxy: replaced}\n" in file.read_text()
    assert "from enabled to replaced" in capsys.readouterr().out


def test_kube_proxy_needs_to_know_which_cluster(root, capsys):
    (root / "south.yaml").write_text(CLUSTER.replace("north", "south"))
    assert run(["cni", "kube-proxy", "replaced"]) == 1
    error = capsys.readouterr().err
    assert "the checkout declares several: net/north in net/cluster.yaml, net/south in south.yaml" in error
    assert "--cluster" in error
    assert run(["cni", "kube-proxy", "replaced", "--cluster", "east"]) == 1
    assert "the checkout declares no TalosCluster east" in capsys.readouterr().err
    assert run(["cni", "kube-proxy", "replaced", "--cluster", "south"]) == 2
    assert (root / "net" / "cluster.yaml").read_text() == CLUSTER


def test_kube_proxy_refuses_a_text_that_it_could_reformat(root, capsys):
    file = root / "net" / "cluster.yaml"
    file.write_text(
        CLUSTER.replace("spec:\n  talosconfigSecretRef: {name: north}", "spec: {talosconfigSecretRef: {name: north}}")
    )
    before = snapshot(root)
    assert run(["cni", "kube-proxy", "replaced"]) == 1
    error = capsys.readouterr().err
    assert "GC3050" in error
    assert "place: net/cluster.yaml" in error
    assert "set spec.cni.kubeProxy to replaced" in error
    assert snapshot(root) == before


@pytest.mark.parametrize("path", [".", "flux", "flux/cilium.yaml"])
def test_values_shows_the_place_and_the_difference_and_writes_nothing(root, capsys, path):
    before = snapshot(root)
    assert run(["cni", "values", path, "--target", "replaced"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("shape B: spec.values of HelmRelease cilium sets kubeProxyReplacement\n")
    assert out.endswith(
        "-    kubeProxyReplacement: false   # agreed\n+    kubeProxyReplacement: true   # agreed\n"
        "+    k8sServiceHost: localhost\n+    k8sServicePort: 7445\n+    rollOutCiliumPods: true\n"
    )
    assert snapshot(root) == before


def test_the_difference_can_be_applied_and_then_nothing_is_left(root, capsys):
    assert run(["cni", "values", ".", "-o", "json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["kind"] == "CiliumValues"
    assert [(one["op"], one["pointer"], one.get("from"), one["to"]) for one in shown["changes"]] == [
        ("replace", "/spec/values/kubeProxyReplacement", False, True),
        ("add", "/spec/values/k8sServiceHost", None, "localhost"),
        ("add", "/spec/values/k8sServicePort", None, 7445),
        ("add", "/spec/values/rollOutCiliumPods", None, True),
    ]
    patch = "\n".join(shown["diff"]) + "\n"
    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True)
    assert run(["cni", "values", "."]) == 0
    assert "nothing to change" in capsys.readouterr().out


def test_values_takes_another_port_and_the_other_direction(root, capsys):
    assert run(["cni", "values", ".", "--port", "7446"]) == 2
    assert "+    k8sServicePort: 7446" in capsys.readouterr().out
    assert run(["cni", "values", ".", "--target", "enabled"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    (root / "flux" / "cilium.yaml").write_text(RELEASE.replace("false", "'true'"))
    assert run(["cni", "values", ".", "--target", "enabled"]) == 2
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "-    kubeProxyReplacement: 'true'   # agreed",
        "+    kubeProxyReplacement: 'false'   # agreed",
        "+    rollOutCiliumPods: true",
    ]


def test_values_refuses_with_the_reason_and_the_values(root, capsys):
    (root / "flux" / "south.yaml").write_text(RELEASE.replace("{name: cilium}", "{name: cilium-south}"))
    assert run(["cni", "values", "."]) == 1
    error = capsys.readouterr().err
    assert "GC3051" in error
    assert "SeveralCandidates: the Cilium chart is deployed in more than one place" in error
    assert "- HelmRelease cilium-south in flux/south.yaml" in error
    assert "set kubeProxyReplacement: true, with k8sServiceHost: localhost and k8sServicePort: 7445" in error
    assert run(["cni", "values", ".", "--name", "cilium-south"]) == 2


def test_values_follows_no_link_and_needs_a_path_that_is_there(root, capsys):
    (root / "flux" / "cilium.yaml").rename(root.parent / "outside.yaml")
    (root / "flux" / "cilium.yaml").symlink_to(root.parent / "outside.yaml")
    assert run(["cni", "values", "flux"]) == 1
    assert "NoCandidate" in capsys.readouterr().err
    assert run(["cni", "values", "nowhere"]) == 1


def test_values_of_a_file_under_a_key_need_that_key(root, capsys):
    (root / "wrapped.yaml").write_text("net:\n  cilium:\n    kubeProxyReplacement: false\n")
    assert run(["cni", "values", "wrapped.yaml", "--key-prefix", "net.cilium"]) == 2
    assert "+    kubeProxyReplacement: true" in capsys.readouterr().out
