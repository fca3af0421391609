"""Which of several places changes, what is kept, and what is refused (cni-switch.md, sections 11, 12.2 and 12.3)."""

import pytest

from gitops_ctl.cni.values import Locator, Wanted, plan_values
from tests.support.values import ENABLED, REPLACED, after, diff, files, planned, refused

FLUX = """
    === net/release.yaml
    apiVersion: helm.toolkit.fluxcd.io/v2
    kind: HelmRelease
    metadata: {{name: cilium, namespace: kube-system}}
    spec:
      chart: {{spec: {{chart: cilium, version: {version}}}}}
      valuesFrom:
        - {{kind: ConfigMap, name: first}}
        - {{kind: ConfigMap, name: second, valuesKey: net.yaml}}
        - {{kind: Secret, name: hidden}}
{inline}
    === net/kustomization.yaml
    apiVersion: kustomize.config.k8s.io/v1beta1
    kind: Kustomization
    configMapGenerator:
      - name: first
        files: [values.yaml=values/one.yaml]
      - name: second
        files: [net.yaml=values/two.yaml, other.yaml]
    === net/values/one.yaml
    kubeProxyReplacement: false
    === net/values/two.yaml
{second}
    """


def flux(*, inline: str = "", second: str = "kubeProxyReplacement: false", version: str = "1.18.3"):
    text = FLUX.format(
        version=version, inline=f"      {inline}" if inline else "      interval: 1h", second=f"    {second}"
    )
    return files(text)


def test_inline_values_of_a_release_win_over_every_source():
    plan = planned(
        flux(inline="values: {kubeProxyReplacement: false, k8sServiceHost: 192.0.2.1, rollOutCiliumPods: true}")
    )
    assert plan.shape == "B"
    assert [edit.pointer for _, edit in plan.edits[:1]] == ["/spec/values/kubeProxyReplacement"]


def test_the_last_source_that_sets_the_key_wins_and_the_others_are_named():
    plan = planned(flux())
    assert (plan.shape, plan.place.file) == ("C", "net/values/two.yaml")
    assert {file for file, _ in plan.edits} == {"net/values/two.yaml"}
    assert "net/values/one.yaml:1 is overridden and left alone" in plan.warnings
    assert any(
        "Secret hidden cannot be read from Git; if it sets kubeProxyReplacement, it wins" in one
        for one in plan.warnings
    )


def test_a_source_that_does_not_set_the_key_is_passed_over():
    plan = planned(flux(second="debug: {}"))
    assert plan.place.file == "net/values/one.yaml"
    assert "net/values/one.yaml, as values.yaml of ConfigMap first sets kubeProxyReplacement" in plan.why


def test_a_generator_without_the_key_of_the_release_is_no_place():
    repository = flux()
    text = repository["net/kustomization.yaml"]
    repository["net/kustomization.yaml"] = text.replace(b"net.yaml=", b"wrong.yaml=")
    plan = planned(repository)
    assert plan.place.file == "net/values/one.yaml"
    sentence = "the generator in net/kustomization.yaml has no file with the key net.yaml"
    assert f"{sentence}; if it sets kubeProxyReplacement, it wins" in plan.warnings
    repository["net/values/one.yaml"] = b"debug: {}\n"
    refusal = refused(repository)
    assert (refusal.reason, refusal.message) == ("KeyMissing", sentence)


def test_keys_that_nobody_sets_go_to_the_most_specific_source():
    repository = flux(second="debug: {}")
    repository["net/values/one.yaml"] = b"debug: {}\n"
    assert planned(repository).place.file == "net/values/two.yaml"


@pytest.mark.parametrize(
    ("patch", "is_split"),
    [
        ("{target: {kind: HelmRelease}, patch: '[{op: replace, path: /spec/values/kubeProxyReplacement, value: 1}]'}", True),
        ("{target: {kind: HelmRelease, name: cil.*}, patch: '{spec: {values: {k8sServicePort: 1}}}'}", True),
        ("{patch: '{kind: HelmRelease, metadata: {name: cilium}, spec: {values: {rollOutCiliumPods: true}}}'}", True),
        ("{path: overlay.yaml}", True),
        ("{target: {kind: HelmRelease, name: other}, patch: '{spec: {values: {k8sServicePort: 1}}}'}", False),
        ("{target: {kind: Service}, patch: '[{op: add, path: /spec/values, value: 1}]'}", False),
        ("{target: {kind: HelmRelease}, patch: '[{op: add, path: /spec/values/hubble, value: {}}]'}", False),
        ("{patch: '{kind: HelmRelease, metadata: {name: other}, spec: {values: {rollOutCiliumPods: true}}}'}", False),
        ("{target: {kind: HelmRelease}, patch: '{{ template }}'}", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["Kustomization", "Component"])
def test_a_patch_over_the_values_is_refused_and_other_patches_do_not_count(patch, is_split, kind):
    overlay = b"kind: HelmRelease\nmetadata: {name: cilium}\nspec: {values: {k8sServiceHost: x}}\n"
    repository = {**flux(), "north/kustomization.yaml": f"kind: {kind}\npatches: [{patch}]\n".encode()}
    if "overlay" in patch:
        repository["north/overlay.yaml"] = overlay
    if is_split:
        assert refused(repository).reason == "PatchedRelease"
    else:
        assert planned(repository).place.file == "net/values/two.yaml"


def test_a_release_without_any_values_gets_them_inline():
    repository = files(
        """
        === release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chartRef: {kind: OCIRepository, name: net}
        ---
        kind: OCIRepository
        metadata: {name: net}
        spec: {url: "oci://registry.example.net/charts/cilium", ref: {tag: 1.18.3}}
        """
    )
    plan = planned(repository)
    assert diff(repository, plan.edits)["release.yaml"] == [
        "+   values:",
        "+     kubeProxyReplacement: true",
        "+     k8sServiceHost: localhost",
        "+     k8sServicePort: 7445",
        "+     rollOutCiliumPods: true",
    ]
    assert planned(after(repository, plan)).edits == ()


ARGO = """
    === argo/cilium.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {{name: cilium}}
    spec:
      sources:
        - {{repoURL: https://git.example.net/values, targetRevision: {revision}, ref: vals}}
        - chart: cilium
          targetRevision: {version}
          helm:
{helm}
    === base/cni.yaml
    kubeProxyReplacement: false
    === north/cni.yaml
    kubeProxyReplacement: false
    """


def argo(*helm: str, revision: str = "main", version: str = "1.18.3"):
    body = "\n".join(f"            {line}" for line in helm)
    return files(ARGO.format(helm=body, revision=revision, version=version))


VALUE_FILES = "valueFiles: [$vals/base/cni.yaml, $vals/north/cni.yaml]"


@pytest.mark.parametrize(
    ("helm", "shape", "place"),
    [
        ((VALUE_FILES,), "G", "north/cni.yaml"),
        ((VALUE_FILES, "values: |", "  kubeProxyReplacement: false"), "D", "argo/cilium.yaml"),
        ((VALUE_FILES, "values: |", "  debug: {}"), "G", "north/cni.yaml"),
        ((VALUE_FILES, "valuesObject:", "  kubeProxyReplacement: false", "values: |", "  kubeProxyReplacement: x"), "E", "argo/cilium.yaml"),
        ((VALUE_FILES, "valuesObject:", "  a: 1", "parameters:", "- {name: kubeProxyReplacement, value: 'false'}"), "F", "argo/cilium.yaml"),
    ],
)  # fmt: skip
def test_the_place_that_wins_in_an_application_is_edited(helm, shape, place):
    plan = planned(argo(*helm))
    assert (plan.shape, plan.place.file) == (shape, place)
    assert planned(after(argo(*helm), plan)).edits == ()


def test_parameters_alone_take_no_new_key():
    repository = argo("parameters:", "- {name: ipam.mode, value: kubernetes}")
    plan = planned(repository)
    assert plan.shape == "E"
    assert "+         valuesObject:" in diff(repository, plan.edits)["argo/cilium.yaml"]


def test_a_value_file_of_another_repository_is_refused_by_its_address():
    refusal = refused(argo("valueFiles: [$vals/elsewhere.yaml]"))
    assert refusal.reason == "OtherRepository"
    assert "elsewhere.yaml is in another repository, https://git.example.net/values" in refusal.message


@pytest.mark.parametrize("revision", ["v1.0.0", "2.1.0", "refs/tags/x", "a" * 40])
def test_a_tag_or_commit_is_not_changed_by_a_pull_request(revision):
    refusal = refused(argo(VALUE_FILES, revision=revision))
    assert refusal.reason == "PinnedSource"
    assert f"north/cni.yaml is taken at {revision}" in refusal.message


KUSTOMIZE = """
    === net/kustomization.yaml
    helmCharts:
      - name: cilium
        version: 1.18.3
        valuesFile: file.yaml
{more}
    === net/file.yaml
    kubeProxyReplacement: false
    === net/extra.yaml
    kubeProxyReplacement: false
    """


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("releaseName: cilium", "net/file.yaml"),
        ("valuesInline: {kubeProxyReplacement: false, k8sServiceHost: 192.0.2.1, rollOutCiliumPods: true}", "net/kustomization.yaml"),
        ("valuesInline: {debug: true}", "net/file.yaml"),
        ("additionalValuesFiles: [extra.yaml]", "net/extra.yaml"),
    ],
)  # fmt: skip
def test_the_place_that_wins_in_a_kustomization_is_edited(more, place):
    plan = planned(files(KUSTOMIZE.format(more=f"        {more}")))
    assert (plan.shape, plan.place.file) == ("H", place)


def test_another_way_of_merging_is_refused():
    refusal = refused(files(KUSTOMIZE.format(more="        valuesMerge: merge")))
    assert refusal.reason == "ValuesMerge"


UMBRELLA = """
    === charts/net/Chart.yaml
    name: net
    dependencies:
      - {name: cilium, alias: cni, version: 1.18.3}
    === charts/net/values.yaml
    kubeProxyReplacement: of nobody
    cni:
      kubeProxyReplacement: false
    === apps/net.yaml
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: net}
    spec:
      source:
        repoURL: https://git.example.net/net
        path: charts/net
        helm:
          valueFiles: [north.yaml]
    === charts/net/north.yaml
    cni:
      cluster: {name: north}
    """


def test_an_umbrella_chart_is_read_under_the_alias_and_with_what_deploys_it():
    repository = files(UMBRELLA)
    plan = planned(repository)
    assert (plan.shape, plan.place.file, plan.place.pointer) == ("I", "charts/net/values.yaml", "/cni")
    repository["charts/net/north.yaml"] = b"cni:\n  kubeProxyReplacement: 'false'\n"
    plan = planned(repository)
    assert plan.place.file == "charts/net/north.yaml"
    assert "charts/net/values.yaml:3 is overridden and left alone" in plan.warnings


@pytest.mark.parametrize(
    ("host", "is_kept"),
    [("localhost", True), ("127.0.0.1", True), ("api.example.net", True), ("auto", True), ("'${HOST}'", True), ("''", False), ("~", False)],
)  # fmt: skip
def test_a_host_that_works_is_kept_with_its_port(host, is_kept):
    repository = {"v.yaml": f"kubeProxyReplacement: false\nk8sServiceHost: {host}\nk8sServicePort: 6443\n".encode()}
    plan = planned(repository)
    assert {edit.pointer for _, edit in plan.edits} >= {"/kubeProxyReplacement", "/rollOutCiliumPods"}
    assert any("k8sServiceHost" in edit.pointer for _, edit in plan.edits) is not is_kept
    assert any("k8sServicePort" in edit.pointer for _, edit in plan.edits) is not is_kept
    assert any("k8sServiceHost in v.yaml is kept" in one for one in plan.warnings) is (is_kept and host != "localhost")
    assert any("substituted later" in one for one in plan.warnings) is ("${" in host)


def test_a_port_that_is_substituted_later_is_left_and_said():
    text = b"kubeProxyReplacement: false\nk8sServiceHost: localhost\nk8sServicePort: ${CNI_PORT:-7445}\n"
    plan = planned({"v.yaml": text})
    assert not any("k8sServicePort" in edit.pointer for _, edit in plan.edits)
    assert "k8sServicePort in v.yaml is kept: it is substituted later" in plan.warnings


def test_keys_in_different_places_are_changed_where_they_win():
    repository = flux(inline="values: {rollOutCiliumPods: false, k8sServiceHost: ''}")
    plan = planned(repository)
    assert [(file, edit.pointer) for file, edit in plan.edits] == [
        ("net/values/two.yaml", "/kubeProxyReplacement"),
        ("net/values/two.yaml", "/k8sServicePort"),
        ("net/release.yaml", "/spec/values/k8sServiceHost"),
        ("net/release.yaml", "/spec/values/rollOutCiliumPods"),
    ]


@pytest.mark.parametrize(
    ("version", "live", "reason"),
    [
        ("1.13.9", None, "ChartTooOld"),
        ("v1.12.0", None, "ChartTooOld"),
        ("~1.13", None, "ChartTooOld"),
        ("1.13.x", None, "ChartTooOld"),
        ("'>=1.13.0'", "1.12.4", "ChartTooOld"),
        ("1.14.0", None, ""),
        ("1.18.3", "1.13.0", ""),
        ("'*'", "1.17.0", ""),
    ],
)
def test_a_chart_before_1_14_gets_text_and_no_edit(version, live, reason):
    wanted = Wanted("replaced", chart_version=live)
    repository = flux(version=version)
    if not reason:
        assert planned(repository, wanted).edits
        return
    refusal = refused(repository, wanted)
    assert refusal.reason == reason
    assert "set kubeProxyReplacement: strict" in refusal.by_hand
    assert "set kubeProxyReplacement: disabled" in refused(repository, Wanted("enabled", chart_version=live)).by_hand


def test_an_unknown_version_is_said():
    assert any("version of the chart is not known" in one for one in planned(flux(version="'*'")).warnings)


TWO = files(
    """
    === north/release.yaml
    kind: HelmRelease
    metadata: {name: cilium, namespace: north}
    spec: {chart: {spec: {chart: cilium}}, values: {kubeProxyReplacement: false, k8sServiceHost: a, rollOutCiliumPods: true}}
    === south/release.yaml
    kind: HelmRelease
    metadata: {name: cni, namespace: south}
    spec: {chart: {spec: {chart: cilium}}, values: {kubeProxyReplacement: false, k8sServiceHost: a, rollOutCiliumPods: true}}
    """
)


def test_several_candidates_are_shown_and_none_is_taken():
    refusal = refused(TWO)
    assert refusal.reason == "SeveralCandidates"
    assert refusal.candidates == ("HelmRelease cilium in north/release.yaml", "HelmRelease cni in south/release.yaml")


@pytest.mark.parametrize(
    "locator", [{"path": "south"}, {"path": "south/release.yaml"}, {"name": "cni"}, {"namespace": "south"}, {"kind": "HelmRelease", "name": "cni"}]
)  # fmt: skip
def test_a_locator_picks_one_of_them_and_the_other_is_mentioned(locator):
    plan = planned(TWO, **locator)
    assert plan.place.file == "south/release.yaml"
    note = "north/release.yaml:3 sets kubeProxyReplacement too and belongs to HelmRelease cilium in north/release.yaml"
    assert note in plan.warnings


def test_a_locator_is_read_from_the_object():
    tree = {
        "sourceRef": {"name": "values"},
        "path": "south/",
        "shape": "B",
        "object": {"kind": "HelmRelease", "name": "cni", "namespace": "south"},
        "documentIndex": 0,
        "alsoSets": ["boot.yaml"],
    }
    locator = Locator.of(tree)
    assert locator == Locator("south", "B", "HelmRelease", "cni", "south", 0, "", ("boot.yaml",))
    repository = {**TWO, "boot.yaml": b"kubeProxyReplacement: false\n"}
    plan = plan_values(repository, locator=locator, wanted=REPLACED)
    assert [file for file, _ in plan.edits] == ["south/release.yaml", *["boot.yaml"] * 4]


def test_a_bootstrap_copy_is_named_and_only_edited_when_asked_for():
    repository = {**flux(), "boot/values.yaml": b"kubeProxyReplacement: false\n"}
    plan = planned(repository)
    assert "boot/values.yaml:1 sets kubeProxyReplacement too and should be kept equal" in plan.warnings
    assert {file for file, _ in plan.edits} == {"net/values/two.yaml"}
    plan = planned(repository, also_sets=("boot/values.yaml",))
    assert {file for file, _ in plan.edits} == {"net/values/two.yaml", "boot/values.yaml"}


def test_a_file_under_a_key_is_edited_where_the_locator_says():
    repository = {"all.yaml": b"net:\n  cilium:\n    kubeProxyReplacement: false\n"}
    assert refused(repository).reason == "NoCandidate"
    plan = planned(repository, path="all.yaml", key_prefix="net.cilium")
    assert diff(repository, plan.edits)["all.yaml"][1] == "+     kubeProxyReplacement: true"


@pytest.mark.parametrize("name", ["note.yaml", "dashboard.yaml"])
def test_the_text_of_the_key_elsewhere_is_no_candidate(name):
    texts = {
        "note.yaml": b"# kubeProxyReplacement: false\nother:\n  kubeProxyReplacement: false\n",
        "dashboard.yaml": b"kind: ConfigMap\ndata:\n  text: 'kubeProxyReplacement: false'\n",
    }
    assert refused({name: texts[name]}).reason == "NoCandidate"


def test_a_splice_that_is_refused_refuses_the_plan_with_the_same_reason():
    for reason, value in (("Substitution", "${KPR:-false}"), ("Anchored", "&off false"), ("Templated", "'{{ x }}'")):
        repository = {"v.yaml": f"kubeProxyReplacement: {value}\n".encode()}
        refusal = refused(repository)
        assert refusal.reason == reason
        assert refusal.message.startswith("v.yaml, line 1: ")


def test_the_other_direction_writes_false_even_where_nothing_is_set():
    repository = {"net/values.yaml": b"ipam: {mode: kubernetes}\n"}
    plan = planned(repository, ENABLED, path="net/values.yaml", shape="A")
    assert diff(repository, plan.edits)["net/values.yaml"] == [
        "+ kubeProxyReplacement: false",
        "+ rollOutCiliumPods: true",
    ]


def test_what_a_person_does_by_hand_is_one_sentence():
    assert planned(flux()).by_hand == (
        "set kubeProxyReplacement: true, with k8sServiceHost: localhost and k8sServicePort: 7445, and "
        "rollOutCiliumPods: true so that the agents restart, in net/values/two.yaml, as net.yaml of ConfigMap second"
    )
    assert Wanted("enabled", roll_out_pods=False).by_hand() == "set kubeProxyReplacement: false"


def test_a_parameter_of_an_umbrella_chart_wins_under_its_long_name():
    repository = files(UMBRELLA)
    parameters = b"\n      parameters:\n      - name: cni.kubeProxyReplacement\n        value: 'false'\n"
    repository["apps/net.yaml"] = repository["apps/net.yaml"].replace(b"\n      valueFiles: [north.yaml]\n", parameters)
    plan = planned(repository)
    assert plan.shape == "F"
    assert "+       - name: cni.k8sServiceHost" in diff(repository, plan.edits)["apps/net.yaml"]
    assert planned(after(repository, plan)).edits == ()


def test_a_release_names_the_values_files_of_an_umbrella_chart():
    repository = files(UMBRELLA)
    del repository["apps/net.yaml"]
    repository["flux/net.yaml"] = b"""kind: HelmRelease
metadata: {name: net}
spec:
  chart:
    spec:
      chart: ./charts/net
      sourceRef: {kind: GitRepository, name: net}
      valuesFiles: [charts/net/values.yaml, charts/net/north.yaml]
"""
    plan = planned(repository)
    assert (plan.shape, plan.place.file) == ("I", "charts/net/values.yaml")
    repository["charts/net/north.yaml"] = b"cni:\n  kubeProxyReplacement: false\n"
    assert planned(repository).place.file == "charts/net/north.yaml"


def test_an_encrypted_file_is_refused_also_where_the_value_itself_is_readable():
    text = b"kind: HelmRelease\nmetadata: {name: cilium}\nspec:\n  chart: {spec: {chart: cilium}}\n  values:\n    kubeProxyReplacement: false\n"
    assert refused({"release.yaml": text + b"sops:\n  mac: ENC[AES256_GCM,data:x]\n"}).reason == "Encrypted"


def test_an_artifact_is_nothing_to_open_a_pull_request_against():
    repository = argo(VALUE_FILES)
    repository["argo/cilium.yaml"] = repository["argo/cilium.yaml"].replace(b"https://git", b"oci://git")
    assert refused(repository).reason == "PinnedSource"


@pytest.mark.parametrize(
    ("text", "shape", "place"),
    [
        (b"ipam: {mode: kubernetes}\n", "A", ""),
        (b"cilium:\n  hubble: {enabled: true}\n", "I", "/cilium"),
        (b"cilium:\n  kubeProxyReplacement: false\n", "I", "/cilium"),
    ],
)
def test_a_values_file_that_is_named_by_itself_needs_no_deployer(text, shape, place):
    repository = {"net/values.yaml": text, "net/other.yaml": b"ipam: {mode: other}\n"}
    plan = planned(repository, path="net/values.yaml")
    assert (plan.shape, plan.place.pointer) == (shape, place)
    assert refused(repository, path="net").reason == "NoCandidate"


@pytest.mark.parametrize("text", [b"kind: Service\nipam: 1\n", b"replicas: 1\n", b"- ipam\n", b""])
def test_a_file_that_is_no_values_of_cilium_is_no_candidate(text):
    assert refused({"net/values.yaml": text}, path="net/values.yaml").reason == "NoCandidate"
