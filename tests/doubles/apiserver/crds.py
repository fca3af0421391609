"""CustomResourceDefinitions: what a definition serves, and what its status says."""

from collections.abc import Mapping
from typing import Any

from tests.doubles.apiserver.answers import Cause, Tree, invalid, invalid_value
from tests.doubles.apiserver.cel import Rules
from tests.doubles.apiserver.custom import every_rule
from tests.doubles.apiserver.resources import Resource, builtin_types
from tests.doubles.apiserver.schema_facts import Fact
from tests.doubles.apiserver.shapes import object_shape
from tests.doubles.apiserver.store import Collection
from tests.doubles.apiserver.structure import copied

DEFINITIONS: Collection = ("apiextensions.k8s.io", "customresourcedefinitions")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def check(definition: Mapping[str, Any], *, resource: Resource, rules: Rules) -> None:
    """Refuse what the double can tell is wrong.

    Raises:
        ApiError: 422, or 501 for a rule that the double cannot evaluate.
    """
    spec, name = definition.get("spec", {}), definition["metadata"]["name"]
    causes: list[Cause] = []
    wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"
    if name != wanted:
        causes.append(invalid_value("metadata.name", f'"{name}"', 'must be spec.names.plural+"."+spec.group'))
    stored = [version["name"] for version in spec.get("versions", ()) if version.get("storage")]
    if len(stored) != 1:
        shown = "[]interface {}" if not spec.get("versions") else "null"
        causes.append(invalid_value("spec.versions", shown, "must have exactly one version marked as storage version"))
    if causes:
        raise invalid(resource.as_kind(name), causes)
    for rule in every_rule(spec["versions"]):
        rules.compile(rule["rule"])
        if "messageExpression" in rule:
            rules.compile(rule["messageExpression"])


def storage_version(definition: Mapping[str, Any]) -> str:
    return next(str(version["name"]) for version in definition["spec"]["versions"] if version.get("storage"))


def collection_of(definition: Mapping[str, Any]) -> Collection:
    return (definition["spec"]["group"], definition["spec"]["names"]["plural"])


def _resources_of(definition: Mapping[str, Any]) -> tuple[Resource, ...]:
    """One resource a served version."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    versions = [version for version in spec["versions"] if version.get("served")]
    served = frozenset(f"{group}/{version['name']}" for version in versions)
    result = []
    for version in versions:
        schema = version.get("schema", {}).get("openAPIV3Schema", {"type": "object"})
        result.append(
            Resource(
                group=group,
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                singular=names.get("singular", names["kind"].lower()),
                namespaced=spec["scope"] == "Namespaced",
                has_status="status" in version.get("subresources", {}),
                shape=object_shape(schema, builtin_types()),
                schema=schema,
                list_kind=names.get("listKind", f"{names['kind']}List"),
                short_names=tuple(names.get("shortNames", ())),
                categories=tuple(names.get("categories", ())),
                served=served,
            )
        )
    return tuple(result)


resources_of = Fact(_resources_of, most=500)
"""One resource a served version; servers of the same definition share what is compiled of it."""


def initial_status(definition: Mapping[str, Any]) -> Tree:
    """The status of a definition in the answer to its creation."""
    return {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [storage_version(definition)],
    }


def accepted_status(definition: Mapping[str, Any], *, now: str) -> Tree:
    """The status once the names are accepted."""
    status = copied(definition.get("status", {}))
    stored = list(status.get("storedVersions") or ())
    if storage_version(definition) not in stored:
        stored.append(storage_version(definition))
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    return {
        "conditions": status.get("conditions") or conditions,
        "acceptedNames": copied(definition["spec"]["names"]),
        "storedVersions": stored,
    }


def terminating_status(definition: Mapping[str, Any], *, now: str) -> Tree:
    """The status of a definition that is being deleted."""
    status = copied(definition.get("status", {}))
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = _condition("Terminating", "InstanceDeletionPending", text, now)
    return {**status, "conditions": [*(status.get("conditions") or ()), pending]}


def _condition(kind: str, reason: str, message: str, now: str) -> Tree:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
