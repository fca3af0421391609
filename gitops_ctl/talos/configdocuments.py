"""A machine configuration as a stream of documents, cut byte for byte (cni-switch.md, section 15.3).

The document without a kind that says `version: v1alpha1` is the older, large one; the others have a kind and sometimes a name.
Documents that nobody here knows stay as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.documents.yamltree import TreeLimits, read_tree
from gitops_ctl.talos.errors import ConfigRefused

LEGACY: Final = "v1alpha1"
LARGEST_BYTES: Final = 16 * 2**20

_MARKER: Final = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_END: Final = re.compile(rb"^\.\.\.[ \t]*\r?$", re.MULTILINE)
_NOT_BLANK: Final = re.compile(rb"^[ \t]*[^\s#]", re.MULTILINE)
_LIMITS: Final = TreeLimits(depth=128, size=64 * 2**20)
_UNREADABLE: Final = (ErrorCode.YAML_SYNTAX, ErrorCode.NOT_RESOLVED, ErrorCode.EXPANSION_LIMIT, ErrorCode.DUPLICATE_KEY)


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """One document.

    Attributes:
        text: its bytes, the marker line before it included.
        kind: `v1alpha1` for the older one, else its kind; empty when it has none, or holds nothing.
        name: its name, for kinds that have several documents.
        tree: what it says; members that are null are left out.
        written: pointers of members that are there and null.
    """

    text: bytes
    kind: str
    name: str
    tree: JsonObject
    written: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """`KubeProxyConfig`, `VolumeConfig[EPHEMERAL]`."""
        return f"{self.kind}[{self.name}]" if self.name else self.kind


def split_documents(text: bytes) -> tuple[ConfigDocument, ...]:
    """The documents in their order; their texts joined are `text`.

    Raises:
        ConfigRefused: too large, or one of the documents is not YAML.  The message names a line, never what is in it.
    """
    if len(text) > LARGEST_BYTES:
        raise ConfigRefused(f"the machine configuration is larger than {LARGEST_BYTES // 2**20} MiB")
    starts = [found.start() for found in _MARKER.finditer(text)]
    cuts = sorted({0, *starts, len(text)})
    parts = [text[start:end] for start, end in pairwise(cuts)]
    documents, line = [], 1
    for part in parts:
        documents.append(_document(part, line=line))
        line += part.count(b"\n")
    return tuple(documents)


def the_only(documents: tuple[ConfigDocument, ...], kind: str) -> int | None:
    """Place of the document of that kind; None when there is none.

    Raises:
        ConfigRefused: there are several.
    """
    found = [place for place, document in enumerate(documents) if document.kind == kind]
    if len(found) > 1:
        raise ConfigRefused(f"the machine configuration has {len(found)} documents {kind}")
    return found[0] if found else None


def _document(text: bytes, *, line: int) -> ConfigDocument:
    end = _END.search(text)
    if end is not None and _NOT_BLANK.search(text, end.end()):
        raise ConfigRefused(f"the machine configuration has a document without a marker, behind line {line}")
    read = read_tree(text, limits=_LIMITS)
    for finding in read.findings:
        if finding.code in _UNREADABLE:
            place = line + max(0, finding.line - 1)
            raise ConfigRefused(f"the machine configuration cannot be read: {finding.code.slug} in line {place}")
    tree: JsonObject = read.value if isinstance(read.value, Mapping) else EMPTY
    kind = text_at(tree, "kind")
    if not kind and "kind" not in tree and text_at(tree, "version") == LEGACY:
        kind = LEGACY
    return ConfigDocument(text, kind, text_at(tree, "name") if kind != LEGACY else "", tree, read.nulls)
