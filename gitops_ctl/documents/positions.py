"""Where a JSON pointer stands in the text.

Only asked for documents with problems: the text is composed again, so that reading ten thousand good documents keeps no
marks.
"""

from functools import lru_cache

import yaml

from gitops_ctl.documents.pointer import steps_of
from gitops_ctl.documents.yamltree import TreeLimits, compose


def locate(text: bytes, pointer: str) -> tuple[int, int]:
    """Line and column, from 1, of the key (or list entry) at `pointer`; of its nearest ancestor when it is not there."""
    node = _compose(text)
    if node is None:
        return 1, 1
    mark = node.start_mark
    for step in steps_of(pointer):
        child = _child(node, step)
        if child is None:
            break
        mark, node = child[0].start_mark, child[1]
    return mark.line + 1, mark.column + 1


def scalar_text(text: bytes, pointer: str) -> str:
    """What was written for the scalar at `pointer`; empty when there is none."""
    node = _compose(text)
    for step in steps_of(pointer):
        child = None if node is None else _child(node, step)
        node = None if child is None else child[1]
    return node.value if isinstance(node, yaml.ScalarNode) else ""


@lru_cache(maxsize=1)
def _compose(text: bytes) -> yaml.Node | None:
    """The nodes; those of the last text are kept, because a long List has its findings one after the other."""
    try:
        return compose(text, limits=TreeLimits())
    except yaml.YAMLError:
        return None


def _child(node: yaml.Node, step: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The node that marks the member (its key), and the member."""
    if isinstance(node, yaml.SequenceNode):
        if step.isdecimal() and int(step) < len(node.value):
            item = node.value[int(step)]
            return item, item
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    # The last of two equal keys is the one whose value was taken.
    for key, member in reversed(node.value):
        if isinstance(key, yaml.ScalarNode) and key.value == step:
            return key, member
    for key, member in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == "<<":
            for source in member.value if isinstance(member, yaml.SequenceNode) else [member]:
                found = _child(source, step)
                if found is not None:
                    return found
    return None
