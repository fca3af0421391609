"""`gitops-ctl explain rollout`: why nothing happens, with the numbers, for the campaign and for each device (rollouts.md, section 11.2)."""

from pathlib import Path
from typing import Final

import click

from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.rolloutprogress import wave_name
from gitops_ctl.cli.rolloutreader import RolloutReader
from gitops_ctl.cli.rolloutseen import Seen, Unmet
from gitops_ctl.cli.rolloutwhy import Why, result_json, why
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at

_COLUMNS: Final = ("DEVICE", "WAVE", "PHASE", "WAITS FOR", "WHY")
_FOR_PEOPLE: Final = (Format.TABLE, Format.WIDE)


@click.command()
@click.argument("name")
@cluster_options
@output_option
def rollout(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str, output: Format) -> None:
    """Say why nothing happens in the rollout NAME, or NAMESPACE/NAME: the first unmet condition with its numbers, and that of each device.

    Reads with your own rights and changes nothing.  What they do not allow to see is named.
    """
    place, _, plain = name.rpartition("/")
    seen, unseen = run_async(_read(Target(kubeconfig, context, place or namespace), plain))
    _write(seen, why(seen), unseen, form=output)


async def _read(target: Target, name: str) -> tuple[Seen, tuple[str, ...]]:
    async with connected(target) as client:
        reader = RolloutReader(client)
        return await reader.read(target.namespace, name), reader.unseen


def _write(seen: Seen, found: Why, unseen: tuple[str, ...], *, form: Format) -> None:
    """The answer in every form; people get the first condition above the table."""
    data: JsonObject = {**result_json(seen, found), "unseen": list(unseen)}
    rows = tuple(
        (one.device, wave_name(one.wave), one.phase, *(("", "") if one.unmet is None else _words(one.unmet)))
        for one in found.targets
    )
    names = tuple(one.device for one in found.targets if one.unmet is not None)
    if form not in _FOR_PEOPLE:
        write_result(Result("RolloutExplanation", data, Table(_COLUMNS, rows), names), form=form)
        return
    for line in _first_lines(seen, found.first):
        click.echo(line)
    if rows:
        click.echo("")
        write_result(Result("RolloutExplanation", data, Table(_COLUMNS, rows), names), form=form)
    if unseen:
        click.echo(f"\nNot looked at: {listed(unseen)}.")


def _words(unmet: Unmet) -> tuple[str, str]:
    return unmet.reason, unmet.message


def _first_lines(seen: Seen, first: Unmet | None) -> tuple[str, ...]:
    meta, phase = object_at(seen.rollout, "metadata"), text_at(seen.rollout, "status", "phase")
    place = "/".join(part for part in (text_at(meta, "namespace"), text_at(meta, "name")) if part)
    if first is None:
        return (f"{place} is over: {phase}.",)
    said = f"{place} is {phase or 'not planned yet'}.  {first.reason}: {first.message}."
    return (said, f"What to do: {first.remedy}.") if first.remedy else (said,)
