"""The API server without HTTP: one request in, one answer out.  Simulations call it directly."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.doubles.apiserver import crds, discovery, rbac
from tests.doubles.apiserver.answers import (
    ApiError,
    Tree,
    denied,
    initialising,
    method_not_allowed,
    not_found,
    not_implemented,
    path_not_found,
    resource_not_found,
)
from tests.doubles.apiserver.builtin_kinds import is_unknown
from tests.doubles.apiserver.calls import Call, presented
from tests.doubles.apiserver.cel import Rules
from tests.doubles.apiserver.deletion import Deletion
from tests.doubles.apiserver.listing import listed
from tests.doubles.apiserver.partial import metadata_list, metadata_of, wants_metadata
from tests.doubles.apiserver.request import Answer, Request, Target, target_of
from tests.doubles.apiserver.resources import Catalogue, Resource
from tests.doubles.apiserver.selectors import selected
from tests.doubles.apiserver.store import Change, Collection, Key, Store
from tests.doubles.apiserver.watch import Watch, open_watch
from tests.doubles.apiserver.writes import Writes

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, as an audit log keeps it."""

    user_agent: str
    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    dry_run: bool
    code: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A backup of the store."""

    objects: Mapping[Collection, Mapping[Key, Tree]]
    version: int


@dataclass
class ApiServer:
    """Rules and store of one server.

    Attributes:
        lag: how many requests for a new custom kind are answered with 404 after its definition is Established.
        initialising: how many are then answered with 429, while the storage of the kind starts.
        stale_groups: groups whose discovery fails.
        audit: every request, oldest first.
    """

    seed: int = 0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    lag: int = 1
    initialising: int = 0
    window: int = 5000
    stale_groups: frozenset[str] = frozenset()
    audit: list[AuditEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listeners: list[Callable[[Change], None]] = []
        self._start(Store(self.seed, self.window))

    def _start(self, store: Store) -> None:
        """Serve what is in `store`."""
        listeners = [item for item in self._listeners if item != self._changed]
        self.store = store
        self.catalogue = Catalogue()
        self.writes = Writes(store, Rules(), self.now)
        self.deletion = Deletion(store, self.catalogue, self.writes)
        self._hidden: dict[tuple[str, str], int] = {}
        store.listeners = self._listeners = [self._changed, *listeners]
        for name in NAMESPACES:
            if store.get(("", "namespaces"), ("", name)) is None:
                body = f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}'.encode()
                self._dispatch(Request("POST", "/api/v1/namespaces", body=body))
        for _, definition in store.all(crds.DEFINITIONS):
            self._serve(definition, hidden=0)

    def reset(self) -> None:
        """Lose everything that was stored."""
        self._start(Store(self.seed + 1, self.window))

    def snapshot(self) -> Snapshot:
        """What is stored now, for `restore`."""
        objects = {collection: dict(found) for collection, found in self.store.objects.items()}
        return Snapshot(objects, self.store.version)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an older state, as after a restore of etcd: versions that clients know lie in the future then."""
        store = Store(self.seed + 1, self.window)
        store.objects = {collection: dict(found) for collection, found in snapshot.objects.items()}
        store.version = store.floor = snapshot.version
        self._start(store)

    def collect(self) -> None:
        """Do what controllers beside a real server do: collect garbage, finish namespaces and definitions."""
        self.deletion.collect()

    # -- requests ------------------------------------------------------------------------------------------------

    def handle(self, request: Request) -> Answer:
        """Answer a request that is no watch."""
        target, verb = self._what(request)
        try:
            answer = self._dispatch(request)
        except ApiError as error:
            answer = Answer(error.code, error.message if error.plain else error.body(), error.headers)
        self.record(request, target, verb, answer.code)
        return answer

    def record(self, request: Request, target: Target | None, verb: str, code: int) -> None:
        """Add a line to the audit log."""
        what = target or Target("", "", request.path)
        self.audit.append(
            AuditEntry(
                user_agent=request.user_agent,
                user=request.user,
                verb=verb,
                group=what.group,
                resource=what.plural,
                subresource=what.subresource,
                namespace=what.namespace,
                name=what.name,
                dry_run=request.dry_run,
                code=code,
            )
        )

    @staticmethod
    def _what(request: Request) -> tuple[Target | None, str]:
        try:
            target = target_of(request.path)
        except ApiError:
            return None, request.method.lower()
        return target, target.verb(request)

    def is_watch(self, request: Request) -> bool:
        return self._what(request)[1] == "watch"

    def open_watch(self, request: Request) -> Watch:
        """Start a watch.

        Raises:
            ApiError: the stream never starts.
        """
        call = self._call(request)
        watch = open_watch(self.store, call.resource, call.target.namespace, request.query)
        watch.partial = wants_metadata(request.headers)
        self.record(request, call.target, "watch", 200)
        return watch

    def _dispatch(self, request: Request) -> Answer:
        fixed = self._fixed(request)
        if fixed is not None:
            return fixed
        call = self._call(request)
        return self._on_object(call) if call.target.name else self._on_collection(call)

    def _fixed(self, request: Request) -> Answer | None:
        path = request.path.rstrip("/")
        if path in ("/readyz", "/livez", "/healthz"):
            return Answer(200, "ok")
        if path.startswith("/openapi"):
            raise not_implemented("OpenAPI documents")
        if path == "/version":
            return Answer(200, dict(VERSION))
        aggregated = discovery.wants_aggregated(request.headers.get("accept", ""))
        if path in ("/api", "/apis") and aggregated:
            body = discovery.aggregated(self._announced(), core=path == "/api", stale=self.stale_groups)
            return Answer(200, body, {"Content-Type": discovery.AGGREGATED})
        if path == "/api":
            return Answer(200, discovery.core_versions("127.0.0.1"))
        if path == "/apis":
            return Answer(200, discovery.group_list(self._announced()))
        return self._group_version(path)

    def _announced(self) -> list[Resource]:
        """What discovery tells of."""
        return [item for item in self.catalogue.all() if not self._hidden.get(item.collection)]

    def _group_version(self, path: str) -> Answer | None:
        parts = path.strip("/").split("/")
        if parts[0] == "apis" and len(parts) == 2:
            versions = list(dict.fromkeys(item.version for item in self._announced() if item.group == parts[1]))
            if not versions:
                raise path_not_found()
            document = discovery.group_document(parts[1], versions)
            return Answer(200, {"kind": "APIGroup", "apiVersion": "v1", **document})
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1], parts[2]
        else:
            return None
        if group in self.stale_groups:
            text = "the server is currently unable to handle the request"
            raise ApiError(503, text, "ServiceUnavailable", {})
        resources = self._announced()
        if not any((item.group, item.version) == (group, version) for item in resources):
            raise resource_not_found() if self.catalogue.is_builtin(group) else path_not_found()
        return Answer(200, discovery.resource_list(resources, group=group, version=version))

    def _call(self, request: Request) -> Call:
        """The resource that a path names, after authorisation.

        Raises:
            ApiError: 403, 404 in one of its forms, 501.
        """
        target = target_of(request.path)
        if "as=Table" in request.headers.get("accept", ""):
            raise not_implemented("tables")
        verb = target.verb(request)
        if request.user and not rbac.allowed(self.store, subject=rbac.subject_of(request), target=target, verb=verb):
            plural = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
            raise denied(
                user=request.user,
                verb=verb,
                group=target.group,
                resource=plural,
                namespace=target.namespace,
                name=target.name,
            )
        resource = self._resource(target)
        if target.subresource not in ("", "status"):
            if resource.custom:
                raise not_found(resource.named(target.name))
            raise not_implemented(f"subresource {target.subresource}")
        return Call(request, target, resource)

    def _resource(self, target: Target) -> Resource:
        found = self.catalogue.find(target.group, target.version, target.plural)
        if found is None and is_unknown(target.group, target.plural):
            raise not_implemented(f"{target.plural} of {target.group or 'the core group'}")
        if found is None:
            raise resource_not_found() if self.catalogue.is_builtin(target.group) else path_not_found()
        if self._hidden.get(found.collection):
            self._hidden[found.collection] -= 1
            raise path_not_found() if self._hidden[found.collection] >= self.initialising else initialising()
        if target.subresource == "status" and not found.has_status:
            raise resource_not_found()
        if not found.namespaced and target.namespace:
            raise resource_not_found()
        return found

    def _on_object(self, call: Call) -> Answer:
        method = call.request.method
        if method == "GET":
            tree = self.store.get(call.resource.collection, (call.target.namespace, call.target.name))
            if tree is None:
                raise not_found(call.subject)
            shown = presented(call.resource, tree)
            return Answer(200, metadata_of(shown) if wants_metadata(call.request.headers) else shown)
        if method == "DELETE" and not call.target.subresource:
            return self._answer(call, *self.deletion.delete(call))
        if method == "PUT":
            return self._answer(call, *self.writes.replace(call))
        if method == "PATCH":
            return self._answer(call, *self.writes.patch(call))
        raise method_not_allowed()

    def _on_collection(self, call: Call) -> Answer:
        method, namespace = call.request.method, call.target.namespace
        if method == "GET":
            tree = listed(self.store, call.resource, namespace, call.request.query)
            return Answer(200, metadata_list(tree) if wants_metadata(call.request.headers) else tree)
        if method == "POST" and (namespace or not call.resource.namespaced):
            return self._answer(call, *self.writes.create(call))
        if method == "DELETE" and (namespace or not call.resource.namespaced):
            matches = selected(call.request.query, call.resource.collection)
            chosen = [item for item in self.store.all(call.resource.collection, namespace) if matches(item[1])]
            return self._answer(call, *self.deletion.delete_collection(call, chosen))
        raise path_not_found() if call.resource.custom and method == "POST" else method_not_allowed()

    @staticmethod
    def _answer(call: Call, code: int, tree: Tree) -> Answer:
        if tree.get("kind") == "Status" and call.resource.kind != "Status":
            return Answer(code, tree)
        return Answer(code, presented(call.resource, tree))

    # -- custom kinds --------------------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        """Keep the catalogue in step with the definitions."""
        if change.collection != crds.DEFINITIONS:
            return
        if change.new is not None and "deletionTimestamp" in change.new["metadata"]:
            return
        if change.new is None:
            self.catalogue.replace(crds.collection_of(change.last), ())
            return
        status = change.new.get("status", {})
        accepted = crds.accepted_status(change.new, now=self.writes.time())
        if status.get("storedVersions") != accepted["storedVersions"] or not status.get("conditions"):
            self.writes.write_status(change.collection, change.key, change.new, accepted)
            return
        first = change.old is None or not change.old.get("status", {}).get("conditions")
        self._serve(change.new, hidden=self.lag + self.initialising if first else 0)

    def _serve(self, definition: Tree, *, hidden: int) -> None:
        collection = crds.collection_of(definition)
        self.catalogue.replace(collection, crds.resources_of(definition))
        if hidden:
            self._hidden[collection] = hidden
