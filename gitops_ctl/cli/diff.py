"""`gitops-ctl diff`: what a checkout would change in the cluster, before it is pushed."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import click

import gitops_ctl.cli.rolloutrules
import gitops_ctl.cni.holds  # noqa: F401 - what may hold a TalosCluster
from gitops_ctl.api.gitops import parse_sync
from gitops_ctl.api.sync import Sync
from gitops_ctl.cli.compare import Question, checkout_revision, compare
from gitops_ctl.cli.comparison import Action, Comparison, Finding, Item
from gitops_ctl.cli.connection import Target, cluster_options, connected, require_namespace, run_async
from gitops_ctl.cli.history import open_checkout
from gitops_ctl.cli.kinds import SYNC
from gitops_ctl.cli.output import Format, Result, Table, clean, output_option, write_result
from gitops_ctl.cli.topologyfindings import live_findings
from gitops_ctl.cli.topologyoptions import check_options
from gitops_ctl.cli.topologyrules import register_scheduling
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, NotFound, Refused
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.index import DocumentCache, load_directory, load_set
from gitops_ctl.documents.worktree import repository_root
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.options import Options
from gitops_ctl.sync.clusters import Clusters
from gitops_ctl.sync.diff import rendered
from gitops_ctl.sync.inventory import InventoryStore, Unit, recorded_of
from gitops_ctl.sync.listing import Listing, Load
from gitops_ctl.sync.loading import CheckedLoader
from gitops_ctl.sync.reconcile import account_of
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

_COLUMNS: Final = ("ACTION", "OBJECT", "PLACE", "REASON")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the options say; an empty `sync` means the only one of the namespace, an empty `revision` the work tree."""

    target: Target
    sync: str
    directory: Path
    revision: str
    as_sync: bool
    options: Options = field(default_factory=Options)


@click.command()
@click.argument("sync", required=False, default="")
@click.option(
    "-C", "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path(), help="Checkout."
)
@click.option("--revision", default="", help="Compare this commit; the work tree when left out.")
@click.option("--as-sync", is_flag=True, help="Ask as the Sync's ServiceAccount; needs the right to impersonate it.")
@cluster_options
@check_options
@output_option
def diff(  # noqa: PLR0913  each is an option
    *,
    sync: str,
    directory: Path,
    revision: str,
    as_sync: bool,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    output: Format,
    options: Options,
) -> int:
    """Show what a checkout would change in the cluster for SYNC; left out, the only one of the namespace.

    Nothing is written: the server answers dry runs.  Exit code 2: something would change; 1: an object is held or could not be
    asked about; 0: the cluster is as the checkout says.
    """
    require_namespace(namespace)
    name = sync.removeprefix("gsync/").removeprefix("sync/")
    wish = Wish(Target(kubeconfig, context, namespace), name, directory, revision, as_sync, options)
    register_scheduling(options)
    found = run_async(compared(wish))
    write_result(result_of(found), form=output)
    if output in (Format.TABLE, Format.WIDE):
        click.echo("\n".join(detail_lines(found)))
        if not as_sync and lacks_rights(found):
            account = "ask as the Sync's ServiceAccount with --as-sync, if you may impersonate it"
            click.echo(f"hint: you lack rights that the Sync may have: {account}", err=True)
    return found.exit_code


async def compared(wish: Wish) -> Comparison:
    """Read Sync, inventory and documents, and ask the server.

    Raises:
        GitopsError: one of them cannot be read.
    """
    async with connected(wish.target) as client:
        return await compared_by(client, wish)


async def compared_by(client: KubeClient, wish: Wish) -> Comparison:
    """The same by a client that is there already; the namespace is that of the target.

    Raises:
        GitopsError: something cannot be read.
    """
    syncs = await _syncs(client, namespace=wish.target.namespace)
    sync = _chosen(syncs, wish)
    system = await client.get("/api/v1/namespaces/kube-system")
    revision = checkout_revision(NamespacedName(sync.metadata.namespace, sync.spec.source_ref.name))
    revisions = AcceptedRevisions()
    revisions.publish(revision)
    listing = Listing(
        revisions=revisions,
        load=CheckedLoader(reader_of(wish.directory, revision=wish.revision)),
        cluster_uid=text_at(system, "metadata", "uid"),
        syncs=lambda: syncs,
        recorded=lambda other: recorded_of(client, other, owner=listing.owner_of(other)),
    )
    unit = Unit(sync.metadata.namespace, sync.metadata.name, sync.metadata.uid, listing.owner_of(sync))
    record = await InventoryStore(client, unit).load()
    async with Clusters(client, on_change=lambda _owner, _item: None) as clusters:
        cluster = await clusters.of(sync)
        account = account_of(sync) if wish.as_sync else None
        answer = await compare(Question(sync, cluster, listing, revision, record.entries, account))
    return replace(answer, findings=await _findings(client, wish, sync, listing.documents_of(sync, revision=revision)))


async def _findings(client: KubeClient, wish: Wish, sync: Sync, found: DocumentSet) -> tuple[Finding, ...]:
    """What the controllers of this cluster would say; those of another one are not asked."""
    if sync.spec.kube_config_secret_ref is not None:
        return ()
    namespace = sync.spec.target_namespace or ""
    now = client.clock.wall()
    return await live_findings(client, found.documents, options=wish.options, namespace=namespace, now=now)


async def _syncs(client: KubeClient, *, namespace: str) -> list[Sync]:
    """The Syncs of the namespace that can be read."""
    found = []
    for tree in (await client.list_all(SYNC.path(namespace))).items:
        try:
            found.append(parse_sync(tree))
        except GitopsError:
            continue  # the manager says what is wrong with it
    return found


def _chosen(syncs: list[Sync], wish: Wish) -> Sync:
    names = sorted(sync.metadata.name for sync in syncs)
    if not wish.sync and len(syncs) > 1:
        raise Refused(
            f"the namespace has several Syncs: {', '.join(names)}", code=ErrorCode.USAGE, hint="name one of them"
        )
    found = next((sync for sync in syncs if wish.sync in ("", sync.metadata.name)), None)
    if found is None:
        raise NotFound(
            f"there is no Sync {wish.sync}".rstrip(),
            subject=wish.target.namespace,
            hint=f"there are: {', '.join(names)}" if names else "create one with `gitops-ctl bootstrap`",
        )
    return found


def reader_of(directory: Path, *, revision: str) -> Load:
    """Reads the documents of a checkout below a folder: of its work tree, or of a commit.

    Raises:
        GitopsError: `directory` is in no repository, or has no such commit.
    """
    if not revision:
        root = repository_root(directory)
        return lambda _revision, path: _work_tree(root, path)
    cache = DocumentCache()
    with open_checkout(directory) as checkout:
        tree = checkout.store.links(checkout.commit(revision)).tree

    def read(_revision: AcceptedRevision, path: str) -> DocumentSet:
        with open_checkout(directory) as found:
            return load_set(found.store, tree=tree, path=path, cache=cache)

    return read


def _work_tree(root: Path, path: str) -> DocumentSet:
    if not (root / path.strip("/")).is_dir():
        raise NotFound(f"there is no folder {path}", subject=str(root), hint="is this the checkout of the source?")
    return load_directory(root, path=path)


def result_of(found: Comparison) -> Result:
    """All forms of the answer; the table leaves out what is the same."""
    shown = [item for item in found.items if item.action is not Action.SAME]
    rows = tuple((item.action.value, str(item.object), item.place, _why(item)) for item in shown)
    data: JsonObject = {
        "sync": str(found.sync),
        "counts": {action.value: count for action, count in found.counts.items()},
        "prune": {"digest": found.removals.digest, "blocked": found.removals.blocked},
        "items": [_item_tree(item) for item in found.items],
        "findings": [_finding_tree(item) for item in found.findings],
    }
    names = tuple(str(item.object) for item in found.items if item.action.changes)
    return Result("Diff", data, Table(_COLUMNS, rows), names)


def _finding_tree(item: Finding) -> JsonObject:
    return {
        "object": str(item.object),
        "file": item.file,
        "line": item.line,
        "reason": item.reason,
        "message": item.message,
    }


def _item_tree(item: Item) -> JsonObject:
    return {
        "action": item.action.value,
        "object": str(item.object),
        "file": item.file,
        "line": item.line,
        "reason": item.reason,
        "message": item.message,
        "changes": [
            {"pointer": change.pointer, "live": change.live, "wanted": change.wanted} for change in item.changes
        ],
    }


def lacks_rights(found: Comparison) -> bool:
    """Whether the server refused to answer about an object for want of a right."""
    return any(item.action is Action.UNKNOWN and item.reason == ErrorCode.FORBIDDEN.reason for item in found.items)


def _why(item: Item) -> str:
    return ": ".join(part for part in (item.reason, item.message) if part)


def detail_lines(found: Comparison) -> Iterator[str]:
    """For people, below the table: each changed member, the prune, and how much there is of what."""
    for item in found.items:
        if item.changes:
            yield f"\n{item.object}"
            yield from (f"  {clean(line)}" for line in rendered(item.changes))
    if found.removals.digest:
        yield f"\nset to prune: {found.removals.digest}"
    if found.removals.blocked:
        yield f"prune is blocked: {clean(found.removals.blocked)}"
    for finding in found.findings:
        place = f"{finding.file}:{finding.line}"
        yield f"\n{finding.object} ({place}) would be {finding.reason}: {clean(finding.message)}"
    counts = ", ".join(f"{count} {action.value}" for action, count in found.counts.items())
    yield f"\n{found.sync}: {counts or 'nothing is declared'}"
