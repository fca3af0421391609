"""Keys, forms of names, and the hash that profiles and NodeFeatures are named by (topology-scheduling.md, 5, 6 and 7).

The texts here are stored in clusters: none may change.
"""

import re
from typing import Final

from gitops_ctl.fleet.forms import is_subdomain

WORKER_GROUP: Final = "worker.gpustack.ai"
WORKER_API_VERSION: Final = f"{WORKER_GROUP}/v1alpha1"
SOURCE_KIND: Final = "TopologySource"
SOURCE_FINALIZER: Final = f"{WORKER_GROUP}/topology-source"
WORKER_NAMESPACE: Final = "gpustack-system"

TOPOLOGY: Final = "topology.gpustack.ai"
PROFILE: Final = f"{TOPOLOGY}/profile"
SOURCE_UID: Final = f"{TOPOLOGY}/source-uid"
HOSTNAME: Final = "kubernetes.io/hostname"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
READ_ONLY_PARENTS: Final = frozenset({REGION, ZONE})
"""Levels that a snapshot may repeat and never sets (section 4.2, rule 10)."""

RESOURCE_TYPE: Final = "resource.gpustack.ai/type"
"""The mark of our own objects: `topology`, `nodes` or `instancetypes`."""
NOTE: Final = "note.gpustack.ai/"
MANAGED: Final = "gpustack.ai/managed"
OS: Final = "kubernetes.io/os"
ARCH: Final = "kubernetes.io/arch"
ACCELERATABLE: Final = "feature.gpustack.ai/acceleratable"
CPU_ONLY: Final = "feature.gpustack.ai/cpu-only"
GENERAL: Final = "general.feature.gpustack.ai/"
ACCELERATOR: Final = "acceleratable.feature.gpustack.ai/"

MOST_LEVELS: Final = 16
LONGEST_LABEL: Final = 63
"""Characters of a label value, and of the part of a label key behind its prefix."""

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1

# `fullmatch` and explicit classes: `$` would take a newline at the end, `\w` letters of every script.
_LABEL_TEXT: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def fnv64(*parts: str) -> str:
    """FNV-1a 64 over the UTF-8 bytes of the parts, joined by one NUL byte: 16 lower-case hex digits."""
    value = _OFFSET
    for byte in "\0".join(parts).encode():
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value:016x}"


def is_label_key(text: str) -> bool:
    """Whether `text` is a qualified label key: an optional subdomain and `/`, then a name of at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    return is_label_text(name) and (not slash or is_subdomain(prefix))


def is_label_text(text: str) -> bool:
    """Whether `text` is a label value that is not empty."""
    return len(text) <= LONGEST_LABEL and _LABEL_TEXT.fullmatch(text) is not None


def is_blank(text: str) -> bool:
    """Whether nothing is left of `text` after trimming, by the rule of Python or by that of Go.

    The two sets of white space differ in U+001C to U+001F, which only Python trims; no character is trimmed by Go alone.
    """
    return not text.strip()


def within(domain: str, parent: str) -> bool:
    """Whether `domain` is `parent` or lies below it."""
    return domain == parent or domain.endswith(f".{parent}")
