"""Whether the definitions that a cluster serves know every field that this release writes (gitops.md, section 23.5).

The API server drops unknown fields without a word, so a status that loses a member would be a durable record that was never
stored.  Fields are only added within a version; a newer definition is therefore always fine.
"""

from collections.abc import Iterator, Mapping

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at


def require_fields(served: JsonObject, *, needed: JsonObject) -> None:
    """Check one definition of the cluster against ours.

    Args:
        served: the CustomResourceDefinition as the cluster has it.
        needed: the one of this release.

    Raises:
        Refused: CRD_OUTDATED; the message names the fields that are missing.
    """
    missing = tuple(_missing(_schemas(served), _schemas(needed)))
    if missing:
        raise Refused(
            f"the definition lacks {listed(missing)}",
            code=ErrorCode.CRD_OUTDATED,
            subject=f"CustomResourceDefinition/{text_at(needed, 'metadata', 'name')}",
        )


def _schemas(definition: JsonObject) -> dict[str, JsonObject]:
    return {
        text_at(version, "name"): object_at(version, "schema", "openAPIV3Schema")
        for version in objects_at(definition, "spec", "versions")
    }


def _missing(served: Mapping[str, JsonObject], needed: Mapping[str, JsonObject]) -> Iterator[str]:
    for version, schema in needed.items():
        if version not in served:
            yield f"the version {version}"
        else:
            yield from _missing_members(served[version], schema, path="")


def _missing_members(served: JsonObject, needed: JsonObject, *, path: str) -> Iterator[str]:
    if served.get("x-kubernetes-preserve-unknown-fields") is True:
        return
    for name, member in object_at(needed, "properties").items():
        place = f"{path}.{name}" if path else name
        there = object_at(served, "properties").get(name)
        if not isinstance(there, Mapping):
            yield place
        elif isinstance(member, Mapping):
            yield from _missing_members(there, member, path=place)
    items, there_items = object_at(needed, "items"), object_at(served, "items")
    if items:
        yield from _missing_members(there_items, items, path=f"{path}[]")
