"""`gitops-ctl explain`: where an object comes from and what is true of it now, what an error code means, or why scheduling is as it is.

The cluster says which Sync owns the object, whether it is held or drifted, and which revision is accepted.  A checkout that
holds that revision says the file, the commit that gave the document its content, who signed it and by which rule.
"""

from dataclasses import dataclass
from pathlib import Path

import click

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, POLICY_PATH
from gitops_ctl.cli.connection import Target, cluster_options, connected, run_async
from gitops_ctl.cli.history import Checkout, RangeText, open_checkout
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC
from gitops_ctl.cli.output import Format, Result, Table, output_option, write_result
from gitops_ctl.cli.rolloutexplain import rollout
from gitops_ctl.cli.switches import OPERATION, operation_facts
from gitops_ctl.cli.topologyexplain import node, queue
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.errors import GitopsError, NotFound, Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.chain import VerdictCache
from gitops_ctl.trust.declared import declared
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.report import to_json
from gitops_ctl.trust.survey import survey

_OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Owner:
    """The Sync behind a mark: `<cluster>/<namespace>/<source>/<sync>`."""

    namespace: str
    source: str
    sync: str


class _Explanations(click.Group):
    """What is no name of a command is an object or a code: `explain GC1003` is short for `explain object GC1003`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self.commands[_OBJECT]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args[0] in self.commands else [_OBJECT, *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help"}
        return super().parse_args(
            ctx, [_OBJECT, *args] if args and args[0][:1] == "-" and not own & set(args) else args
        )


@click.group(cls=_Explanations)
def explain() -> None:
    """Say where an object comes from, what a code means, why scheduling is as it is, or why nothing happens in a rollout.

    `explain WHAT` is short for `explain object WHAT`.
    """


explain.add_command(node)
explain.add_command(queue)
explain.add_command(rollout)


@explain.command(_OBJECT)
@click.argument("what")
@click.option(
    "-C", "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Checkout to look in."
)
@click.option("--policy-path", default=POLICY_PATH, show_default=True)
@cluster_options
@output_option
def explain_object(  # noqa: PLR0913  each is an option
    *,
    what: str,
    directory: Path,
    policy_path: str,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    output: Format,
) -> None:
    """Explain WHAT: an object (`<Kind>.<group>/<namespace>/<name>`), or a code such as GC1003."""
    code = next((code for code in ErrorCode if what.upper() == code.label or what == code.slug), None)
    if code is not None:
        write_result(_code_result(code), form=output)
        return
    try:
        wanted = ObjectId.parse(what)
    except ValueError as error:
        raise Refused(
            str(error), code=ErrorCode.USAGE, hint="write ConfigMap/network/site-a, or a code such as GC1003"
        ) from error
    facts = run_async(_facts(Target(kubeconfig, context, namespace), wanted=wanted))
    if wanted.group_kind != OPERATION:
        facts |= _from_checkout(directory, wanted=wanted, facts=facts, policy_path=policy_path)
    rows = tuple((name, str(value)) for name, value in facts.items() if value not in ("", None) and name != "commit")
    commit = object_at(facts, "commit")
    rows += tuple((name, str(value)) for name, value in _commit_rows(commit))
    write_result(Result("Explanation", facts, Table(("FACT", "VALUE"), rows), (str(wanted),)), form=output)


def _code_result(code: ErrorCode) -> Result:
    data: JsonObject = {"code": code.label, "slug": code.slug, "reason": code.reason, "fix": code.fix}
    return Result("Code", data, Table(("FACT", "VALUE"), tuple((k, str(v)) for k, v in data.items())), (code.label,))


async def _facts(target: Target, *, wanted: ObjectId) -> dict[str, JsonValue]:
    """What the cluster knows about the object."""
    async with connected(target) as client:
        live = await _live(client, wanted)
        if wanted.group_kind == OPERATION:
            return {"object": str(wanted), "live": "present", **operation_facts(live)} if live else _gone(wanted)
        owner = owner_of(live, wanted)
        facts: dict[str, JsonValue] = {"object": str(wanted), "live": "present" if live else "absent"}
        if owner is None:
            return facts | {"owner": "no Sync of gitops-ctl" if live else "unknown: there is no live object"}
        sync = await client.find(SYNC.path(owner.namespace, owner.sync)) or EMPTY
        source = await client.find(GIT_SOURCE.path(owner.namespace, owner.source)) or EMPTY
    ready = condition_of(object_at(sync, "status"), "Ready") or EMPTY
    facts |= {
        "owner": f"Sync/{owner.namespace}/{owner.sync}",
        "source": f"GitSource/{owner.namespace}/{owner.source}",
        "url": text_at(source, "spec", "url"),
        "path": text_at(sync, "spec", "path") or "(root)",
        "targetNamespace": text_at(sync, "spec", "targetNamespace"),
        "accepted": text_at(source, "status", "accepted", "revision"),
        "applied": text_at(sync, "status", "lastAppliedRevision"),
        "ready": f"{text_at(ready, 'status')} {text_at(ready, 'reason')}".strip(),
        "lastApply": last_apply(live),
    }
    return facts | _state(sync, wanted)


def _gone(wanted: ObjectId) -> dict[str, JsonValue]:
    return {"object": str(wanted), "live": "absent", "owner": "unknown: there is no live object"}


async def _live(client: KubeClient, wanted: ObjectId) -> JsonObject:
    resource = await Mapper(client).group_kind(wanted.group_kind)
    return await client.find(resource.path(wanted.namespace, wanted.name)) or EMPTY


def owner_of(live: JsonObject, wanted: ObjectId) -> Owner | None:
    """The Sync that the mark names; a mark that names another object than the one it sits on is ignored."""
    mark = text_at(live, "metadata", "annotations", ANNOTATION_OWNER_ID)
    owner, _, identity = mark.partition(":")
    expected = f"{wanted.group}/{wanted.kind}:{wanted.namespace}/{wanted.name}"
    parts = owner.split("/")
    return Owner(*parts[1:]) if identity == expected and len(parts) == 4 else None


def last_apply(live: JsonObject) -> str:
    """When our manager wrote the object last, by the server's clock."""
    times = [
        text_at(entry, "time")
        for entry in objects_at(live, "metadata", "managedFields")
        if text_at(entry, "manager") == "gitops-ctl" and text_at(entry, "operation") == "Apply"
    ]
    return max(times, default="")


def _state(sync: JsonObject, wanted: ObjectId) -> dict[str, JsonValue]:
    """Held or drifted, with the place in Git where that is known."""
    for entry in objects_at(sync, "status", "held"):
        if text_at(entry, "object") == str(wanted):
            place = f"{text_at(entry, 'file')}:{entry.get('line', 0)}" if text_at(entry, "file") else ""
            return {"held": f"{text_at(entry, 'reason')}: {text_at(entry, 'message')}", "place": place}
    for entry in objects_at(sync, "status", "drift"):
        if text_at(entry, "object") == str(wanted):
            pointers = entry.get("pointers")
            fields = ", ".join(map(str, pointers)) if isinstance(pointers, (list, tuple)) else ""
            fields += f" and {int_at(entry, 'more')} more fields" if int_at(entry, "more") else ""
            return {"drift": f"{text_at(entry, 'change')} {fields} {text_at(entry, 'manager')}".strip()}
    return {"drift": "none reported", **_beyond_the_list(sync)}


def _beyond_the_list(sync: JsonObject) -> dict[str, JsonValue]:
    """A status lists a part of what is held; the object may be one of the others."""
    shown = len(objects_at(sync, "status", "held"))
    count = int_at(sync, "status", "counts", "held")
    return {"held": f"not known: the status lists {shown} of {count} held objects"} if count > shown else {}


def _from_checkout(directory: Path, *, wanted: ObjectId, facts: JsonObject, policy_path: str) -> dict[str, JsonValue]:
    """File, commit, signer and rule, where the folder is a checkout that holds the accepted revision."""
    try:
        with open_checkout(directory) as checkout:
            return _history(checkout, wanted=wanted, facts=facts, policy_path=policy_path)
    except GitopsError as error:
        return {"history": f"not looked up: {error.message}"}


def _history(checkout: Checkout, *, wanted: ObjectId, facts: JsonObject, policy_path: str) -> dict[str, JsonValue]:
    revision = text_at(facts, "accepted") or "HEAD"
    request = checkout.request(RangeText(revision), policy_path=policy_path, now=SystemClock().wall())
    store = checkout.store
    path = text_at(facts, "path").removeprefix("(root)")
    found = load_set(store, tree=store.links(request.tip).tree, path=path, cache=DocumentCache())
    document = declared(found, wanted, target=text_at(facts, "targetNamespace"))
    if document is None:
        raise NotFound(f"{wanted} is not declared in {request.tip}")
    cache = VerdictCache()
    answers = provenance_of(store, request=request, commit=request.tip, documents=[document], cache=cache)
    touched = answers.touched(document.id)
    place: dict[str, JsonValue] = {"file": f"{document.file}:{document.line}"}
    if touched is None:
        return place | {"history": f"unchanged since the root {request.root.commit}"}
    parent = store.links(touched).parents[0]
    one = checkout.request(RangeText(f"{parent}..{touched}"), policy_path=policy_path, now=SystemClock().wall())
    report = next((report for report in survey(store, request=one, cache=cache) if report.commit == touched), None)
    return place | ({"commit": to_json(report)} if report is not None else {"commit": {"commit": touched}})


def _commit_rows(commit: JsonObject) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name, value in commit.items():
        if isinstance(value, (list, tuple)):
            rows += [
                (name, ", ".join(f"{k}={v}" for k, v in item.items()) if isinstance(item, dict) else item)
                for item in value
            ]
        elif value not in ("", None):
            rows.append((name, value))
    return rows
