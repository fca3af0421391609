"""`gitops-ctl check`: everything that is wrong in a checkout, before the push and without a cluster (gitops.md, section 5.1)."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gitops_ctl.api.names import WORKER_GROUP
from gitops_ctl.cli.findings import FORMS, Findings, write_findings
from gitops_ctl.cli.topologyoptions import check_options
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.documents.batch import without_cycle_search
from gitops_ctl.documents.checkcache import CheckCache
from gitops_ctl.documents.repository import Accepted, CheckReport, CheckRequest, check_repository
from gitops_ctl.documents.tree import is_document_name
from gitops_ctl.documents.worktree import repository_root
from gitops_ctl.scheduling.options import Options

if TYPE_CHECKING:
    import pygit2

_STDIN = "-"
_REFERENCES: Final = "gitops-ctl-topology-references"
"""The admission policy whose parameter object `--worker-namespace` stands for."""
_ABOUT: Final = frozenset({GroupKind(WORKER_GROUP, "TopologySource")})


def in_folder(context: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    """Go there for the time of the command, before other options are read: their paths begin there too, as with git."""
    if folder is not None:
        context.with_resource(chdir(folder))


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "-o", "--output", "form", type=click.Choice(FORMS), default=FORMS[0], show_default=True, help="Form of output."
)
@click.option(
    "--policies",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="File or folder with admission policies; may be repeated.",
)
@click.option(
    "--against",
    metavar="REVISION",
    help="Accepted revision, which policies and rules of consent see as the old version.",
)
@click.option("--changed", is_flag=True, help="Only findings in files that Git shows as changed.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option(
    "--nodes",
    "nodes_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge TopologySources by these Nodes: the output of `kubectl get nodes -o yaml`.",
)
@click.option("--cluster", is_flag=True, help="Judge TopologySources by the Nodes of the cluster.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Of that cluster; KUBECONFIG or ~/.kube/config when left out.",
)
@click.option("--context", help="Context of the kubeconfig.")
@check_options
@click.option(
    "-C",
    "_directory",
    is_eager=True,
    expose_value=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=in_folder,
    help="Run as if started in this folder.",
)
@click.option("--no-cache", is_flag=True, help="Check every file, also those that are known.")
def check(  # noqa: PLR0913 - one parameter for each option
    paths: tuple[str, ...],
    *,
    form: str,
    policies: tuple[Path, ...],
    against: str | None,
    changed: bool,
    strict: bool,
    no_cache: bool,
    nodes_file: Path | None,
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    options: Options,
) -> int:
    """Check the documents below each PATH (default: this folder).

    Given files, as a pre-commit hook does, the whole repository is read and findings in these files are shown; `-` reads
    the names from stdin.  Exit code 0: nothing wrong, or warnings only; 1: errors.

    Without Nodes, inventories are judged as far as they can be without a cluster.
    """
    if cluster and nodes_file is not None:
        raise click.UsageError("--nodes and --cluster exclude each other")
    nodes = _live_nodes(kubeconfig, context) if cluster else _nodes_in(nodes_file)
    target = _target(paths, changed=changed)
    request = CheckRequest(
        root=target.root,
        folders=target.folders,
        policies=_policy_files(policies),
        accepted=_accepted(target.root, against) if against else None,
        params={_REFERENCES: {"data": {"workerNamespace": options.worker_namespace}}},
        prepare=partial(_register_rules, options, nodes),
        about=_ABOUT,
    )
    cache = None if no_cache else CheckCache(target.root, scope="\0".join(target.folders))
    try:
        with without_cycle_search():
            report = check_repository(request, cache=cache)
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}", code=ErrorCode.USAGE, subject=str(error.filename)) from error
    findings = _findings(report, target)
    write_findings(findings, form=form, stream=sys.stdout)
    return 1 if findings.errors or (strict and findings.problems) else 0


@dataclass(frozen=True, slots=True)
class _Target:
    """What is read, and which files findings are shown for (None: all)."""

    root: Path
    folders: tuple[str, ...]
    only: frozenset[str] | None


def _target(paths: Sequence[str], *, changed: bool) -> _Target:
    names = [name for path in paths for name in (_names_from_stdin() if path == _STDIN else [path])]
    chosen = [Path(name) for name in names] or ([] if _STDIN in paths else [Path()])
    for path in chosen:
        if not path.exists() and path.suffix == "":
            raise click.BadParameter(f"there is no {path}", param_hint="PATH")
    root = repository_root(chosen[0] if chosen else Path())
    inside = [_below(root, path) for path in chosen]
    folders = tuple(name for name, path in zip(inside, chosen, strict=True) if path.is_dir())
    files = frozenset(name for name, path in zip(inside, chosen, strict=True) if not path.is_dir())
    if changed:
        return _Target(root, folders or ("",), _changed_files(root) | files)
    return _Target(root, folders, None) if folders and not files else _Target(root, ("",), files)


def _names_from_stdin() -> list[str]:
    return [line for line in sys.stdin.read().splitlines() if is_document_name(line)]


def _below(root: Path, path: Path) -> str:
    whole = path.resolve()
    if whole != root and root not in whole.parents:
        raise click.BadParameter(f"{path} is not in the repository {root}", param_hint="PATH")
    return "" if whole == root else whole.relative_to(root).as_posix()


def _findings(report: CheckReport, target: _Target) -> Findings:
    """The report with paths as the person sees them from the current folder."""
    shown = [one for one in report.problems if target.only is None or one.file in target.only]
    prefix = _prefix(target.root)
    return Findings(
        problems=tuple(replace(one, file=prefix + one.file) for one in shown),
        files=report.files,
        documents=report.documents,
        hidden=tuple(prefix + path for path in report.hidden),
        server_only=report.server_only,
    )


def _prefix(root: Path) -> str:
    """From the current folder to the root; nothing when that would lead upwards."""
    here = Path.cwd()
    return f"{root.relative_to(here).as_posix()}/" if here in root.parents else ""


def _policy_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    found: list[Path] = []
    for path in paths:
        found.extend(sorted(one for one in path.rglob("*") if is_document_name(one.name)) if path.is_dir() else [path])
    return tuple(found)


def _changed_files(root: Path) -> frozenset[str]:
    # Only this option needs Git; libgit2 takes longer to load than a run takes that finds everything known.
    import pygit2  # noqa: PLC0415

    repository = _repository(root)
    base = Path(repository.workdir).resolve()
    clean = (pygit2.enums.FileStatus.CURRENT, pygit2.enums.FileStatus.IGNORED)
    changed = [base / path for path, status in repository.status().items() if status not in clean]
    return frozenset(path.relative_to(root).as_posix() for path in changed if root in path.parents)


def _accepted(root: Path, revision: str) -> Accepted:
    """The documents of a revision, read when a policy needs them."""
    from gitops_ctl.documents.index import DocumentCache, load_set  # noqa: PLC0415
    from gitops_ctl.git.store import ObjectStore  # noqa: PLC0415

    repository = _repository(root)
    try:
        tree = str(repository.revparse_single(f"{revision}^{{tree}}").id)
    except (KeyError, ValueError) as error:
        raise click.BadParameter(f"there is no revision {revision}", param_hint="--against") from error
    base = Path(repository.workdir).resolve()
    path = "" if base == root else root.relative_to(base).as_posix()

    def read() -> dict[ObjectId, JsonObject]:
        with ObjectStore.open(Path(repository.path)) as store:
            found = load_set(store, tree=tree, path=path, cache=DocumentCache())
        return {name: document.tree for name, document in found.by_id.items()}

    return Accepted(tree, read)


def _repository(root: Path) -> "pygit2.Repository":
    import pygit2  # noqa: PLC0415

    found = pygit2.discover_repository(str(root))
    if found is None:
        raise click.UsageError(f"{root} is in no Git repository")
    return pygit2.Repository(found)


Nodes = Mapping[str, Mapping[str, str]]
"""Labels by name."""


def _nodes_in(file: Path | None) -> Nodes | None:
    """None when Nodes are not asked for."""
    if file is None:
        return None
    from gitops_ctl.cli.topologyfiles import objects_in  # noqa: PLC0415

    return _by_name(objects_in(file, kind="Node"))


def _live_nodes(kubeconfig: Path | None, context: str | None) -> Nodes:
    # A cluster is asked by this option alone, and its client takes longer to load than a run takes.
    from gitops_ctl.cli.connection import Target, connected, run_async  # noqa: PLC0415

    async def read() -> Nodes:
        async with connected(Target(kubeconfig, context, "")) as client:
            return _by_name((await client.list_all("/api/v1/nodes")).items)

    return run_async(read())


def _by_name(trees: Iterable[JsonObject]) -> Nodes:
    from gitops_ctl.scheduling.selectors import labels_of  # noqa: PLC0415

    return {text_at(tree, "metadata", "name"): labels_of(tree) for tree in trees}


def _register_rules(options: Options, nodes: Nodes | None) -> None:
    """Rules are those of the rooms that enforce them; they come in with the first file that is checked."""
    from gitops_ctl.cli.policycheck import register  # noqa: PLC0415
    from gitops_ctl.scheduling import documentrules  # noqa: PLC0415

    register()
    documentrules.register(options, nodes=nodes)
