"""Values of an Argo CD Application: parameters, inline values and value files (cni-switch.md, shapes D to G and K)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gitops_ctl.cni.values_charts import Umbrella, umbrella_values
from gitops_ctl.cni.values_files import Document, Repository, inside
from gitops_ctl.cni.values_layers import below, file_layer, is_cilium
from gitops_ctl.cni.values_places import Deployment, Layer
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.splice import Inner

_PINNED = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|v?[0-9]+(\.[0-9]+)+.*|refs/tags/.*")


def find_argo(repository: Repository, umbrellas: Mapping[str, Umbrella]) -> list[Deployment]:
    """Every Application that deploys Cilium's chart, and ApplicationSets, which are refused."""
    found = []
    for document in repository.marked(deploying=bool(umbrellas)):
        if document.kind == "Application" and document.group == "argoproj.io":
            found += _applications(repository, document, umbrellas)
        elif document.kind == "ApplicationSet":
            found += _sets(document, umbrellas)
    return found


def _applications(repository: Repository, document: Document, umbrellas: Mapping[str, Umbrella]) -> list[Deployment]:
    sources = _sources(object_at(document.tree, "spec"), "/spec")
    found = []
    for at, source in sources:
        umbrella = umbrellas.get(inside("", text_at(source, "path"))) if text_at(source, "path") else None
        if umbrella is None and not is_cilium(text_at(source, "chart")):
            continue
        layers = _Layers(repository, document, [tree for _, tree in sources]).of(at, source, umbrella)
        version = umbrella.version if umbrella else text_at(source, "targetRevision")
        place = (document.file, document.place, tuple(layers))
        found.append(Deployment("Application", document.name, *place, namespace=document.namespace, version=version))
    return found


def _sets(document: Document, umbrellas: Mapping[str, Umbrella]) -> list[Deployment]:
    sources = _sources(object_at(document.tree, "spec", "template", "spec"), "")
    for _, source in sources:
        path = text_at(source, "path")
        if is_cilium(text_at(source, "chart")) or (path and inside("", path) in umbrellas):
            sentence = "an edit of the ApplicationSet would change every Application that it generates"
            refusal = ("ApplicationSet", sentence)
            return [Deployment("ApplicationSet", document.name, document.file, document.place, refusal=refusal)]
    return []


def _sources(spec: JsonObject, at: str) -> list[tuple[str, JsonObject]]:
    several = list_at(spec, "sources")
    if several:
        return [(f"{at}/sources/{place}", one) for place, one in enumerate(several) if isinstance(one, Mapping)]
    return [(f"{at}/source", object_at(spec, "source"))]


class _Layers:
    """The layers of one Application, the one that wins first."""

    def __init__(self, repository: Repository, document: Document, sources: Sequence[JsonObject]) -> None:
        self._repository = repository
        self._document = document
        self._sources = sources

    def of(self, at: str, source: JsonObject, umbrella: Umbrella | None) -> list[Layer]:
        helm = object_at(source, "helm")
        prefix = umbrella.key if umbrella else ""
        layers = self._inline(f"{at}/helm", helm, prefix)
        files = [path for path in list_at(helm, "valueFiles") if isinstance(path, str)]
        layers += [self._file(path, source, prefix) for path in reversed(files)]
        if umbrella is not None:
            layers.append(_pinned(umbrella_values(self._repository, umbrella), source))
        if not any(layer.preferred for layer in layers):
            layers.append(self._layer("E", f"{at}/helm/valuesObject", "helm.valuesObject"))
        return layers

    def _inline(self, at: str, helm: JsonObject, prefix: str) -> list[Layer]:
        layers = []
        if objects_at(helm, "parameters"):
            parameters = self._layer("F", f"{at}/parameters", "helm.parameters")
            names = f"{prefix}." if prefix else ""
            layers.append(replace(parameters, form="list", names=names, preferred=False))
        if "valuesObject" in helm:
            layers.append(below(self._layer("E", f"{at}/valuesObject", "helm.valuesObject"), prefix))
        elif "values" in helm:
            text = self._layer("D", f"{at}/values", "helm.values")
            layers.append(below(replace(text, inner=(Inner(0, ""),)), prefix))
        return layers

    def _layer(self, shape: str, pointer: str, what: str) -> Layer:
        return Layer(
            shape, self._document.file, f"{what} of Application {self._document.name}", self._document.place, pointer
        )

    def _file(self, path: str, source: JsonObject, prefix: str) -> Layer:
        shape = "I" if prefix else "G"
        if path.startswith("$"):
            ref, _, rest = path[1:].partition("/")
            named = next((one for one in self._sources if text_at(one, "ref") == ref), None)
            if named is None:
                return Layer(shape, "", path, closed="RefMissing", closed_text=f"no source has the ref {ref}")
            layer = file_layer(self._repository, inside("", rest), shape=shape, what=rest, prefix=prefix)
            if layer.closed == "FileMissing":
                sentence = f"{rest} is in another repository, {text_at(named, 'repoURL')}"
                return replace(layer, closed="OtherRepository", closed_text=sentence)
            return _pinned(layer, named)
        if "chart" in source or "://" in path:
            sentence = f"{path} comes with the chart"
            return Layer(shape, "", path, closed="InsideChart", closed_text=sentence, preferred=False)
        file = inside("", path[1:]) if path.startswith("/") else inside(text_at(source, "path"), path)
        return _pinned(file_layer(self._repository, file, shape=shape, what=file or path, prefix=prefix), source)


def _pinned(layer: Layer, source: JsonObject) -> Layer:
    """A file that is taken at a tag or a commit is not changed by a pull request to a branch."""
    revision = text_at(source, "targetRevision")
    is_artifact = text_at(source, "repoURL").startswith("oci://")
    if layer.closed or not (is_artifact or _PINNED.fullmatch(revision)):
        return layer
    sentence = f"{layer.what} is taken at {revision}, which a pull request to a branch does not change"
    return replace(layer, closed="PinnedSource", closed_text=sentence)
