"""The stories that are simulated, ten lines each, and the repository that they share: real commits with real signatures, made once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gitops_ctl.api.names import API_VERSION, POLICY_PATH
from gitops_ctl.core.canonical import digest_bytes
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.request import Request
from tests.support.git_repos import RepoBuilder
from tests.support.product import ADMIN, AUTHOR, PLATFORM, make_keys, policy_text
from tests.support.simulation import NAMESPACE, SOURCE, World
from tests.support.simulation_git import Book
from tests.support.simulation_loop import BEGIN
from tests.support.sync_cluster import CRDS, RIGHTS

CORE = f"/api/v1/namespaces/{NAMESPACE}"
SYNC_PATH = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/syncs"


def config_map(name: str, value: str = "1") -> str:
    return f'---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: lab}}\ndata: {{value: "{value}"}}\n'


STAGES = """---
apiVersion: v1
kind: Namespace
metadata: {name: edge}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: edge}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: edge}
"""

DEFINITION = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: links.example.net}
spec:
  group: example.net
  names: {kind: Link, plural: links, singular: link, listKind: LinkList}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {speed: {type: integer}}}}}}
"""

LINK = """---
apiVersion: example.net/v1
kind: Link
metadata: {name: uplink, namespace: lab}
spec: {speed: 100}
"""


def make_book(folder: Path) -> Book:
    """The repository: one root, and branches from it that the stories walk."""
    keys = make_keys(folder / "keys")
    repo = RepoBuilder(folder / "repo")
    book = Book(repo)

    def commit(name: str, files: Mapping[str, str] | None = None, *, by: str = PLATFORM, **more: Any) -> None:
        signer = keys[by] if more.pop("signed", True) else None
        book.add(name, repo.commit(files, author=f"{by} <{by}@example.net>", signer=signer, message=name, **more))

    def at(name: str, branch: str) -> None:
        repo.branch(branch, at=book.commits[name])

    files = {"site/a.yaml": config_map("a"), "site/b.yaml": config_map("b"), "extra/c.yaml": config_map("c")}
    policy = policy_text(keys)
    commit("root", {POLICY_PATH: policy, **files}, by=ADMIN)
    at("root", "staged")
    commit("staged", {"site/stages.yaml": STAGES})
    at("root", "updated")
    commit("updated", {"site/a.yaml": config_map("a", "2"), "site/d.yaml": config_map("d")}, delete=["site/b.yaml"])
    commit("latest", {"site/a.yaml": config_map("a", "3")})
    at("root", "unserved")
    commit("unserved", {"site/link.yaml": LINK})
    at("root", "bad")
    commit("bad", {"site/a.yaml": config_map("a", "bad")}, by=AUTHOR)
    at("root", "good")
    commit("good", {"site/a.yaml": config_map("a", "good")})
    at("root", "moved")
    commit("moved", {"extra/b.yaml": config_map("b")}, delete=["site/b.yaml"])
    at("root", "defined")
    commit("defined", {"site/crd.yaml": DEFINITION, "site/link.yaml": LINK})
    at("root", "authored")
    commit("authored", {"site/config/x.yaml": config_map("x")}, by=AUTHOR)
    entry = {"fingerprint": keys[AUTHOR].fingerprint, "from": "2026-01-01T00:00:00Z"}
    commit("revoked", {POLICY_PATH: policy_text(keys, revoked=[entry])}, by=ADMIN)
    return book


def empty_cluster(book: Book, syncs: Mapping[str, Mapping[str, Any]]) -> Snapshot:
    """A store with our definitions, a tenant, its GitSource and its Syncs, before anything has run."""
    api = ApiServer(seed=3, now=lambda: BEGIN)

    def create(path: str, body: Any) -> None:
        answer = api.handle(Request("POST", path, {}, {"content-type": "application/json"}, json.dumps(body).encode()))
        assert answer.code < 300, answer.body

    for path in sorted(CRDS.glob("*.yaml")):
        create(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader),
        )
    api.restore(api.snapshot())  # the paths of the definitions are served from the start
    create("/api/v1/namespaces", _object("v1", "Namespace", NAMESPACE, namespace=""))
    create(f"{CORE}/serviceaccounts", _object("v1", "ServiceAccount", "applier"))
    subject = {"kind": "ServiceAccount", "name": "applier", "namespace": NAMESPACE}
    binding = {**RIGHTS, "metadata": {"name": "applier"}, "subjects": [subject]}
    create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    create(f"{CORE}/configmaps", {**_object("v1", "ConfigMap", "bystander"), "data": {"value": "own"}})
    root = book.commits["root"]
    digest = digest_bytes(book.repo.git("show", f"{root}:{POLICY_PATH}").encode() + b"\n")
    spec = {
        "url": book.repo.url,
        "ref": {"branch": "main"},
        "interval": "10m",
        "trust": {"root": {"commit": root, "policyDigest": digest}},
    }
    create(SYNC_PATH.replace("syncs", "gitsources"), {**_object(API_VERSION, "GitSource", SOURCE), "spec": spec})
    for name, more in syncs.items():
        create(SYNC_PATH, {**_object(API_VERSION, "Sync", name), "spec": {**sync_spec(name), **more}})
    return api.snapshot()


def sync_spec(name: str) -> dict[str, Any]:
    return {
        "sourceRef": {"name": SOURCE},
        "serviceAccountName": "applier",
        "path": name,
        "targetNamespace": NAMESPACE,
        "prune": {"enabled": True, "maxPercent": 100, "allowEmpty": True},
    }


def _object(version: str, kind: str, name: str, *, namespace: str = NAMESPACE) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@dataclass(frozen=True)
class Step:
    """What happens outside, and what the world must look like once the product is at rest again."""

    act: Callable[[World], None]
    expect: Callable[[World], None]


@dataclass(frozen=True)
class Story:
    """A base at rest (`begin` is the commit that was applied; nothing ran before when it is empty) and some steps."""

    name: str
    steps: tuple[Step, ...]
    begin: str = "root"
    syncs: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"site": {}})
    accepts: tuple[str, ...] = ("root",)
    leased: bool = False


# -- what the steps look at ----------------------------------------------------------------------------------------------


def values(world: World) -> dict[str, str]:
    """Value of each ConfigMap of the tenant."""
    found = world.api.store.all(("", "configmaps"), NAMESPACE)
    return {key[1]: tree.get("data", {}).get("value", "") for key, tree in found}


def ready(world: World, name: str = "site") -> tuple[str, str]:
    """Status and reason of Ready of a Sync."""
    return _condition(world, "syncs", name)


def source_ready(world: World) -> tuple[str, str]:
    return _condition(world, "gitsources", SOURCE)


def _condition(world: World, plural: str, name: str) -> tuple[str, str]:
    tree = world.api.store.get(("gitops-ctl.dev", plural), (NAMESPACE, name)) or {}
    found = tree.get("status", {}).get("conditions", ())
    return next(((item["status"], item["reason"]) for item in found if item["type"] == "Ready"), ("", ""))


def applied(world: World, commit: str, name: str = "site") -> bool:
    tree = world.api.store.get(("gitops-ctl.dev", "syncs"), (NAMESPACE, name)) or {}
    return bool(tree.get("status", {}).get("lastAppliedRevision") == world.book.commits[commit])


def holds(
    wanted: Mapping[str, str], *, commit: str = "", syncs: tuple[str, ...] = ("site",)
) -> Callable[[World], None]:
    """The ConfigMaps are these and the bystander; with a commit: each Sync is ready with it."""

    def check(world: World) -> None:
        assert values(world) == {**wanted, "bystander": "own"}
        for name in syncs if commit else ():
            assert ready(world, name) == ("True", "Succeeded"), name
            assert applied(world, commit, name), name

    return check


def pushes(name: str) -> Callable[[World], None]:
    return lambda world: world.push(name)


def nothing(_world: World) -> None:
    """The process starts; nothing else happens."""


# -- the stories ---------------------------------------------------------------------------------------------------------


def first() -> Story:
    """Nothing ran before: a source is accepted, and objects of several stages are applied."""

    def expect(world: World) -> None:
        holds({"a": "1", "b": "1"}, commit="staged")(world)
        assert world.api.store.get(("", "serviceaccounts"), ("edge", "reader")) is not None

    return Story("first", (Step(pushes("staged"), expect),), begin="", accepts=("root", "staged"))


def update() -> Story:
    """One commit changes an object, adds one and removes one."""
    end = holds({"a": "2", "d": "1"}, commit="updated")
    return Story("update", (Step(pushes("updated"), end),), accepts=("root", "updated"))


def drift() -> Story:
    """Somebody changes a field of ours; it is put back."""

    def edit(world: World) -> None:
        world.merge(f"{CORE}/configmaps/a", {"data": {"value": "drift"}})

    return Story("drift", (Step(edit, holds({"a": "1", "b": "1"}, commit="root")),))


def loss() -> Story:
    """Somebody deletes an object of ours; it is made again."""

    def remove(world: World) -> None:
        world.ask("DELETE", f"{CORE}/configmaps/a")

    return Story("loss", (Step(remove, holds({"a": "1", "b": "1"}, commit="root")),))


def refusal() -> Story:
    """A commit that its signer was not entitled to is refused; the branch is reset, and a good one comes."""

    def refused(world: World) -> None:
        holds({"a": "1", "b": "1"}, commit="root")(world)
        assert source_ready(world) == ("False", "PathNotAuthorised")

    def back(world: World) -> None:
        holds({"a": "good", "b": "1"}, commit="good")(world)
        assert source_ready(world)[0] == "True"

    return Story("refusal", (Step(pushes("bad"), refused), Step(pushes("good"), back)), accepts=("root", "good"))


def move() -> Story:
    """A document moves from one Sync to another in one commit: the object stays the same object."""
    end = holds({"a": "1", "b": "1", "c": "1"}, commit="moved", syncs=("site", "extra"))
    return Story("move", (Step(pushes("moved"), end),), syncs={"site": {}, "extra": {}}, accepts=("root", "moved"))


def ending(policy: str) -> Story:
    """A Sync is deleted: with Delete its objects go, with Orphan they stay without our mark."""
    left = {} if policy == "Delete" else {"a": "1", "b": "1"}

    def expect(world: World) -> None:
        holds(left)(world)
        assert not world.api.store.all(("gitops-ctl.dev", "syncs"))
        assert not world.api.store.all(("gitops-ctl.dev", "inventories"))

    step = Step(lambda world: world.ask("DELETE", f"{SYNC_PATH}/site") and None, expect)
    return Story(f"end with {policy}", (step,), syncs={"site": {"deletionPolicy": policy}})


def definition() -> Story:
    """A definition and its custom resource come in one commit."""

    def expect(world: World) -> None:
        holds({"a": "1", "b": "1"}, commit="defined")(world)
        assert world.api.store.get(("example.net", "links"), (NAMESPACE, "uplink")) is not None

    return Story("definition", (Step(pushes("defined"), expect),), accepts=("root", "defined"))


def unserved() -> Story:
    """An object whose kind nobody serves: it is held and tried again, and the waiting writes nothing."""

    def held(world: World) -> None:
        holds({"a": "1", "b": "1"})(world)
        assert ready(world) == ("False", "ObjectsHeld")

    return Story("unserved", (Step(pushes("unserved"), held),), accepts=("root", "unserved"))


def revocation() -> Story:
    """A key is revoked from the beginning: the accepted commit is refused, nothing is applied any more, drift included.

    The revoking commit is recorded, so that a force push cannot take the revocation back; it has no effect either.
    """
    kept = {"a": "1", "b": "1", "x": "1"}

    def refused(world: World) -> None:
        holds(kept)(world)
        assert source_ready(world) == ("False", "RevokedSigner")

    def edit(world: World) -> None:
        world.merge(f"{CORE}/configmaps/a", {"data": {"value": "drift"}})

    return Story(
        "revocation",
        (Step(pushes("revoked"), refused), Step(edit, holds({**kept, "a": "drift"}))),
        begin="authored",
        accepts=("root", "authored", "revoked"),
    )


def handover() -> Story:
    """Two processes and one Lease; a commit comes, and soon another one."""

    def push(world: World) -> None:
        world.push("updated")
        world.push_later("latest", seconds=20.0)

    end = holds({"a": "3", "d": "1"}, commit="latest")
    return Story("hand-over", (Step(push, end),), accepts=("root", "updated", "latest"), leased=True)


STORIES = (
    first(),
    update(),
    drift(),
    loss(),
    refusal(),
    move(),
    ending("Delete"),
    ending("Orphan"),
    definition(),
    unserved(),
    revocation(),
)
