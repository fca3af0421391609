"""Layers that stand in a file of their own, for every tool alike (cni-switch.md, section 12.4)."""

from dataclasses import replace

from gitops_ctl.cni.values_files import Repository
from gitops_ctl.cni.values_places import Layer
from gitops_ctl.documents.pointer import pointer_of, steps_of
from gitops_ctl.documents.splice import Inner

TEMPLATE_SUFFIXES = (".gotmpl", ".j2", ".jinja", ".jinja2", ".tpl", ".tftpl", ".tmpl")
CHART = "cilium"


def is_cilium(chart: str) -> bool:
    """Whether the last part of a chart's name or address is Cilium's."""
    return chart.rstrip("/").rpartition("/")[2] == CHART


def file_layer(repository: Repository, file: str, *, shape: str, what: str, prefix: str = "") -> Layer:
    """A whole file of values; `prefix` is the key of a dependency above them.

    The layer is closed when the file is not there, cannot be read, is a template or is encrypted.
    """
    layer = Layer(shape, file, what, pointer=pointer_of((prefix,)) if prefix else "")
    if file.endswith(TEMPLATE_SUFFIXES):
        return replace(layer, closed="Templated", closed_text=f"{file} is a template")
    if file not in repository:
        return replace(layer, closed="FileMissing", closed_text=f"{file or what} is not in this repository")
    encrypted = repository.is_encrypted(file)
    refused = repository.unreadable.get(file)
    if refused is not None:
        return replace(layer, closed=refused.reason, closed_text=f"{file}, {refused.message}")
    if encrypted:
        return replace(layer, closed="Encrypted", closed_text=f"{file} is encrypted with SOPS")
    return layer


def below(layer: Layer, prefix: str) -> Layer:
    """The same layer one key deeper, where a chart around Cilium's keeps the values of its dependency."""
    if not prefix:
        return layer
    if layer.inner:
        last = layer.inner[-1]
        deeper = Inner(last.document, pointer_of((*steps_of(last.pointer), prefix)))
        return replace(layer, shape="I", inner=(*layer.inner[:-1], deeper))
    return replace(layer, shape="I", pointer=layer.pointer + pointer_of((prefix,)))
