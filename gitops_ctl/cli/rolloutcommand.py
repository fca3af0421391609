"""`gitops-ctl rollout`: prepares in a checkout what somebody signs for a rollout in the cluster (rollouts.md, section 11.7).

The state of the rollout is read with the user's rights; the document is edited in place.  Nothing is committed and nothing is sent.
"""

import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import click

from gitops_ctl.cli.checkoutfiles import require_checkout
from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.consent import agree, blob_id
from gitops_ctl.cli.preparing import CHANGED, SAME, Place, places_in, replace_file, say_what_to_sign, show_change
from gitops_ctl.cli.rolloutblocks import (
    ACTIVATION,
    CONTROL,
    INVALIDATION,
    RECOVERY,
    LiveRollout,
    activation,
    cancelled,
    invalidation,
    paused,
    recovery,
    resumed,
)
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, text_at
from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.documents.holds import HoldQuestion, hold_of
from gitops_ctl.documents.rules import CONSENT_FOLDER
from gitops_ctl.documents.splice import ABSENT, Edit, documents_in, splice
from gitops_ctl.documents.worktree import repository_root, scan
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.names import CAMPAIGN_UID, OPERATIONS_GROUP, ROLLOUT_KIND

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])
_API: Final = f"/apis/{OPERATIONS_GROUP}/v1alpha1"
_LONGEST_REASON: Final = 256
_OUTCOMES: Final = click.Choice(("DeviceRetired", "OutcomeVerifiedByHand"))


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options of every command say."""

    name: str
    target: Target


def rollout_options(function: _FunctionT) -> _FunctionT:
    """Add the argument NAME and the options of the cluster; the command gets `name`, `kubeconfig`, `context` and `namespace`."""
    return click.argument("name")(cluster_options(function))


class _Text(click.ParamType[str]):
    """A reason: one line that fits into the object."""

    name = "TEXT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.isprintable() or len(value) > _LONGEST_REASON:
            self.fail(f"must be one line of at most {_LONGEST_REASON} characters", param, ctx)
        return value


class _Moment(click.ParamType[datetime]):
    """A time with its offset."""

    name = "TIME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return from_rfc3339(value)
        except ValueError:
            self.fail("must be a time such as 2026-12-01T22:00:00Z", param, ctx)


_REASON: Final = click.option("--reason", type=_Text(), default="", help="Why, for those who read it later.")
_REASON_NEEDED: Final = click.option("--reason", type=_Text(), required=True, help="Why.")


@click.group()
def rollout() -> None:
    """Prepare in this checkout what you sign for a software rollout: pause, resume, cancel, activate, invalidate, recover.

    NAME is that of the rollout, or NAMESPACE/NAME.  Nothing is committed and nothing is sent.  Your name and the time come from your
    signature.  Exit code 2: the checkout was changed; 0: it says so already; 1: refused.
    """


@rollout.command()
@rollout_options
@_REASON
def pause(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str, reason: str) -> int:
    """Begin nothing new; what a device has accepted goes on."""
    return _control(Asked(name, Target(kubeconfig, context, namespace)), paused, reason, "pauses")


@rollout.command()
@rollout_options
@_REASON
def resume(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str, reason: str) -> int:
    """Let a paused rollout go on, or the devices that wait behind the canaries."""
    return _control(Asked(name, Target(kubeconfig, context, namespace)), resumed, reason, "resumes")


@rollout.command()
@rollout_options
@_REASON
def cancel(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str, reason: str) -> int:
    """End it for good; what a device has accepted is watched until its outcome is proven."""
    return _control(Asked(name, Target(kubeconfig, context, namespace)), cancelled, reason, "cancels")


@rollout.command()
@rollout_options
@click.option("--not-before", type=_Moment(), required=True, help="Nothing is activated before.")
@click.option("--not-after", type=_Moment(), required=True, help="No activation begins after.")
def activate(
    *,
    name: str,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    not_before: datetime,
    not_after: datetime,
) -> int:
    """Approve the activation of prepared devices in a window."""
    if not_before >= not_after:
        raise click.BadParameter("must be after --not-before", param_hint="--not-after")
    place, live = _both(Asked(name, Target(kubeconfig, context, namespace)))
    begins, ends = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (not_before, not_after))
    block = activation(live, not_before=begins, not_after=ends)
    meaning = f"This activates {len(live.targets)} prepared devices of {live.name} between {begins} and {ends}."
    return _append(place, live, ACTIVATION, block, meaning)


@rollout.command()
@rollout_options
@_REASON_NEEDED
def invalidate(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str, reason: str) -> int:
    """Give up what a cancelled rollout has prepared; nothing is deleted on a device."""
    place, live = _both(Asked(name, Target(kubeconfig, context, namespace)))
    block = invalidation(live, reason=reason)
    return _append(place, live, INVALIDATION, block, f"This gives up the unused preparations of {live.name}.")


@rollout.command()
@rollout_options
@click.argument("device")
@click.option("--outcome", type=_OUTCOMES, required=True, help="What the two of you know.")
@_REASON_NEEDED
@click.option(
    "--consent", "is_consent", is_flag=True, help="You are the second person: agree to it first, in a Consent document."
)
@click.option("--days", type=click.IntRange(1, 365), default=14, show_default=True, help="How long the consent counts.")
def recover(  # noqa: PLR0913  each is an option
    *,
    name: str,
    device: str,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    outcome: str,
    reason: str,
    is_consent: bool,
    days: int,
) -> int:
    """Say with a second person what became of DEVICE, where looking at it can settle nothing any more.

    The second person runs the same command with --consent and commits that first; the block is committed after it.
    """
    place, live = _both(Asked(name, Target(kubeconfig, context, namespace)))
    block = recovery(live, device=device, outcome=outcome, reason=reason)
    changed = _with_block(place, RECOVERY, block)
    _require_accepted(place, live, changed)
    root = repository_root(place.file)
    inside = place.file.resolve().relative_to(root.resolve()).as_posix()
    if is_consent:
        return agree(root, verb="recover", path=inside, blob=blob_id(changed), days=days)
    if not _is_agreed(root, inside, blob_id(changed)):
        click.echo(
            "note: no Consent of a second person for exactly this change is in this checkout.  It is committed first: "
            f"`gitops-ctl rollout recover {live.name} {device} --outcome {outcome} --reason … --consent`"
        )
    meaning = f"This says that {device} of {live.name} ended as {outcome}: {reason}."
    return _write(place, changed, meaning)


def _control(asked: Asked, made: Callable[..., JsonObject], reason: str, word: str) -> int:
    place, live = _both(asked)
    declared = object_at(place.tree, "spec")
    block = made(live, declared, reason=reason)
    changed = splice(place.text, edits) if (edits := _member_edits(place, CONTROL, block)) else place.text
    _require_accepted(place, live, changed)
    return _write(place, changed, f"This {word} {live.name}, with control revision {int_at(block, 'revision')}.")


def _append(place: Place, live: LiveRollout, pointer: str, block: JsonObject, meaning: str) -> int:
    """A block that is written once."""
    present = place.value(pointer)
    if present is not ABSENT and present != block:
        raise live.refused(f"has another {pointer.rpartition('/')[2]} in {place.file} already, and it never changes")
    changed = place.text if present == block else splice(place.text, [Edit(place.index, pointer, "add", after=block)])
    _require_accepted(place, live, changed)
    return _write(place, changed, meaning)


def _with_block(place: Place, pointer: str, block: JsonObject) -> bytes:
    """The text with the block in place of what stands there."""
    present = place.value(pointer)
    if present == block:
        return place.text
    text = place.text if present is ABSENT else splice(place.text, [Edit(place.index, pointer, "remove")])
    return splice(text, [Edit(place.index, pointer, "add", after=block)])


def _member_edits(place: Place, pointer: str, wanted: Mapping[str, JsonValue]) -> list[Edit]:
    """Edits of the members of a block of scalars; members that are not wanted, those of people among them, go."""
    present = place.value(pointer)
    if not isinstance(present, Mapping):
        return [Edit(place.index, pointer, "add", after=dict(wanted))]
    edits = [
        Edit(place.index, f"{pointer}/{name}", "replace" if name in present else "add", after=value)
        for name, value in wanted.items()
        if present.get(name) != value
    ]
    return [*edits, *(Edit(place.index, f"{pointer}/{name}", "remove") for name in present if name not in wanted)]


def _write(place: Place, changed: bytes, meaning: str) -> int:
    if changed == place.text:
        click.echo(f"nothing to do: {place.id} in {place.file} says so already")
        return SAME
    replace_file(place.file, changed)
    show_change(place.file, before=place.text, after=changed)
    say_what_to_sign(place.file, meaning=meaning)
    return CHANGED


def _require_accepted(place: Place, live: LiveRollout, changed: bytes) -> None:
    """Refuse what a Sync would hold: better now than after the commit.

    Raises:
        Refused: with the words of the Sync.
    """
    import gitops_ctl.rollout.holds  # noqa: F401, PLC0415 - registers what holds a rollout

    tree = documents_in(changed)[place.index]
    assert isinstance(tree, dict)
    flaw = hold_of(HoldQuestion(tree, live.tree))
    if flaw is not None:
        raise Refused(flaw.message, code=flaw.code, subject=f"{place.file}{flaw.pointer}", hint=flaw.hint)


def _is_agreed(root: Path, path: str, blob: str) -> bool:
    for file in sorted((root / CONSENT_FOLDER).glob("*.yaml")):
        data = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        for place in places_in(file, data):
            if (text_at(place.tree, "verb"), text_at(place.tree, "path"), text_at(place.tree, "blob")) == (
                "recover",
                path,
                blob,
            ):
                return True
    return False


# ---- where the rollout is ----


def _both(asked: Asked) -> tuple[Place, LiveRollout]:
    """The document in the checkout, and the rollout in the cluster."""
    place = _declared(repository_root(Path()), asked.name)
    namespace = place.id.namespace or asked.target.namespace
    if not namespace:
        message = f"{place.id} in {place.file} names no namespace"
        raise Refused(message, code=ErrorCode.USAGE, subject=str(place.file), hint="add --namespace")
    return place, run_async(_read(asked.target, namespace, place.id.name))


async def _read(target: Target, namespace: str, name: str) -> LiveRollout:
    async with connected(target) as client:
        tree = await client.find(f"{_API}/namespaces/{namespace}/iosxesoftwarerollouts/{name}")
        if tree is None:
            message = f"there is no rollout {namespace}/{name} in the cluster"
            raise NotFound(message, subject=name, hint=f"see `gitops-ctl explain rollout {namespace}/{name}`")
        uid = text_at(tree, "metadata", "uid")
        path = f"{_API}/namespaces/{namespace}/iosxesoftwareupgrades"
        leaves = (await client.list_all(path, label_selector=f"{CAMPAIGN_UID}={uid}")).items
        ordered = sorted(leaves, key=lambda leaf: text_at(leaf, "metadata", "creationTimestamp"))
        return LiveRollout(tree, tuple(map(leaf_of, ordered)))


def _declared(root: Path, name: str) -> Place:
    require_checkout(root)
    found = [place for place in _rollouts(root) if place.is_named(name)]
    if len(found) == 1:
        return found[0]
    where = ", ".join(sorted(f"{place.id} in {place.file}" for place in found))
    message = f"the checkout declares several: {where}" if found else f"the checkout declares no {ROLLOUT_KIND} {name}"
    hint = "name one as NAMESPACE/NAME" if found else "run it in the checkout that declares the rollout"
    raise Refused(message, code=ErrorCode.USAGE, subject=str(root), hint=hint)


def _rollouts(root: Path) -> Iterator[Place]:
    here = Path.cwd()
    for entry in scan(root):
        file = root / entry.path
        if stat.S_ISREG(entry.mode) and ROLLOUT_KIND.encode() in (data := file.read_bytes()):
            shown = file.relative_to(here) if here in file.parents else file
            yield from (place for place in places_in(shown, data) if text_at(place.tree, "kind") == ROLLOUT_KIND)
