"""`gitops-ctl up` and `gitops-ctl down`: a working system on this machine, control plane and manager."""

import asyncio
import shutil
import sys
from pathlib import Path

import click

from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.gitea import GiteaFolder
from gitops_ctl.local.progress import progress_for
from gitops_ctl.local.state import SystemFolder, SystemState, state_home
from gitops_ctl.local.system import Provider, Request, bring_up, run_in_foreground, take_down

_directory = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: state_home() / "local",
    show_default="$XDG_STATE_HOME/gitops-ctl/local",
    help="Folder of the local system.",
)


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this cluster; start nothing.",
)
@click.option("--context", help="Context in that kubeconfig.")
@click.option(
    "--provider",
    type=click.Choice([provider.value for provider in Provider]),
    default=Provider.AUTO.value,
    show_default=True,
    help="auto takes kind when a container engine answers, else processes.",
)
@click.option("--foreground", is_flag=True, help="Stay, and stop the system with Ctrl-C.")
@click.option("--audit", is_flag=True, help="Let the API server write an audit log.")
@click.option("--nodes", type=click.IntRange(0, 1000), default=0, help="Number of simulated Nodes (kwok).")
@click.option("--forge", is_flag=True, help="Run a Gitea beside it: repositories, pull requests and reviews.")
@click.option("--manager/--no-manager", default=True, show_default=True, help="Install gitops-ctl and run its manager.")
@_directory
@output_option
def up(  # noqa: PLR0913 - each is an option
    *,
    kubeconfig: Path | None,
    context: str | None,
    provider: str,
    foreground: bool,
    audit: bool,
    nodes: int,
    forge: bool,
    manager: bool,
    directory: Path,
    output: Format,
) -> None:
    """Start Kubernetes and the manager of gitops-ctl on this machine and print the kubeconfig.

    Takes the first that works: the cluster of --kubeconfig, the programs in KUBEBUILDER_ASSETS, a kind cluster when a container
    engine answers, or programs that are built once from Go modules (about ten minutes on two cores).  Into a cluster that is named,
    and into kind, nothing is installed: `gitops-ctl bootstrap` does that.
    """
    if forge and (kubeconfig is not None or provider == Provider.KIND.value):
        raise click.UsageError("--forge needs a system that is made of processes")
    request = Request(
        directory=directory.absolute(),
        kubeconfig=kubeconfig and kubeconfig.absolute(),
        context=context,
        provider=Provider(provider),
        options=Options(audit=audit, nodes=nodes),
        manager=manager,
        forge=forge,
    )
    clock = SystemClock()
    with progress_for(sys.stderr) as progress:
        if foreground:
            reason = asyncio.run(run_in_foreground(request, progress=progress, clock=clock))
            if reason:
                raise TerminalError(reason, code=ErrorCode.LOCAL_SYSTEM, subject=str(directory))
            return
        state = asyncio.run(bring_up(request, progress=progress, clock=clock))
    write_result(_result(state), form=output)
    if output in (Format.TABLE, Format.WIDE):
        kubectl = "kubectl" if shutil.which("kubectl") else state.kubectl or "kubectl"
        first = "gitops-ctl bootstrap URL -n NAMESPACE --no-install" if state.manager else f"{kubectl} get namespaces"
        if state.forge:
            accounts = GiteaFolder(SystemFolder(directory.absolute()).forge)
            click.echo(f"\nforge: {state.forge}\n  tokens and passwords: {accounts.accounts}\n  CA: {accounts.ca_file}")
        click.echo(f"\nnext:\n  export KUBECONFIG={state.kubeconfig}\n  {first}\n  gitops-ctl down")


@click.command()
@click.option("--purge", is_flag=True, help="Remove its data, certificates and logs too.")
@_directory
def down(purge: bool, directory: Path) -> None:
    """Stop the local system.  Its data is kept for the next `up`, unless --purge is given."""
    folder = SystemFolder(directory.absolute())
    was_up = asyncio.run(take_down(folder, purge=purge))
    click.echo("stopped" if was_up else "nothing was up", err=True)


def _result(state: SystemState) -> Result:
    data: JsonObject = {
        "provider": state.kind,
        "server": state.url,
        "kubernetesVersion": state.version,
        "kubeconfig": state.kubeconfig,
        "auditLog": state.audit_log,
        "supervisor": state.supervisor,
        "processes": dict(state.pids),
        "manager": state.manager,
        "forge": state.forge,
    }
    row = (state.kind, state.url, state.version, state.kubeconfig, ", ".join(f"{k}={v}" for k, v in state.pids.items()))
    table = Table(("PROVIDER", "SERVER", "VERSION", "KUBECONFIG", "PROCESSES"), (row,), wide_from=4)
    return Result("LocalSystem", data, table, (state.kubeconfig,))
