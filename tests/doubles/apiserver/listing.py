"""Lists: pages of one snapshot, versions, selectors."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.doubles.apiserver.answers import ApiError, Tree, bad_request, expired, too_large_version
from tests.doubles.apiserver.calls import presented
from tests.doubles.apiserver.resources import Resource
from tests.doubles.apiserver.selectors import selected
from tests.doubles.apiserver.store import Compacted, Key, Store
from tests.doubles.apiserver.watch import parsed_version


def listed(store: Store, resource: Resource, namespace: str, query: Mapping[str, str]) -> Tree:
    """The list that a query asks for.

    Raises:
        ApiError: 400 for a broken token, 410 for an expired one, 504 for a version of the future.
    """
    version, start = _point(store, query, namespace)
    try:
        objects = store.at(resource.collection, namespace, version)
    except Compacted as error:
        raise expired_token(start, namespace) from error
    matches = selected(query, resource.collection)
    chosen = [(key, tree) for key, tree in objects if key > start and matches(tree)]
    limit = _limit(query)
    page, rest = (chosen[:limit], chosen[limit:]) if limit else (chosen, [])
    metadata: Tree = {"resourceVersion": str(version)}
    if resource.custom:
        metadata["continue"] = ""
    if rest:
        metadata["continue"] = _token(version, page[-1][0], namespace)
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(rest)
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": [_item(resource, tree) for _, tree in page],
    }


def _item(resource: Resource, tree: Tree) -> Tree:
    """Items of built-in lists have neither kind nor apiVersion."""
    if resource.custom:
        return presented(resource, tree)
    return {name: value for name, value in tree.items() if name not in ("kind", "apiVersion")}


def _limit(query: Mapping[str, str]) -> int:
    if query.get("resourceVersion") == "0":
        return 0
    return int(query.get("limit") or 0)


def _point(store: Store, query: Mapping[str, str], namespace: str) -> tuple[int, Key]:
    """Version and last key of what was listed before."""
    wanted = query.get("resourceVersion", "")
    if query.get("continue"):
        version, start = _parsed(query["continue"], namespace)
        version = store.version if version < 0 else version
        if wanted and wanted != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        return version, start
    if wanted and wanted != "0":
        version = parsed_version(wanted)
        if version > store.version:
            raise too_large_version(version, store.version)
        if query.get("resourceVersionMatch") == "Exact":
            return version, ("", "")
    return store.version, ("", "")


def expired_token(start: Key, namespace: str) -> ApiError:
    """410, with a token that goes on from the same key but in the present state."""
    error = expired()
    error.metadata = {"continue": _token(-1, start, namespace)}
    return error


def _token(version: int, last: Key, namespace: str) -> str:
    """The last key is relative to what is listed: `/name` in a namespace, `/namespace/name` over all."""
    start = "/" + (last[1] if namespace or not last[0] else "/".join(last))
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start + "\0"})
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _parsed(token: str, namespace: str) -> tuple[int, Key]:
    try:
        padded = token + "=" * (-len(token) % 4)
        content: Any = json.loads(base64.urlsafe_b64decode(padded))
        place, _, name = content["start"].removesuffix("\0").removeprefix("/").rpartition("/")
        return int(content["rv"]), (namespace or place, name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
