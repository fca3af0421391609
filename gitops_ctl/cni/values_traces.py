"""What else in a repository has to do with Cilium's values: plain files, Helmfile, and what cannot be edited (shapes A, K)."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from gitops_ctl.cni.values_charts import is_copy_of_chart
from gitops_ctl.cni.values_files import YAML_SUFFIXES, Document, Repository, beside
from gitops_ctl.cni.values_layers import CHART, TEMPLATE_SUFFIXES, file_layer, is_cilium
from gitops_ctl.cni.values_places import Deployment, Layer, Trace
from gitops_ctl.cni.values_talos import FLAG
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, objects_at, text_at

_KEY: Final = "kubeProxyReplacement"
_LANGUAGES: Final = {
    ".tf": "Terraform",
    ".tfvars": "Terraform",
    ".hcl": "HCL",
    ".cue": "CUE",
    ".jsonnet": "Jsonnet",
    ".libsonnet": "Jsonnet",
    ".nix": "Nix",
    ".ts": "TypeScript",
    ".py": "Python",
    ".go": "Go",
}
_PIPELINES: Final = (".sh", ".bash", "Makefile", "justfile", ".just", "Taskfile.yml", "Taskfile.yaml", ".gitlab-ci.yml")
_DEPLOYS: Final = re.compile(rb"\bchart[\"']?\s*[:=]\s*[\"']?cilium\b")
_STEP: Final = re.compile(r"(helm\s+(?:template|install|upgrade)|cilium\s+(?:install|upgrade))\b")
_DEPLOYERS: Final = {
    "HelmChart": ("spec", "chart"),
    "HelmChartProxy": ("spec", "chartName"),
    "Bundle": ("spec", "helm", "chart"),
}


def find_helmfile(repository: Repository) -> list[Deployment]:
    """Releases of a Helmfile; its values files are plain ones."""
    found = []
    for document in repository.marked():
        if document.kind:
            continue
        for place, release in enumerate(list_at(document.tree, "releases")):
            if isinstance(release, Mapping) and is_cilium(text_at(release, "chart")):
                layers = tuple(_helmfile_layers(repository, document, release, f"/releases/{place}"))
                place_of = (document.file, document.place, layers)
                version = text_at(release, "version")
                found.append(Deployment("Helmfile release", text_at(release, "name"), *place_of, version=version))
    return found


def find_plain(repository: Repository) -> list[Deployment]:
    """Files whose first document sets the key at its top and is no object."""
    found = []
    for document in repository.marked():
        is_values = not document.kind and document.place == 0 and _KEY in document.tree
        if is_values and not is_copy_of_chart(repository, document.file):
            layer = file_layer(repository, document.file, shape="A", what=document.file)
            found.append(Deployment("values file", "", document.file, 0, (layer,)))
    return found


def find_traces(repository: Repository) -> list[Trace]:
    """Everything that sets the key and cannot be edited here."""
    traces = [trace for document in repository.marked() for trace in _objects(repository, document)]
    for file in repository.paths:
        data = repository.data(file)
        if f"/charts/{CHART}/templates/" in f"/{file}":
            continue  # A copy of the chart itself.
        if _KEY.encode() in data or (_is_generated(file) and _deploys(data)):
            traces += _texts(repository, file)
    return traces


def _deploys(data: bytes) -> bool:
    """Whether the text deploys the chart, or has an inline manifest and Cilium after it."""
    begins = data.find(b"inlineManifests")
    return _DEPLOYS.search(data) is not None or (begins >= 0 and data.find(b"cilium", begins) >= 0)


def _is_generated(file: str) -> bool:
    return file.endswith(TEMPLATE_SUFFIXES) or posixpath.splitext(file)[1] in _LANGUAGES


def _helmfile_layers(repository: Repository, document: Document, release: JsonObject, at: str) -> Iterator[Layer]:
    if any(text_at(one, "name") == _KEY for one in objects_at(release, "set")):
        what = f"set of the release {text_at(release, 'name')}"
        yield Layer(
            "A", document.file, what, closed="SetFlag", closed_text=f"{what} in {document.file} wins over values"
        )
    values = list_at(release, "values")
    for place, one in reversed(list(enumerate(values))):
        if isinstance(one, str):
            file = beside(document.file, one)
            yield file_layer(repository, file, shape="A", what=file or one)
        else:
            what = f"inline values in {document.file}"
            yield Layer("A", document.file, what, document.place, f"{at}/values/{place}")


def _objects(repository: Repository, document: Document) -> Iterator[Trace]:
    file, tree = document.file, document.tree
    if document.kind == "ConfigMap" and "kube-proxy-replacement" in object_at(tree, "data"):
        line = repository.line(file, document.place, "/data/kube-proxy-replacement")
        sentence = f"{file}:{line} is a rendered manifest: editing values alone changes nothing, render it again"
        yield Trace(file, sentence, "Rendered")
    elif (document.kind in _DEPLOYERS and is_cilium(text_at(tree, *_DEPLOYERS[document.kind]))) or any(
        is_cilium(text_at(chart, "chartName")) for chart in objects_at(tree, "spec", "helmCharts")
    ):
        sentence = f"{document.kind} {document.name} in {file} deploys Cilium in a way that is not edited here"
        yield Trace(file, sentence, "OtherDeployer")
    if document.kind == "Job":
        flag = FLAG.search(repository.text(file))
        if flag is not None:
            yield Trace(
                file, f"Job {document.name} in {file} sets {flag.group(0)}, which wins over values: change it by hand"
            )
    if not document.kind and _KEY in tree and is_copy_of_chart(repository, file):
        yield Trace(file, f"{file} holds the defaults of a copy of the chart: an update overwrites it", "CopyOfChart")
    if "mac" in object_at(tree, "sops") and _holds_key(tree):
        yield Trace(file, f"{file} is encrypted with SOPS and cannot be changed without the key", "Encrypted")


def _texts(repository: Repository, file: str) -> Iterator[Trace]:
    name, suffix = posixpath.basename(file), posixpath.splitext(file)[1]
    text = repository.text(file)
    if file.endswith(TEMPLATE_SUFFIXES):
        yield Trace(file, f"{file} is a template: its text is generated", "Generated")
    elif suffix in _LANGUAGES:
        yield Trace(file, f"{file} generates the values ({_LANGUAGES[suffix]})", "Generated")
    elif name.endswith(_PIPELINES) or "/workflows/" in f"/{file}":
        step = _STEP.search(text)
        what = f"the step {' '.join(step.group(1).split())} in {file}" if step else f"a step in {file}"
        yield Trace(file, f"{what} sets the values", "Pipeline")
    elif suffix in YAML_SUFFIXES and not repository.documents(file) and file in repository.unreadable:
        refused = repository.unreadable[file]
        why = "is a template" if refused.reason == "Templated" else "cannot be read"
        yield Trace(
            file, f"{file} {why} ({refused.message})", "Generated" if why == "is a template" else refused.reason
        )


def _holds_key(tree: JsonObject) -> bool:
    return _KEY in tree or _KEY in object_at(tree, "spec", "values") or _KEY in object_at(tree, "cilium")
