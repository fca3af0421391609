"""JSON calls of one token at one forge: addresses, pages, and what a refusal means (forges.md, sections 2 and 18).

What comes back is foreign: it is parsed strictly, read with defaults, and its texts are redacted and cut before they go into an error.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NoReturn, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Conflict, GitopsError, Refused
from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, HttpClient, Terms
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.forge.errors import (
    AnswerRefused,
    AnswerTooLong,
    ForbiddenOrMissing,
    RepositoryUnavailable,
    TokenRejected,
)

Item = TypeVar("Item")

MOST_PAGES: Final = 100
_DIVISORS: Final = (2, 5)
_SAID_CHARACTERS: Final = 500
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_LINKS: Final = re.compile(r",\s*(?=<)")
_NEXT: Final = re.compile(r'\brel="?next\b')
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, parsed.  `call` says what was asked, for messages."""

    call: str
    status: int
    headers: Mapping[str, str]
    tree: JsonValue

    @property
    def object(self) -> JsonObject:
        """The answer as an object.

        Raises:
            AnswerRefused: it is something else.
        """
        if not isinstance(self.tree, Mapping):
            raise AnswerRefused(f"{self.call}: the answer is no JSON object")
        return self.tree

    @property
    def objects(self) -> tuple[JsonObject, ...]:
        """The answer as a list of objects.

        Raises:
            AnswerRefused: it is something else.
        """
        if not isinstance(self.tree, list) or not all(isinstance(item, Mapping) for item in self.tree):
            raise AnswerRefused(f"{self.call}: the answer is no list of JSON objects")
        return tuple(self.tree)

    @property
    def said(self) -> str:
        """What the forge says about a refusal, one line."""
        if not isinstance(self.tree, Mapping):
            return ""
        words = [_plain(self.tree.get("message")), _plain(self.tree.get("error")), *_details(self.tree)]
        return "; ".join(dict.fromkeys(word for word in words if word))


NextPage = Callable[[Reply, int], str]
"""The address of the next page, from an answer and the number of its page; empty for none."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The token and the place.

    Attributes:
        base: address of the API, without a slash at its end.
        headers: with the credentials.
        writing: terms of calls that create something.
    """

    http: HttpClient
    base: str
    headers: Mapping[str, str] = field(repr=False)
    token: str = field(repr=False)
    terms: Terms = USUAL_TERMS
    writing: Terms = USUAL_TERMS

    async def get(self, path: str, *, right: str, query: Mapping[str, str] | None = None) -> Reply:
        """Read something that has to be there; `right` says what the token needs for it."""
        return self._good(await self._exchange("GET", self._address(path, query)), right=right)

    async def find(self, path: str, *, right: str, query: Mapping[str, str] | None = None) -> Reply | None:
        """Read something, None when it is not there."""
        reply = await self._exchange("GET", self._address(path, query))
        return None if reply.status == 404 else self._good(reply, right=right)

    async def send(self, method: str, path: str, tree: JsonObject, *, right: str) -> Reply:
        """Write something."""
        return self._good(await self.try_send(method, path, tree), right=right)

    async def try_send(self, method: str, path: str, tree: JsonObject) -> Reply:
        """Write something; a refusal is given back for the caller to read."""
        body = json.dumps(tree, ensure_ascii=True).encode()
        return await self._exchange(method, self._address(path), body=body)

    async def pages(
        self, path: str, *, right: str, query: Mapping[str, str], next_page: NextPage
    ) -> AsyncIterator[JsonObject]:
        """The objects of a list, page by page; at most 100 pages.

        A page whose answer is too long is asked for in smaller ones; an object that is too long by itself is left out, since
        whoever may write one must not hide the others.
        """
        address = self._address(path, query)
        for number in range(1, MOST_PAGES + 1):
            try:
                reply = self._good(await self._exchange("GET", address), right=right)
            except AnswerTooLong:
                async for item in self._in_parts(address, number=number, right=right):
                    yield item
                address = _with(address, {"page": str(number + 1)})
                continue
            for item in reply.objects:
                yield item
            following = next_page(reply, number)
            if not following or not reply.objects:
                return
            address = self._within(following, reply)

    async def _in_parts(self, address: str, *, number: int, right: str) -> AsyncIterator[JsonObject]:
        """The objects of one page, which is too long as a whole."""
        name, size = _page_size(address)
        if size <= 1:
            return  # it is one object
        parts = next((number for number in _DIVISORS if size % number == 0), size)
        for place in range((number - 1) * parts + 1, number * parts + 1):
            smaller = _with(address, {name: str(size // parts), "page": str(place)})
            try:
                reply = self._good(await self._exchange("GET", smaller), right=right)
            except AnswerTooLong:
                async for item in self._in_parts(smaller, number=place, right=right):
                    yield item
                continue
            for item in reply.objects:
                yield item
            if not reply.objects:
                return

    def refuse(self, reply: Reply, *, right: str) -> NoReturn:
        """Raise what a refusal means."""
        raise self._refusal(reply, right=right)

    def said(self, reply: Reply) -> str:
        """What the forge says, without credentials, cut."""
        return redact_text(reply.said, known=(self.token,))[:_SAID_CHARACTERS]

    def _address(self, path: str, query: Mapping[str, str] | None = None) -> str:
        return f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")

    def _within(self, address: str, reply: Reply) -> str:
        """The address of a page, which is taken from an answer: only its query is used."""
        asked = urlsplit(reply.call.partition(" ")[2])
        query = parse_qsl(urlsplit(address).query)
        return f"{asked.scheme}://{asked.netloc}{asked.path}?{urlencode(query)}"

    async def _exchange(self, method: str, address: str, *, body: bytes = b"") -> Reply:
        headers = {"Accept": "application/json", **self.headers}
        if body:
            headers["Content-Type"] = "application/json"
        answer = await self.http.request(
            method, address, headers=headers, body=body, terms=self.writing if body else self.terms
        )
        call = f"{method} {address.partition('?')[0]}"
        return Reply(call, answer.status, answer.headers, parsed(answer, call=call))

    def _good(self, reply: Reply, *, right: str) -> Reply:
        if reply.status >= 300:
            self.refuse(reply, right=right)
        return reply

    def _refusal(self, reply: Reply, *, right: str) -> GitopsError:
        said = self.said(reply)
        message = f"{reply.call}: status {reply.status}" + (f": {said}" if said else "")
        match reply.status:
            case 401:
                return TokenRejected(message)
            case 403 if "archived" in said.lower():
                return RepositoryUnavailable(message)
            case 403 | 404:
                return ForbiddenOrMissing(f"{message}: not found or not permitted; the token needs {right}")
            case 409 | 412:
                return Conflict(message)
            case 410 | 423 | 451:
                return RepositoryUnavailable(message)
        return Refused(message, code=ErrorCode.FORGE_REFUSED)


def _with(address: str, changed: Mapping[str, str]) -> str:
    """The address with other values in its query."""
    parts = urlsplit(address)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **changed}
    return urlunsplit(parts._replace(query=urlencode(query)))


def _page_size(address: str) -> tuple[str, int]:
    """Name and value of the member of the query that says how long a page is; 1 when there is none."""
    query = dict(parse_qsl(urlsplit(address).query))
    name = "limit" if "limit" in query else "per_page"
    return name, int(query.get(name, "1"))


def checked_token(token: str) -> str:
    """The token, without the line end that files have.

    Raises:
        TokenRejected: it is empty or holds characters that no header can carry.
    """
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise TokenRejected("the token is empty, or holds blanks or characters other than visible ASCII")
    return token


def parsed(answer: HttpAnswer, *, call: str) -> JsonValue:
    """The JSON of an answer; an empty body, and a refusal that is no JSON, are None.

    Raises:
        AnswerRefused: cut, not UTF-8, half of a surrogate pair, two members of one name, NaN, or nested too deeply.
    """
    if not answer.body.strip():
        return None
    try:
        tree: JsonValue = json.loads(answer.body.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        if b"\\u" in answer.body:
            json.dumps(tree, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        if answer.status >= 300:
            return None
        raise AnswerRefused(f"{call}: the answer is no JSON ({type(error).__name__})") from None
    return tree


def next_link(reply: Reply, _: int) -> str:
    """GitHub and Gitea name the next page in `link`."""
    for link in _LINKS.split(reply.headers.get("link", "")):
        address, closed, members = link.strip().removeprefix("<").partition(">")
        if closed and _NEXT.search(members):
            return address
    return ""


async def first(items: AsyncIterator[Item], most: int) -> AsyncIterator[Item]:
    """At most the first `most` of a list; no page is read that is not needed."""
    left = most
    async for item in items:
        yield item
        left -= 1
        if left <= 0:
            return


def segment(text: str) -> str:
    """One part of a path: also a slash in it is encoded."""
    return quote(text, safe="")


def moment(tree: JsonObject, *path: str) -> datetime:
    """The time at `path`; long ago when there is none."""
    try:
        return from_rfc3339(text_at(tree, *path))
    except ValueError:
        return _LONG_AGO


def moment_or_none(tree: JsonObject, *path: str) -> datetime | None:
    """The time at `path`, None when there is none."""
    found = moment(tree, *path)
    return None if found == _LONG_AGO else found


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("two members of one name")
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _plain(value: JsonValue) -> str:
    """A message as text: GitLab also sends lists, and objects of lists."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(word for word in map(_plain, value) if word)
    return ""


def _details(tree: JsonObject) -> list[str]:
    """GitHub's `errors`: objects with a message, or with field and code, or plain texts."""
    found = [_plain(item) for item in list_at(tree, "errors") if isinstance(item, str)]
    for item in objects_at(tree, "errors"):
        found.append(
            text_at(item, "message") or " ".join(filter(None, (text_at(item, "field"), text_at(item, "code"))))
        )
    return found
