"""Which values a switch needs, and the edits that bring them about (cni-switch.md, sections 11 and 12.3)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from gitops_ctl.cni.values_files import Repository
from gitops_ctl.cni.values_places import Deployment, Layer
from gitops_ctl.core.jsonvalue import JsonScalar, JsonValue, text_at
from gitops_ctl.documents.pointer import pointer_of, steps_of
from gitops_ctl.documents.splice import ABSENT, Absent, Edit, Found, Inner, SpliceRefused, means_the_same
from gitops_ctl.documents.splicevalues import token

KEY: Final = "kubeProxyReplacement"
HOST: Final = "k8sServiceHost"
PORT: Final = "k8sServicePort"
ROLL_OUT: Final = "rollOutCiliumPods"
OLDEST_CHART: Final = (1, 14)
_VERSION: Final = re.compile(r"[~v= ]*([0-9]+)\.([0-9]+)(?:[.+-].*)?")
_AT_LEAST: Final = re.compile(r"(?:>=?|\^) *v?([0-9]+)\.([0-9]+)(?![^|]*\|).*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One direction of the switch.

    Attributes:
        kube_prism_port: of the machines.
        roll_out_pods: whether agents would not restart by themselves: the live pod template has no checksum.
        chart_version: live version, used where Git does not tell one.
    """

    target: Literal["enabled", "replaced"]
    kube_prism_port: int = 7445
    roll_out_pods: bool = True
    chart_version: str | None = None

    @property
    def values(self) -> Mapping[str, JsonScalar]:
        """Key to value, in the order in which they are written."""
        found: dict[str, JsonScalar] = {KEY: self.target == "replaced"}
        if self.target == "replaced":
            found |= {HOST: "localhost", PORT: self.kube_prism_port}
        if self.roll_out_pods:
            found[ROLL_OUT] = True
        return found

    def by_hand(self, *, old_chart: bool = False) -> str:
        """The values for a person, in one sentence without its full stop."""
        replaced = self.target == "replaced"
        value = ("strict" if replaced else "disabled") if old_chart else token(replaced)
        text = f"set {KEY}: {value}"
        if replaced:
            text += f", with {HOST}: localhost and {PORT}: {self.kube_prism_port}"
        return f"{text}, and {ROLL_OUT}: true so that the agents restart" if self.roll_out_pods else text


def chart_version(written: str, live: str | None) -> tuple[int, int] | None:
    """Major and minor of the chart, or the least that a range allows when that is new enough; None when nobody tells."""
    for version in (written.strip(), (live or "").strip()):
        exact = _VERSION.fullmatch(version)
        if exact:
            return int(exact.group(1)), int(exact.group(2))
        least = _AT_LEAST.fullmatch(version)
        if least and (found := (int(least.group(1)), int(least.group(2)))) >= OLDEST_CHART:
            return found
    return None


@dataclass(frozen=True, slots=True)
class Setting:
    """A layer that sets a key."""

    layer: Layer
    value: Found


class Layers:
    """The layers of one deployment with what they set.

    Attributes:
        closed: layers that cannot be read from here, with the reason word and sentence, by their place in the order.
    """

    def __init__(self, repository: Repository, deployment: Deployment) -> None:
        self._repository = repository
        self._layers = deployment.layers
        self.closed: dict[int, tuple[str, str]] = {}
        self._set: dict[str, list[tuple[int, Found]]] = {}
        for place, layer in enumerate(self._layers):
            self._look(place, layer)

    def setters(self, key: str) -> list[Setting]:
        """Who sets a key, the one that wins first."""
        return [Setting(self._layers[place], value) for place, value in self._set.get(key, ())]

    def hidden_above(self, layer: Layer) -> list[str]:
        """Sentences about layers that would win over `layer`, if they set the key, and cannot be read."""
        place = self._layers.index(layer)
        return [sentence for other, (_, sentence) in self.closed.items() if other < place]

    def why_closed(self, layer: Layer) -> tuple[str, str]:
        """Reason word and sentence; both empty for a layer that can be edited."""
        return self.closed.get(self._layers.index(layer), (layer.closed, layer.closed_text))

    def preferred(self) -> Layer | None:
        """Where keys go that no layer sets."""
        return next((layer for layer in self._layers if layer.preferred), None)

    def edits(self, layer: Layer, values: Mapping[str, JsonScalar]) -> list[Edit]:
        """The edits that make one layer set these values; keys in the order of `values`."""
        if layer.form == "list":
            return self._list_edits(layer, values)
        missing = {key: value for key, value in values.items() if isinstance(self._value(layer, key), Absent)}
        present = [key for key in values if key not in missing]
        edits = [self._edit(layer, (key,), "replace", self._value(layer, key), values[key]) for key in present]
        if not isinstance(self._value(layer), Absent):
            return edits + [self._edit(layer, (key,), "add", ABSENT, value) for key, value in missing.items()]
        return [self._add_parents(layer, missing)]

    def _look(self, place: int, layer: Layer) -> None:
        if layer.closed and layer.closed != "PinnedSource":
            self.closed[place] = (layer.closed, layer.closed_text)
            return
        if self._repository.is_encrypted(layer.file):
            self.closed[place] = ("Encrypted", f"{layer.file} is encrypted with SOPS")
            return
        try:
            for key in (KEY, HOST, PORT, ROLL_OUT):
                value = self._value(layer, key)
                if not isinstance(value, Absent):
                    self._set.setdefault(key, []).append((place, value))
        except SpliceRefused as refused:
            self.closed[place] = (refused.reason, f"{layer.file}, {refused.message}")

    def _value(self, layer: Layer, key: str = "") -> Found:
        if layer.form == "list" and key:
            place = self._item(layer, key)
            return ABSENT if place is None else self._at(layer, (str(place), "value"))
        return self._at(layer, (key,) if key else ())

    def _at(self, layer: Layer, steps: tuple[str, ...]) -> Found:
        pointer, inner = _address(layer, steps)
        return self._repository.value(layer.file, layer.document, pointer, inner)

    def _item(self, layer: Layer, name: str) -> int | None:
        items = self._at(layer, ())
        wanted = layer.names + name
        found = [n for n, one in enumerate(items) if _is_named(one, wanted)] if isinstance(items, list) else []
        # The last of several parameters with one name wins.
        return found[-1] if found else None

    def _list_edits(self, layer: Layer, values: Mapping[str, JsonScalar]) -> list[Edit]:
        edits = []
        anchor = max((place for key in values if (place := self._item(layer, key)) is not None), default=-1)
        key_item = self._item(layer, KEY)
        anchor = anchor if key_item is None else key_item
        for key, value in values.items():
            place = self._item(layer, key)
            if place is not None:
                edits.append(self._edit(layer, (str(place), "value"), "replace", self._value(layer, key), token(value)))
        for key, value in values.items():
            if self._item(layer, key) is None:
                anchor += 1
                item: JsonValue = {"name": layer.names + key, "value": token(value)}
                edits.append(self._edit(layer, (str(anchor),), "add", ABSENT, item))
        return edits

    def _add_parents(self, layer: Layer, values: Mapping[str, JsonScalar]) -> Edit:
        """One edit that writes the values with the mappings around them that are missing."""
        pointer, inner = _address(layer, ())
        steps = steps_of(inner[-1].pointer if inner else pointer)
        after: JsonValue = dict(values)
        while len(steps) > 1 and isinstance(self._outer(layer, steps[:-1]), Absent):
            after, steps = {steps[-1]: after}, steps[:-1]
        if inner:
            inner = (*inner[:-1], Inner(inner[-1].document, pointer_of(steps)))
            return Edit(layer.document, pointer, "add", after=after, inner=inner)
        return Edit(layer.document, pointer_of(steps), "add", after=after)

    def _outer(self, layer: Layer, steps: tuple[str, ...]) -> Found:
        inner = layer.inner
        if inner:
            inner = (*inner[:-1], Inner(inner[-1].document, pointer_of(steps)))
            return self._repository.value(layer.file, layer.document, layer.pointer, inner)
        return self._repository.value(layer.file, layer.document, pointer_of(steps))

    def _edit(
        self, layer: Layer, steps: tuple[str, ...], op: Literal["add", "replace"], before: Found, after: JsonValue
    ) -> Edit:
        pointer, inner = _address(layer, steps)
        return Edit(layer.document, pointer, op, before=before, after=after, inner=inner)


def wanted_changes(
    layers: Layers, wanted: Wanted, target: Layer
) -> tuple[dict[Layer, dict[str, JsonScalar]], list[str]]:
    """Which layer must set what, and what is kept as it is; `target` is the layer of the main key."""
    changes: dict[Layer, dict[str, JsonScalar]] = {}
    kept: list[str] = []
    for key, value in wanted.values.items():
        setters = layers.setters(key)
        now = setters[0].value if setters else ABSENT
        if means_the_same(now, value) or (key in (HOST, PORT) and _keeps_host(layers, key, kept)):
            continue
        layer = setters[0].layer if setters and key != KEY else target
        changes.setdefault(layer, {})[key] = value
    return changes, kept


def _keeps_host(layers: Layers, key: str, kept: list[str]) -> bool:
    """An address that works stays, and its port with it; what is substituted later is said of either."""
    hosts, found = layers.setters(HOST), layers.setters(key)
    if not hosts or hosts[0].value in (None, ""):
        return False
    value = found[0].value if found else ABSENT
    is_substituted = isinstance(value, str) and "${" in value
    if key == HOST or is_substituted:
        note = f"{key} in {found[0].layer.what} is kept"
        kept.append(f"{note}: it is substituted later" if is_substituted else note)
    return True


def _address(layer: Layer, steps: tuple[str, ...]) -> tuple[str, tuple[Inner, ...]]:
    if not layer.inner:
        return layer.pointer + pointer_of(steps), ()
    last = layer.inner[-1]
    return layer.pointer, (*layer.inner[:-1], Inner(last.document, last.pointer + pointer_of(steps)))


def _is_named(item: JsonValue, name: str) -> bool:
    return isinstance(item, Mapping) and text_at(item, "name") == name
