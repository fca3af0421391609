"""Where a device takes its image from: all sources are judged and frozen, one is chosen for each device (rollouts.md, 9.2, 9.3 and 13.8).

Of a Secret only its metadata and what it allows as an endpoint come here; credentials are read by workers alone.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, int_at, object_at, text_at
from gitops_ctl.fleet.names import PURPOSE, PURPOSE_IMAGE_SOURCE
from gitops_ctl.fleet.trees import texts_at
from gitops_ctl.rollout.planned import Plan, SourceSpec
from gitops_ctl.rollout.problem import Problem, Reason

_PORTS: Final = {"sftp": 22, "https": 443}


@dataclass(frozen=True, slots=True)
class SourceSecret:
    """A Secret of image sources as far as a controller may know it: metadata and the three `allowed*` keys, no credential."""

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    allowed_scheme: str = ""
    allowed_host: str = ""
    allowed_port: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it is frozen into a target: one endpoint, and the Secret by its UID ("" without one)."""

    name: str
    priority: int
    url: str
    sha256: str
    secret_name: str = ""
    secret_uid: str = ""

    def to_json(self) -> JsonObject:
        """The members in the order in which they are hashed."""
        tree: dict[str, JsonValue] = {
            "name": self.name,
            "priority": self.priority,
            "url": self.url,
            "sha256": self.sha256,
        }
        if self.secret_name:
            tree |= {"secretName": self.secret_name, "secretUID": self.secret_uid}
        return tree


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources of a plan, judged; `choose` may be asked only when there are no problems."""

    specs: tuple[SourceSpec, ...]
    frozen: Mapping[str, Source]
    problems: tuple[Problem, ...]

    def choose(self, labels: Mapping[str, str]) -> Source | Problem:
        """The source for a device with these labels: the lowest priority of the scoped ones, else the one without a scope.

        Two matches of one priority are a problem, even where another one would win.
        """
        matching = [spec for spec in self.specs if not spec.is_catch_all and _matches(spec, labels)]
        by_priority: dict[int, SourceSpec] = {}
        for spec in matching:
            other = by_priority.setdefault(spec.priority, spec)
            if other is not spec:
                message = f"sources {other.name} and {spec.name} both match with priority {spec.priority}"
                return Problem(Reason.SOURCE_AMBIGUOUS, message)
        if by_priority:
            return self.frozen[by_priority[min(by_priority)].name]
        return next(self.frozen[spec.name] for spec in self.specs if spec.is_catch_all)


def _matches(spec: SourceSpec, labels: Mapping[str, str]) -> bool:
    return spec.selector is not None and spec.selector.matches(labels)


def is_source_secret(tree: JsonObject) -> bool:
    """Whether whoever keeps the Secret says that it is one of image sources."""
    return text_at(tree, "metadata", "labels", PURPOSE) == PURPOSE_IMAGE_SOURCE


def source_secret_of(tree: JsonObject) -> SourceSecret:
    """Read a Secret: its metadata and the three keys; every other value is dropped as it came, undecoded.

    Of one that is not labelled as one of image sources no value is looked at.
    """
    meta = object_at(tree, "metadata")
    data = object_at(tree, "data") if is_source_secret(tree) else EMPTY
    return SourceSecret(
        name=text_at(meta, "name"),
        uid=text_at(meta, "uid"),
        resource_version=text_at(meta, "resourceVersion"),
        labels=texts_at(meta, "labels"),
        allowed_scheme=_decoded(data, "allowedScheme"),
        allowed_host=_decoded(data, "allowedHost"),
        allowed_port=_decoded(data, "allowedPort"),
    )


def _decoded(data: JsonObject, key: str) -> str:
    """The text of one key; empty where it is none."""
    try:
        return base64.b64decode(text_at(data, key), validate=True).decode("ascii").strip()
    except ValueError:
        return ""


def source_from(tree: JsonObject) -> Source:
    """A frozen source of a published target, read back."""
    return Source(
        text_at(tree, "name"),
        int_at(tree, "priority"),
        text_at(tree, "url"),
        text_at(tree, "sha256"),
        text_at(tree, "secretName"),
        text_at(tree, "secretUID"),
    )


def freeze_sources(
    plan: Plan, *, required_keys: frozenset[str], secrets: Mapping[str, SourceSecret] | None, namespace: str
) -> Sources:
    """Judge and freeze every source, also those that no device will use.

    Args:
        required_keys: the policy's required topology keys; selectors of sources may name no other.
        secrets: the source Secrets of the campaign's namespace by name; None where nobody looked at them.
    """
    problems = [*_form_problems(plan, required_keys)]
    frozen: dict[str, Source] = {}
    for spec in plan.sources:
        secret = secrets.get(spec.secret) if spec.secret and secrets is not None else None
        if not spec.is_catalyst_center:
            problems += _endpoint_problems(spec)
        if spec.secret and secrets is not None:
            problems += _secret_problems(spec, secret, namespace)
        uid = secret.uid if secret is not None else ""
        frozen[spec.name] = Source(spec.name, spec.priority, spec.url, plan.sha256, spec.secret, uid)
    return Sources(plan.sources, frozen, tuple(problems))


def endpoint_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an address in their canonical form; None when it is no address of an image."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower().rstrip("."), _PORTS[parts.scheme] if port is None else port


def _form_problems(plan: Plan, required_keys: frozenset[str]) -> Iterator[Problem]:
    names = [spec.name for spec in plan.sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield Problem(Reason.SOURCES_INVALID, f"source {listed(repeated)} stands twice")
    whole = [spec.name for spec in plan.sources if spec.is_catch_all]
    if len(whole) != 1:
        found = f"{len(whole)} have none: {listed(whole)}" if whole else "every one has a selector"
        yield Problem(Reason.SOURCES_INVALID, f"exactly one source must be without a selector; {found}")
    for spec in plan.sources:
        if spec.is_catalyst_center:
            message = f"source {spec.name} is a Catalyst Center, which this version does not read"
            yield Problem(Reason.SOURCE_KIND_UNSUPPORTED, message)
        unknown = sorted(spec.selector.keys - required_keys) if spec.selector is not None else []
        if unknown:
            message = f"source {spec.name} selects by {listed(unknown)}, which the policy does not require"
            yield Problem(Reason.SOURCES_INVALID, message)


def _endpoint_problems(spec: SourceSpec) -> Iterator[Problem]:
    endpoint = endpoint_of(spec.url)
    if endpoint is None:
        yield Problem(Reason.SOURCES_INVALID, f"source {spec.name} has no https or sftp address")
    elif (endpoint[0] == "sftp") is not bool(spec.secret):
        needs = "needs" if endpoint[0] == "sftp" else "takes no"
        yield Problem(Reason.SOURCES_INVALID, f"source {spec.name} is of {endpoint[0]} and {needs} urlSecretRef")


def _secret_problems(spec: SourceSpec, secret: SourceSecret | None, namespace: str) -> Iterator[Problem]:
    endpoint = endpoint_of(spec.url)
    where = f"Secret {namespace}/{spec.secret} of source {spec.name}"
    if secret is None:
        yield Problem(Reason.SOURCE_SECRET_INVALID, f"{where} is not there")
    elif endpoint is not None and (wrong := _wrong_in(secret, endpoint)):
        yield Problem(Reason.SOURCE_SECRET_INVALID, f"{where} {wrong}")


def _wrong_in(secret: SourceSecret, endpoint: tuple[str, str, int]) -> str:
    if secret.labels.get(PURPOSE) != PURPOSE_IMAGE_SOURCE:
        return f"lacks the label {PURPOSE}={PURPOSE_IMAGE_SOURCE}"
    scheme, host, port = endpoint
    allowed = (secret.allowed_scheme, secret.allowed_host.lower().rstrip("."), secret.allowed_port)
    if allowed == (scheme, host, str(port)):
        return ""
    # The keys of an endpoint are no secret; they are named, their values are not, since somebody may have mixed them up.
    wanted = zip(("allowedScheme", "allowedHost", "allowedPort"), allowed, (scheme, host, str(port)), strict=True)
    return f"does not allow {scheme}://{host}:{port}: {listed([key for key, have, want in wanted if have != want])}"
