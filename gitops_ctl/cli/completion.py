"""`gitops-ctl completion SHELL`: the script that a shell evaluates."""

import click

_SHELLS = ("bash", "fish", "zsh")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    For bash: `source <(gitops-ctl completion bash)`.  `kubectl gitops-ctl` completes by itself.
    """
    # Not at the top: the group imports this module by name, so each would need the other first.
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    from gitops_ctl.cli.main import PROGRAM, cli  # noqa: PLC0415

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, PROGRAM, "_GITOPS_CTL_COMPLETE").source())
