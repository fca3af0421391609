"""The kube-proxy part of a machine configuration: what it says, and the same configuration saying something else.

Pure.  Talos has two forms: a block `cluster.proxy` in the older document, and a document of its own.  Without either kube-proxy runs:
a missing document never means "disabled" (cni-switch.md, section 7.3).  Edits are splices: every other byte stays.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, object_at, text_at
from gitops_ctl.core.secretnames import is_secret_name
from gitops_ctl.documents.splice import Edit, SpliceRefused, splice
from gitops_ctl.talos.configdocuments import LEGACY, ConfigDocument, split_documents, the_only
from gitops_ctl.talos.errors import ConfigRefused, ProxyImageUnknown
from gitops_ctl.talos.model import Contract, Mode, Role

DOCUMENT: Final = "KubeProxyConfig"
_FIRST_WITH_DOCUMENTS: Final = (1, 14)
_BLOCK: Final = "/cluster/proxy"
_KEPT: Final = ("image", "mode", "extraArgs")
"""Members that both forms have under the same name."""

_NO_IMAGE: Final = "no image for kube-proxy is known: the configuration names none"


@dataclass(frozen=True, slots=True)
class KubeProxyPart:
    """What a configuration says about kube-proxy.

    Attributes:
        form: which form says it; `none` when neither is there.
        enabled: whether kube-proxy runs; true when nothing is said.
        image: named image; empty when none is.
        explicit: whether the flag is written down.
        conflict: both forms are there, which Talos refuses; the document counts.
    """

    form: Literal["document", "legacy", "none"]
    enabled: bool
    image: str = ""
    explicit: bool = False
    conflict: bool = False


def config_hash(text: bytes) -> str:
    """`sha256:` and the digest of the configuration exactly as it is."""
    return digest_bytes(text)


def kube_proxy_part(text: bytes) -> KubeProxyPart:
    """What `text` says about kube-proxy.

    Raises:
        ConfigRefused: it cannot be read, or its flag is no boolean.
    """
    return _part(split_documents(text))


def contract_of(configs: Sequence[bytes], *, version: str) -> Contract:
    """The form that the configurations of a cluster use; when they use none, the one of its Talos version.

    Raises:
        ConfigRefused: a configuration cannot be read, or they use none and the version is not known.
    """
    forms = {kube_proxy_part(config).form for config in configs}
    if "document" in forms:
        return "v1.14"
    if "legacy" in forms:
        return "v1.13"
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if found is None:
        raise ConfigRefused("no configuration says which form it uses, and the version of Talos is not known")
    return "v1.14" if (int(found[1]), int(found[2])) >= _FIRST_WITH_DOCUMENTS else "v1.13"


def edited(base: bytes, *, mode: Mode, contract: Contract, role: Role, image: str = "") -> bytes:
    """`base` with its kube-proxy part as `mode` wants it; `base` itself when it already is so.

    `image` is used when kube-proxy is enabled in the document form and the base names none.

    Raises:
        ConfigRefused: the edit cannot be made, or a worker has the document, which Talos refuses there.
        ProxyImageUnknown: an image is needed, and neither the base nor the caller names one.
    """
    documents = split_documents(base)
    if the_only(documents, LEGACY) is None:
        raise ConfigRefused("the machine configuration has no v1alpha1 document")
    enabled = mode == "enabled"
    if contract == "v1.13":
        wanted = _in_legacy_form(documents, enabled=enabled)
    elif role == "worker":
        wanted = _without_contradiction(documents, enabled=enabled)
    else:
        wanted = _in_document_form(documents, enabled=enabled, image=image)
    _require_untouched(documents, split_documents(wanted))
    return wanted


def secret_values(text: bytes) -> tuple[str, ...]:
    """Values in `text` that nobody may see; of a configuration that cannot be read, all its longer words."""
    try:
        found = {value for document in split_documents(text) for value in _secrets("", document.tree)}
    except ConfigRefused:
        found = {word for word in text.decode("utf-8", "replace").split() if len(word) >= 16}
    return tuple(sorted(value for value in found if len(value) >= 4))


def _part(documents: tuple[ConfigDocument, ...]) -> KubeProxyPart:
    place, block = the_only(documents, DOCUMENT), _block(documents)
    if place is not None:
        tree = documents[place].tree
        enabled = _flag(tree, "enabled", default=True)
        image = text_at(tree, "image")
        return KubeProxyPart("document", enabled, image, explicit="enabled" in tree, conflict=block is not None)
    if block is None:
        return KubeProxyPart("none", enabled=True)
    disabled = _flag(block, "disabled", default=False)
    return KubeProxyPart("legacy", not disabled, text_at(block, "image"), explicit="disabled" in block)


def _block(documents: tuple[ConfigDocument, ...]) -> JsonObject | None:
    """The block of the older form; None when there is none (null is none)."""
    place = the_only(documents, LEGACY)
    if place is None:
        return None
    found = object_at(documents[place].tree, "cluster").get("proxy")
    if found is not None and not isinstance(found, Mapping):
        raise ConfigRefused("cluster.proxy of the machine configuration is no mapping")
    return found


def _flag(tree: JsonObject, name: str, *, default: bool) -> bool:
    value = tree.get(name, default)
    if not isinstance(value, bool):
        raise ConfigRefused(f"the member {name} of the kube-proxy configuration is no boolean")
    return value


def _in_document_form(documents: tuple[ConfigDocument, ...], *, enabled: bool, image: str) -> bytes:
    part, block = _part(documents), _block(documents) or EMPTY
    image = part.image or text_at(block, "image") or image
    if enabled and not image:
        raise ProxyImageUnknown(_NO_IMAGE)
    rest = _without_block(documents)
    place = the_only(documents, DOCUMENT)
    if place is None:
        kept: dict[str, JsonValue] = {key: block[key] for key in _KEPT if key in block}
        if enabled:
            kept["image"] = image
        return _appended(b"".join(rest), {"apiVersion": LEGACY, "kind": DOCUMENT, "enabled": enabled, **kept})
    tree = documents[place].tree
    edits = _set(tree, {"enabled": enabled})
    if enabled and not part.image:
        # An image that is written down as nothing is replaced, a missing one is added.
        edits.append(Edit(0, "/image", "replace" if "image" in tree else "add", after=image))
    rest[place] = _spliced(rest[place], *edits)
    return b"".join(rest)


def _in_legacy_form(documents: tuple[ConfigDocument, ...], *, enabled: bool) -> bytes:
    texts = [document.text for document in documents]
    legacy, place = the_only(documents, LEGACY), the_only(documents, DOCUMENT)
    assert legacy is not None
    wanted: dict[str, JsonValue] = {"disabled": not enabled}
    if place is not None:
        tree = documents[place].tree
        texts[place] = b""
        wanted = {key: tree[key] for key in _KEPT if key in tree} | wanted
    texts[legacy] = _with_block(documents[legacy], {**(_block(documents) or {}), **wanted})
    return b"".join(texts)


def _without_contradiction(documents: tuple[ConfigDocument, ...], *, enabled: bool) -> bytes:
    """A worker in the document form: it has nothing to say, and what it says otherwise goes."""
    if the_only(documents, DOCUMENT) is not None:
        raise ConfigRefused(f"a worker must not have the document {DOCUMENT}: Talos allows it on control planes only")
    block = _block(documents)
    says_otherwise = block is not None and _part(documents).enabled != enabled
    return b"".join(_without_block(documents) if says_otherwise else [document.text for document in documents])


def _without_block(documents: tuple[ConfigDocument, ...]) -> list[bytes]:
    """The texts, without the block of the older form."""
    texts = [document.text for document in documents]
    place = the_only(documents, LEGACY)
    if place is not None and _block(documents) is not None:
        texts[place] = _spliced(texts[place], Edit(0, _BLOCK, "remove"))
    return texts


def _with_block(document: ConfigDocument, wanted: JsonObject) -> bytes:
    """The older document with exactly these members in its block; the lines of those that are there already stay."""
    present = object_at(document.tree, "cluster", "proxy")
    edits = _set(present, wanted, below=_BLOCK)
    try:
        if present:
            return splice(document.text, edits) if edits else document.text
    except SpliceRefused as refused:
        if refused.reason != "FlowMapping":
            raise ConfigRefused(_cannot(refused)) from None
    text = document.text
    if present or _BLOCK in document.written or "proxy" in object_at(document.tree, "cluster"):
        text = _spliced(text, Edit(0, _BLOCK, "remove"))
    after = split_documents(text)[0]
    if object_at(after.tree, "cluster"):
        return _spliced(text, Edit(0, _BLOCK, "add", after=wanted))
    if "cluster" in after.tree or "/cluster" in after.written:
        text = _spliced(text, Edit(0, "/cluster", "remove"))
    return _spliced(text, Edit(0, "/cluster", "add", after={"proxy": wanted}))


def _set(tree: JsonObject, wanted: JsonObject, *, below: str = "") -> list[Edit]:
    """Edits for the members that are not so already: reading a large text for nothing takes its time."""
    return [
        Edit(0, f"{below}/{name}", "replace" if name in tree else "add", after=value)
        for name, value in wanted.items()
        if tree.get(name) != value
    ]


def _spliced(text: bytes, *edits: Edit) -> bytes:
    try:
        return splice(text, edits) if edits else text
    except SpliceRefused as refused:
        raise ConfigRefused(_cannot(refused)) from None


def _cannot(refused: SpliceRefused) -> str:
    return f"the kube-proxy part of the machine configuration cannot be edited: {refused.reason}: {refused.message}"


def _appended(text: bytes, tree: JsonObject) -> bytes:
    """`text` with one more document at its end, in the newlines that it uses."""
    newline = "\r\n" if b"\r\n" in text else "\n"
    lines = ["---", *(f"{key}: {_scalar(value)}" for key, value in tree.items()), ""]
    between = b"" if not text or text.endswith(b"\n") else newline.encode()
    return text + between + newline.join(lines).encode()


def _scalar(value: JsonValue) -> str:
    """JSON is YAML; plain words need no quotes."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./@-]*(:[\w./@-]+)*", value):
        return value if value.lower() not in {"true", "false", "null", "yes", "no", "on", "off"} else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def _require_untouched(before: tuple[ConfigDocument, ...], after: tuple[ConfigDocument, ...]) -> None:
    """Whatever is not the kube-proxy part means the same as before."""
    if _others(before) != _others(after):
        raise ConfigRefused("the edit would change more of the machine configuration than its kube-proxy part")


def _others(documents: tuple[ConfigDocument, ...]) -> list[JsonObject]:
    found: list[JsonObject] = []
    for document in documents:
        tree = dict(document.tree)
        if document.kind == LEGACY:
            cluster = {key: value for key, value in object_at(tree, "cluster").items() if key != "proxy"}
            tree.pop("cluster", None)
            if cluster:
                tree["cluster"] = cluster
        if tree and document.kind != DOCUMENT:
            found.append(tree)
    return found


def _secrets(name: str, value: JsonValue) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _secrets(key, member)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _secrets(name, item)
    elif isinstance(value, str) and (name == "key" or is_secret_name(name)):
        yield value
