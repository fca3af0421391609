"""Label selectors of sources: what is wrong with one, and which labels it chooses (topology-scheduling.md, 3.2 and 6.1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeGuard

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.scheduling.names import is_label_key, is_label_text

Labels = Mapping[str, str]

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def selector_problems(selector: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Path and reason of everything that keeps `selector` from being one; an empty selector chooses everything."""
    if not isinstance(selector, Mapping):
        yield path, "must be a label selector"
        return
    labels = selector.get("matchLabels", {})
    if isinstance(labels, Mapping):
        for key, value in labels.items():
            yield from _key_problems(key, f"{path}.matchLabels[{key}]")
            yield from _value_problems(value, f"{path}.matchLabels[{key}]")
    else:
        yield f"{path}.matchLabels", "must be a mapping"
    expressions = selector.get("matchExpressions", [])
    if not is_list(expressions):
        yield f"{path}.matchExpressions", "must be a list"
        return
    for place, item in enumerate(expressions):
        yield from _expression_problems(item, f"{path}.matchExpressions[{place}]")


def _expression_problems(item: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(item, Mapping):
        yield path, "must be a mapping"
        return
    yield from _key_problems(item.get("key"), f"{path}.key")
    operator = item.get("operator")
    values = item.get("values", [])
    if not is_list(values):
        yield f"{path}.values", "must be a list"
        return
    if operator in _WITH_VALUES:
        if not values:
            yield f"{path}.values", f"operator {operator} needs a value"
        for place, value in enumerate(values):
            yield from _value_problems(value, f"{path}.values[{place}]")
    elif operator in _WITHOUT_VALUES:
        if values:
            yield f"{path}.values", f"operator {operator} takes no values"
    else:
        yield f"{path}.operator", f"must be one of {', '.join(_WITH_VALUES + _WITHOUT_VALUES)}"


def is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    """Whether `value` is a list; a string is none."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _key_problems(key: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(key, str) or not is_label_key(key):
        yield path, "must be a label key"


def _value_problems(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str) or (value and not is_label_text(value)):
        yield path, "must be a label value"


def selects(selector: JsonObject, labels: Labels) -> bool:
    """Whether a selector without problems chooses an object with these labels."""
    exact = all(labels.get(key) == value for key, value in object_at(selector, "matchLabels").items())
    return exact and all(_holds(item, labels) for item in objects_at(selector, "matchExpressions"))


def _holds(expression: JsonObject, labels: Labels) -> bool:
    key, values = text_at(expression, "key"), expression.get("values")
    match text_at(expression, "operator"):
        case "In":
            return key in labels and isinstance(values, Sequence) and labels[key] in values
        case "NotIn":
            # An object without the key is chosen as well.
            return key not in labels or not isinstance(values, Sequence) or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def labels_of(tree: JsonObject) -> Labels:
    """The labels of an object; members that are no strings are left out."""
    return {key: value for key, value in object_at(tree, "metadata", "labels").items() if isinstance(value, str)}
