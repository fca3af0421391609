"""Cilium's chart as a dependency of another one, and in kustomize's `helmCharts` (cni-switch.md, shapes H and I)."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from gitops_ctl.cni.values_files import Document, Repository, beside, folder_of
from gitops_ctl.cni.values_layers import CHART, file_layer, is_cilium
from gitops_ctl.cni.values_places import Deployment, Layer
from gitops_ctl.core.jsonvalue import JsonObject, list_at, objects_at, text_at

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True, slots=True)
class Umbrella:
    """A chart with Cilium among its dependencies.

    Attributes:
        key: name or alias of the dependency, under which its values stand.
    """

    folder: str
    file: str
    name: str
    key: str
    version: str


def find_umbrellas(repository: Repository) -> Mapping[str, Umbrella]:
    """By folder: charts that list Cilium's as a dependency, or keep a copy of it in their folder `charts`."""
    found: dict[str, Umbrella] = {}
    for document in repository.marked():
        folder, name = folder_of(document.file), text_at(document.tree, "name")
        if posixpath.basename(document.file) not in ("Chart.yaml", "requirements.yaml"):
            continue
        for dependency in objects_at(document.tree, "dependencies"):
            if text_at(dependency, "name") == CHART:
                key = text_at(dependency, "alias") or CHART
                found[folder] = Umbrella(folder, document.file, name, key, text_at(dependency, "version"))
        around = folder.removesuffix(f"/charts/{CHART}")
        if name == CHART and around != folder and f"{around}/Chart.yaml" in repository:
            version = text_at(document.tree, "version")
            found.setdefault(around, Umbrella(around, document.file, posixpath.basename(around), CHART, version))
    return found


def is_copy_of_chart(repository: Repository, file: str) -> bool:
    """Whether a file lies in Cilium's own chart: its values are defaults, which an update of the chart overwrites."""
    folder = folder_of(file)
    chart = f"{folder}/Chart.yaml".lstrip("/")
    return chart in repository and any(
        text_at(document.tree, "name") == CHART and "dependencies" not in document.tree
        for document in repository.documents(chart)
    )


def umbrella_values(repository: Repository, umbrella: Umbrella) -> Layer:
    """The chart's own values file, which every other place wins over."""
    file = f"{umbrella.folder}/values.yaml".lstrip("/")
    return file_layer(repository, file, shape="I", what=f"{umbrella.key} in {file}", prefix=umbrella.key)


def find_wrapped(repository: Repository, umbrella: Umbrella) -> Deployment:
    """The chart alone, when nothing in the repository deploys it."""
    layers = (umbrella_values(repository, umbrella),)
    return Deployment("Chart", umbrella.name, umbrella.file, 0, layers, version=umbrella.version)


def find_kustomize(repository: Repository) -> list[Deployment]:
    """Every entry of `helmCharts` for Cilium."""
    found = []
    for document in repository.marked():
        if is_kustomization(document):
            for place, chart in enumerate(list_at(document.tree, "helmCharts")):
                if isinstance(chart, Mapping) and is_cilium(text_at(chart, "name")):
                    found.append(_inflated(repository, document, chart, place))
    return found


def is_kustomization(document: Document) -> bool:
    """A kustomization or component of kustomize, not a Kustomization of Flux."""
    if document.kind in ("Kustomization", "Component"):
        return document.group in ("", "kustomize.config.k8s.io")
    return not document.kind and posixpath.basename(document.file) in KUSTOMIZATIONS


def _inflated(repository: Repository, document: Document, chart: JsonObject, place: int) -> Deployment:
    """Kustomize merges the inline values into the file; the additional files come after both and win."""
    at = f"/helmCharts/{place}"
    files = [file for file in list_at(chart, "additionalValuesFiles") if isinstance(file, str)]
    layers = [_values_file(repository, document, file) for file in reversed(files)]
    inline = Layer("H", document.file, f"valuesInline in {document.file}", document.place, f"{at}/valuesInline")
    if "valuesInline" in chart:
        layers.append(inline)
    if text_at(chart, "valuesFile"):
        layers.append(_values_file(repository, document, text_at(chart, "valuesFile")))
    merge = text_at(chart, "valuesMerge", default="override")
    refusal = ("", "")
    if merge != "override":
        refusal = ("ValuesMerge", f"valuesMerge is {merge}: inline values and file are not merged in the usual order")
    return Deployment(
        "Kustomization",
        text_at(chart, "releaseName", default="cilium"),
        document.file,
        document.place,
        tuple(layers or [inline]),
        namespace=text_at(chart, "namespace"),
        version=text_at(chart, "version"),
        refusal=refusal,
    )


def _values_file(repository: Repository, document: Document, path: str) -> Layer:
    file = beside(document.file, path)
    return file_layer(repository, file, shape="H", what=file or path)
