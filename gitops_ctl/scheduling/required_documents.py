"""Workloads in Git that require a topology level: judged before they wait for ever (topology-scheduling.md, 11, D32).

Any kind may hold a Pod template, so the annotation is looked for wherever it stands.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.rules import register_general_check
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.scheduling.required_level import REQUIRED_TOPOLOGY, check_required_level

QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
"""Label of a workload: the LocalQueue of its namespace that it is sent to."""


class Requirement(NamedTuple):
    """A level that a document requires, and the pointer of the annotation."""

    level: str
    pointer: str


def requirements_of(tree: JsonObject) -> Iterator[Requirement]:
    """Every required level of an object, its own and those of its Pod templates."""
    yield from _walk(tree, ())


def local_queue_of(tree: JsonObject) -> str:
    """The LocalQueue that an object is sent to, with its namespace; empty when it names none."""
    name = text_at(tree, "metadata", "labels", QUEUE_NAME)
    return f"{text_at(tree, 'metadata', 'namespace')}/{name}" if name else ""


def required_level_flaws(document: Document) -> Iterator[Flaw]:
    """What is wrong with the levels that a document requires."""
    if REQUIRED_TOPOLOGY.encode() not in document.text:
        return
    for requirement in requirements_of(document.tree):
        reason = check_required_level(requirement.level)
        if reason:
            message = f"the required topology level {requirement.level!r} cannot be had: {reason}"
            hint = "name a level of the hierarchy by its label key, such as topology.kubernetes.io/zone"
            yield Flaw(ErrorCode.RULE, message, requirement.pointer, hint)


def _walk(value: JsonValue, path: tuple[str, ...]) -> Iterator[Requirement]:
    if isinstance(value, Mapping):
        level = object_at(value, "metadata", "annotations").get(REQUIRED_TOPOLOGY)
        if isinstance(level, str):
            yield Requirement(level, pointer_of((*path, "metadata", "annotations", REQUIRED_TOPOLOGY)))
        for name, member in value.items():
            yield from _walk(member, (*path, name))
    elif isinstance(value, list | tuple):
        for place, member in enumerate(value):
            yield from _walk(member, (*path, str(place)))


register_general_check(required_level_flaws)
