"""Compares two configuration trees of one device (rollouts.md, section 9.4).

Both come from the same device, so they are written the same way; only the order of different kinds of siblings and white space
carry nothing.  The order within one kind is kept: some lists are ordered by their user.  Only paths are told, never values.  Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final

from lxml import etree

_MOST: Final = 8
_DEEPEST: Final = 200


def differences(one: Sequence[etree._Element], other: Sequence[etree._Element]) -> tuple[str, ...]:
    """Paths at which the two differ, the first few; empty when they are equal."""
    return tuple(islice(_siblings(one, other, "", 0), _MOST))


def _siblings(one: Sequence[etree._Element], other: Sequence[etree._Element], path: str, depth: int) -> Iterator[str]:
    kinds, others = _by_kind(one), _by_kind(other)
    for kind in sorted(set(kinds) | set(others)):
        place = f"{path}/{etree.QName(kind).localname}"
        for left, right in zip_longest(kinds.get(kind, ()), others.get(kind, ())):
            if left is None or right is None:
                yield place
            else:
                yield from _nodes(left, right, place, depth)


def _nodes(left: etree._Element, right: etree._Element, path: str, depth: int) -> Iterator[str]:
    texts = (left.text or "").strip(), (right.text or "").strip()
    if texts[0] != texts[1] or sorted(left.attrib.items()) != sorted(right.attrib.items()) or depth > _DEEPEST:
        yield path
    elif len(left) or len(right):
        yield from _siblings(list(left), list(right), path, depth + 1)


def _by_kind(nodes: Sequence[etree._Element]) -> Mapping[str, list[etree._Element]]:
    found: dict[str, list[etree._Element]] = {}
    for node in nodes:
        found.setdefault(str(node.tag), []).append(node)
    return found
