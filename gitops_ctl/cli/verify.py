"""`gitops-ctl verify`: what a commit may do, and whether published hashes are those of what they are published with.

`verify [RANGE]` is short for `verify commits [RANGE]`: who made each commit of a checkout, which changes it makes, by which rule, or why
not; offline.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.cli.defaultgroup import DefaultGroup
from gitops_ctl.cli.history import Checkout, RangeText, open_checkout
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.verifyplan import plan
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, VerdictCache
from gitops_ctl.trust.report import COLUMNS, to_json, to_row
from gitops_ctl.trust.survey import CommitReport, survey

EXIT_REFUSED = 1


class _Verifications(DefaultGroup):
    default = "commits"


@click.group(cls=_Verifications)
def verify() -> None:
    """Judge the commits of a checkout by its trust policy, or recompute published hashes.

    `verify [RANGE]` is short for `verify commits [RANGE]`.
    """


verify.add_command(plan)


@verify.command()
@click.argument("range_text", metavar="[RANGE]", required=False)
@click.option("--root", metavar="COMMIT", help="Commit that is trusted; default: the first one with a trust policy.")
@click.option("--policy-path", default=POLICY_PATH, show_default=True, help="Where the trust policy lies.")
@click.option(
    "--commit-time", is_flag=True, help="Judge keys at the commits' own dates, as git does; to read old history."
)
@click.option(
    "-C", "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder of the checkout."
)
@output_option
def commits(
    range_text: str | None, root: str | None, policy_path: str, commit_time: bool, directory: Path, output: Format
) -> int:
    """Judge the commits of RANGE (`A..B`, or `B` alone; default: from the upstream branch to HEAD) by the trust policy.

    Exit code 0: every commit is accepted; 1: one is not, or it cannot be told.
    """
    with open_checkout(directory) as checkout:
        request = checkout.request(RangeText(range_text, root), policy_path=policy_path, now=SystemClock().wall())
        times = _commit_times(checkout) if commit_time else None
        reports = list(survey(checkout.store, request=request, cache=VerdictCache(), first_seen=times))
    if not reports:
        click.echo(_nothing(request), err=True)
    write_result(_result(reports, base=request.accepted or request.root.commit, tip=request.tip), form=output)
    return EXIT_REFUSED if any(report.refused for report in reports) else 0


def _nothing(request: RangeRequest) -> str:
    """Why there is no commit to judge; an empty table must not look like a verdict."""
    if request.tip == request.root.commit:
        return (
            f"nothing to judge: {request.tip} is the root, which no policy judges; it is trusted when somebody pins it"
        )
    return (
        f"nothing to judge: {request.tip} is at the upstream branch; `gitops-ctl verify HEAD` judges all since the root"
    )


def _commit_times(checkout: Checkout) -> Callable[[str], datetime]:
    store: ObjectStore = checkout.store
    return lambda commit: store.commit(commit).committer_time


def _result(reports: list[CommitReport], *, base: str, tip: str) -> Result:
    refused = [report.commit for report in reports if report.refused]
    verdict = "Accepted" if not refused else next(report.verdict for report in reports if report.refused)
    return Result(
        kind="Verification",
        data={
            "base": base,
            "tip": tip,
            "verdict": verdict,
            "commits": [to_json(report) for report in reports],
        },
        table=Table(COLUMNS, tuple(to_row(report) for report in reports)),
        names=tuple(refused),
    )
