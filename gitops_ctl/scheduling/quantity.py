"""Kubernetes quantities, compared by value: `1000m` is `1`, `1600k` is `1600000` (topology-scheduling.md, 13.2)."""

import re
from fractions import Fraction
from typing import Final

from gitops_ctl.core.jsonvalue import JsonValue

_FORM: Final = re.compile(
    r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))(?:[eE]([+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def quantity(value: JsonValue) -> Fraction | None:
    """The exact value of a quantity; None when it is none.  Never a float: quotas are larger than 2**53."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    whole, _, rest = number.partition(".")
    base = Fraction(f"{whole}.{rest or '0'}" if whole.strip("+-") else f"{whole}0.{rest}")
    if suffix in _BINARY:
        return base * (1 << _BINARY[suffix])
    return base * Fraction(10) ** (int(exponent) if exponent else _DECIMAL.get(suffix, 0))


def text_of(value: Fraction) -> str:
    """The plain form: an integer without a suffix wherever the value is one."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
