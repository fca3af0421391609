"""Strict JSON for documents that a machine trusts: the fleet policy and the ledger (rollouts.md, sections 7 and 8).

One text is one object.  A duplicate member, an unknown one, data after the object, a fraction, NaN, an endless number or depth, and half of
a surrogate pair are refused, each with the JSON pointer of its place.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue

_DIGITS: Final = 19
"""Of the largest number of 64 bits; longer ones are not even read."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Malformed(Exception):
    """A document that is not accepted: `pointer` says where, the text why.  Callers turn it into an error with a code."""

    def __init__(self, pointer: str, why: str) -> None:
        super().__init__(why)
        self.pointer = pointer

    @property
    def why(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class _Flaw:
    """Stands in a decoded tree where something unacceptable was read."""

    why: str


class _Repeated(dict[str, JsonValue]):
    """An object that named `member` twice."""

    member = ""


def pointer_to(base: str, step: str | int) -> str:
    """The JSON pointer of a member or list entry below `base`."""
    return f"{base}/{str(step).replace('~', '~0').replace('/', '~1')}"


def decode_object(text: str, *, most_bytes: int) -> JsonObject:
    """The object that `text` is, as plain dicts and lists.

    Raises:
        Malformed: the text is too long, no JSON, no object, or breaks a rule of this module.
    """
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > most_bytes:
        raise Malformed("", f"the document has {size} bytes, {most_bytes} are allowed")
    if not text.strip():
        raise Malformed("", "the document is empty")
    decoder = _Decoder()
    try:
        tree = json.loads(
            text,
            object_pairs_hook=decoder.members,
            parse_constant=decoder.constant,
            parse_float=decoder.fraction,
            parse_int=decoder.integer,
        )
        if decoder.is_flawed or "\\u" in text or not text.isascii():
            _look_through(tree, "")
    except json.JSONDecodeError as error:
        why = "there is something after the object" if error.msg == "Extra data" else f"this is no JSON: {error.msg}"
        raise Malformed("", f"{why} (line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise Malformed("", "objects and lists stand too deep inside each other") from error
    if not isinstance(tree, dict):
        raise Malformed("", "the document must be one object")
    return tree


class _Decoder:
    """Marks what is not accepted, because only a walk through the whole tree knows where it stands; most texts need no walk."""

    __slots__ = ("is_flawed",)

    def __init__(self) -> None:
        self.is_flawed = False

    def members(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        tree = dict(pairs)
        if len(tree) == len(pairs):
            return tree
        self.is_flawed = True
        seen: set[str] = set()
        repeated = _Repeated(tree)
        for name, _ in pairs:
            if name in seen:
                repeated.member = name
            seen.add(name)
        return repeated

    def constant(self, word: str) -> _Flaw:
        return self._flaw(f"{word} is no JSON number")

    def fraction(self, text: str) -> _Flaw:
        return self._flaw(f"{text[:_DIGITS]} is no whole number in plain digits")

    def integer(self, text: str) -> int | _Flaw:
        if len(text.lstrip("-")) <= _DIGITS:
            return int(text)
        return self._flaw(f"{text[:_DIGITS]}… is too large a number")

    def _flaw(self, why: str) -> _Flaw:
        self.is_flawed = True
        return _Flaw(why)


def _look_through(value: "JsonValue | _Flaw", pointer: str) -> None:
    """The first flaw in document order.

    Raises:
        Malformed: there is one.
    """
    if isinstance(value, _Flaw):
        raise Malformed(pointer, value.why)
    if isinstance(value, str):
        _look_at(value, pointer)
    elif isinstance(value, (dict, list)):
        if isinstance(value, _Repeated):
            raise Malformed(pointer_to(pointer, value.member), "the member is there twice")
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            _look_at(str(step), pointer)
            _look_through(member, pointer_to(pointer, step))


def _look_at(text: str, pointer: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise Malformed(pointer, "half of a surrogate pair is no text")


class Reader:
    """Takes the members of one object, each with its rule; what nobody took is unknown.

    A null member is an absent one where `nulls` says so: the reference's encoder writes empty lists and maps in this way.
    """

    __slots__ = ("_left", "_tree", "pointer")

    def __init__(self, value: JsonValue, pointer: str, *, nulls: bool = False) -> None:
        if not isinstance(value, Mapping):
            raise Malformed(pointer, f"{_named(pointer)} must be an object")
        self.pointer = pointer
        self._tree = {name: member for name, member in value.items() if member is not None or not nulls}
        self._left = [name for name in value if name in self._tree]

    def at(self, name: str) -> str:
        """The pointer of a member."""
        return pointer_to(self.pointer, name)

    def has(self, name: str) -> bool:
        return name in self._tree

    def take(self, name: str) -> JsonValue:
        """The member as it is.

        Raises:
            Malformed: it is not there.
        """
        if name not in self._tree:
            raise Malformed(self.at(name), f"{name} is required")
        if name in self._left:
            self._left.remove(name)
        return self._tree[name]

    def text(self, name: str, *, default: str | None = None) -> str:
        """A string; `default` where it is absent, unless that is None."""
        if default is not None and name not in self._tree:
            return default
        value = self.take(name)
        if not isinstance(value, str):
            raise Malformed(self.at(name), f"{name} must be a string")
        return value

    def number(self, name: str, least: int, most: int, *, default: int | None = None, zero: int | None = None) -> int:
        """A whole number; `default` stands for an absent one and `zero` for 0, where they are given."""
        if default is not None and name not in self._tree:
            return default
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Malformed(self.at(name), f"{name} must be a whole number")
        if value == 0 and zero is not None:
            return zero
        if not least <= value <= most:
            raise Malformed(self.at(name), f"{name} must be {least} to {most}, not {value}")
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """A boolean."""
        if default is not None and name not in self._tree:
            return default
        value = self.take(name)
        if not isinstance(value, bool):
            raise Malformed(self.at(name), f"{name} must be true or false")
        return value

    def entries(self, name: str, *, least: int, most: int) -> Sequence[JsonValue]:
        """A list of bounded length; an absent one is empty where `least` is 0."""
        if least == 0 and name not in self._tree:
            return ()
        value = self.take(name)
        if not isinstance(value, list):
            raise Malformed(self.at(name), f"{name} must be a list")
        if not least <= len(value) <= most:
            raise Malformed(self.at(name), f"{name} must have {least} to {most} entries, not {len(value)}")
        return value

    def texts(self, name: str, *, least: int, most: int) -> tuple[str, ...]:
        """A list of distinct strings."""
        found: list[str] = []
        for index, value in enumerate(self.entries(name, least=least, most=most)):
            place = pointer_to(self.at(name), index)
            if not isinstance(value, str):
                raise Malformed(place, f"an entry of {name} must be a string")
            if value in found:
                raise Malformed(place, f"{value!r} is twice in {name}")
            found.append(value)
        return tuple(found)

    def members(self, name: str, *, least: int, most: int) -> JsonObject:
        """An object of bounded size whose member names are data; an absent one is empty where `least` is 0."""
        if least == 0 and name not in self._tree:
            return {}
        value = self.take(name)
        if not isinstance(value, Mapping):
            raise Malformed(self.at(name), f"{name} must be an object")
        if not least <= len(value) <= most:
            raise Malformed(self.at(name), f"{name} must have {least} to {most} members, not {len(value)}")
        return value

    def end(self) -> None:
        """No member is left.

        Raises:
            Malformed: one is, and the document means something that this program does not know.
        """
        if self._left:
            raise Malformed(self.at(self._left[0]), f"{self._left[0]!r} is no member of {_named(self.pointer)}")


def _named(pointer: str) -> str:
    return pointer or "the document"
