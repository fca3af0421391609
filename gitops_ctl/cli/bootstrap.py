"""`gitops-ctl bootstrap`: from a repository address to a running, pinned source (gitops.md, section 23.1).

It writes no commit, shows before it sends, asks, and can be repeated: equal values change nothing, other values are shown as a
difference and asked for again, which is also how a new root is pinned.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
import yaml

from gitops_ctl.api.names import POLICY_PATH, SYSTEM_NAMESPACE
from gitops_ctl.cli.connection import Target, connected, run_async
from gitops_ctl.cli.installing import (
    ADMISSION,
    TENANT_MANAGER,
    Planned,
    Tenant,
    applier_rights,
    planned,
    required_rules,
    sync_accounts_of,
    sync_document,
    tenant_objects,
)
from gitops_ctl.cli.introduce import Introduction, Remote, introduced
from gitops_ctl.cli.output import clean
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, list_at
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.documents.schema import SchemaCatalog, is_crd
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import ChildTransport, Credentials
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.product import PRODUCT_MANAGER, established, product_objects, put
from gitops_ctl.sync.order import RBAC_GROUP


@dataclass(frozen=True, slots=True)
class Wish:
    """What the options say."""

    target: Target
    remote: Remote
    tenant: Tenant
    expect_commit: str
    expect_digest: str
    install: bool
    confirmed: bool


@click.command()
@click.argument("url")
@click.option("--branch", default="main", show_default=True)
@click.option("--path", default="", help="Folder of the documents; the root when left out.")
@click.option("--policy-path", default=POLICY_PATH, show_default=True)
@click.option("-n", "--namespace", required=True, help="Namespace of the source and its Sync; made when it is missing.")
@click.option("--name", default="main", show_default=True, help="Name of the GitSource and of the Sync.")
@click.option(
    "--service-account", default="gitops-ctl-sync", show_default=True, help="Who applies; its rights are yours to give."
)
@click.option("--username", help="For https; the password is read from --password-file.")
@click.option("--password-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--bearer-token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--ssh-key-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--known-hosts-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--ca-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--allow-file-url", is_flag=True, help="Accept a file:// address; for one machine only.")
@click.option("--expect-commit", default="", help="End when the tip is another commit; for scripts.")
@click.option("--expect-digest", default="", help="End when the policy has another digest; for scripts.")
@click.option("--yes", is_flag=True, help="Do not ask; needs both --expect options.")
@click.option("--no-install", is_flag=True, help="Leave out definitions and manager: the chart brings them.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--context", help="Context of the kubeconfig.")
def bootstrap(**options: object) -> None:
    """Fetch URL, show root commit, policy digest and people, ask, and install a pinned source.

    What is there already and equal is left alone; what differs is shown and asked for.
    """
    run_async(_bootstrap(_wish(options)))


def _wish(options: Mapping[str, object]) -> Wish:
    if options["yes"] and not (options["expect_commit"] and options["expect_digest"]):
        raise Refused(
            "--yes needs --expect-commit and --expect-digest: trust rests on what was compared",
            code=ErrorCode.USAGE,
            hint="run it once without --yes, and compare with `gitops-ctl trust show` in a clone of your own",
        )
    if _text(options, "url").startswith("file:") and not options["allow_file_url"]:
        raise Refused(
            "a file:// address is for one machine only", code=ErrorCode.URL_REFUSED, hint="give --allow-file-url"
        )
    secret = _secret(options)
    kubeconfig = options["kubeconfig"]
    return Wish(
        target=Target(
            kubeconfig if isinstance(kubeconfig, Path) else None,
            _text(options, "context") or None,
            _text(options, "namespace"),
        ),
        remote=_remote(options, secret),
        tenant=_tenant(options, secret),
        expect_commit=_text(options, "expect_commit"),
        expect_digest=_text(options, "expect_digest"),
        install=not options["no_install"],
        confirmed=bool(options["yes"]),
    )


def _remote(options: Mapping[str, object], secret: Mapping[str, str]) -> Remote:
    return Remote(
        url=_text(options, "url"),
        branch=_text(options, "branch"),
        policy_path=_text(options, "policy_path"),
        credentials=_credentials(secret),
        ca=_content(options, "ca_file").encode() or None,
        known_hosts=_content(options, "known_hosts_file").encode() or None,
        allow_file=bool(options["allow_file_url"]),
    )


def _tenant(options: Mapping[str, object], secret: Mapping[str, str]) -> Tenant:
    """Root and digest are known after the fetch."""
    return Tenant(
        namespace=_text(options, "namespace"),
        source=_text(options, "name"),
        sync=_text(options, "name"),
        url=_text(options, "url"),
        branch=_text(options, "branch"),
        path=_text(options, "path").strip("/"),
        service_account=_text(options, "service_account"),
        root="",
        policy_digest="",
        policy_path=_text(options, "policy_path"),
        credentials=secret,
        ca=_content(options, "ca_file"),
        known_hosts=_content(options, "known_hosts_file"),
    )


def _text(options: Mapping[str, object], name: str) -> str:
    return str(options[name] or "")


def _content(options: Mapping[str, object], name: str) -> str:
    path = options[name]
    return path.read_text(encoding="utf-8") if isinstance(path, Path) else ""


def _secret(options: Mapping[str, object]) -> dict[str, str]:
    """The Secret's keys from the one kind of credential that was given."""
    username = _text(options, "username")
    given = [name for name in ("username", "bearer_token_file", "ssh_key_file") if options[name]]
    if len(given) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise Refused(f"{names} exclude each other", code=ErrorCode.USAGE, hint="give one of them")
    if bool(username) != bool(options["password_file"]):
        raise Refused("--username and --password-file belong together", code=ErrorCode.USAGE, hint="give both")
    if username:
        return {"username": username, "password": _content(options, "password_file").strip("\r\n")}
    if options["bearer_token_file"]:
        return {"bearerToken": _content(options, "bearer_token_file").strip()}
    return {"identity": _content(options, "ssh_key_file")} if options["ssh_key_file"] else {}


def _credentials(secret: Mapping[str, str]) -> Credentials | None:
    if not secret:
        return None
    return Credentials(
        username=secret.get("username", ""),
        password=secret.get("password", ""),
        bearer_token=secret.get("bearerToken", ""),
        ssh_private_key=secret.get("identity", ""),
    )


async def _bootstrap(wish: Wish) -> None:
    async with introduced(wish.remote, transport=ChildTransport(), now=SystemClock().wall()) as root:
        _require_expected(wish, root)
        click.echo("\n".join(map(clean, root.lines())))
        click.echo("\nEarlier history is not judged: all later trust rests on this commit and this digest.")
        _confirm(wish, "Is this the root that you trust?")
        tenant = replace(wish.tenant, root=root.commit.id, policy_digest=root.digest)
        rules = _rules_for(root, path=tenant.path)
    async with connected(wish.target) as client:
        mapper = Mapper(client)
        if wish.install:
            await _install(client, mapper, wish=wish, objects=product_objects(), manager=PRODUCT_MANAGER)
            await established(client, mapper)
        admission = await client.find(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/{ADMISSION}")
        objects = tuple(tenant_objects(tenant, sync_accounts=sync_accounts_of(admission)))
        await _install(client, mapper, wish=wish, objects=objects, manager=TENANT_MANAGER)
    _write_next_steps(tenant, rules)


def _require_expected(wish: Wish, root: Introduction) -> None:
    for name, expected, found in (
        ("commit", wish.expect_commit, root.commit.id),
        ("policy digest", wish.expect_digest, root.digest),
    ):
        if expected and expected != found:
            raise Refused(
                f"the {name} is {found}, expected was {expected}",
                code=ErrorCode.POLICY_INVALID,
                subject=wish.remote.branch,
                hint="find out who changed the branch before you trust it",
            )


def _confirm(wish: Wish, question: str) -> None:
    if wish.confirmed:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "there is nobody to ask",
            code=ErrorCode.USAGE,
            hint="in a script give --expect-commit, --expect-digest and --yes",
        )
    click.confirm(question, abort=True)


async def _install(
    client: KubeClient, mapper: Mapper, *, wish: Wish, objects: Iterable[JsonObject], manager: str
) -> None:
    """Show what would change, ask once where a value would be replaced, apply.  What is equal is not touched."""
    found = [await _planned(client, mapper, wanted=wanted, manager=manager) for wanted in objects]
    due = [item for item in found if item.is_due]
    for item in due:
        click.echo("\n".join(map(clean, item.lines())))
    if any(item.replaces for item in due):
        _confirm(wish, "Change what is there?")
    for item in due:
        await put(client, mapper, wanted=item.wanted, manager=manager)


async def _planned(client: KubeClient, mapper: Mapper, *, wanted: JsonObject, manager: str) -> Planned:
    try:
        return await planned(client, mapper, wanted=wanted, manager=manager)
    except KindNotServed:
        # Its definition is among the objects that come first.
        return Planned(wanted)


def _rules_for(root: Introduction, *, path: str) -> tuple[JsonObject, ...]:
    """The least rights for the documents of the root."""
    with ObjectStore.open(root.store) as store:
        found = load_set(store, tree=root.commit.tree, path=path, cache=DocumentCache())
    catalog = SchemaCatalog(crds=(document for document in found.documents if is_crd(document)))
    return required_rules((document.gvk, catalog.plural_of(document.gvk)) for document in found.documents)


def _write_next_steps(tenant: Tenant, rules: tuple[JsonObject, ...]) -> None:
    rights = applier_rights(tenant.namespace, tenant.service_account, rules=rules)
    sync = yaml.safe_dump(sync_document(tenant), sort_keys=False)
    click.echo(f"\nGitSource and Sync {tenant.namespace}/{tenant.source} are there.  What is left to you:")
    click.echo(f"\n1. {tenant.account} needs at least these rights; `kubectl apply -f FILE` gives them:\n")
    click.echo(_indented(yaml.safe_dump_all(rights, sort_keys=False)))
    if any(RBAC_GROUP in list_at(rule, "apiGroups") for rule in rules):
        click.echo(
            "   It applies roles: it must hold every right that they give, or have the verbs bind and escalate.\n"
        )
    click.echo(
        f"2. The Sync belongs into Git, below {tenant.path or 'the root'}, so that its consents come from there:\n"
    )
    click.echo(_indented(sync))
    click.echo(f"3. `gitops-ctl status -n {tenant.namespace} --watch` shows how it goes.")


def _indented(text: str) -> str:
    return "".join(f"   {line}\n" for line in text.splitlines())
