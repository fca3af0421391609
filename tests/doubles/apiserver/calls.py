"""What a write is about, and the questions that its kind and its body answer.  Pure."""

import json
from dataclasses import dataclass

from tests.doubles.apiserver import builtin, structural, structure
from tests.doubles.apiserver.answers import ApiError, Cause, Named, Tree, invalid, required
from tests.doubles.apiserver.fieldset import Path
from tests.doubles.apiserver.request import Request, Target
from tests.doubles.apiserver.resources import Resource
from tests.doubles.apiserver.schema_facts import Fact, Schema
from tests.doubles.apiserver.structure import copied


@dataclass(frozen=True, slots=True)
class Call:
    """A request with what its path names."""

    request: Request
    target: Target
    resource: Resource

    @property
    def status(self) -> bool:
        return self.target.subresource == "status"

    @property
    def subject(self) -> Named:
        return self.resource.named(self.target.name)


def check_options(request: Request, *, apply: bool) -> None:
    """The query of a write.

    Raises:
        ApiError: 422.
    """
    options = {"POST": "CreateOptions", "PUT": "UpdateOptions"}.get(request.method, "PatchOptions")
    subject = Named("meta.k8s.io", options, "")
    name = request.query.get("fieldManager", "")
    if apply and not name:
        raise invalid(subject, [required("fieldManager", "is required for apply patch")])
    if len(name.encode()) > 128:
        raise invalid(subject, [Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager")])
    if "force" in request.query and not apply:
        raise invalid(
            subject, [Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")]
        )
    if request.query.get("dryRun", "All") != "All":
        shown = json.dumps([request.query["dryRun"]])
        cause = Cause("FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"', "dryRun")
        raise invalid(subject, [cause])


def missing_kind(resource: Resource, request: Request) -> str:
    """The text for a body that does not say what it is."""
    body = request.body.decode(errors="replace")
    text = f"Object 'Kind' is missing in '{body}'"
    if request.method == "PATCH":
        return text
    return f"the object provided is unrecognized (must be of type {resource.kind}): {text} ({body[:128]})"


def presented(resource: Resource, tree: Tree) -> Tree:
    """A stored object in the version of `resource`: its apiVersion, and the defaults of that version.

    Like the stored tree itself, the result is never changed in place.
    """
    if resource.schema is None:
        return tree
    shown = _shown(tree)
    if resource.api_version not in shown or shown[resource.api_version][0] is not resource.schema:
        result = structural.defaulted(resource.schema, {**tree, "apiVersion": resource.api_version})
        shown[resource.api_version] = resource.schema, result
    return shown[resource.api_version][1]


def _unseen(_: Tree) -> dict[str, tuple[Schema, Tree]]:
    return {}


_shown = Fact(_unseen, most=1000)
"""How a tree was presented, by the version."""


def has_generation(resource: Resource) -> bool:
    return resource.custom or resource.kind in builtin.WITH_GENERATION


def is_conditional(resource: Resource) -> bool:
    """Whether a replacement must name the version that it replaces."""
    return resource.custom or resource.kind in builtin.CONDITIONAL_UPDATE


def spec_changed(resource: Resource, new: Tree, old: Tree) -> bool:
    """Whether something changed that generation counts: all but metadata and an isolated status."""
    ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
    names = (new.keys() | old.keys()) - ignored
    return any(not structure.same(new.get(name), old.get(name)) for name in names)


def isolated(call: Call, new: Tree, live: Tree) -> Tree:
    """Status stays out of the main resource, and everything else out of /status."""
    if not call.resource.has_status:
        return new
    if not call.status:
        result = {name: value for name, value in new.items() if name != "status"}
        return {**result, "status": live["status"]} if "status" in live else result
    if call.resource.custom:
        result = {name: value for name, value in live.items() if name != "status"}
        result["metadata"] = copied(live["metadata"])
    else:
        result = {**new, "spec": live["spec"]} if "spec" in live else dict(new)
        labels = live["metadata"].get("labels")
        result["metadata"] = {**new["metadata"]}
        result["metadata"].pop("labels", None)
        if labels:
            result["metadata"]["labels"] = labels
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    return result


def uid_precondition(call: Call, wanted: str, found: str) -> ApiError:
    """A PUT for another incarnation of the object."""
    key = "/".join(part for part in (call.target.namespace, call.target.name) if part)
    text = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{call.resource.plural}/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return ApiError(
        409,
        f'Operation cannot be fulfilled on {call.subject.qualified} "{call.target.name}": {text}',
        "Conflict",
        call.subject.details(),
    )


def hidden_from(call: Call) -> frozenset[Path]:
    """What the endpoint does not change: an owner of such fields would be a lie."""
    if not call.resource.has_status:
        return frozenset()
    return frozenset({("f:spec",), ("f:metadata", "f:labels")}) if call.status else frozenset({("f:status",)})


def kind_text(version: str, kind: str) -> str:
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


def cannot_be_handled(resource: Resource, text: str) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {text}'


def resets_entries(tree: Tree) -> bool:
    return "managedFields" in tree["metadata"]


def unowned(tree: Tree) -> Tree:
    if "metadata" not in tree:
        return tree
    return {**tree, "metadata": {key: value for key, value in tree["metadata"].items() if key != "managedFields"}}


def without_times(tree: Tree) -> Tree:
    entries = tree["metadata"].get("managedFields", ())
    kept = [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
    return {**tree, "metadata": {**tree["metadata"], "managedFields": kept}}
