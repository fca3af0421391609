"""Values of a Flux HelmRelease: inline, from ConfigMaps, and patches over them (cni-switch.md, shapes B, C and K)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gitops_ctl.cni.values_charts import Umbrella, is_kustomization, umbrella_values
from gitops_ctl.cni.values_files import Document, Repository, beside, folder_of, inside
from gitops_ctl.cni.values_layers import below, file_layer, is_cilium
from gitops_ctl.cni.values_places import Deployment, Layer
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.splice import Inner, SpliceRefused, documents_in

KEYS = ("kubeProxyReplacement", "k8sServiceHost", "k8sServicePort", "rollOutCiliumPods")
_SPLITTING = re.compile(rf"/spec(/values(/({'|'.join(KEYS)}))?)?")


def find_flux(repository: Repository, umbrellas: Mapping[str, Umbrella]) -> list[Deployment]:
    """Every HelmRelease that deploys Cilium's chart, alone or inside another chart."""
    found = []
    documents = repository.marked(deploying=bool(umbrellas))
    releases = [document for document in documents if document.kind == "HelmRelease"]
    for document in releases:
        chart = _chart(repository, document, umbrellas)
        if chart is not None:
            deployment = _release(repository, document, chart)
            found.append(_with_patches(repository, deployment, releases))
    return found


@dataclass(frozen=True, slots=True)
class _Chart:
    version: str
    umbrella: Umbrella | None = None

    @property
    def prefix(self) -> str:
        return self.umbrella.key if self.umbrella else ""


def _chart(repository: Repository, document: Document, umbrellas: Mapping[str, Umbrella]) -> _Chart | None:
    spec = object_at(document.tree, "spec", "chart", "spec")
    name = text_at(spec, "chart")
    in_git = text_at(spec, "sourceRef", "kind") in ("GitRepository", "Bucket")
    umbrella = umbrellas.get(inside("", name)) if name and in_git else None
    if umbrella is not None:
        return _Chart(umbrella.version, umbrella)
    if name:
        return _Chart(text_at(spec, "version")) if is_cilium(name) else None
    reference = text_at(document.tree, "spec", "chartRef", "name")
    return _referenced(repository, reference) if reference else None


def _referenced(repository: Repository, reference: str) -> _Chart | None:
    """The chart behind an OCIRepository or HelmChart; by its name when the object is not in the repository."""
    for document in repository.marked():
        if document.name != reference:
            continue
        if document.kind == "OCIRepository":
            ref = object_at(document.tree, "spec", "ref")
            version = text_at(ref, "tag") or text_at(ref, "semver")
            return _Chart(version) if is_cilium(text_at(document.tree, "spec", "url")) else None
        if document.kind == "HelmChart":
            spec = object_at(document.tree, "spec")
            return _Chart(text_at(spec, "version")) if is_cilium(text_at(spec, "chart")) else None
    return _Chart("") if is_cilium(reference) else None


def _release(repository: Repository, document: Document, chart: _Chart) -> Deployment:
    what = f"spec.values of HelmRelease {document.name}"
    inline = Layer("B", document.file, what, document.place, "/spec/values")
    sources = objects_at(document.tree, "spec", "valuesFrom")
    has_inline = bool(object_at(document.tree, "spec", "values"))
    layers = [below(replace(inline, preferred=has_inline or not sources), chart.prefix)]
    layers += [below(_values_from(repository, document, source), chart.prefix) for source in reversed(sources)]
    if chart.umbrella is not None:
        layers += _umbrella_files(repository, document, chart.umbrella)
    return Deployment(
        "HelmRelease",
        document.name,
        document.file,
        document.place,
        tuple(layers),
        namespace=document.namespace,
        version=chart.version,
    )


def _umbrella_files(repository: Repository, document: Document, umbrella: Umbrella) -> list[Layer]:
    """The values files of the chart that the release names, the last one first; its own when it names none."""
    files = [one for one in list_at(document.tree, "spec", "chart", "spec", "valuesFiles") if isinstance(one, str)]
    if not files:
        return [umbrella_values(repository, umbrella)]
    paths = [inside("", file) for file in reversed(files)]
    return [file_layer(repository, path, shape="I", what=path, prefix=umbrella.key) for path in paths]


def _values_from(repository: Repository, release: Document, source: JsonObject) -> Layer:
    kind, name = text_at(source, "kind"), text_at(source, "name")
    key = text_at(source, "valuesKey", default="values.yaml")
    what = f"{key} of {kind} {name}"
    closed = Layer("C", "", what, closed="NotReadable", closed_text=f"{what} is not in this repository")
    if text_at(source, "targetPath"):
        sentence = f"{what} sets {text_at(source, 'targetPath')} alone"
        return replace(closed, closed="TargetPath", closed_text=sentence, preferred=False)
    if kind != "ConfigMap":
        return replace(closed, closed_text=f"{what} cannot be read from Git", preferred=False)
    generated = _generated(repository, release, name)
    if len(generated) > 1:
        files = ", ".join(sorted(document.file for document, _ in generated))
        return replace(closed, closed="SeveralGenerators", closed_text=f"{name} is generated in {files}")
    if generated:
        return _from_generator(repository, *generated[0], key=key, what=what)
    for document in repository.marked():
        if document.kind == "ConfigMap" and document.name == name:
            pointer = pointer_of(("data", key))
            return Layer("C", document.file, what, document.place, pointer, inner=(Inner(0, ""),))
    return closed


def _generated(repository: Repository, release: Document, name: str) -> list[tuple[Document, JsonObject]]:
    """Generators of that ConfigMap: those nearest above the release, else all."""
    found = [
        (document, generator)
        for document in repository.marked()
        if is_kustomization(document)
        for generator in objects_at(document.tree, "configMapGenerator")
        if text_at(generator, "name") == name
    ]
    folder = f"{folder_of(release.file)}/"
    above = [one for one in found if folder.startswith(f"{folder_of(one[0].file)}/".lstrip("/"))]
    deepest = max((len(folder_of(document.file)) for document, _ in above), default=0)
    return [one for one in above if len(folder_of(one[0].file)) == deepest] or found


def _from_generator(repository: Repository, document: Document, generator: JsonObject, *, key: str, what: str) -> Layer:
    for entry in list_at(generator, "files"):
        if not isinstance(entry, str):
            continue
        named, equals, path = entry.partition("=")
        path = path if equals else entry
        if (named if equals else path.rpartition("/")[2]) == key:
            file = beside(document.file, path)
            return file_layer(repository, file, shape="C", what=f"{file or path}, as {what}")
    sentence = f"the generator in {document.file} has no file with the key {key}"
    return Layer("C", "", what, closed="KeyMissing", closed_text=sentence)


def _with_patches(repository: Repository, release: Deployment, releases: list[Document]) -> Deployment:
    for file, value in _patches(repository, release):
        if _splits(value):
            sentence = f"the values are split between the patch in {file} and {release.file}"
            return replace(release, refusal=("PatchedRelease", sentence))
    for other in releases:
        spec = object_at(other.tree, "spec")
        overlay = other.name == release.name and "chart" not in spec and "chartRef" not in spec
        if overlay and any(key in object_at(spec, "values") for key in KEYS):
            sentence = f"the values are split between the patch in {other.file} and {release.file}"
            return replace(release, refusal=("PatchedRelease", sentence))
    return release


def _patches(repository: Repository, release: Deployment) -> Iterator[tuple[str, JsonValue]]:
    """Patches of kustomize and of Flux that are aimed at the release, with the file that holds them."""
    for document in repository.marked():
        if document.kind != "Kustomization" and not is_kustomization(document):
            continue
        entries = [*objects_at(document.tree, "patches"), *objects_at(document.tree, "patchesJson6902")]
        entries += objects_at(document.tree, "spec", "patches")
        for entry in entries:
            path = beside(document.file, text_at(entry, "path")) if "path" in entry else ""
            text = repository.data(path) if path and path in repository else text_at(entry, "patch").encode()
            target = object_at(entry, "target")
            yield from ((path or document.file, value) for value in _read(text) if _is_aimed(target, value, release))


def _is_aimed(target: JsonObject, patch: JsonValue, release: Deployment) -> bool:
    """By the target of the patch; a merge patch without one names its object itself."""
    if not target and isinstance(patch, Mapping):
        return text_at(patch, "kind") == "HelmRelease" and text_at(patch, "metadata", "name") == release.name
    return text_at(target, "kind") == "HelmRelease" and _is_named(text_at(target, "name"), release.name)


def _is_named(pattern: str, name: str) -> bool:
    """Kustomize takes the name of a target as a pattern for the whole of it."""
    try:
        return not pattern or re.fullmatch(pattern, name) is not None
    except re.error:
        return pattern == name


def _read(text: bytes) -> tuple[JsonValue, ...]:
    try:
        return documents_in(text)
    except SpliceRefused:
        return ()


def _splits(patch: JsonValue) -> bool:
    """Whether a JSON patch, or a merge patch, sets one of the values that a switch needs."""
    if isinstance(patch, list):
        return any(_SPLITTING.fullmatch(text_at(op, "path")) for op in patch if isinstance(op, Mapping))
    if isinstance(patch, Mapping):
        return any(key in object_at(patch, "spec", "values") for key in KEYS)
    return False
