"""Cilium's values in Git: the one place that must change for a switch of kube-proxy, and the edits (cni-switch.md, 11 and 12).

Pure and offline: it sees the files that it is given.  It never guesses between places: when several could be meant, or when
the text is generated, it refuses and says which values a person should set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.cni.values_argo import find_argo
from gitops_ctl.cni.values_charts import find_kustomize, find_umbrellas, find_wrapped
from gitops_ctl.cni.values_files import Repository
from gitops_ctl.cni.values_flux import find_flux
from gitops_ctl.cni.values_layers import file_layer
from gitops_ctl.cni.values_places import Deployment, Layer, Locator, Place, Search, ValuesRefused
from gitops_ctl.cni.values_talos import find_talos
from gitops_ctl.cni.values_traces import find_helmfile, find_plain, find_traces
from gitops_ctl.cni.values_wanted import KEY, OLDEST_CHART, Layers, Wanted, chart_version, wanted_changes
from gitops_ctl.core.jsonvalue import JsonScalar, object_at
from gitops_ctl.documents.splice import Edit, SpliceRefused, splice_with_notes

_TELLING: Final = frozenset(
    {KEY, "k8sServiceHost", "k8sServicePort", "rollOutCiliumPods", "ipam", "hubble", "routingMode", "l2announcements"}
)
"""Keys that only values of Cilium have."""

__all__ = ["Locator", "Place", "ValuesPlan", "ValuesRefused", "Wanted", "plan_values"]


@dataclass(frozen=True, slots=True)
class ValuesPlan:
    """What must change.

    Attributes:
        shape: letter of the form, `A` to `J`.
        place: where the winning value stands, or would stand.
        edits: file and edit, in order; empty when everything is there already.
        why: which place wins, and over what.
        by_hand: the values and their place in words.
        warnings: what the person who merges should know.
    """

    shape: str
    place: Place | None
    edits: tuple[tuple[str, Edit], ...]
    why: str
    by_hand: str
    warnings: tuple[str, ...] = ()


def plan_values(files: Mapping[str, bytes], *, locator: Locator | None, wanted: Wanted) -> ValuesPlan:
    """Find the place and the edits.

    Args:
        files: by path relative to the root of the repository; symlinks left out.

    Raises:
        ValuesRefused: there is no such place, or it cannot be edited.
    """
    repository = Repository(files)
    planner = _Planner(repository, locator or Locator(), wanted)
    return planner.plan()


def search(repository: Repository) -> Search:
    """Everything in the repository that deploys Cilium or sets its values."""
    umbrellas = find_umbrellas(repository)
    found = Search()
    found.deployments += find_flux(repository, umbrellas) + find_argo(repository, umbrellas)
    found.deployments += find_kustomize(repository)
    used = {layer.file for deployment in found.deployments for layer in deployment.layers}
    for umbrella in umbrellas.values():
        wrapped = find_wrapped(repository, umbrella)
        if not any(layer.file in used for layer in wrapped.layers):
            found.deployments.append(wrapped)
    manifests, traces = find_talos(repository)
    found.fallbacks += [*find_helmfile(repository), *manifests]
    used |= {layer.file for deployment in found.deployments for layer in deployment.layers}
    used |= {layer.file for deployment in found.fallbacks for layer in deployment.layers}
    found.fallbacks += [plain for plain in find_plain(repository) if plain.file not in used]
    found.traces += [*traces, *find_traces(repository)]
    return found


class _Planner:
    """One search and its outcome."""

    def __init__(self, repository: Repository, locator: Locator, wanted: Wanted) -> None:
        self._repository = repository
        self._locator = locator
        self._wanted = wanted
        self._search = search(repository)

    def plan(self) -> ValuesPlan:
        deployment = self._choose()
        if deployment.refusal[0]:
            raise self._refused(*deployment.refusal, subject=deployment.file, extra=deployment.warnings)
        self._require_new_chart(deployment)
        layers = Layers(self._repository, deployment)
        target, why = self._target(deployment, layers)
        changes, kept = wanted_changes(layers, self._wanted, target)
        edits = [(layer.file, edit) for layer, values in changes.items() for edit in self._edits(layers, layer, values)]
        edits += [pair for file in self._locator.also_sets for pair in self._same_in(file)]
        notes = self._require_possible(edits)
        warnings = [*deployment.warnings, *self._warnings(deployment, layers, target), *kept, *notes]
        by_hand = f"{self._wanted.by_hand()}, in {target.what}"
        place = self._place(target)
        return ValuesPlan(target.shape, place, tuple(edits), why, by_hand, tuple(dict.fromkeys(warnings)))

    def _choose(self) -> Deployment:
        direct = self._direct()
        if direct is not None:
            return direct
        for group in (self._search.deployments, self._search.fallbacks):
            fitting = [one for one in group if self._fits(one)]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                titles = sorted(one.title for one in fitting)
                message = "the Cilium chart is deployed in more than one place: name the one that is meant"
                raise self._refused("SeveralCandidates", message, candidates=titles)
        named = self._named_file()
        if named is not None:
            return named
        traces = [trace for trace in self._search.traces if trace.reason and self._locator.covers(trace.file)]
        if traces:
            texts = [trace.text for trace in traces]
            raise self._refused(traces[0].reason, texts[0], subject=traces[0].file, candidates=texts[1:])
        raise self._refused("NoCandidate", "nothing here deploys the Cilium chart or sets its values")

    def _direct(self) -> Deployment | None:
        """The values file that the locator names, when it says that the file is one."""
        locator = self._locator
        if locator.path not in self._repository or not (
            locator.key_prefix or locator.shape in ("A", "C", "G", "H", "I")
        ):
            return None
        shape = locator.shape if locator.shape != "auto" else "I"
        layer = file_layer(self._repository, locator.path, shape=shape, what=locator.path)
        prefix = "".join(f"/{step}" for step in locator.key_prefix.split(".") if step)
        layer = replace(layer, document=locator.document or 0, pointer=prefix)
        return Deployment("values file", "", locator.path, layer.document, (layer,))

    def _named_file(self) -> Deployment | None:
        """The file that was named by itself, when it looks like values of Cilium, alone or under its name."""
        file = self._locator.path
        documents = self._repository.documents(file) if file in self._repository else ()
        if not documents or documents[0].kind:
            return None
        for prefix, tree in (("", documents[0].tree), ("cilium", object_at(documents[0].tree, "cilium"))):
            if _TELLING & tree.keys():
                layer = file_layer(self._repository, file, shape="I" if prefix else "A", what=file, prefix=prefix)
                return Deployment("values file", "", file, 0, (layer,))
        return None

    def _fits(self, deployment: Deployment) -> bool:
        locator = self._locator
        named = (
            (locator.kind, deployment.kind),
            (locator.name, deployment.name),
            (locator.namespace, deployment.namespace),
        )
        if any(wanted and wanted != found for wanted, found in named):
            return False
        if locator.document is not None and locator.document != deployment.document:
            return False
        if locator.shape != "auto" and locator.shape not in {layer.shape for layer in deployment.layers}:
            return False
        return locator.covers(deployment.file) or any(
            locator.covers(layer.file) for layer in deployment.layers if layer.file
        )

    def _require_new_chart(self, deployment: Deployment) -> None:
        version = chart_version(deployment.version, self._wanted.chart_version)
        if version is not None and version < OLDEST_CHART:
            written = deployment.version or self._wanted.chart_version
            message = f"the chart is {written}: before 1.14 it takes other words than true and false"
            by_hand = self._wanted.by_hand(old_chart=True)
            raise ValuesRefused("ChartTooOld", message, by_hand=by_hand, subject=deployment.file)

    def _target(self, deployment: Deployment, layers: Layers) -> tuple[Layer, str]:
        setters = layers.setters(KEY)
        target = setters[0].layer if setters else layers.preferred()
        if target is None:
            message = f"no place of {deployment.title} can take values: {'; '.join(text for _, text in layers.closed.values())}"
            raise self._refused("NoPlace", message, subject=deployment.file)
        word, sentence = layers.why_closed(target)
        if word:
            raise self._refused(word, sentence, subject=target.file or deployment.file)
        if not setters:
            return target, f"no place sets {KEY}; {target.what} is the most specific one of {deployment.title}"
        others = [other.layer.what for other in setters[1:]]
        won = f" and wins over {', '.join(others)}" if others else ""
        return target, f"{target.what} sets {KEY}{won}"

    def _edits(self, layers: Layers, layer: Layer, values: Mapping[str, JsonScalar]) -> list[Edit]:
        word, sentence = layers.why_closed(layer)
        if word:
            raise self._refused(word, sentence, subject=layer.file)
        return layers.edits(layer, values)

    def _same_in(self, file: str) -> list[tuple[str, Edit]]:
        """The same values in another file that the locator names."""
        layer = file_layer(self._repository, file, shape="A", what=file)
        if layer.closed:
            raise self._refused(layer.closed, layer.closed_text, subject=file)
        layers = Layers(self._repository, Deployment("values file", "", file, 0, (layer,)))
        changes, _ = wanted_changes(layers, self._wanted, layer)
        return [(file, edit) for one, values in changes.items() for edit in layers.edits(one, values)]

    def _require_possible(self, edits: Sequence[tuple[str, Edit]]) -> list[str]:
        """Make the edits on the files that were given; what they change stays here."""
        notes: list[str] = []
        for file in dict.fromkeys(file for file, _ in edits):
            own = [edit for name, edit in edits if name == file]
            try:
                done = splice_with_notes(self._repository.data(file), own)
            except SpliceRefused as refused:
                raise self._refused(refused.reason, f"{file}, {refused.message}", subject=file) from None
            notes += [f"{file}, {note}" for note in done.notes]
        return notes

    def _warnings(self, deployment: Deployment, layers: Layers, target: Layer) -> list[str]:
        found = []
        if chart_version(deployment.version, self._wanted.chart_version) is None:
            found.append(
                "the version of the chart is not known: charts before 1.14 take other words than true and false"
            )
        found += [f"{text}; if it sets {KEY}, it wins" for text in layers.hidden_above(target)]
        found += [f"{self._where(other.layer)} is overridden and left alone" for other in layers.setters(KEY)[1:]]
        mine = {layer.file for layer in deployment.layers} | set(self._locator.also_sets)
        for other in [*self._search.deployments, *self._search.fallbacks]:
            note = f"belongs to {other.title}" if other in self._search.deployments else "should be kept equal"
            for setting in Layers(self._repository, other).setters(KEY) if other is not deployment else ():
                if setting.layer.file not in mine:
                    found.append(f"{self._where(setting.layer)} sets {KEY} too and {note}")
        found += [trace.text for trace in self._search.traces if trace.file not in mine]
        return found

    def _where(self, layer: Layer) -> str:
        inner = layer.inner
        pointer = layer.pointer if inner or layer.form == "list" else f"{layer.pointer}/{KEY}"
        if inner:
            inner = (*inner[:-1], replace(inner[-1], pointer=f"{inner[-1].pointer}/{KEY}"))
        line = self._repository.line(layer.file, layer.document, pointer, inner)
        return f"{layer.file}:{line}" if line else layer.file

    def _place(self, layer: Layer) -> Place:
        return Place(layer.file, layer.document, layer.pointer, layer.inner, layer.shape)

    def _refused(
        self, why: str, message: str, *, subject: str = "", candidates: Sequence[str] = (), extra: Sequence[str] = ()
    ) -> ValuesRefused:
        by_hand = f"{self._wanted.by_hand()}, in the Helm values of Cilium"
        message = "; ".join((message, *extra))
        return ValuesRefused(why, message, by_hand=by_hand, subject=subject, candidates=candidates)
