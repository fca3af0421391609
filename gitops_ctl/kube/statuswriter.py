"""One status write per pass, and none when nothing changed (promise P8; gitops.md, section 12.2).

Two statuses are the same when they differ in nothing but times: members whose name ends in `Time` and whose value is a
moment.  A status that would only carry a newer time is not written.
"""

from collections.abc import Collection, Mapping
from typing import Final

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.errors import InternalError, NotFound
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient

STATUS_LIMIT_BYTES: Final = 512 * 1024


def status_patch(old: JsonObject, new: JsonObject, *, foreign: Collection[str] = ()) -> JsonObject | None:
    """What to apply so that the status becomes `new`; None when it is that already, times aside.

    Args:
        old: the status as it is cached.
        new: every member that we own; one that is missing is released and so removed.
        foreign: members of the status that another writer owns; they are not compared.
    """
    ours = {name: value for name, value in old.items() if name not in foreign}
    if canonical_json(_timeless(ours)) == canonical_json(_timeless(new)):
        return None
    return new


async def write_status(
    client: KubeClient,
    resource: Resource,
    object: JsonObject,
    status: JsonObject,
    *,
    manager: str,
    foreign: Collection[str] = (),
) -> JsonObject | None:
    """Apply `status` to the object as it is cached.

    Returns:
        The stored object; None when nothing was written: no change, or the object is gone.

    Raises:
        FieldConflict: another writer owns a member; nothing is forced.
        ObjectReplaced: the name belongs to another object now.
        InternalError: the status is larger than 512 KiB: a list in it has no limit.
    """
    body = _body(resource, object, status, foreign=foreign)
    return await _apply(client, resource, body, manager=manager) if body is not None else None


async def swap_status(
    client: KubeClient, resource: Resource, object: JsonObject, status: JsonObject, *, manager: str
) -> JsonObject | None:
    """Apply `status` only if the object is still the one that was read: a compare-and-swap.

    For a status that is a memory: a writer that read an older one must not put it back (gitops.md, section 4.5; fault H13).

    Returns:
        The stored object; None when nothing was written: no change, or the object is gone.

    Raises:
        Conflict: the object was written since; read again.
        FieldConflict, ObjectReplaced, InternalError: as for `write_status`.
    """
    body = _body(resource, object, status, version=text_at(object, "metadata", "resourceVersion"))
    return await _apply(client, resource, body, manager=manager) if body is not None else None


def _body(
    resource: Resource, object: JsonObject, status: JsonObject, *, foreign: Collection[str] = (), version: str = ""
) -> JsonObject | None:
    patch = status_patch(object_at(object, "status"), status, foreign=foreign)
    if patch is None:
        return None
    wanted = {name: text_at(object, "metadata", name) for name in ("name", "namespace", "uid")}
    wanted["resourceVersion"] = version
    metadata: dict[str, JsonValue] = {name: value for name, value in wanted.items() if value}
    return {
        "apiVersion": resource.gvk.api_version,
        "kind": resource.gvk.kind,
        "metadata": metadata,
        "status": patch,
    }


async def _apply(client: KubeClient, resource: Resource, tree: JsonObject, *, manager: str) -> JsonObject | None:
    body = canonical_json(tree)
    namespace, name = text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name")
    if len(body) > STATUS_LIMIT_BYTES:
        raise InternalError(f"a status of {len(body)} bytes is over the limit of {STATUS_LIMIT_BYTES}", subject=name)
    try:
        return await client.apply(resource.path(namespace, name), body, manager=manager, subresource="status")
    except KindNotServed:
        raise
    except NotFound:
        return None  # normal while an object is being deleted


def _timeless(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _timeless(member) for name, member in value.items() if not _is_time(name, member)}
    if isinstance(value, (list, tuple)):
        return [_timeless(member) for member in value]
    return value


def _is_time(name: str, value: JsonValue) -> bool:
    if not name.endswith("Time") or not isinstance(value, str):
        return False
    try:
        from_rfc3339(value)
    except ValueError:
        return False
    return True
