"""`gitops-ctl rights SYNC`: the least rights of its account, from what it applied and what it could not apply (gitops.md, section 13)."""

from collections.abc import Iterable
from pathlib import Path

import click
import yaml

from gitops_ctl.api.gitops import parse_sync
from gitops_ctl.cli.connection import Target, cluster_options, connected, require_namespace, run_async
from gitops_ctl.cli.installing import applier_rights, required_rules
from gitops_ctl.cli.kinds import SYNC
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.mapper import Mapper, Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.inventory import recorded_of
from gitops_ctl.sync.model import OwnerId


@click.command()
@click.argument("name", metavar="SYNC")
@cluster_options
def rights(*, name: str, kubeconfig: Path | None, context: str | None, namespace: str) -> None:
    """Print the least rights of the account of SYNC, for `kubectl apply -f -`.

    They are for the kinds in its inventory, and for those of objects that are held: what it may not apply yet is among them.
    """
    require_namespace(namespace)
    found = run_async(_rights(Target(kubeconfig, context, namespace), name=name))
    click.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)


async def _rights(target: Target, *, name: str) -> tuple[JsonObject, ...]:
    async with connected(target) as client:
        sync = parse_sync(await client.get(SYNC.path(target.namespace, name)))
        subject = f"Sync/{target.namespace}/{name}"
        if sync.spec.kube_config_secret_ref is not None:
            raise Refused(
                "it applies to another cluster, whose kinds are not known here",
                code=ErrorCode.USAGE,
                subject=subject,
                hint="its kubeconfig names a user of that cluster: grant the rights there",
            )
        system = await client.get("/api/v1/namespaces/kube-system")
        source = sync.spec.source_ref.name
        owner = OwnerId(text_at(system, "metadata", "uid"), target.namespace, source, name)
        recorded = await recorded_of(client, sync, owner=owner)
        served = await _served(client, {item.group_kind for item in recorded}, subject=subject)
    rules = required_rules((resource.gvk, resource.plural) for resource in served)
    return applier_rights(target.namespace, sync.spec.service_account_name, rules=rules)


async def _served(client: KubeClient, kinds: Iterable[GroupKind], *, subject: str) -> list[Resource]:
    known = (await Mapper(client).all()).preferred
    unknown = sorted(str(kind) for kind in kinds if kind not in known)
    for kind in unknown:
        click.echo(f"{subject}: the cluster does not serve {kind}: no right for it is printed", err=True)
    return [known[kind] for kind in kinds if kind in known]
