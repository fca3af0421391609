"""What is asked about an object before it is sent: whether a rule of its domain holds it, and who is named in it (gitops.md, 4.6, 5.2).

Only kinds that have such rules are read for it.  Their live version is the old one that a rule compares with, so that what was
held once stays held until it is cured; and names of people that the cluster has stored stay as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.holds import HoldQuestion, has_rules, hold_of
from gitops_ctl.documents.identity import IntroducerOf, fill_identity, historic_flaw
from gitops_ctl.documents.living import with_living
from gitops_ctl.documents.shape import Flaw
from gitops_ctl.kube.answers import KindNotServed, NamespaceMissing
from gitops_ctl.sync.apply import Target
from gitops_ctl.sync.model import Applied, Apply, Desired, Held

GOES_BY_ITSELF: Final = frozenset({ErrorCode.SWITCH_IN_PROGRESS, ErrorCode.DEVICE_LOCKED, ErrorCode.ROLLOUT_STATE})
"""Rules that let an object go without a commit."""


@dataclass(slots=True)
class Asked:
    """The answers about a wave: what may be sent, as it is sent, and what stays."""

    ready: list[Apply] = field(default_factory=list)
    held: list[Applied] = field(default_factory=list)


async def ask_rules(actions: Iterable[Apply], *, target: Target) -> Asked:
    """Ask about every object of a wave; nothing is written."""
    asked = Asked()
    for action in actions:
        answer = await _answer(action, target) if has_rules(action.id.group_kind) else action
        if isinstance(answer, Apply):
            asked.ready.append(answer)
        else:
            asked.held.append(answer)
    return asked


async def _answer(action: Apply, target: Target) -> Apply | Applied:
    desired = action.desired
    try:
        resource = await target.mapper.resource(desired.gvk)
        path = resource.path(desired.id.namespace, desired.id.name)
        live = await target.client.find(path, account=target.account)
    except (KindNotServed, NamespaceMissing):
        return action  # there is no old version, and the apply says what is missing
    except GitopsError as error:
        held = Held(desired.id, error.code, error.message, desired.file, desired.line, ErrorCode.APPLY_REFUSED.reason)
        return Applied(action, held=held, retry=True, transient=isinstance(error, TransientError))
    found = judged(desired, live=live)
    if isinstance(found, Desired):
        return replace(action, desired=found)
    held = Held(desired.id, found.code, found.message, desired.file, desired.line)
    return Applied(action, held=held, retry=found.code in GOES_BY_ITSELF)


def with_names(desired: Desired, *, live: JsonObject | None) -> Desired:
    """The object with what stands in place of Git's, and with the names of people that Git leaves out where they can be filled in."""
    tree = with_living(desired.tree, live=live)
    filled = fill_identity(tree, provenance=desired.standing.of, live=live)
    found = tree if isinstance(filled, Flaw) else filled
    return desired if found is desired.tree else replace(desired, tree=found)


def judged(desired: Desired, *, live: JsonObject | None, introducer: IntroducerOf | None = None) -> Desired | Flaw:
    """The object with the names that Git leaves out, or why it stays as it is.

    `introducer` takes the place of signed history where there is none; then nobody is asked who stands behind a field.
    """
    flaw = historic_flaw(desired.tree, live=live)
    if flaw is not None:
        return flaw
    people = introducer or desired.standing.of
    filled = fill_identity(desired.tree, provenance=people, live=live)
    if isinstance(filled, Flaw):
        return filled
    flaw = hold_of(HoldQuestion(filled, live, desired.standing if introducer is None else None))
    if flaw is not None:
        return flaw
    kept = with_living(desired.tree, live=live)
    if kept is not desired.tree:
        filled = fill_identity(kept, provenance=people, live=live)
    if isinstance(filled, Flaw):
        return filled
    return desired if filled is desired.tree else replace(desired, tree=filled)
