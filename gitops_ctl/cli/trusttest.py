"""`gitops-ctl trust test`: may PERSON do VERB on PATH, and what another policy would have said about a range; offline."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.api.trust_policy import RuleVerb
from gitops_ctl.cli.history import RangeText, open_checkout
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.authority import FORGE_GATED
from gitops_ctl.trust.chain import VerdictCache
from gitops_ctl.trust.policy import TrustPolicy, load_policy
from gitops_ctl.trust.report import to_json
from gitops_ctl.trust.rulebook import PolicyRule
from gitops_ctl.trust.survey import CommitReport, survey

EXIT_NO = 1
EXIT_DIFFERENT = 2
COLUMNS = ("COMMIT", "NOW", "BY THE OTHER POLICY", "SUBJECT", "REASON")


@dataclass(frozen=True, slots=True)
class _Compared:
    """One commit, judged by the policies of its history and by another one."""

    now: CommitReport
    then: CommitReport

    @property
    def differs(self) -> bool:
        return self.now.verdict != self.then.verdict

    @property
    def reason(self) -> str:
        refused = self.then.refused or self.now.refused
        return refused.message if refused is not None else ""


@click.command()
@click.argument("question", nargs=-1, metavar="[PERSON VERB PATH]")
@click.option("--kind", metavar="KIND.GROUP", help="Kind of the document at PATH.")
@click.option("--history", metavar="RANGE", help="Name the commits of `A..B` that the policy would judge differently.")
@click.option(
    "--policy", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Policy file to try."
)
@click.option("--policy-path", default=POLICY_PATH, show_default=True, help="Where the trust policy lies.")
@click.option(
    "-C", "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder of the checkout."
)
@output_option
def test(  # noqa: PLR0913 - one parameter for each option
    question: tuple[str, ...],
    *,
    kind: str | None,
    history: str | None,
    file: Path | None,
    policy_path: str,
    directory: Path,
    output: Format,
) -> int:
    """Say whether PERSON may do VERB on PATH, and by which rule; or replay a range with --history.

    The policy is the one of the checkout, or the file given with --policy.  Exit code 0: yes, or no commit is judged
    differently; 1: no; 2: a commit is judged differently.
    """
    source = file or directory / policy_path
    if not source.is_file():
        raise Refused(f"there is no trust policy at {source}", code=ErrorCode.USAGE, hint="give one with --policy")
    policy = load_policy(source.read_bytes(), path=policy_path)
    if history is not None and not question:
        return _replay(policy, history, policy_path=policy_path, directory=directory, output=output)
    if len(question) != 3 or history is not None:
        raise click.UsageError("give PERSON VERB PATH, or --history RANGE")
    return _answer(policy, *question, kind=GroupKind.parse(kind) if kind else None, output=output)


def _answer(policy: TrustPolicy, person: str, verb: str, path: str, *, kind: GroupKind | None, output: Format) -> int:
    if person not in policy.people:
        raise Refused(
            f"the policy names no person {person}", code=ErrorCode.USAGE, hint=f"known: {', '.join(policy.people)}"
        )
    if verb not in get_args(RuleVerb):
        raise Refused(f"there is no verb {verb}", code=ErrorCode.USAGE, hint=f"known: {', '.join(get_args(RuleVerb))}")
    rule = policy.merge_rule() if verb == "merge" else policy.rule_for(path=path, verb=verb, kind=kind)
    may = rule is not None and policy.holds_role(person, rule.roles)
    conditions = _conditions(policy, rule, verb=verb)
    data: JsonObject = {
        "person": person,
        "verb": verb,
        "path": path,
        "may": may,
        "rule": str(rule) if rule else "",
        "conditions": conditions,
    }
    row = ("yes" if may else "no", str(rule) if rule else "no rule gives this verb here", conditions)
    write_result(Result("TrustAnswer", data, Table(("MAY", "RULE", "CONDITIONS"), (row,))), form=output)
    return 0 if may else EXIT_NO


def _conditions(policy: TrustPolicy, rule: PolicyRule | None, *, verb: str) -> str:
    """What the rule asks for beyond the role, and whether a review at the forge could stand for a signature."""
    if rule is None:
        return ""
    found = [f"needs {rule.threshold} persons"] if rule.threshold > 1 else []
    found += ["not the author"] if rule.is_distinct(verb) else []
    if policy.merges is not None and verb in FORGE_GATED and verb not in policy.merges.allow_verbs:
        found.append("not by a merge of the forge")
    return ", ".join(found)


def _replay(policy: TrustPolicy, history: str, *, policy_path: str, directory: Path, output: Format) -> int:
    compared = _compared(policy, history, policy_path=policy_path, directory=directory)
    different = [each for each in compared if each.differs]
    rows = tuple(
        (each.now.commit[:12], each.now.verdict, each.then.verdict, each.now.subject, each.reason) for each in different
    )
    data: JsonObject = {
        "policyDigest": policy.digest,
        "different": len(different),
        "commits": [
            {**to_json(each.then), "verdictNow": each.now.verdict, "differs": each.differs} for each in compared
        ],
    }
    if output in (Format.TABLE, Format.WIDE):
        click.echo(f"{len(compared)} commits, {len(different)} of them would be judged differently", err=True)
    names = tuple(each.now.commit for each in different)
    write_result(Result("TrustReplay", data, Table(COLUMNS, rows), names), form=output)
    return EXIT_DIFFERENT if different else 0


def _compared(policy: TrustPolicy, history: str, *, policy_path: str, directory: Path) -> Sequence[_Compared]:
    with open_checkout(directory) as checkout:
        request = checkout.request(RangeText(history), policy_path=policy_path, now=SystemClock().wall())
        now, then = (
            list(survey(checkout.store, request=request, cache=VerdictCache(), policy=each)) for each in (None, policy)
        )
        return [_Compared(*pair) for pair in zip(now, then, strict=True)]
