"""A published interface description as the judge of requests and replies (openapi-core), and as the maker of whole replies.

`Interface` cuts a description down to the operations that are used, so that a test waits for those alone.  `whole` makes a reply that has
every required member out of the few that a test is about; a member that the description does not know is an error of the test.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, HttpClient, Terms

Tree = dict[str, Any]
_UNDESCRIBED = (401, 403, 404, 405, 409, 422, 429)
"""Refusals that any call may get; descriptions leave most of them out."""

DELETED_FORK = re.compile(r"(\d+/)?head/repo: None ")
"""In lists GitHub's description forgets that a fork can be deleted, which happens."""

NIL = re.compile(r"[^:]*: None (for not nullable|is not of type)")
"""Gitea's description does not say which members can be null: Go's empty pointers and lists are."""


class Interface:
    """The operations `"GET /repos/{owner}/{repo}"`, … of one description.

    Args:
        tree: OpenAPI 3.0.
        operations: what is used.
        base: address that stands before the paths.
        tolerated: what the description is known to be wrong about, as `place: message`.
    """

    def __init__(
        self, tree: Tree, *, operations: Iterable[str], base: str, tolerated: re.Pattern[str] = DELETED_FORK
    ) -> None:
        self.base = base
        self._tolerated = tolerated
        self.tree = _cut(tree, [operation.split(" ", 1) for operation in operations])
        self.tree["servers"] = [{"url": base}]
        self._judge = OpenAPI.from_dict(self.tree, config=Config(spec_validator_cls=None))
        self._paths = sorted(self.tree["paths"], key=lambda path: ("{" in path, path))
        self.seen: set[str] = set()

    def operation(self, method: str, path: str) -> tuple[str, dict[str, str]]:
        """The template of a path, and what stands in its places."""
        for template in self._paths:
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template), path)
            if found and method.lower() in self.tree["paths"][template]:
                return template, {name: unquote(value) for name, value in found.groupdict().items()}
        raise AssertionError(f"{method} {path} is no operation that the description has, or that the test names")

    def judge(self, method: str, url: str, headers: Mapping[str, str], body: bytes, answer: HttpAnswer) -> None:
        """Fail when request or reply are not as described."""
        assert url.startswith(self.base), url
        split = urlsplit(url)
        path = split.path.removeprefix(urlsplit(self.base).path)
        template, places = self.operation(method, path)
        self.seen.add(f"{method} {template}")
        query = parse_qs(split.query, keep_blank_values=True)
        described = self.tree["paths"][template][method.lower()]
        known = {_resolved(self.tree, item)["name"] for item in described.get("parameters", [])}
        assert set(query) <= known, f"{method} {template} has no parameters {set(query) - known}"
        if body:
            self._require_known_members(described, json.loads(body), f"{method} {template}")
        request = MockRequest(
            f"{split.scheme}://{split.netloc}",
            method,
            split.path,
            path_pattern=urlsplit(self.base).path + template,
            args={name: values[0] for name, values in query.items()},
            view_args=places,
            headers=dict(headers),
            data=body or None,
        )
        with _short(f"{method} {template}"):
            self._judge.validate_request(request)
        if answer.status >= 500 or (answer.status in _UNDESCRIBED and str(answer.status) not in described["responses"]):
            return
        content_type = answer.headers.get("content-type", "application/json").partition(";")[0]
        response = MockResponse(answer.body, answer.status, headers=dict(answer.headers), content_type=content_type)
        with _short(f"{method} {template} answers {answer.status}", self._tolerated):
            self._judge.validate_response(request, response)

    def whole(self, method: str, path: str, status: int, values: Any) -> Any:
        """A reply with all required members; `values` are those that matter."""
        template, _ = self.operation(method, path)
        responses = self.tree["paths"][template][method.lower()]["responses"]
        if str(status) not in responses:
            assert status in _UNDESCRIBED or status >= 500, f"{method} {template} never answers {status}"
            return values
        response = _resolved(self.tree, responses[str(status)])
        content = response.get("content", {}).get("application/json")
        return values if content is None else _whole(self.tree, content["schema"], values, template)

    def _require_known_members(self, described: Tree, body: Tree, operation: str) -> None:
        content = _resolved(self.tree, described["requestBody"])["content"]["application/json"]
        known = _members(self.tree, content["schema"])
        assert set(body) <= set(known), f"{operation} takes no {set(body) - set(known)}"


@contextmanager
def _short(what: str, tolerated: re.Pattern[str] | None = None) -> Iterator[None]:
    """Tell which members are wrong, not the whole reply."""
    try:
        yield
    except OpenAPIError as error:
        wrong = getattr(error.__cause__, "schema_errors", ())
        places = [f"{'/'.join(map(str, each.absolute_path))}: {each.message[-200:]}" for each in wrong]
        places = [place for place in places if tolerated is None or not tolerated.match(place)]
        if wrong and not places:
            return
        raise AssertionError(f"{what}: {places or str(error)[:500]}") from None


class JudgedHttp:
    """An HttpClient whose every request and reply is judged."""

    def __init__(self, http: HttpClient, interface: Interface) -> None:
        self.http = http
        self.interface = interface
        self.calls: list[str] = []

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        idempotent: bool | None = None,
        terms: Terms = USUAL_TERMS,
    ) -> HttpAnswer:
        answer = await self.http.request(
            method, url, headers=headers or {}, body=body, idempotent=idempotent, terms=terms
        )
        self.calls.append(f"{method} {urlsplit(url).path.removeprefix(urlsplit(self.interface.base).path)}")
        if url.startswith(f"{self.interface.base}/"):
            self.interface.judge(method, url, headers or {}, body, answer)
        return answer


def openapi_of_swagger(tree: Tree) -> Tree:
    """Swagger 2.0 as OpenAPI 3.0, as far as JSON interfaces need it."""
    moved: Tree = json.loads(
        json.dumps(tree)
        .replace('"#/definitions/', '"#/components/schemas/')
        .replace('"#/responses/', '"#/components/responses/')
    )
    return {
        "openapi": "3.0.3",
        "info": moved["info"],
        "paths": {
            path: {method: _operation_of(operation) for method, operation in item.items() if method != "parameters"}
            for path, item in moved["paths"].items()
        },
        "components": {
            "schemas": moved.get("definitions", {}),
            "responses": {name: _response_of(response) for name, response in moved.get("responses", {}).items()},
        },
    }


def _operation_of(operation: Tree) -> Tree:
    made: Tree = {"parameters": [], "responses": {}}
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "body":
            schema = {"application/json": {"schema": parameter["schema"]}}
            made["requestBody"] = {"required": parameter.get("required", False), "content": schema}
        elif parameter["in"] in ("query", "path", "header"):
            kept = {name: parameter[name] for name in ("name", "in", "required") if name in parameter}
            schema = {name: parameter[name] for name in ("type", "format", "enum", "items") if name in parameter}
            made["parameters"].append({**kept, "schema": schema})
    for status, response in operation["responses"].items():
        made["responses"][status] = response if "$ref" in response else _response_of(response)
    return made


def _response_of(response: Tree) -> Tree:
    made: Tree = {"description": response.get("description", "")}
    if "schema" in response:
        made["content"] = {"application/json": {"schema": response["schema"]}}
    return made


def _cut(tree: Tree, operations: list[list[str]]) -> Tree:
    """Only these operations, and what they refer to."""
    paths: Tree = {}
    for method, path in operations:
        paths.setdefault(path, {})[method.lower()] = _without_examples(tree["paths"][path][method.lower()])
    kept: Tree = {
        "openapi": tree["openapi"],
        "info": {"title": "used", "version": "1"},
        "paths": paths,
        "components": {},
    }
    waiting = _references(paths)
    while waiting:
        reference = waiting.pop()
        _, _, kind, name = reference.split("/")
        if name in kept["components"].setdefault(kind, {}):
            continue
        found = _without_examples(tree["components"][kind][name])
        kept["components"][kind][name] = found
        waiting |= _references(found)
    return kept


def _without_examples(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_examples(item)
            for name, item in value.items()
            if name != "examples" and not (name == "example" and not isinstance(item, dict | bool))
        }
    return [_without_examples(item) for item in value] if isinstance(value, list) else value


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(_references(item) for item in value.values()))
    return set().union(*(_references(item) for item in value)) if isinstance(value, list) else set()


def _resolved(tree: Tree, schema: Tree) -> Tree:
    while "$ref" in schema:
        _, *steps = schema["$ref"].split("/")
        found: Any = tree
        for step in steps:
            found = found[step]
        schema = found
    return schema


def _members(tree: Tree, schema: Tree) -> dict[str, Tree]:
    """Every member that some form of the schema has."""
    schema = _resolved(tree, schema)
    found = dict(schema.get("properties", {}))
    for kind in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(kind, []):
            found |= {name: value for name, value in _members(tree, part).items() if name not in found}
    return found


def _whole(tree: Tree, schema: Tree, values: Any, place: str) -> Any:
    schema = _resolved(tree, schema)
    if values is None or isinstance(values, str | bool | int | float):
        return values
    if isinstance(values, list):
        return [_whole(tree, schema["items"], value, f"{place}[]") for value in values]
    schema = _chosen(tree, schema, values)
    known = _members(tree, schema)
    unknown = set(values) - set(known)
    assert not unknown or schema.get("additionalProperties"), f"{place} has no {unknown}"
    made = {name: _least(tree, known[name], place) for name in _required(tree, schema)}
    if "discriminator" in schema:
        chosen = next(schema[kind][0]["$ref"] for kind in ("oneOf", "anyOf") if kind in schema)
        names = schema["discriminator"]
        made[names["propertyName"]] = next(name for name, ref in names["mapping"].items() if ref == chosen)
    return made | {name: _whole(tree, known[name], value, f"{place}.{name}") for name, value in values.items()}


def _chosen(tree: Tree, schema: Tree, values: Tree) -> Tree:
    """The schema with the first of its alternatives that these values fit."""
    for kind in ("oneOf", "anyOf"):
        for alternative in schema.get(kind, []):
            known = _members(tree, alternative)
            if all(name in known and _allows(tree, known[name], value) for name, value in values.items()):
                return {**schema, kind: [alternative]}
    return schema


def _allows(tree: Tree, schema: Tree, value: Any) -> bool:
    allowed = _resolved(tree, schema).get("enum")
    return allowed is None or value in allowed


def _required(tree: Tree, schema: Tree) -> list[str]:
    schema = _resolved(tree, schema)
    names = list(schema.get("required", []))
    for part in schema.get("allOf", []):
        names += _required(tree, part)
    for kind in ("anyOf", "oneOf"):
        names += _required(tree, schema[kind][0]) if schema.get(kind) else []
    return names


def _least(tree: Tree, schema: Tree, place: str) -> Any:
    """The smallest value that a schema allows."""
    schema = _resolved(tree, schema)
    alternatives = [kind for kind in ("oneOf", "anyOf") if kind in schema and "properties" not in schema]
    if schema.get("nullable") and not alternatives:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    for kind in alternatives:
        return _least(tree, schema[kind][0], place)
    texts = {"uri": "https://git.example.net/x", "date-time": "2026-01-01T00:00:00Z"}
    least = {
        "string": texts.get(schema.get("format", ""), "x"),
        "integer": schema.get("minimum", 1),
        "number": schema.get("minimum", 1),
        "boolean": False,
        "array": [],
    }
    if schema.get("type") in least:
        return least[schema["type"]]
    known, needed = _members(tree, schema), _required(tree, schema)
    return {name: _least(tree, known[name], f"{place}.{name}") for name in needed}
