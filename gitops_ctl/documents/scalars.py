"""What a plain YAML scalar means: the same as for kubectl, or a refusal.

The order is words, then integers, then floats; there are no dates and no base-60 numbers.  One JSON number type: an
integral float becomes an integer, so that digests agree with what the API server stores.  What JSON cannot carry is
refused (fault Y07).  `tests/unit/documents/kubectl_scalars.json` holds kubectl's own answers.
"""

import re
from typing import Final

from gitops_ctl.core.canonical import MAX_SAFE_INTEGER
from gitops_ctl.core.jsonvalue import JsonScalar

_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_NULL: Final = ("", "~", "null", "Null", "NULL")

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
}
_NUMBER_START: Final = frozenset("+-.0123456789")
_INT: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASES: Final = {"0b": 2, "0o": 8, "0x": 16}
_LONGEST_NUMBER: Final = 400
"""Python reads longer digit strings in quadratic time; none of them is inside the bounds anyway."""


class NotJsonError(ValueError):
    """The number cannot be carried by JSON without loss."""


def plain_value(text: str) -> JsonScalar:
    """The value of an unquoted scalar without a tag.

    Raises:
        NotJsonError: not a number, infinite, or an integer outside of ±2^53.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_START:
        return _number(text)
    return text


def is_text(text: str) -> bool:
    """Whether an unquoted scalar without a tag means itself."""
    if text[:1] not in _NUMBER_START:
        return text not in _WORDS
    try:
        return isinstance(_number(text), str)
    except NotJsonError:
        return False


def json_number(value: float) -> int | float:
    """The one form of a number.

    Raises:
        NotJsonError: as for `plain_value`.
    """
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  NaN is the only value unequal to itself
        raise NotJsonError("it is not finite")
    if value == int(value):
        if abs(value) > MAX_SAFE_INTEGER:
            raise NotJsonError("integers beyond 2^53 lose digits in JSON readers")
        return int(value)
    return value


def _number(text: str) -> JsonScalar:
    plain = text if text[0] == "." else text.replace("_", "")
    is_int = _INT.fullmatch(plain) is not None
    if not is_int and not _FLOAT.fullmatch(plain):
        if _NOT_FINITE.fullmatch(text):
            raise NotJsonError("JSON has no infinity and no NaN")
        return text
    if len(text) > _LONGEST_NUMBER:
        raise NotJsonError("it has too many digits")
    return json_number(_integer(plain) if is_int else float(plain))


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-").lower()
    base = _BASES.get(digits[:2], 8 if len(digits) > 1 and digits.startswith("0") else 10)
    value = int(digits, base) if base != 8 else int(digits.replace("o", ""), 8)
    return -value if plain.startswith("-") else value
