"""Label selectors of policy, plan and image sources, with the meaning that Kubernetes gives them (rollouts.md, 3.2 and 7.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.fleet.encoding import sorted_map
from gitops_ctl.fleet.forms import is_label_value, is_qualified_name
from gitops_ctl.fleet.strict import Malformed, Reader, pointer_to

MOST_TERMS: Final = 32
"""Labels, expressions, and values of one expression."""
LONGEST_KEY: Final = 96
"""Bytes of a key."""
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_WITH_VALUES: Final = ("In", "NotIn")


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression; `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """NotIn also holds where the key is missing."""
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms hold together; without a term it matches everything."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.expressions

    @property
    def keys(self) -> frozenset[str]:
        """Every key that a term is about."""
        return frozenset(self.match_labels) | {term.key for term in self.expressions}

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(term.matches(labels) for term in self.expressions)

    def canonical_tree(self) -> dict[str, JsonValue]:
        """For hashes of the policy, where terms and values are sets: sorted, empty members left out."""
        tree: dict[str, JsonValue] = {}
        if self.match_labels:
            tree["matchLabels"] = sorted_map(self.match_labels)
        if self.expressions:
            terms = sorted((term.key, term.operator, tuple(sorted(term.values))) for term in self.expressions)
            tree["matchExpressions"] = [_term_tree(*term) for term in terms]
        return tree


def _term_tree(key: str, operator: str, values: tuple[str, ...]) -> JsonObject:
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


def selector_of(value: JsonValue, pointer: str = "") -> Selector:
    """Read a selector, every bound checked.

    Raises:
        Malformed: with the pointer of the term that breaks a rule.
    """
    reader = Reader(value, pointer, nulls=True)
    labels = _labels(reader)
    terms = reader.entries("matchExpressions", least=0, most=MOST_TERMS)
    base = reader.at("matchExpressions")
    reader.end()
    return Selector(
        match_labels=labels,
        expressions=tuple(_expression(term, pointer_to(base, index)) for index, term in enumerate(terms)),
    )


def _labels(reader: Reader) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in reader.members("matchLabels", least=0, most=MOST_TERMS).items():
        place = pointer_to(reader.at("matchLabels"), key)
        _check_key(key, place)
        labels[key] = _value(value, place)
    return labels


def _expression(value: JsonValue, pointer: str) -> Expression:
    reader = Reader(value, pointer, nulls=True)
    key = reader.text("key")
    _check_key(key, reader.at("key"))
    operator = reader.text("operator")
    if operator not in OPERATORS:
        raise Malformed(reader.at("operator"), f"operator must be one of {', '.join(OPERATORS)}, not {operator!r}")
    values = reader.texts("values", least=0, most=MOST_TERMS)
    reader.end()
    if (operator in _WITH_VALUES) != bool(values):
        rule = "needs values" if operator in _WITH_VALUES else "takes no values"
        raise Malformed(pointer_to(pointer, "values"), f"the operator {operator} {rule}")
    for index, text in enumerate(values):
        _value(text, pointer_to(pointer_to(pointer, "values"), index))
    return Expression(key, operator, values)


def _check_key(key: str, place: str) -> None:
    if len(key) > LONGEST_KEY or not is_qualified_name(key):
        raise Malformed(place, f"{key[:LONGEST_KEY]!r} is no label key of at most {LONGEST_KEY} bytes")


def _value(value: JsonValue, place: str) -> str:
    if not isinstance(value, str) or not is_label_value(value):
        raise Malformed(place, f"{str(value)[:64]!r} is no label value of at most 63 characters")
    return value
