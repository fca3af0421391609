"""`gitops-ctl trust`: write a first policy, show one, and try what it allows; offline, in a checkout."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.cli.firstpolicy import NamedKey, first_policy, key_from_git, read_key
from gitops_ctl.cli.history import open_checkout
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.trusttest import test
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.trust.lockout import HINT, lockout
from gitops_ctl.trust.policy import TrustPolicy, load_policy

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
    why = lockout(policy, now=SystemClock().wall())
    write_result(_shown(policy, commit=commit, lockout=why), form=output)
    if why:
        click.echo(f"warning: nobody could change the policy any more: {why}; {HINT}", err=True)


trust.add_command(test)


def _shown(policy: TrustPolicy, *, commit: str, lockout: str) -> Result:
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
        "lockout": lockout,
    }
    return Result("TrustPolicyView", data, Table(("WHO", "ROLES", "FINGERPRINTS"), rows), tuple(policy.people))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    return name, value
