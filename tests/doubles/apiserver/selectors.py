"""Label and field selectors of list and watch."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tests.doubles.apiserver.answers import bad_request

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<word>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<word>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=,()]+)\s*$")


def _requirements(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def labels_match(text: str) -> Predicate:
    """The predicate of a label selector."""
    tests = [_label_test(part) for part in _requirements(text)]

    def matches(tree: Mapping[str, Any]) -> bool:
        labels = tree.get("metadata", {}).get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def _label_test(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["word"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(part):
        key, value = found["key"], found["value"]
        if found["word"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(part):
        key, absent = found["key"], bool(found["no"])
        return lambda labels: (key in labels) is not absent
    raise bad_request(f"unable to parse requirement: {part}")


_OF_PODS = ("spec.nodeName",)
"""Fields by which Pods can be chosen besides; the server knows more."""


def fields_match(text: str, *, collection: tuple[str, str] = ("", "")) -> Predicate:
    """The predicate of a field selector: the two fields that every kind has, and the Node of a Pod."""
    known = ("metadata.name", "metadata.namespace", *(_OF_PODS if collection == ("", "pods") else ()))
    wanted: list[tuple[str, str, str, bool]] = []
    for part in _requirements(text):
        found = _EQUAL.match(part)
        if found is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        if found["key"] not in known:
            raise bad_request(f"field label not supported: {found['key']}")
        where, _, name = found["key"].partition(".")
        wanted.append((where, name, found["value"], found["word"] != "!="))

    def matches(tree: Mapping[str, Any]) -> bool:
        return all((tree.get(where, {}).get(name, "") == value) is equal for where, name, value, equal in wanted)

    return matches


def selected(query: Mapping[str, str], collection: tuple[str, str] = ("", "")) -> Predicate:
    """Both selectors of a request for objects of a collection."""
    by_label = labels_match(query.get("labelSelector", ""))
    by_field = fields_match(query.get("fieldSelector", ""), collection=collection)
    return lambda tree: by_label(tree) and by_field(tree)
