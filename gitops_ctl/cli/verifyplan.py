"""`gitops-ctl verify plan`: recompute every hash of published rollouts, policies, Nodes, devices and leaves."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitops_ctl.cli.connection import Target, cluster_options, connected, require_namespace, run_async
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.topologyfiles import objects_in
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Forbidden, NotFound, Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.fleet.identity import activation_child_name
from gitops_ctl.fleet.names import CAMPAIGN_UID, DEVICE_KIND, GROUP, LEAF_KIND, OPERATIONS_GROUP, ROLLOUT_KIND
from gitops_ctl.rollout.verifyplan import Finding, State, hash_input_of, subject_of, verified
from gitops_ctl.rollout.verifytogether import verified_together

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

EXIT_DIFFERS = 2
_COLUMNS = ("VERDICT", "MEMBER", "OBJECT", "VALUE", "DETAIL")
_SHOWN = len("sha256:") + 12
_HASHES = ("hash", "Hash", "hash]")
_PATHS = {
    ROLLOUT_KIND: f"/apis/{OPERATIONS_GROUP}/v1alpha1/namespaces/{{0}}/iosxesoftwarerollouts/{{1}}",
    LEAF_KIND: f"/apis/{OPERATIONS_GROUP}/v1alpha1/namespaces/{{0}}/iosxesoftwareupgrades/{{1}}",
    DEVICE_KIND: f"/apis/{GROUP}/v1alpha1/namespaces/{{0}}/ciscodevices/{{1}}",
    "ConfigMap": "/api/v1/namespaces/{0}/configmaps/{1}",
    "Node": "/api/v1/nodes/{1}",
}


@click.command()
@click.argument("what", metavar="FILE|NAME", nargs=-1, required=True)
@click.option("--show-input", is_flag=True, help="With -o json: also what each plan hash is taken over.")
@cluster_options
@output_option
def plan(
    *,
    what: tuple[str, ...],
    show_input: bool,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    output: Format,
) -> int:
    """Recompute the hashes that objects publish, and say which member differs.

    FILE: objects as `kubectl get -o yaml` writes them: rollouts, the ConfigMaps of policy and ledger, Nodes, CiscoDevices, leaves;
    several files are looked at together.  NAME: a rollout of the cluster (`--namespace`), with all that belongs to it.  The table
    shows hashes and what differs, `-o wide` every value.  Exit code 0: all are the same; 2: one differs; 1: it cannot be said.
    """
    files = [Path(one) for one in what if Path(one).is_file()]
    named = [one for one in what if not Path(one).is_file()]
    for name in named:
        _require_name(name, namespace)
    trees = [tree for path in files for tree in objects_in(path)]
    others: list[JsonObject] = []
    if named:
        asked, others = run_async(_asked(Target(kubeconfig, context, namespace), named))
        trees += asked
    alone = (found for tree in trees for found in verified(tree))
    findings = (*alone, *verified_together([*trees, *others]))
    if not findings:
        message = f"{', '.join(what)}: no object that publishes a hash"
        raise Refused(message, code=ErrorCode.USAGE, hint="give a rollout, policy, Node, CiscoDevice or leaf")
    write_result(_result(findings, trees if show_input else (), form=output), form=output)
    if output in (Format.TABLE, Format.WIDE):
        click.echo(_summary(findings))
    return EXIT_DIFFERS if any(one.state is State.DIFFERS for one in findings) else 0


def _require_name(name: str, namespace: str) -> None:
    if "/" in name or name.endswith((".yaml", ".yml", ".json")):
        raise Refused(f"{name}: there is no such file", code=ErrorCode.USAGE, hint="name a file, or a rollout")
    require_namespace(namespace)


def _result(findings: Iterable[Finding], trees: Iterable[JsonObject], *, form: Format) -> Result:
    found = tuple(findings)
    inputs = {subject_of(tree): hash_input_of(tree) for tree in trees}
    data: dict[str, JsonValue] = {"findings": [one.to_json() for one in found]}
    shown = {subject: value for subject, value in inputs.items() if value is not None}
    if shown:
        data["inputs"] = shown
    rows = tuple(
        (one.state.value, one.member, one.subject, _value(one), one.detail)
        for one in found
        if form is Format.WIDE or one.state is not State.SAME or one.member.endswith(_HASHES)
    )
    wrong = tuple(dict.fromkeys(one.subject for one in found if one.state is State.DIFFERS))
    return Result("PlanVerification", data, Table(_COLUMNS, rows, yields=("VALUE",)), wrong)


def _value(finding: Finding) -> str:
    if finding.state is State.DIFFERS:
        return f"{_short(finding.published) or 'nothing'}, computed {_short(finding.computed)}"
    return finding.computed or finding.published


def _short(text: str) -> str:
    """Enough of a hash to tell two apart; JSON has all of it."""
    return f"{text[:_SHOWN]}…" if text.startswith("sha256:") else text


def _summary(findings: Iterable[Finding]) -> str:
    states = [one.state for one in findings]
    same, wrong = states.count(State.SAME), states.count(State.DIFFERS)
    unknown = states.count(State.UNKNOWN)
    told = f"{same} of {same + wrong} published values are those of their objects"
    return f"{told}; {unknown} cannot be recomputed." if unknown else f"{told}."


async def _asked(target: Target, rollouts: Iterable[str]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The rollouts with what belongs to their plans (policy, Nodes, devices, leaves), and the devices outside of them."""
    async with connected(target) as client:
        found: list[JsonObject] = []
        others: list[JsonObject] = []
        for name in rollouts:
            rollout = await client.find(_PATHS[ROLLOUT_KIND].format(target.namespace, name))
            if rollout is None:
                raise NotFound(f"there is no rollout {target.namespace}/{name}", hint="see `kubectl get xerollout -A`")
            found += [{**rollout, "kind": ROLLOUT_KIND}, *await _belonging(client, rollout, target.namespace)]
            others += await _outside(client, rollout)
        return found, others


async def _belonging(client: "KubeClient", rollout: JsonObject, namespace: str) -> list[JsonObject]:
    frozen = object_at(rollout, "status", "frozenPlan")
    policy = object_at(frozen, "policy")
    wanted = [("ConfigMap", text_at(policy, "namespace"), text_at(policy, "name"))] if policy else []
    for target in objects_at(frozen, "targets"):
        wanted += [
            ("Node", "", text_at(target, "nodeName")),
            (DEVICE_KIND, namespace, text_at(target, "deviceName")),
            (LEAF_KIND, namespace, text_at(target, "childName")),
            (LEAF_KIND, namespace, activation_child_name(text_at(target, "childName"))),
        ]
    trees = await asyncio.gather(*(_one(client, *place) for place in wanted))
    uid = text_at(rollout, "metadata", "uid")
    return [tree for tree in trees if tree is not None and _is_ours(tree, uid)]


async def _outside(client: "KubeClient", rollout: JsonObject) -> list[JsonObject]:
    """The devices that the memberships in risk groups are about, besides the targets."""
    frozen = object_at(rollout, "status", "frozenPlan")
    targets = {text_at(target, "deviceUID") for target in objects_at(frozen, "targets")}
    fleet = await _fleet(client) if text_at(frozen, "riskGroupMembershipHash") else ()
    return [tree for tree in fleet if text_at(tree, "metadata", "uid") not in targets]


async def _fleet(client: "KubeClient") -> tuple[JsonObject, ...]:
    """All devices of the cluster, which the memberships are about; none where this user may not list them."""
    try:
        page = await client.list_all(f"/apis/{GROUP}/v1alpha1/ciscodevices")
    except Forbidden as error:
        click.echo(f"memberships are left out: {error.message}", err=True)
        return ()
    return tuple({**tree, "kind": DEVICE_KIND} for tree in page.items)


def _is_ours(tree: JsonObject, uid: str) -> bool:
    """A leaf of another campaign under the same name says nothing about this one."""
    return (
        text_at(tree, "kind") != LEAF_KIND or object_at(tree, "metadata", "annotations").get(CAMPAIGN_UID, uid) == uid
    )


async def _one(client: "KubeClient", kind: str, namespace: str, name: str) -> JsonObject | None:
    """One object; None where it is not there, or this user may not read it."""
    try:
        tree = await client.find(_PATHS[kind].format(namespace, name))
    except Forbidden as error:
        click.echo(f"{kind} {namespace}/{name} is left out: {error.message}", err=True)
        return None
    return None if tree is None else {**tree, "kind": kind}
