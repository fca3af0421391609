"""Plain files, Helmfile, and what sets Cilium's values in a way that is not edited (cni-switch.md, shapes A and K)."""

import pytest

from tests.support.values import diff, files, planned, refused

HELMFILE = """
    === bootstrap/helmfile.yaml
    repositories: [{{name: cilium, url: https://helm.example.net}}]
    releases:
      - name: other
        chart: example/other
        values: [other.yaml]
      - name: cilium
        chart: cilium/cilium
        version: {version}
{more}
    === bootstrap/values.yaml
    kubeProxyReplacement: false
    k8sServiceHost: localhost
    rollOutCiliumPods: true
    === bootstrap/north.yaml
    debug: {{enabled: true}}
    """


def helmfile(*more: str, version: str = "1.18.0"):
    return files(HELMFILE.format(version=version, more="\n".join(f"        {line}" for line in more)))


def test_the_last_values_file_of_a_helmfile_release_that_sets_the_key_is_edited():
    plan = planned(helmfile("values: [values.yaml, north.yaml]"))
    assert (plan.shape, plan.place.file) == ("A", "bootstrap/values.yaml")


def test_inline_values_of_a_helmfile_release_are_edited_in_their_place():
    repository = helmfile("values:", "  - values.yaml", "  - kubeProxyReplacement: false", "    debug: {}")
    plan = planned(repository)
    assert diff(repository, plan.edits) == {
        "bootstrap/helmfile.yaml": ["-       - kubeProxyReplacement: false", "+       - kubeProxyReplacement: true"]
    }
    assert "bootstrap/values.yaml:1 is overridden and left alone" in plan.warnings


def test_a_flag_of_a_helmfile_release_is_said_to_win():
    plan = planned(helmfile("values: [values.yaml]", "set: [{name: kubeProxyReplacement, value: false}]"))
    text = "set of the release cilium in bootstrap/helmfile.yaml wins over values; if it sets kubeProxyReplacement, it wins"
    assert text in plan.warnings


@pytest.mark.parametrize(
    ("values", "reason"),
    [("values.yaml.gotmpl", "Templated"), ("made.yaml.gotmpl", "Templated"), ("missing.yaml", "FileMissing")],
)
def test_values_that_a_helmfile_makes_are_refused(values, reason):
    repository = {**helmfile(f"values: [{values}]"), "bootstrap/made.yaml.gotmpl": b"a: {{ .Values.x }}\n"}
    assert refused(repository, path="bootstrap/helmfile.yaml").reason == reason


def test_an_old_chart_in_a_helmfile_gets_text_alone():
    assert refused(helmfile("values: [values.yaml]", version="1.12.1")).reason == "ChartTooOld"


@pytest.mark.parametrize(
    "text",
    [
        "kind: HelmChart\nmetadata: {name: cni}\nspec: {chart: cilium, valuesContent: 'kubeProxyReplacement: false'}\n",
        "kind: HelmChartProxy\nmetadata: {name: cni}\nspec: {chartName: cilium}\n",
        "kind: Bundle\nmetadata: {name: cni}\nspec: {helm: {chart: cilium}}\n",
        "kind: ClusterProfile\nmetadata: {name: cni}\nspec: {helmCharts: [{chartName: cilium/cilium}]}\n",
    ],
)
def test_another_deployer_is_named(text):
    refusal = refused({"net/cni.yaml": text.encode()})
    assert refusal.reason == "OtherDeployer"
    assert refusal.message.endswith("cni in net/cni.yaml deploys Cilium in a way that is not edited here")


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("v.yaml", b"{{ if x }}\nkubeProxyReplacement: false\n{{ end }}\n", "Generated"),
        ("v.yaml", b"kubeProxyReplacement: [\n", "NotYaml"),
        ("v.yaml", b"kubeProxyReplacement: false\nkubeProxyReplacement: false\n", "DuplicateKey"),
        ("v.yaml", b"kubeProxyReplacement: false\r\nb: 1\n", "MixedNewlines"),
        ("v.yaml", b"kubeProxyReplacement: \xff\n", "NotUtf8"),
        ("net/Makefile", b"net:\n\thelm upgrade cilium --set kubeProxyReplacement=true\n", "Pipeline"),
        (".gitlab-ci.yml", b"net: {script: [make kubeProxyReplacement]}\n", "Pipeline"),
        ("values.cue", b"kubeProxyReplacement: false\n", "Generated"),
        ("README.md", b"kubeProxyReplacement: false\n", "NoCandidate"),
    ],
)
def test_what_cannot_be_edited_says_why(file, text, reason):
    assert refused({file: text}).reason == reason


def test_everything_that_was_found_is_listed_with_the_refusal():
    repository = {
        "a/main.tf": b'name = "kubeProxyReplacement"\n',
        "b/gen.sh": b"helm template cilium --set kubeProxyReplacement=true > c.yaml\n",
        "c/rendered.yaml": b"kind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  kube-proxy-replacement: 'false'\n",
    }
    refusal = refused(repository)
    texts = (refusal.message, *refusal.candidates)
    assert [any(file in text for text in texts) for file in ("a/main.tf", "b/gen.sh", "c/rendered.yaml:4")] == [
        True
    ] * 3
    assert refused(repository, path="b").reason == "Pipeline"


def test_two_plain_files_are_two_candidates():
    repository = {f"{site}/values.yaml": b"kubeProxyReplacement: false\n" for site in ("north", "south")}
    refusal = refused(repository)
    assert refusal.reason == "SeveralCandidates"
    assert refusal.candidates == ("values file north/values.yaml", "values file south/values.yaml")
    assert planned(repository, path="north").place.file == "north/values.yaml"


def test_no_message_holds_a_value_of_a_file():
    repository = {"v.yaml": b"kubeProxyReplacement: &secret hunter2\npassword: hunter2\n"}
    refusal = refused(repository)
    assert "hunter2" not in "\n".join((refusal.message, refusal.by_hand, *refusal.candidates))


COPY = {
    "net/cilium/charts/cilium/Chart.yaml": b"name: cilium\nversion: 1.18.2\n",
    "net/cilium/charts/cilium/values.yaml": b"kubeProxyReplacement: false\n",
}


def test_a_copy_of_the_chart_is_no_place_for_values():
    refusal = refused(COPY)
    assert refusal.reason == "CopyOfChart"
    assert "net/cilium/charts/cilium/values.yaml holds the defaults of a copy of the chart" in refusal.message


def test_a_chart_with_a_copy_inside_is_an_umbrella():
    repository = {
        **COPY,
        "net/cilium/Chart.yaml": b"name: net-cilium\nversion: 0.0.0\n",
        "net/cilium/values.yaml": b"cilium:\n  hubble:\n    enabled: false\n",
    }
    repository["net/cilium/charts/cilium/templates/config.yaml"] = b"{{ .Values.kubeProxyReplacement }}: {{ x }}\n"
    plan = planned(repository)
    assert (plan.shape, plan.place.file, plan.place.pointer) == ("I", "net/cilium/values.yaml", "/cilium")
    assert not any("templates" in warning for warning in plan.warnings)
    repository["net/cilium/charts/cilium/Chart.yaml"] = b"name: cilium\nversion: 1.13.2\n"
    assert refused(repository).reason == "ChartTooOld"


def test_a_bundle_of_definitions_is_not_read_for_its_words():
    bundle = b"kind: CustomResourceDefinition\nspec: {names: {kind: HelmRelease}}\n# cilium\n---\n[broken\n"
    plan = planned({"crds.yaml": bundle, "values.yaml": b"kubeProxyReplacement: false\n"})
    assert plan.place.file == "values.yaml"
    assert not any("crds.yaml" in warning for warning in plan.warnings)
