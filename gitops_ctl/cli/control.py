"""`suspend`, `resume` and `reconcile`: a person's hand on a source or a Sync.

`suspend` and `resume` change `spec.suspend` of the live object.  Where a Sync comes from Git, the value in Git wins at the
next pass, and the command says so.
"""

from pathlib import Path

import click

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, ANNOTATION_REQUESTED_AT
from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.kinds import Named, parse_named
from gitops_ctl.core.clock import Clock, SystemClock, to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, text_at

_MANAGER = "gitops-ctl-cli"
_POLL_S = 0.2


@click.command()
@click.argument("what")
@cluster_options
def suspend(*, what: str, kubeconfig: Path | None, context: str | None, namespace: str) -> None:
    """Stop WHAT (gsrc/NAME or gsync/NAME) from fetching, or from changing anything."""
    target = Target(kubeconfig, context, namespace)
    run_async(_set_suspend(target, named=parse_named(what, namespace=namespace), value=True))


@click.command()
@click.argument("what")
@cluster_options
def resume(*, what: str, kubeconfig: Path | None, context: str | None, namespace: str) -> None:
    """Let a suspended WHAT (gsrc/NAME or gsync/NAME) go on."""
    target = Target(kubeconfig, context, namespace)
    run_async(_set_suspend(target, named=parse_named(what, namespace=namespace), value=False))


@click.command()
@click.argument("what")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the pass has answered.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait.")
@cluster_options
def reconcile(
    *, what: str, wait: bool, timeout: float, kubeconfig: Path | None, context: str | None, namespace: str
) -> None:
    """Ask for a pass over WHAT (gsrc/NAME or gsync/NAME) now."""
    target = Target(kubeconfig, context, namespace)
    named = parse_named(what, namespace=namespace)
    run_async(_request(target, named=named, limit_s=timeout if wait else 0.0, clock=SystemClock()))


async def _set_suspend(target: Target, *, named: Named, value: bool) -> None:
    async with connected(target) as client:
        tree = await client.patch_merge(named.path, {"spec": {"suspend": value}}, manager=_MANAGER)
    click.echo(f"{named} {'suspended' if value else 'resumed'}")
    if text_at(tree, "metadata", "annotations", ANNOTATION_OWNER_ID):
        click.echo(
            "note: this object comes from Git, where its own value wins at the next pass of the Sync that applies it"
        )


def _say_if_suspended(tree: JsonObject, named: Named) -> None:
    if bool_at(tree, "spec", "suspend"):
        click.echo(f"note: {named} is suspended, so nothing was fetched or applied; `gitops-ctl resume` lets it go on")


async def _request(target: Target, *, named: Named, limit_s: float, clock: Clock) -> None:
    token = f"{to_rfc3339(clock.wall())}.{int(clock.boot_s() * 1000)}"
    body: JsonObject = {"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: token}}}
    async with connected(target) as client:
        await client.patch_merge(named.path, body, manager=_MANAGER)
        click.echo(f"{named} requested")
        deadline_s = clock.boot_s() + limit_s
        while limit_s and clock.boot_s() < deadline_s:
            tree = await client.get(named.path)
            status = object_at(tree, "status")
            if text_at(status, "lastHandledReconcileAt") == token:
                click.echo(f"{named} answered")
                _say_if_suspended(tree, named)
                return
            await clock.sleep(_POLL_S)
    if limit_s:
        raise TransientError(
            f"no answer within {limit_s:g} s",
            code=ErrorCode.UNAVAILABLE,
            subject=str(named),
            hint="is the manager running? see `gitops-ctl status`",
        )
