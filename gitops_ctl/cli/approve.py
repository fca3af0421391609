"""`gitops-ctl approve`: prepares an approval in a checkout; signing and committing stay with the person (gitops.md, section 4.4)."""

from pathlib import Path

import click

from gitops_ctl.cli.output import clean
from gitops_ctl.cli.preparing import Place, block_edits, carry_out, document_in
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.approvals import Approval, approvals_of


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--verb", default="approve", show_default=True, help="The verb of the block.")
@click.option("--block", "wanted", default="", metavar="NAME", help="Name of the block, where a verb has several.")
@click.option("--name", default="", metavar="NAME", help="Name of the object, where the file declares several.")
def approve(file: Path, values: tuple[str, ...], *, verb: str, wanted: str, name: str) -> int:
    """Write the approval block of the object in FILE, with the values that name what is approved.

    A value of a list is given once for each entry, with slashes between its members.  Nothing is committed and nothing is sent.  Your name and the time are filled in from your signature.  Exit code 2: the
    checkout was changed; 0: it says so already; 1: refused.
    """
    place = document_in(file, kind="", name=name)
    chosen = _chosen(place, verb=verb, wanted=wanted)
    given = _parsed(values)
    value, flaw = chosen.block(given)
    if flaw:
        raise Refused(flaw, code=ErrorCode.USAGE, subject=str(file), hint="give each as NAME=VALUE")
    edits = block_edits(place, pointer=chosen.pointer, value=value)
    told = ", ".join(f"{key} {clean(one)}" for key, listed in given.items() for one in listed)
    does = "approves" if chosen.verb == "approve" else f"is for the verb {chosen.verb} on"
    return carry_out(place, edits, meaning=f"This {does} {place.id}: {told}.", known=f"{place.id} has this block")


def _chosen(place: Place, *, verb: str, wanted: str) -> Approval:
    """The block that is meant, by its name or else by its verb."""
    blocks = approvals_of(place.id.group_kind)
    found = [block for block in blocks.values() if (block.name == wanted if wanted else block.verb == verb)]
    if len(found) == 1:
        return found[0]
    asked = f"block {wanted}" if wanted else f"block for the verb {verb}"
    known = ", ".join(f"{block.name} (verb {block.verb})" for block in blocks.values())
    raise Refused(
        f"{place.id} has several: choose {' or '.join(block.name for block in found)}"
        if found
        else f"{place.id} has no {asked}: {f'its blocks are {known}' if blocks else 'nothing of this kind is approved'}",
        code=ErrorCode.USAGE,
        subject=str(place.file),
        hint="choose one with --block NAME"
        if blocks
        else "agree to a change of any other file with `gitops-ctl consent change`",
    )


def _parsed(values: tuple[str, ...]) -> dict[str, list[str]]:
    pairs = [value.partition("=") for value in values]
    if any(not sign for _, sign, _ in pairs):
        raise click.BadParameter("must be NAME=VALUE", param_hint="NAME=VALUE")
    given: dict[str, list[str]] = {}
    for key, _, value in pairs:
        given.setdefault(key, []).append(value)
    return given
