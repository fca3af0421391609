"""The entry point: finds the command, imports only its module, turns every failure into one form and an exit code.

Exit codes: 0 done, or the same; 1 an error; 2 there are differences (as `diff` does); 130 interrupted.  A mistake in the arguments is
an error too, so that 2 keeps its one meaning.
"""

import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from gitops_ctl import __version__
from gitops_ctl.cli.output import report_error, report_internal, report_machine, report_usage
from gitops_ctl.core.errors import GitopsError

PROGRAM = "gitops-ctl"
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130

# Name to where it is and what `--help` says.  The help text stands here too, so that the list of commands imports none of them.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "approve": ("gitops_ctl.cli.approve:approve", "Prepare an approval in a checkout, for you to sign."),
    "bootstrap": ("gitops_ctl.cli.bootstrap:bootstrap", "Take a repository address to a running, pinned source."),
    "check": ("gitops_ctl.cli.check:check", "Check the documents of a checkout, without a cluster."),
    "cni": ("gitops_ctl.cli.cni:cni", "Prepare a switch between kube-proxy and Cilium, and look at its values."),
    "completion": ("gitops_ctl.cli.completion:completion", "Print the completion script of a shell."),
    "consent": ("gitops_ctl.cli.consent:consent", "Prepare consent in a checkout, for you to sign."),
    "demo": ("gitops_ctl.cli.demo:demo", "Show the main job on this machine, from signed commit to cluster."),
    "diff": ("gitops_ctl.cli.diff:diff", "Show what a checkout would change in the cluster."),
    "down": ("gitops_ctl.cli.up:down", "Stop the local system that `up` started."),
    "events": (
        "gitops_ctl.cli.events:events",
        "Show what happened to sources, syncs, switches, proposals and scheduling.",
    ),
    "explain": (
        "gitops_ctl.cli.explain:explain",
        "Say where an object comes from, what a code means, or why a Node is scheduled so.",
    ),
    "manager": ("gitops_ctl.cli.manager:manager", "Run the controllers."),
    "plan": (
        "gitops_ctl.cli.topologyplan:plan",
        "Say what a commit would do to scheduling, and what a rollout would do.",
    ),
    "propose": ("gitops_ctl.cli.propose:propose", "Ask once more for a pull request that was declined or reverted."),
    "reconcile": ("gitops_ctl.cli.control:reconcile", "Ask for a pass now."),
    "report": ("gitops_ctl.cli.report:report", "Write a self-contained HTML page of the present state."),
    "resume": ("gitops_ctl.cli.control:resume", "Let a suspended source or sync go on."),
    "rights": ("gitops_ctl.cli.rights:rights", "Print the least rights that the account of a Sync needs."),
    "rollout": (
        "gitops_ctl.cli.rolloutcommand:rollout",
        "Prepare what you sign for a software rollout: pause, resume, cancel, activate, invalidate, recover.",
    ),
    "status": ("gitops_ctl.cli.status:status", "Show sources and syncs, what they wait for and what was refused."),
    "suspend": ("gitops_ctl.cli.control:suspend", "Stop a source or sync from changing anything."),
    "trust": ("gitops_ctl.cli.trust:trust", "Write, show and try a trust policy."),
    "up": ("gitops_ctl.cli.up:up", "Start a Kubernetes control plane on this machine."),
    "verify": ("gitops_ctl.cli.verify:verify", "Judge the commits of a checkout, or recompute published hashes."),
    "version": ("gitops_ctl.cli.version:version", "Print the version."),
    "worker": ("gitops_ctl.cli.worker:worker", "Run a process that holds the credentials of what it changes."),
}


class LazyGroup(click.Group):
    """Knows its commands by name and imports a module when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (target, _) in COMMANDS.items() if _is_there(target)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(_imported(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name][1]) for name in names]
        # The options; the group's own way would import every command for one line of help.
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=LazyGroup, name=PROGRAM, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
@click.option("--no-color", is_flag=True, help="Write without colour; NO_COLOR does the same.")
def cli(no_color: bool) -> None:
    """Signed Git history in, reconciled Kubernetes objects out."""
    if no_color:
        os.environ["NO_COLOR"] = "1"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; failures are written to stderr."""
    try:
        result = cli.main(args=None if arguments is None else list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except GitopsError as error:
        report_error(error)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
    except click.ClickException as error:
        report_usage(error)
    except BrokenPipeError:
        # Whoever read our output has enough; without this Python complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        report_machine(error)
    except Exception as error:  # noqa: BLE001 - the last place where a bug can be told in one form
        report_internal(error)
    else:
        return result if isinstance(result, int) else 0
    return EXIT_ERROR


def main() -> None:
    """The program."""
    sys.exit(run())


def _imported(module: str) -> ModuleType:
    """A module of a command.  What an import makes stays; to look for garbage in it takes a third of the manager's start."""
    if module in sys.modules:
        return sys.modules[module]
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def _is_there(target: str) -> bool:
    """Whether this build has the module of a command."""
    return importlib.util.find_spec(target.partition(":")[0]) is not None
