"""What the watched branch is told about its tip, as one commit status (forges.md, section 11.3).  Pure.

Read from the stored status of the GitSource and of the Syncs that name it, so a restarted manager says the same.  The state is
information: a refused tip fails, what waits is pending, what everybody has applied succeeds.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, objects_at, text_at
from gitops_ctl.forge.neutral import StatusState
from gitops_ctl.forge.text import plain

CONTEXT: Final = "gitops-ctl/verdict"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """One status on one commit; `text` is one line, cut by the adapter."""

    commit: str
    state: StatusState
    text: str


def verdict_of(source: JsonObject, syncs: Iterable[JsonObject]) -> Verdict | None:
    """The status of the tip; None when nothing was judged.

    Args:
        source: the GitSource.
        syncs: those that name it.
    """
    tip = text_at(source, "status", "observed", "revision")
    condition = _condition(source, "Verified")
    if not object_at(source, "spec", "trust") or not _COMMIT.fullmatch(tip) or not condition:
        return None
    rejected = object_at(source, "status", "rejected")
    if rejected:
        return Verdict(tip, "failure", _refused(rejected, tip=tip))
    if text_at(condition, "status") == "Unknown":
        return Verdict(tip, "pending", f"waiting: {plain(text_at(condition, 'reason'))}")
    if text_at(source, "status", "accepted", "revision") != tip:
        return Verdict(tip, "pending", "waiting: the tip is not judged yet")
    return _applied(tip, syncs)


def _refused(rejected: JsonObject, *, tip: str) -> str:
    """The most telling parts first: forges show the beginning of the line."""
    commit = text_at(rejected, "commit")
    at = f" at {commit[:12]}" if commit != tip else ""
    where = f"{text_at(rejected, 'verb')} {text_at(rejected, 'path')}".strip()
    # The list of verbs and roles of a rule is in the GitSource; its number finds it.
    rule = text_at(rejected, "rule").split(" (")[0]
    parts = (f"refused{at}: {text_at(rejected, 'reason')}", where, rule, text_at(rejected, "hint"))
    return plain("; ".join(part for part in parts if part))


def _applied(tip: str, syncs: Iterable[JsonObject]) -> Verdict:
    ordered = sorted(syncs, key=lambda sync: text_at(sync, "metadata", "name"))
    names = [text_at(sync, "metadata", "name") for sync in ordered]
    waiting = [
        (name, reason) for name, sync in zip(names, ordered, strict=True) if (reason := _waits_for(sync, tip=tip))
    ]
    if not names:
        return Verdict(tip, "success", "accepted; no Sync uses this source")
    if not waiting:
        return Verdict(tip, "success", f"accepted and applied by {_some(names)}")
    shown = ", ".join(f"{name} ({reason})" for name, reason in waiting[:_SHOWN])
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    return Verdict(tip, "pending", plain(f"accepted; waiting for Sync {shown}{more}"))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{'Sync' if len(names) == 1 else 'Syncs'} {', '.join(names[:_SHOWN])}{more}"


def _waits_for(sync: JsonObject, *, tip: str) -> str:
    """A word for what a Sync waits for; empty when it has applied the tip."""
    if bool_at(sync, "spec", "suspend"):
        return "Suspended"
    ready = _condition(sync, "Ready")
    applied = text_at(sync, "status", "lastAppliedRevision") == tip
    # A later look at drift or health is no step back; what fails is told.
    if applied and text_at(ready, "status") != "False":
        return ""
    if text_at(sync, "status", "lastAttemptedRevision") == tip and text_at(ready, "status") != "True":
        return text_at(ready, "reason") or "Progressing"
    return "DryRun" if bool_at(sync, "spec", "dryRun") else "Progressing"


def _condition(tree: JsonObject, kind: str) -> JsonObject:
    found = (each for each in objects_at(tree, "status", "conditions") if text_at(each, "type") == kind)
    return next(found, {})
