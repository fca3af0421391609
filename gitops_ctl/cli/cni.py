"""`gitops-ctl cni`: prepares a switch of kube-proxy in a checkout, and shows what must change in Cilium's values.

Both commands are offline: they open no connection and start nothing (cni-switch.md, section 5.3).
"""

import difflib
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import click

from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH
from gitops_ctl.cli.checkoutfiles import files_below, require_checkout
from gitops_ctl.cli.output import Format, Result, Table, clean, output_option, write_result
from gitops_ctl.cli.preparing import CHANGED, SAME, Place, annotation_edits, places_in, replace_file, show_change
from gitops_ctl.cni.announcement import announcement
from gitops_ctl.cni.values import Locator, ValuesPlan, ValuesRefused, Wanted, plan_values
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.documents.splice import ABSENT, Absent, Edit, SpliceRefused, splice
from gitops_ctl.documents.worktree import repository_root, scan

Mode = Literal["enabled", "replaced"]
_MODE: Final = click.Choice(("enabled", "replaced"))
_FIELD: Final = "/spec/cni/kubeProxy"
_DEFAULT_MODE: Final = "enabled"


@click.group()
def cni() -> None:
    """Prepare a switch between kube-proxy and Cilium, and look at Cilium's values.  No connection is opened."""


@cni.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--target", type=_MODE, default="replaced", show_default=True, help="Mode that the values are for.")
@click.option("--kind", default="", metavar="KIND", help="Kind of the object that deploys Cilium.")
@click.option("--name", default="", metavar="NAME", help="Name of that object.")
@click.option(
    "--key-prefix", default="", metavar="KEYS", help="Keys above the values in the file PATH, with dots between."
)
@click.option("--port", type=click.IntRange(1, 65535), default=7445, show_default=True, help="Port of KubePrism.")
@output_option
def values(  # noqa: PLR0913 - one parameter for each option
    path: Path, *, target: Mode, kind: str, name: str, key_prefix: str, port: int, output: Format
) -> int:
    """Show what must change in the Cilium values at PATH, a file or a folder of a checkout.

    Says which place wins and why, and prints the exact difference; nothing is written.  Exit code 0: nothing to change;
    2: a change is shown; 1: refused, with the reason and the values to set by hand.
    """
    root = repository_root(path)
    inside = path.resolve().relative_to(root).as_posix()
    locator = Locator(path="" if inside == "." else inside, kind=kind, name=name, key_prefix=key_prefix)
    files = files_below(root)
    try:
        plan = _plan(files, locator, Wanted(target, kube_prism_port=port))
    except ValuesRefused as refused:
        raise _with_candidates(refused) from None
    changed = _changed(files, plan)
    if output in (Format.TABLE, Format.WIDE):
        _say(plan, _difference(files, changed))
    else:
        write_result(_result(plan, target, _difference(files, changed)), form=output)
    return CHANGED if changed else SAME


@cni.command("kube-proxy")
@click.argument("mode", type=_MODE)
@click.option("--cluster", default="", metavar="NAME", help="The TalosCluster, where the checkout declares several.")
def kube_proxy(mode: Mode, *, cluster: str) -> int:
    """Write the field and the consent for a switch to MODE into this checkout, for you to sign.

    Exit code 2: the checkout was changed; 0: both are there already; 1: refused.
    """
    root = repository_root(Path())
    require_checkout(root)
    place = _cluster(root, cluster)
    before = place.value(_FIELD)
    edits = (*_field_edits(place, mode), *annotation_edits(place, name=ANNOTATION_CONFIRM_SWITCH, value=mode))
    shown = place.file.relative_to(root)
    if not edits:
        click.echo(f"nothing to do: {place.id} in {shown} names {mode} in the field and in the consent already")
        return SAME
    try:
        fresh = splice(place.text, edits)
    except SpliceRefused as refused:
        raise SpliceRefused(refused.why, refused.message, subject=str(shown), hint=_by_hand(mode)) from None
    replace_file(place.file, fresh)
    show_change(shown, before=place.text, after=fresh)
    old = str(before) if before is not ABSENT else _DEFAULT_MODE
    other = old if old != mode else {"enabled": "replaced", "replaced": "enabled"}[mode]
    machines = _machines(root, place)
    click.echo(f"\n{announcement(place.id.name, before=other, after=mode, machines=machines)}")
    click.echo(f"\nRead the change, then sign it:\n  git -C {root} add {shown}\n  git -C {root} commit -S")
    return CHANGED


def _plan(files: dict[str, bytes], locator: Locator, wanted: Wanted) -> ValuesPlan:
    """Whether agents restart by themselves is not known offline: `rollOutCiliumPods` goes with another change only."""
    plan = plan_values(files, locator=locator, wanted=replace(wanted, roll_out_pods=False))
    return plan_values(files, locator=locator, wanted=wanted) if plan.edits else plan


def _field_edits(place: Place, mode: Mode) -> tuple[Edit, ...]:
    found = place.value(_FIELD)
    if found == mode or (found is ABSENT and mode == _DEFAULT_MODE):
        return ()
    if found is not ABSENT:
        return (Edit(place.index, _FIELD, "replace", before=str(found), after=mode),)
    if place.value("/spec/cni") is not ABSENT:
        return (Edit(place.index, _FIELD, "add", after=mode),)
    return (Edit(place.index, "/spec/cni", "add", after={"kubeProxy": mode}),)


def _by_hand(mode: Mode) -> str:
    return f'set spec.cni.kubeProxy to {mode} and the annotation {ANNOTATION_CONFIRM_SWITCH} to "{mode}" by hand'


def _cluster(root: Path, name: str) -> Place:
    found = [place for place in _declared(root, "TalosCluster") if place.is_named(name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(sorted(f"{_named(place)} in {place.file.relative_to(root)}" for place in found))
    raise Refused(
        f"the checkout declares several: {listed}"
        if found
        else f"the checkout declares no TalosCluster {name}".rstrip(),
        code=ErrorCode.USAGE,
        subject=str(root),
        hint="name one with --cluster NAME or NAMESPACE/NAME"
        if found
        else "run it in the checkout that declares the cluster",
    )


def _named(place: Place) -> str:
    return f"{place.id.namespace}/{place.id.name}" if place.id.namespace else place.id.name


def _machines(root: Path, cluster: Place) -> list[str]:
    """Names of the machines of a cluster, as far as this checkout declares them."""
    return sorted(
        place.id.name
        for place in _declared(root, "TalosMachine")
        if text_at(place.tree, "spec", "clusterRef", "name") == cluster.id.name
        and place.id.namespace in ("", cluster.id.namespace)
    )


def _declared(root: Path, kind: str) -> Iterator[Place]:
    for entry in scan(root):
        if stat.S_ISREG(entry.mode) and kind.encode() in (data := (root / entry.path).read_bytes()):
            yield from (place for place in places_in(root / entry.path, data) if text_at(place.tree, "kind") == kind)


def _with_candidates(refused: ValuesRefused) -> ValuesRefused:
    """The refusal with its reason word first, and what else was found below."""
    lines = [f"{refused.reason}: {refused.message}", *(f"- {one}" for one in refused.candidates)]
    return ValuesRefused(refused.reason, "\n".join(lines), by_hand=refused.by_hand, subject=refused.subject)


@dataclass(frozen=True, slots=True)
class _Change:
    file: str
    text: bytes


def _changed(files: dict[str, bytes], plan: ValuesPlan) -> list[_Change]:
    names = dict.fromkeys(file for file, _ in plan.edits)
    return [_Change(name, splice(files[name], [edit for file, edit in plan.edits if file == name])) for name in names]


def _difference(files: dict[str, bytes], changes: list[_Change]) -> list[str]:
    """A unified diff that `git apply` takes."""
    lines: list[str] = []
    for change in changes:
        old, new = (data.decode().splitlines(keepends=True) for data in (files[change.file], change.text))
        for line in difflib.unified_diff(old, new, f"a/{change.file}", f"b/{change.file}"):
            lines.append(line.removesuffix("\n"))
            if not line.endswith("\n"):
                lines.append("\\ No newline at end of file")
    return lines


def _say(plan: ValuesPlan, difference: list[str]) -> None:
    click.echo(f"shape {plan.shape}: {clean(plan.why)}")
    for warning in plan.warnings:
        click.echo(f"note: {clean(warning)}")
    if not difference:
        click.echo("nothing to change: the values are there already")
    for line in difference:
        click.echo("".join(sign if sign.isprintable() or sign == "\t" else " " for sign in line))


def _result(plan: ValuesPlan, target: Mode, difference: list[str]) -> Result:
    place = plan.place
    data: JsonObject = {
        "target": target,
        "shape": plan.shape,
        "place": None
        if place is None
        else {
            "file": place.file,
            "document": place.document,
            "pointer": place.pointer,
            "inner": [{"document": one.document, "pointer": one.pointer} for one in place.inner],
        },
        "why": plan.why,
        "byHand": plan.by_hand,
        "warnings": list(plan.warnings),
        "changes": [_change_tree(file, edit) for file, edit in plan.edits],
        "diff": difference,
    }
    names = tuple(dict.fromkeys(file for file, _ in plan.edits))
    return Result("CiliumValues", data, Table((), ()), names)


def _change_tree(file: str, edit: Edit) -> JsonObject:
    tree: dict[str, JsonValue] = {
        "file": file,
        "document": edit.document,
        "pointer": edit.pointer,
        "op": edit.op,
    }
    if edit.inner:
        tree["inner"] = [{"document": one.document, "pointer": one.pointer} for one in edit.inner]
    if not isinstance(edit.before, Absent):
        tree["from"] = edit.before
    if not isinstance(edit.after, Absent):
        tree["to"] = edit.after
    return tree
