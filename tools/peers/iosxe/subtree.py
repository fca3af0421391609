"""Subtree filters of RFC 6241, section 6: containment, selection and content match."""

from copy import deepcopy

from lxml import etree


def filtered(trees: list[etree._Element], wanted: etree._Element | None) -> list[etree._Element]:
    """What the filter element selects of `trees`; everything without one."""
    if wanted is None:
        return trees
    found = []
    for tree in trees:
        for pattern in wanted:
            if _same(pattern, tree) and (kept := _selected(pattern, tree)) is not None:
                found.append(kept)
    return found


def _selected(pattern: etree._Element, node: etree._Element) -> etree._Element | None:
    """A copy of `node` cut to the pattern, or None when nothing of it is selected."""
    if len(pattern) == 0:
        return deepcopy(node)
    matches = [part for part in pattern if len(part) == 0 and (part.text or "").strip()]
    if not all(any(_equal(part, child) for child in node) for part in matches):
        return None
    others = [part for part in pattern if part not in matches]
    kept = etree.Element(node.tag, nsmap=node.nsmap)
    for child in node:
        parts = [part for part in others if _same(part, child)]
        if not others or any(_same(part, child) for part in matches):
            kept.append(deepcopy(child))
        for part in parts:
            if (selected := _selected(part, child)) is not None:
                kept.append(selected)
    return kept if len(kept) or not len(node) else None


def _same(pattern: etree._Element, node: etree._Element) -> bool:
    """Whether a pattern is about this node; one without a namespace is about any."""
    name, other = str(pattern.tag), str(node.tag)
    return name == other or (name[0] != "{" and name == other.rpartition("}")[2])


def _equal(pattern: etree._Element, node: etree._Element) -> bool:
    return _same(pattern, node) and (pattern.text or "").strip() == (node.text or "").strip()
