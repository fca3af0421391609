"""`gitops-ctl approve`: prepares an approval in a checkout; signing and committing stay with the person (gitops.md, section 4.4)."""

from pathlib import Path

import click

from gitops_ctl.cli.preparing import block_edits, carry_out, document_in
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.documents.approvals import approvals_of


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--verb", default="approve", show_default=True, help="The verb of the block.")
@click.option("--name", default="", metavar="NAME", help="Name of the object, where the file declares several.")
def approve(file: Path, values: tuple[str, ...], *, verb: str, name: str) -> int:
    """Write the approval block of the object in FILE, with the values that name what is approved.

    Nothing is committed and nothing is sent.  Your name and the time are filled in from your signature.  Exit code 2: the
    checkout was changed; 0: it says so already; 1: refused.
    """
    place = document_in(file, kind="", name=name)
    blocks = approvals_of(place.id.group_kind)
    if verb not in blocks:
        others = f"its blocks are for {', '.join(sorted(blocks))}" if blocks else "nothing of this kind is approved"
        raise Refused(
            f"{place.id} has no block for the verb {verb}: {others}",
            code=ErrorCode.USAGE,
            subject=str(file),
            hint="agree to a change of any other file with `gitops-ctl consent change`",
        )
    given = _parsed(values)
    flaw = blocks[verb].flaw(given)
    if flaw:
        raise Refused(flaw, code=ErrorCode.USAGE, subject=str(file), hint="give each as NAME=VALUE")
    edits = block_edits(place, pointer=blocks[verb].pointer, value=given)
    told = ", ".join(f"{key} {value}" for key, value in given.items())
    return carry_out(place, edits, meaning=f"This approves {place.id}: {told}.", known=f"{place.id} has this approval")


def _parsed(values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if any(not sign for _, sign, _ in pairs):
        raise click.BadParameter("must be NAME=VALUE", param_hint="NAME=VALUE")
    return {key: value for key, _, value in pairs}
