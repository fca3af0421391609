"""`gitops-ctl plan rollout`: what a rollout would be planned as, before anybody commits it.

Beside a cluster with the user's rights, or offline: from files that `kubectl get` has written, or from the documents of a checkout alone.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from gitops_ctl.api.rollout import parse_rollout
from gitops_ctl.cli.connection import Target, connected, kubeconfig_options, require_namespace, run_async
from gitops_ctl.cli.output import Format, output_option, write_result
from gitops_ctl.cli.rolloutforecast import forecast_result, forecast_text
from gitops_ctl.cli.rolloutworld import Looking, RolloutWorld, WorldFiles, world_in_files
from gitops_ctl.cli.topologyfiles import objects_in
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.names import ROLLOUT_KIND
from gitops_ctl.fleet.node import node_of
from gitops_ctl.rollout.bootstrap import policy_record
from gitops_ctl.rollout.fleetlook import FleetLook, FleetMemo
from gitops_ctl.rollout.freeze import FreezeInput
from gitops_ctl.rollout.planforecast import PlanForecast, plan_forecast
from gitops_ctl.rollout.planorder import ordered_intent

EXIT_PLANNED: Final = 2
EXIT_BLOCKED: Final = 1
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NOBODY: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A forecast, and what it is about.

    Attributes:
        is_frozen: the cluster has frozen this rollout already.
        differs: the cluster has a rollout of this name with another plan, which cannot be changed.
    """

    rollout: JsonObject
    forecast: PlanForecast
    is_frozen: bool
    differs: bool


@click.command()
@click.argument("file", type=_FILE)
@click.option("--name", default="", help="Name of the rollout, where FILE holds several.")
@click.option("--offline", is_flag=True, help="Ask no cluster: devices and policy are the documents of the checkout.")
@click.option("--devices", type=_FILE, help="CiscoDevices, as `kubectl get -o yaml` gives them; asks no cluster.")
@click.option("--nodes", type=_FILE, help="Nodes, in the same form.")
@click.option("--policy", type=_FILE, help="The ConfigMap of the fleet policy, in the same form.")
@click.option("--secrets", type=_FILE, help="Secrets of the sources, in the same form; values are not looked at.")
@click.option("--leaves", type=_FILE, help="IOSXESoftwareUpgrades, in the same form.")
@click.option("--policy-name", default="", metavar="NAMESPACE/NAME", help="Fleet policy of the cluster.")
@click.option("-n", "--namespace", default="", help="Namespace of documents that name none.")
@kubeconfig_options
@output_option
def rollout(  # noqa: PLR0913  each is an option
    *,
    file: Path,
    name: str,
    offline: bool,
    devices: Path | None,
    nodes: Path | None,
    policy: Path | None,
    secrets: Path | None,
    leaves: Path | None,
    policy_name: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    output: Format,
) -> int:
    """Say what the rollout in FILE would be planned as: targets with wave and source, who is out, who blocks, and why.

    Exit code 2: it would be planned so; 0: it is planned already; 1: something blocks it, or it cannot be said.
    """
    now = SystemClock().wall()
    document = _document(file, name, namespace)
    place = text_at(document, "metadata", "namespace")
    files = WorldFiles(devices, nodes, policy, secrets, leaves)
    if offline or files.given:
        world = world_in_files(files, beside=file.resolve(), namespace=place)
    else:
        world = run_async(_asked(Target(kubeconfig, context, place), document, policy_name))
    found = foreseen(document, world, now=now)
    write_result(forecast_result(found.rollout, found.forecast), form=output)
    if output in (Format.TABLE, Format.WIDE):
        click.echo(forecast_text(found.rollout, found.forecast), nl=False)
    if found.differs:
        message = "the cluster has a rollout of this name with another plan, and a plan never changes: use a new name"
        raise Refused(message, code=ErrorCode.USAGE, subject=str(file))
    if found.forecast.is_blocked:
        return EXIT_BLOCKED
    return 0 if found.is_frozen else EXIT_PLANNED


def foreseen(document: JsonObject, world: RolloutWorld, *, now: datetime) -> Foreseen:
    """The forecast for a document in a world.

    Raises:
        Refused: the document breaks a rule of its schema, or the policy cannot be read.
    """
    declared = stored_form(document, now=now)
    live = world.live
    planned = declared if live is None else live
    record = policy_record(world.policy)
    everywhere = tuple(map(device_of, world.devices))
    seen = {one.name: one for one in map(node_of, world.nodes)}
    look = FleetMemo().look(everywhere, seen, policy=record.policy, now=now)
    place = text_at(document, "metadata", "namespace")
    given = FreezeInput(
        rollout=planned,
        policy=record,
        devices=tuple(one for one in everywhere if one.namespace == place),
        nodes=seen,
        secrets=world.secrets or {},
        leaves=tuple(map(leaf_of, world.leaves)),
        fleet=look if world.observed else FleetLook((), (), look.membership_hash),
        now=now,
    )
    known = world.secrets is not None or not _names_secrets(planned)
    forecast = plan_forecast(given, observed=world.observed, secrets=known, unseen=world.unseen)
    differs = live is not None and ordered_intent(_plan(live)) != ordered_intent(_plan(declared))
    is_frozen = live is not None and bool(object_at(live, "status", "frozenPlan"))
    return Foreseen(planned, forecast, is_frozen, differs)


def stored_form(document: JsonObject, *, now: datetime) -> JsonObject:
    """The document with the defaults that the API server fills in.

    Raises:
        Refused: it breaks a rule of the schema.
    """
    asked = {"requestedBy": _NOBODY, "requestedAt": to_rfc3339(now)}
    plain = {**document, "spec": {"plan": {**asked, **_plan(document)}}, "status": None}
    spec = object_at(parse_rollout(plain).to_tree(), "spec")
    return {**document, "spec": {**object_at(document, "spec"), "plan": object_at(spec, "plan")}}


def _plan(tree: JsonObject) -> JsonObject:
    return object_at(tree, "spec", "plan")


def _names_secrets(tree: JsonObject) -> bool:
    return any("urlSecretRef" in source for source in objects_at(_plan(tree), "image", "sources"))


def _document(file: Path, name: str, namespace: str) -> JsonObject:
    """The one rollout of the file that is meant, in its namespace."""
    found = [tree for tree in objects_in(file) if text_at(tree, "kind") == ROLLOUT_KIND]
    found = [tree for tree in found if name in ("", text_at(tree, "metadata", "name"))]
    if len(found) != 1:
        which = f"{len(found)} rollouts" if found else "no rollout"
        hint = "name one with --name" if found else f"give a file with kind {ROLLOUT_KIND}"
        raise Refused(f"{file} holds {which}", code=ErrorCode.USAGE, subject=str(file), hint=hint)
    meta = object_at(found[0], "metadata")
    place = text_at(meta, "namespace") or namespace
    require_namespace(place, subject=str(file))
    return {**found[0], "metadata": {**meta, "namespace": place}}


async def _asked(target: Target, document: JsonObject, policy: str) -> RolloutWorld:
    async with connected(target) as client:
        return await Looking(client, target.namespace).world(document, policy=policy)
