"""Creation, replacement, patches and server-side apply: one pipeline of decode, own, isolate, validate, store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from tests.doubles.apiserver import builtin, crds, custom, managed, metadata, structural, structure
from tests.doubles.apiserver.answers import (
    ApiError,
    Cause,
    Named,
    Tree,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    invalid_value,
    not_found,
    not_implemented,
    unsupported_media_type,
)
from tests.doubles.apiserver.calls import (
    Call,
    cannot_be_handled,
    check_options,
    has_generation,
    hidden_from,
    is_conditional,
    isolated,
    kind_text,
    missing_kind,
    presented,
    resets_entries,
    spec_changed,
    uid_precondition,
    unowned,
    without_times,
)
from tests.doubles.apiserver.cel import Rules
from tests.doubles.apiserver.patches import json_patched, merge_patched
from tests.doubles.apiserver.request import APPLY, JSON_PATCH, MERGE, body_of
from tests.doubles.apiserver.resources import Resource, builtin_resources
from tests.doubles.apiserver.shapes import METADATA, MissingKey, Shape
from tests.doubles.apiserver.store import Collection, Key, Store
from tests.doubles.apiserver.structure import copied

NAMESPACES = ("", "namespaces")
MAX_STORED_BYTES = 1_572_864
BEFORE = "before-first-apply"


@dataclass
class Writes:
    """Every write of an object goes through here."""

    store: Store
    rules: Rules
    now: Callable[[], datetime]

    def time(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    # -- the four verbs ------------------------------------------------------------------------------------------

    def create(self, call: Call) -> tuple[int, Tree]:
        """POST."""
        check_options(call.request, apply=False)
        tree = self._decoded(call, body_of(call.request))
        metadata.match_path(tree, call.target)
        return 201, self._create(call, tree, None)

    def replace(self, call: Call) -> tuple[int, Tree]:
        """PUT."""
        check_options(call.request, apply=False)
        tree = self._decoded(call, body_of(call.request))
        metadata.match_path(tree, call.target)
        live = self._live(call)
        if live is None:
            if call.resource.custom or call.resource.kind not in builtin.CREATE_ON_UPDATE:
                raise not_found(call.subject)
            tree["metadata"].pop("resourceVersion", "")
            return 201, self._create(call, tree, None)
        if not tree["metadata"].get("resourceVersion") and is_conditional(call.resource):
            cause = invalid_value("metadata.resourceVersion", "0", "must be specified for an update")
            raise invalid(call.subject, [cause])
        uid = tree["metadata"].get("uid", live["metadata"]["uid"])
        if uid != live["metadata"]["uid"]:
            raise uid_precondition(call, uid, live["metadata"]["uid"])
        return 200, self._update(call, live, tree, None)

    def patch(self, call: Call) -> tuple[int, Tree]:
        """PATCH in its three forms."""
        media_type = call.request.media_type
        if media_type in APPLY:
            return self.apply(call)
        if media_type == "application/strategic-merge-patch+json":
            raise not_implemented("strategic merge patch")
        if media_type not in (MERGE, JSON_PATCH):
            raise unsupported_media_type()
        check_options(call.request, apply=False)
        body = body_of(call.request)
        live = self._live(call)
        if live is None:
            raise not_found(call.subject)
        if media_type == MERGE:
            if not isinstance(body, Mapping):
                raise bad_request("Invalid JSON Patch")
            patched = merge_patched(live, body)
        else:
            patched = json_patched(live, body)
        tree = self._decoded(call, patched)
        metadata.match_path(tree, call.target)
        return 200, self._update(call, live, tree, None)

    def apply(self, call: Call) -> tuple[int, Tree]:
        """Server-side apply."""
        check_options(call.request, apply=True)
        config = body_of(call.request)
        resource = call.resource
        if not isinstance(config, dict):
            raise bad_request(f"error decoding YAML: expected an object, got {structural.json_type(config)}")
        self._check_type(call, config)
        config.setdefault("metadata", {}).setdefault("name", call.target.name)
        metadata.match_path(config, call.target)
        if "managedFields" in config["metadata"]:
            raise bad_request("metadata.managedFields must be nil")
        live = self._live(call)
        if live is None and call.status:
            raise not_found(call.subject)
        try:
            structure.check(resource.shape, config)
        except structure.NotTyped as error:
            where = f"{config['metadata'].get('namespace', '')}/{call.target.name}; {resource.group}/{resource.version}"
            text = f"failed to create typed patch object ({where}, Kind={resource.kind}): {error}"
            raise internal(text) from error
        merged, entries = self._owned_by_apply(call, live, config)
        if live is None and config["metadata"].get("uid"):
            uid = config["metadata"]["uid"]
            text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(call.subject, text)
        if live is None:
            merged["metadata"].pop("resourceVersion", "")
            return 201, self._create(call, self._decoded(call, merged), entries)
        return 200, self._update(call, live, self._decoded(call, merged), entries)

    def _owned_by_apply(self, call: Call, live: Tree | None, config: Tree) -> tuple[Tree, managed.Managed]:
        writer = self._writer(call, call.request.query["fieldManager"])
        base = copied(live) if live is not None else {}
        entries = managed.read(base.get("metadata", {}).pop("managedFields", ()))
        if live is not None and not entries:
            before = self._writer(call, BEFORE)
            entries = managed.update(call.resource.shape, live={}, new=base, managed={}, writer=before)
        return managed.apply(
            call.resource.shape,
            live=base,
            config=copied(config),
            managed=entries,
            writer=writer,
            force=call.request.flag("force"),
        )

    # -- the pipeline --------------------------------------------------------------------------------------------

    def _live(self, call: Call) -> Tree | None:
        """The stored object in the version of the request."""
        tree = self.store.get(call.resource.collection, (call.target.namespace, call.target.name))
        return None if tree is None else presented(call.resource, tree)

    def _writer(self, call: Call, name: str) -> managed.Writer:
        resource = call.resource
        return managed.Writer(
            name=name,
            version=resource.api_version,
            subresource=call.target.subresource,
            time=self.time(),
            served=resource.served,
            hidden=hidden_from(call),
            only="f:status" if call.status and resource.custom else "",
        )

    def _check_type(self, call: Call, tree: Mapping[str, Any]) -> None:
        resource = call.resource
        version, kind = tree.get("apiVersion", ""), tree.get("kind", "")
        applied = call.request.method == "PATCH"
        if (applied or resource.custom) and not kind:
            raise bad_request(missing_kind(resource, call.request))
        if version and version != resource.api_version:
            if applied:
                raise bad_request(f"invalid object type: {kind_text(version, kind)}")
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        if kind and kind != resource.kind:
            if applied:
                raise bad_request(f"invalid object type: {kind_text(version, kind)}")
            name = tree.get("metadata", {}).get("name", "")
            subject = Named(resource.group, kind, name)
            raise invalid(subject, [invalid_value("kind", f'"{kind}"', f"must be {resource.kind}")])

    def _decoded(self, call: Call, tree: Any) -> Tree:
        """The body as the server understands it: pruned, defaulted, typed."""
        resource = call.resource
        if not isinstance(tree, Mapping):
            raise bad_request(f"json: cannot unmarshal {structural.json_type(tree)} into an object")
        self._check_type(call, tree)
        try:
            result, unknown = self._normal(resource, tree)
        except ApiError as error:
            raise bad_request(cannot_be_handled(resource, error.message)) from error
        if unknown and call.request.strict:
            words = ", ".join(f'unknown field "{path}"' for path in unknown)
            raise bad_request(cannot_be_handled(resource, f"strict decoding error: {words}"))
        result |= {"apiVersion": resource.api_version, "kind": resource.kind}
        result.setdefault("metadata", {})
        if call.target.name and call.request.method != "POST":
            result["metadata"].setdefault("name", call.target.name)
        if resource.schema is not None:
            applied = call.request.media_type in APPLY
            return {**structural.defaulted(resource.schema, result, nulls=applied)}
        return builtin.defaulted(resource, result)

    @staticmethod
    def _normal(resource: Resource, tree: Mapping[str, Any]) -> tuple[Tree, list[str]]:
        if resource.schema is None:
            result, unknown = builtin.normal(resource.shape, tree)
            return result, unknown
        result, unknown = structural.pruned(resource.schema, tree, top=True)
        shape = Shape({"$ref": METADATA}, resource.shape.types)
        result["metadata"], lost = builtin.normal(shape, tree.get("metadata") or {}, "metadata")
        return result, [*lost, *unknown]

    def _create(self, call: Call, tree: Tree, entries: managed.Managed | None) -> Tree:
        resource, meta = call.resource, tree["metadata"]
        namespace = call.target.namespace
        if resource.namespaced:
            meta["namespace"] = namespace
        else:
            meta.pop("namespace", None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "".join(self.store.random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        name = meta.get("name", "")
        self._check_namespace(resource, namespace, name)
        if meta.pop("resourceVersion", ""):
            raise internal("resourceVersion should not be set on objects to be created")
        if entries is None:
            entries = self._owned_by_update(call, {}, tree, {})
        for field in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(field, None)
        meta |= {"uid": self.store.new_uid(), "creationTimestamp": self.time()}
        if has_generation(resource):
            meta["generation"] = 1
        self._prepare_creation(resource, tree)
        self._put_entries(tree, entries)
        self._validate(resource, tree, None)
        if self.store.get(resource.collection, (namespace, name)) is not None:
            raise already_exists(resource.named(name))
        if call.request.dry_run:
            return tree
        return self.store.put(resource.collection, (namespace, name), tree)

    def _prepare_creation(self, resource: Resource, tree: Tree) -> None:
        """What the storage of a kind adds before the first write."""
        if resource.has_status:
            tree.pop("status", None)
        if resource.custom:
            return
        if resource.has_status and resource.kind in ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet"):
            tree["status"] = {}
        if resource.kind == "Namespace":
            tree["spec"] = {"finalizers": ["kubernetes"]}
            tree["status"] = {"phase": "Active"}
        elif resource.kind == "Service":
            self._allocate(tree["spec"])
            tree["status"] = {"loadBalancer": {}}
        elif resource.kind == "Ingress":
            tree["status"] = {"loadBalancer": {}}
        elif resource.kind == "CustomResourceDefinition":
            tree["status"] = crds.initial_status(tree) if tree["spec"].get("versions") else {}

    def _allocate(self, spec: Tree) -> None:
        if spec["type"] == "ExternalName":
            return
        address = spec.setdefault("clusterIP", f"10.0.0.{self.store.random.randint(2, 250)}")
        spec.setdefault("clusterIPs", [address])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        found = self.store.get(NAMESPACES, ("", namespace))
        if found is None:
            raise not_found(Named("", "namespaces", namespace))
        if "deletionTimestamp" in found["metadata"]:
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource.named(name), text)
            cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            error.details = {**(error.details or {}), "causes": [cause.tree()]}
            raise error

    def _owned_by_update(self, call: Call, live: Tree, new: Tree, entries: managed.Managed) -> managed.Managed:
        shape = call.resource.shape
        if not call.resource.custom:
            live, new = builtin.materialised(shape, live), builtin.materialised(shape, new)
        writer = self._writer(call, call.request.manager)
        try:
            return managed.update(shape, live=unowned(live), new=unowned(new), managed=entries, writer=writer)
        except MissingKey:
            return {}  # a server drops the entries then; the validation refuses the object

    @staticmethod
    def _put_entries(tree: Tree, entries: managed.Managed) -> None:
        tree["metadata"].pop("managedFields", None)
        if entries:
            tree["metadata"]["managedFields"] = managed.write(entries)

    def _update(self, call: Call, live: Tree, new: Tree, entries: managed.Managed | None) -> Tree:
        resource = call.resource
        metadata.check_version(new, live, subject=call.subject)
        if entries is None:
            sent = live["metadata"].get("managedFields", [])
            if not call.status and (new["metadata"].get("managedFields") or resets_entries(new)):
                sent = new["metadata"].get("managedFields", [])
            known = managed.read([entry for entry in sent if entry])
            # A server does not begin to track an object that it does not track.
            tracked = bool(live["metadata"].get("managedFields"))
            entries = self._owned_by_update(call, live, new, known) if tracked or known else {}
        metadata.carry_over(new, live, subject=resource.as_kind(call.target.name))
        new = isolated(call, new, live)
        if resource.kind == "Service" and not resource.custom:
            builtin.follow_address(new["spec"], live["spec"])
        self._put_entries(new, entries)
        if has_generation(resource) and not call.status and spec_changed(resource, new, live):
            new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        self._validate(resource, new, live)
        return self.commit(call, live, new)

    def commit(self, call: Call, live: Tree, new: Tree) -> Tree:
        """Store unless nothing changed; an object that is being deleted goes with its last finalizer."""
        key = (call.target.namespace, call.target.name)
        new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        ends = "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers")
        ends = ends and not new.get("spec", {}).get("finalizers") if call.resource.kind == "Namespace" else ends
        if without_times(new) == without_times(live) and not ends:
            return live
        if call.request.dry_run:
            return new
        if ends:
            self.store.remove(call.resource.collection, key, new)
            return new
        return self.store.put(call.resource.collection, key, new)

    def write_status(self, collection: Collection, key: Key, live: Tree, status: Tree) -> Tree:
        """A status that the server itself writes."""
        new = {**copied(live), "status": status}
        resource = next(item for item in builtin_resources() if item.collection == collection)
        writer = managed.Writer(
            name="kube-apiserver",
            version=resource.api_version,
            subresource="status",
            time=self.time(),
            served=resource.served,
            only="f:status",
        )
        before, after = builtin.materialised(resource.shape, live), builtin.materialised(resource.shape, new)
        entries = managed.read(live["metadata"].get("managedFields", ()))
        entries = managed.update(
            resource.shape, live=unowned(before), new=unowned(after), managed=entries, writer=writer
        )
        self._put_entries(new, entries)
        return self.store.put(collection, key, new)

    def _validate(self, resource: Resource, new: Tree, old: Tree | None) -> None:
        causes = list(metadata.problems(resource, new["metadata"]))
        if resource.schema is not None:
            causes += custom.problems(resource.schema, new, old, rules=self.rules)
        else:
            causes += builtin.problems(resource, new, old)
        if causes:
            raise invalid(resource.as_kind(new["metadata"].get("name", "")), causes)
        if resource.collection == crds.DEFINITIONS:
            crds.check(new, resource=resource, rules=self.rules)
        if len(msgspec.json.encode(new)) > MAX_STORED_BYTES:
            raise internal("etcdserver: request is too large")
