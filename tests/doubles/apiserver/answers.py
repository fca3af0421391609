"""Failures as a Kubernetes API server words them: one constructor a situation, each a `Status` body."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes`."""

    reason: str
    message: str
    field: str = ""

    def tree(self) -> Tree:
        return {"reason": self.reason, "message": self.message, **({"field": self.field} if self.field else {})}


@dataclass(frozen=True, slots=True)
class Named:
    """What a failure is about: the text before the quoted name, and `details`."""

    group: str
    kind: str
    name: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def details(self) -> Tree:
        result: Tree = {"name": self.name} if self.name else {}
        if self.group:
            result["group"] = self.group
        return {**result, "kind": self.kind}


@dataclass
class ApiError(Exception):
    """An answer other than 2xx."""

    code: int
    message: str
    reason: str = ""
    details: Tree | None = None
    headers: dict[str, str] = field(default_factory=dict)
    plain: bool = False
    metadata: Tree = field(default_factory=dict)

    def body(self) -> Tree:
        body: Tree = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return {**body, "code": self.code}


def not_found(subject: Named) -> ApiError:
    return ApiError(404, f'{subject.qualified} "{subject.name}" not found', "NotFound", subject.details())


def path_not_found() -> ApiError:
    """A group or version that is not served: plain text, no Status."""
    return ApiError(404, "404 page not found", plain=True)


def resource_not_found() -> ApiError:
    """A resource that a served version does not have."""
    return ApiError(404, "the server could not find the requested resource", "NotFound", {})


def already_exists(subject: Named) -> ApiError:
    return ApiError(409, f'{subject.qualified} "{subject.name}" already exists', "AlreadyExists", subject.details())


def conflict(subject: Named, text: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {subject.qualified} "{subject.name}": {text}'
    return ApiError(409, message, "Conflict", subject.details())


def modified(subject: Named) -> ApiError:
    """A compare-and-swap that was lost."""
    return conflict(
        subject, "the object has been modified; please apply your changes to the latest version and try again"
    )


def apply_conflict(message: str, causes: Sequence[Cause]) -> ApiError:
    return ApiError(409, message, "Conflict", {"causes": [cause.tree() for cause in causes]})


def invalid(subject: Named, causes: Sequence[Cause]) -> ApiError:
    """`subject.kind` is the Kind here, not the resource."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {**subject.details(), "causes": [cause.tree() for cause in causes]}
    return ApiError(422, f'{subject.qualified} "{subject.name}" is invalid: {text}', "Invalid", details)


def invalid_value(field_path: str, shown: str, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {text}", field_path)


def required(field_path: str, text: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {text}" if text else "Required value", field_path)


def forbidden_field(field_path: str, text: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {text}", field_path)


def bad_request(message: str) -> ApiError:
    return ApiError(400, message, "BadRequest")


def forbidden(subject: Named, text: str) -> ApiError:
    message = f'{subject.qualified} "{subject.name}" is forbidden: {text}'
    return ApiError(403, message, "Forbidden", subject.details())


def denied(*, user: str, verb: str, group: str, resource: str, namespace: str, name: str = "") -> ApiError:
    """Authorisation said no."""
    place = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    text = f'User "{user}" cannot {verb} resource "{resource}" in API group "{group}"{place}'
    subject = Named(group, resource, name)
    quoted = f' "{name}"' if name else ""
    return ApiError(403, f"{subject.qualified}{quoted} is forbidden: {text}", "Forbidden", subject.details())


def expired(message: str = "") -> ApiError:
    text = message or (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
        "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
        "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
        "deleted between the time the first chunk was returned and now may show up in the list."
    )
    return ApiError(410, text, "Expired")


def too_large_version(version: int, current: int) -> ApiError:
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    return ApiError(504, message, "Timeout", {"causes": [cause.tree()], "retryAfterSeconds": 1})


def internal(message: str) -> ApiError:
    """500 without a reason, as for errors that no handler expected."""
    return ApiError(500, message)


def method_not_allowed() -> ApiError:
    return ApiError(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {})


def unsupported_media_type(text: str = "415: Unsupported Media Type") -> ApiError:
    return ApiError(415, text, "UnsupportedMediaType", {})


def unprocessable() -> ApiError:
    """A JSON patch whose test failed: the server says no more than this."""
    return ApiError(422, "the server rejected our request due to an error in our request", "Invalid", {})


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def rate_limited(retry_after_s: int | None) -> ApiError:
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    details = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}
    return ApiError(429, "Too many requests, please try again later.", "TooManyRequests", details, headers=headers)


def initialising() -> ApiError:
    """A custom kind whose storage is not there yet."""
    return ApiError(429, "storage is (re)initializing", "TooManyRequests", {"retryAfterSeconds": 1})


def unavailable(message: str = "the server is currently unable to handle the request") -> ApiError:
    return ApiError(503, message, "ServiceUnavailable")


def not_implemented(what: str) -> ApiError:
    """The double does not know: a test that needs this belongs on the real server."""
    return ApiError(501, f"the API server double does not do this: {what}", "NotImplemented")
