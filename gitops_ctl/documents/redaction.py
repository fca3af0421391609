"""May a value be shown?  Asked before a message quotes one (promise P9)."""

from collections.abc import Mapping

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.core.redact import redact_object
from gitops_ctl.documents.pointer import steps_of


def is_sensitive(tree: JsonObject, pointer: str) -> bool:
    """True for values of a Secret, and below names that say that they hold one; also `value` beside such a `name`."""
    if text_at(tree, "kind") == "Secret":
        return True
    node: JsonValue = tree
    for step in steps_of(pointer):
        names = [step]
        if isinstance(node, Mapping):
            names.append(text_at(node, "name"))
        if any(_names_a_secret(name) for name in names):
            return True
        node = _below(node, step)
    return False


def _below(node: JsonValue, step: str) -> JsonValue:
    if isinstance(node, Mapping):
        return node.get(step)
    if isinstance(node, (list, tuple)) and step.isdecimal() and int(step) < len(node):
        item: JsonValue = node[int(step)]
        return item
    return None


def _names_a_secret(name: str) -> bool:
    return bool(name) and redact_object({name: "x"})[name] != "x"
