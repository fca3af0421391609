"""What is wrong with the spec of a TopologySource: every rule, all problems at once (topology-scheduling.md, 3.1 and 3.2).

One pure function, for documents in Git, for the start of every reconcile and for admission (D9).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from gitops_ctl.core.goduration import nanoseconds
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.fleet.forms import is_subdomain
from gitops_ctl.scheduling.names import (
    HOSTNAME,
    LONGEST_LABEL,
    MOST_LEVELS,
    PROFILE,
    TOPOLOGY,
    is_blank,
    is_label_key,
    within,
)
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import is_list, selector_problems
from gitops_ctl.scheduling.urlrule import url_problem

ARMS: Final = ("nodeLabels", "configMap", "webhook")
CREDENTIALS: Final = ("bearerTokenSecretRef", "tlsClientCertificateSecretRef")
_DURATIONS: Final = ("pollInterval", "timeout", "maxStaleness")
_SHORT: Final = "is shorter than pollInterval: one missed poll expires everything"
_NOT_DELEGATED: Final = (
    "kubernetes.io",
    "k8s.io",
    TOPOLOGY,
    "feature.gpustack.ai",
    "fabric.topograph.run",
    "accelerator.topograph.run",
)


class SpecProblem(NamedTuple):
    """One problem: the field, and why its value cannot stay."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def source_problems(source: JsonObject, *, options: Options) -> tuple[SpecProblem, ...]:
    """Everything that refuses this TopologySource, in the order of the fields; empty when nothing does."""
    spec = source.get("spec")
    if not isinstance(spec, Mapping):
        return (SpecProblem("spec", "is missing"),)
    return tuple(SpecProblem(f"spec.{path}" if path else "spec", reason) for path, reason in _problems(spec, options))


def chooses_soundly(spec: JsonObject) -> bool:
    """Whether neither selector nor levels have a problem, whatever else is wrong with the spec."""
    return not [*selector_problems(spec.get("nodeSelector"), "nodeSelector"), *_level_problems(spec.get("levels"))]


def source_warnings(source: JsonObject, *, options: Options) -> tuple[SpecProblem, ...]:
    """What is accepted and rarely meant: levels that no workload can request (B6), a staleness below the poll interval (B7)."""
    levels = object_at(source, "spec").get("levels")
    long = tuple(
        SpecProblem(f"spec.levels[{place}]", f"no workload can request it: more than {LONGEST_LABEL} characters")
        for place, level in enumerate(levels if is_list(levels) else ())
        if isinstance(level, str) and len(level) > LONGEST_LABEL
    )
    webhook = object_at(source, "spec", "webhook")
    if options.short_staleness == "warn" and _is_short(webhook):
        return (*long, SpecProblem("spec.webhook.maxStaleness", f"{_SHORT} (short-staleness)"))
    return long


def _problems(spec: JsonObject, options: Options) -> Iterator[tuple[str, str]]:
    if "nodeSelector" in spec:
        yield from selector_problems(spec["nodeSelector"], "nodeSelector")
    else:
        yield "nodeSelector", "is required; {} chooses every Node"
    yield from _level_problems(spec.get("levels"))
    # An arm is chosen by being there: `nodeLabels: {}` is empty and present.
    arms = [name for name in ARMS if spec.get(name) is not None]
    yield from _prefix_problems(spec.get("additionalWritePrefix"), arms)
    if len(arms) != 1:
        found = f", not {' and '.join(arms)}" if arms else ""
        yield "", f"exactly one of {', '.join(ARMS)} is required{found}"
    for name in arms:
        yield from _arm_problems(name, spec[name], options)


def _arm_problems(name: str, arm: JsonValue, options: Options) -> Iterator[tuple[str, str]]:
    if not isinstance(arm, Mapping):
        yield name, "must be a mapping"
    elif name == "configMap":
        yield from _config_map_problems(arm, options)
    elif name == "webhook":
        yield from _webhook_problems(arm, options)


def _level_problems(levels: JsonValue) -> Iterator[tuple[str, str]]:
    if not is_list(levels):
        yield "levels", "must be a list of label keys"
        return
    if not 1 <= len(levels) <= MOST_LEVELS:
        yield "levels", f"must have 1 to {MOST_LEVELS} entries, not {len(levels)}"
        return
    for place, level in enumerate(levels):
        path = f"levels[{place}]"
        if not isinstance(level, str) or not is_label_key(level):
            yield path, "must be a label key"
        elif level == HOSTNAME:
            yield path, f"{HOSTNAME} is always the last level and is not listed"
        elif level == PROFILE:
            yield path, f"{PROFILE} is made from the levels and cannot be one"
        if level in levels[:place]:
            yield path, "is listed twice"


def _prefix_problems(prefix: JsonValue, arms: list[str]) -> Iterator[tuple[str, str]]:
    path = "additionalWritePrefix"
    if prefix is None or prefix == "":
        return
    if "nodeLabels" in arms:
        yield path, "nodeLabels writes nothing: no prefix can be given"
    if not isinstance(prefix, str) or not prefix.endswith("/") or not is_subdomain(prefix[:-1]):
        yield path, "must be a DNS subdomain and one slash at its end"
        return
    for domain in _NOT_DELEGATED:
        if within(prefix[:-1], domain):
            yield path, f"keys of {domain} cannot be given to a source"


def _config_map_problems(arm: JsonObject, options: Options) -> Iterator[tuple[str, str]]:
    yield from _reference_problems(arm.get("configMapRef"), "configMap.configMapRef", options)
    key = arm.get("key")
    if not isinstance(key, str) or is_blank(key):
        yield "configMap.key", "must name a key of the ConfigMap"
    yield from _duration_problems(arm, "configMap", "maxStaleness")


def _webhook_problems(arm: JsonObject, options: Options) -> Iterator[tuple[str, str]]:
    problem = url_problem(arm.get("url"))
    if problem:
        yield "webhook.url", problem
    for name in _DURATIONS:
        yield from _duration_problems(arm, "webhook", name)
    poll, timeout = _length(arm, "pollInterval"), _length(arm, "timeout")
    if poll is not None and timeout is not None and timeout > poll:
        yield "webhook.timeout", "must not be longer than pollInterval"
    if options.short_staleness == "refuse" and _is_short(arm):
        yield "webhook.maxStaleness", f"{_SHORT} (short-staleness)"
    for name in ("caBundleConfigMapRef", *CREDENTIALS):
        if arm.get(name) is not None:
            yield from _reference_problems(arm[name], f"webhook.{name}", options)
    given = [name for name in CREDENTIALS if arm.get(name) is not None]
    if len(given) != 1:
        yield "webhook", f"exactly one of {' and '.join(CREDENTIALS)} is required"


def _reference_problems(reference: JsonValue, path: str, options: Options) -> Iterator[tuple[str, str]]:
    if not isinstance(reference, Mapping):
        yield path, "must have namespace and name"
        return
    if reference.get("namespace") != options.worker_namespace:
        yield f"{path}.namespace", f"forbidden: must be {options.worker_namespace}"
    name = reference.get("name")
    if not isinstance(name, str) or not is_subdomain(name):
        yield f"{path}.name", "must be a DNS subdomain"


def _duration_problems(arm: JsonObject, arm_name: str, name: str) -> Iterator[tuple[str, str]]:
    text = arm.get(name)
    if not isinstance(text, str):
        yield f"{arm_name}.{name}", "must be a duration such as 30s, in quotes where it is a number"
        return
    try:
        length = nanoseconds(text)
    except ValueError as error:
        yield f"{arm_name}.{name}", str(error)
        return
    if length <= 0:
        yield f"{arm_name}.{name}", "must be longer than zero"


def _length(arm: JsonObject, name: str) -> int | None:
    text = arm.get(name)
    try:
        length = nanoseconds(text) if isinstance(text, str) else 0
    except ValueError:
        return None
    return length if length > 0 else None


def _is_short(webhook: JsonObject) -> bool:
    poll, staleness = _length(webhook, "pollInterval"), _length(webhook, "maxStaleness")
    return poll is not None and staleness is not None and staleness < poll
