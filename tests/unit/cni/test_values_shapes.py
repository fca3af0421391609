"""The eleven shapes: each changes in exactly the expected lines, or is refused with its reason (cni-switch.md, 12.4)."""

import pytest

from tests.support.values import ENABLED, REPLACED, after, diff, files, planned, refused

THREE = ("k8sServiceHost: localhost", "k8sServicePort: 7445", "rollOutCiliumPods: true")

A = files(
    """
    === sites/north/net/values-cni.yaml
    kubeProxyReplacement: false   # agreed with the net team
    ipam: {mode: kubernetes}
    """
)
B = files(
    """
    === flux/apps.yaml
    kind: HelmRelease
    metadata: {name: other}
    spec: {chart: {spec: {chart: other}}, values: {kubeProxyReplacement: false}}
    ---
    kind: HelmRelease
    metadata: {name: cilium}
    spec:
      chart: {spec: {chart: cilium, version: 1.18.3}}
      values:
        kubeProxyReplacement: false
    """
)
C = files(
    """
    === net/kustomization.yaml
    configMapGenerator:
      - name: cni-values
        files: [values.yaml=./cni.yaml]
    === net/helmrelease.yaml
    kind: HelmRelease
    metadata: {name: cilium}
    spec:
      chart: {spec: {chart: cilium, version: 1.18.3}}
      valuesFrom: [{kind: ConfigMap, name: cni-values}]
    === net/cni.yaml
    # values of the sites
    kubeProxyReplacement: false
    """
)
D = files(
    """
    === argo/cilium.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: cilium}
    spec:
      source:
        chart: cilium
        targetRevision: 1.18.3
        helm:
          values: |-
            kubeProxyReplacement: false
            hubble:
              enabled: true
    """
)
E = files(
    """
    === argo/cilium.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: cilium}
    spec:
      source:
        chart: cilium
        targetRevision: 1.18.3
        helm:
          valuesObject:
            kubeProxyReplacement: false
    """
)
F = files(
    """
    === argo/cilium.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: cilium}
    spec:
      source:
        chart: cilium
        targetRevision: 1.18.3
        helm:
          parameters:
            - name: kubeProxyReplacement
              value: "false"
            - name: ipam.mode
              value: kubernetes
    """
)
G = files(
    """
    === argo/cilium.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: cilium}
    spec:
      sources:
        - {repoURL: https://git.example.net/net/values, targetRevision: main, ref: vals}
        - chart: cilium
          targetRevision: 1.18.3
          helm: {valueFiles: [$vals/common/cni.yaml, $vals/sites/north/cni.yaml]}
    === common/cni.yaml
    kubeProxyReplacement: false
    === sites/north/cni.yaml
    cluster:
      name: north
    """
)
H = files(
    """
    === net/kustomization.yaml
    helmCharts:
      - name: cilium
        version: 1.18.3
        valuesFile: cni.yaml
    === net/cni.yaml
    kubeProxyReplacement: "false"
    """
)
I = files(  # noqa: E741 - the letter of the contract
    """
    === charts/net/Chart.yaml
    name: net
    dependencies:
      - {name: other, version: 1.0.0}
      - {name: cilium, version: 1.18.3}
    === charts/net/values.yaml
    other:
      kubeProxyReplacement: untouched
    cilium:
      kubeProxyReplacement: false
    """
)
J = files(
    """
    === talos/patch.yaml
    cluster:
      inlineManifests:
        - name: cni
          contents: |
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: cilium-values, namespace: kube-system}
            data:
              values.yaml: |
                kubeProxyReplacement: false
    """
)


def lines(pad: int, *, old: str = "kubeProxyReplacement: false", new: str = "kubeProxyReplacement: true") -> list[str]:
    space = " " * pad
    return [f"- {space}{old}", f"+ {space}{new}", *(f"+ {space}{line}" for line in THREE)]


@pytest.mark.parametrize(
    ("shape", "repository", "file", "expected"),
    [
        ("A", A, "sites/north/net/values-cni.yaml",
         lines(0, old="kubeProxyReplacement: false   # agreed with the net team",
               new="kubeProxyReplacement: true   # agreed with the net team")),
        ("B", B, "flux/apps.yaml", lines(4)),
        ("C", C, "net/cni.yaml", lines(0)),
        ("D", D, "argo/cilium.yaml", lines(8)),
        ("E", E, "argo/cilium.yaml", lines(8)),
        ("F", F, "argo/cilium.yaml", [
            '-           value: "false"',
            '+           value: "true"',
            "+         - name: k8sServiceHost",
            "+           value: localhost",
            "+         - name: k8sServicePort",
            '+           value: "7445"',
            "+         - name: rollOutCiliumPods",
            '+           value: "true"',
        ]),
        ("G", G, "common/cni.yaml", lines(0)),
        ("H", H, "net/cni.yaml", lines(0, old='kubeProxyReplacement: "false"', new='kubeProxyReplacement: "true"')),
        ("I", I, "charts/net/values.yaml", lines(2)),
        ("J", J, "talos/patch.yaml", lines(12)),
    ],
)  # fmt: skip
def test_each_shape_changes_in_exactly_the_expected_lines(shape, repository, file, expected):
    plan = planned(repository)
    assert plan.shape == shape
    assert plan.place is not None
    assert plan.place.file == file
    assert {name: sorted(changed) for name, changed in diff(repository, plan.edits).items()} == {file: sorted(expected)}
    again = planned(after(repository, plan))
    assert (again.shape, again.edits) == (shape, ())


@pytest.mark.parametrize("repository", [A, B, C, D, E, F, G, H, I, J], ids="ABCDEFGHIJ")
def test_the_way_back_touches_neither_host_nor_port(repository):
    there = after(repository, planned(repository))
    back = planned(there, ENABLED)
    assert len(back.edits) == 1
    keys = [line for changed in diff(there, back.edits).values() for line in changed]
    assert len(keys) == 2
    assert planned(after(there, back), ENABLED).edits == ()


def test_a_talos_manifest_says_that_talos_creates_it_once():
    assert any("manifest sync" in warning for warning in planned(J).warnings)


K = {
    "Rendered": """
        === net/cilium.yaml
        kind: ConfigMap
        metadata: {name: cilium-config}
        data:
          kube-proxy-replacement: "false"
        """,
    "PatchedRelease": """
        === base/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec: {chart: {spec: {chart: cilium}}}
        === north/kustomization.yaml
        kind: Kustomization
        patches:
          - target: {kind: HelmRelease, name: cilium}
            patch: |
              - op: add
                path: /spec/values
                value: {kubeProxyReplacement: false}
        """,
    "Generated": """
        === net/values.yaml.j2
        kubeProxyReplacement: {{ kpr }}
        """,
    "ApplicationSet": """
        === argo/set.yaml
        apiVersion: argoproj.io/v1alpha1
        kind: ApplicationSet
        metadata: {name: cilium}
        spec:
          template:
            spec:
              source: {chart: cilium, helm: {valuesObject: {kubeProxyReplacement: false}}}
        """,
    "Encrypted": """
        === net/values.sops.yaml
        kubeProxyReplacement: ENC[AES256_GCM,data:x]
        sops:
          mac: ENC[AES256_GCM,data:y]
        """,
    "Pipeline": """
        === .github/workflows/render.yaml
        jobs:
          render:
            steps:
              - run: helm template cilium cilium/cilium --set kubeProxyReplacement=false > out.yaml
        """,
    "PinnedSource": """
        === argo/cilium.yaml
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        metadata: {name: cilium}
        spec:
          sources:
            - {repoURL: https://git.example.net/net/values, targetRevision: v1.4.0, ref: vals}
            - chart: cilium
              targetRevision: 1.18.3
              helm: {valueFiles: [$vals/cni.yaml]}
        === cni.yaml
        kubeProxyReplacement: false
        """,
}


@pytest.mark.parametrize("reason", K)
def test_shape_k_is_refused_with_its_reason_and_the_values_to_set(reason):
    refusal = refused(files(K[reason]))
    assert refusal.reason == reason
    assert refusal.code.slug == "values-refused"
    assert "set kubeProxyReplacement: true, with k8sServiceHost: localhost and k8sServicePort: 7445" in refusal.by_hand


@pytest.mark.parametrize(
    ("suffix", "language"),
    [("tf", "Terraform"), ("cue", "CUE"), ("jsonnet", "Jsonnet"), ("nix", "Nix")],
)
def test_a_program_that_generates_the_values_is_named(suffix, language):
    refusal = refused({f"net/main.{suffix}": b'set { name = "kubeProxyReplacement" }\n'}, REPLACED)
    assert refusal.reason == "Generated"
    assert f"net/main.{suffix}" in refusal.message
    assert language in refusal.message


def test_the_rendered_line_the_patch_and_the_step_are_named():
    assert "net/cilium.yaml:4" in refused(files(K["Rendered"])).message
    patched = refused(files(K["PatchedRelease"])).message
    assert "north/kustomization.yaml" in patched
    assert "base/release.yaml" in patched
    assert "helm template in .github/workflows/render.yaml" in refused(files(K["Pipeline"])).message
