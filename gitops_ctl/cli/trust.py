"""`gitops-ctl trust`: write a first policy, show one, and try what it allows; offline, in a checkout."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.api.trust_policy import RuleVerb
from gitops_ctl.cli.firstpolicy import NamedKey, first_policy, key_from_git, read_key
from gitops_ctl.cli.history import RangeText, open_checkout
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.chain import VerdictCache
from gitops_ctl.trust.policy import TrustPolicy, load_policy
from gitops_ctl.trust.report import COLUMNS, to_json, to_row
from gitops_ctl.trust.survey import survey

_directory = click.option(
    "-C", "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder of the checkout."
)
_policy_path = click.option(
    "--policy-path", default=POLICY_PATH, show_default=True, help="Where the trust policy lies."
)


@click.group()
def trust() -> None:
    """Write, show and try a trust policy."""


@trust.command()
@click.option(
    "--key", "keys", metavar="NAME=FILE", multiple=True, help="A person and a public key (SSH or armored OpenPGP)."
)
@click.option("--email", "emails", metavar="NAME=ADDRESS", multiple=True, help="Committer address of a person.")
@click.option("--force", is_flag=True, help="Replace a policy that is there.")
@_policy_path
@_directory
def init(keys: Sequence[str], emails: Sequence[str], force: bool, policy_path: str, directory: Path) -> None:
    """Write a first policy in which the given people may do everything.

    Without --key the person and the key come from git: user.name, user.email and user.signingKey.
    """
    target = directory / policy_path
    if target.exists() and not force:
        raise Refused(f"{target} is there already", code=ErrorCode.USAGE, hint="edit it, or give --force")
    if keys:
        people = [NamedKey(*_pair(text, "--key")) for text in keys]
    else:
        with open_checkout(directory) as checkout:
            people = [key_from_git(checkout.repository.config)]
    addresses = dict(_pair(text, "--email") for text in emails)
    people = [replace(one, email=addresses.get(one.name, one.email)) for one in people]
    text = first_policy([(one, read_key(one.source)) for one in people], policy_path=policy_path)
    policy = load_policy(text.encode(), path=policy_path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    click.echo(f"wrote {target} with {', '.join(policy.people)}")
    click.echo("commit it, signed; then pin that commit and the digest that `gitops-ctl trust show` prints")


@trust.command()
@click.option("--rev", "revision", metavar="COMMIT", help="Show the policy of a commit; default: HEAD.")
@_policy_path
@_directory
@output_option
def show(revision: str | None, policy_path: str, directory: Path, output: Format) -> None:
    """Show what an operator pins, and who may sign: commit, digest, people, roles, fingerprints."""
    with open_checkout(directory) as checkout:
        commit = checkout.commit(revision or "HEAD")
        policy = load_policy(checkout.policy_at(commit, policy_path), path=policy_path)
    if output in (Format.TABLE, Format.WIDE):
        click.echo(
            f"root commit:    {commit}\npolicy digest:  {policy.digest}\nkey set digest: {policy.key_set_digest}\n"
        )
    write_result(_shown(policy, commit=commit), form=output)


@trust.command()
@click.argument("question", nargs=-1, metavar="[PERSON VERB PATH]")
@click.option("--kind", metavar="KIND.GROUP", help="Kind of the document at PATH.")
@click.option(
    "--history", metavar="RANGE", help="Judge these commits by the policy instead of by those in the history."
)
@click.option(
    "--policy", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Policy file to try."
)
@_policy_path
@_directory
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

    The policy is the one of the checkout, or the file given with --policy.  Exit code 0: yes; 1: no.
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
    needs = f"needs {rule.threshold} persons" if rule is not None and rule.threshold > 1 else ""
    distinct = "not the author" if rule is not None and rule.is_distinct(verb) else ""
    conditions = ", ".join(part for part in (needs, distinct) if part)
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
    return 0 if may else 1


def _replay(policy: TrustPolicy, history: str, *, policy_path: str, directory: Path, output: Format) -> int:
    with open_checkout(directory) as checkout:
        request = checkout.request(RangeText(history), policy_path=policy_path, now=SystemClock().wall())
        reports = list(survey(checkout.store, request=request, cache=VerdictCache(), policy=policy))
    table = Table(COLUMNS, tuple(to_row(report) for report in reports))
    data: JsonObject = {"policyDigest": policy.digest, "commits": [to_json(report) for report in reports]}
    write_result(Result("TrustReplay", data, table), form=output)
    return 1 if any(report.refused for report in reports) else 0


def _shown(policy: TrustPolicy, *, commit: str) -> Result:
    people: list[JsonObject] = [
        {
            "name": person.name,
            "kubernetesUser": person.kubernetes_user,
            "roles": list(policy.roles_of(person.name)),
            "fingerprints": list(policy.fingerprints.get(person.name, ())),
        }
        for person in policy.people.values()
    ]
    others: list[JsonObject] = [
        {"name": owner, "kubernetesUser": "", "roles": [], "fingerprints": list(found)}
        for owner, found in policy.fingerprints.items()
        if owner not in policy.people
    ]
    rows = tuple(
        (owner, ", ".join(policy.roles_of(owner)), ", ".join(found)) for owner, found in policy.fingerprints.items()
    )
    data: JsonObject = {
        "root": {"commit": commit, "policyDigest": policy.digest},
        "keySetDigest": policy.key_set_digest,
        "people": people,
        "otherKeys": others,
        "roles": {role: sorted(members) for role, members in policy.roles.items()},
        "rules": [str(rule) for rule in policy.rules],
    }
    return Result("TrustPolicyView", data, Table(("WHO", "ROLES", "FINGERPRINTS"), rows), tuple(policy.people))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    return name, value
