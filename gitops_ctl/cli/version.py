"""`gitops-ctl version`."""

import platform

import click

from gitops_ctl import __version__
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result


@click.command()
@output_option
def version(output: Format) -> None:
    """Print the version of gitops-ctl and of the Python that runs it."""
    table = Table(("GITOPS-CTL", "PYTHON"), ((__version__, platform.python_version()),))
    data = {"version": __version__, "python": platform.python_version()}
    write_result(Result("Version", data, table, (__version__,)), form=output)
