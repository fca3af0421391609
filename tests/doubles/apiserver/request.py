"""Requests and answers without HTTP, and the reading of paths and bodies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.doubles.apiserver.answers import ApiError, Tree, bad_request, path_not_found

MAX_REQUEST_BYTES = 3_145_728
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Request:
    """One call.  `query` has one value a name, header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    @property
    def user(self) -> str:
        """The impersonated user, empty for the caller itself."""
        return self.headers.get("impersonate-user", "")

    @property
    def groups(self) -> tuple[str, ...]:
        found = self.headers.get("impersonate-group", "")
        return tuple(group.strip() for group in found.split(",") if group.strip())

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"

    @property
    def strict(self) -> bool:
        return self.query.get("fieldValidation") == "Strict"

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true")

    @property
    def manager(self) -> str:
        """The field manager of a write that is no apply: named, or the first word of the user agent."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is a JSON tree, or text for the few plain answers."""

    code: int
    body: Tree | str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def verb(self, request: Request) -> str:
        """The verb as authorisation and audit see it."""
        if request.method == "GET":
            if self.name:
                return "get"
            return "watch" if request.flag("watch") else "list"
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch"}
        if request.method == "DELETE":
            return "delete" if self.name else "deletecollection"
        return verbs.get(request.method, request.method.lower())


def target_of(path: str) -> Target:
    """Read a resource path.

    Raises:
        ApiError: plain 404 for anything else.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise path_not_found()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise path_not_found()
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource)


class Duplicate(ValueError):
    """A member that is there twice."""


def _strict_json(data: bytes) -> Any:
    """JSON whose members are all there once.

    Raises:
        Duplicate: with the path of a member that is not.
    """
    twice: list[tuple[dict[str, Any], str]] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        names = [name for name, _ in pairs]
        twice.extend((result, name) for name in result if names.count(name) > 1)
        return result

    tree = json.loads(data, object_pairs_hook=members)
    for where, name in twice:
        raise Duplicate(f"{_path_of(tree, where)}{name}")
    return tree


def _path_of(tree: Any, wanted: Any, path: str = "") -> str:
    """Where in `tree` the very object `wanted` is: text that ends with a dot, empty at the top."""
    if tree is wanted:
        return f"{path}." if path else ""
    pairs: list[tuple[str, Any]] = []
    if isinstance(tree, Mapping):
        pairs = [(f"{path}.{name}" if path else name, item) for name, item in tree.items()]
    elif isinstance(tree, list):
        pairs = [(f"{path}[{number}]", item) for number, item in enumerate(tree)]
    return next((found for where, item in pairs if (found := _path_of(item, wanted, where))), "")


class _StrictLoader(yaml.CSafeLoader):
    """YAML as the server reads it, with duplicate keys refused."""


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in result:
            line = key_node.start_mark.line + 1
            raise Duplicate(f'yaml: unmarshal errors:\n  line {line}: key "{key}" already set in map')
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def body_of(request: Request) -> Any:
    """The JSON or YAML of a request.

    Raises:
        ApiError: 413 when it is too long, 400 when it cannot be read.
    """
    if len(request.body) > MAX_REQUEST_BYTES:
        raise ApiError(413, f"Request entity too large: limit is {MAX_REQUEST_BYTES}", "RequestEntityTooLarge", {})
    if request.media_type in APPLY or "yaml" in request.media_type:
        return _yaml(request)
    try:
        return _strict_json(request.body) if request.strict else json.loads(request.body)
    except Duplicate as error:
        raise bad_request(f'strict decoding error: duplicate field "{error}"') from error
    except ValueError as error:
        raise bad_request(
            f"the object provided is unrecognized: couldn't get version/kind; json parse error: {error}"
        ) from error


def _yaml(request: Request) -> Any:
    try:
        return json.loads(request.body)
    except ValueError:
        pass
    try:
        loader = _StrictLoader if request.strict else yaml.CSafeLoader
        return yaml.load(request.body, Loader=loader)
    except Duplicate as error:
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {error}") from error
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error
