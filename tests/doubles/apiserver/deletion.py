"""Deletion: preconditions, finalizers, propagation, and the collectors that a real cluster runs beside the server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.apiserver import builtin, crds
from tests.doubles.apiserver.answers import Named, Tree, conflict, forbidden, not_found
from tests.doubles.apiserver.calls import Call, has_generation
from tests.doubles.apiserver.request import body_of
from tests.doubles.apiserver.resources import Catalogue, Resource
from tests.doubles.apiserver.store import Collection, Key, Store
from tests.doubles.apiserver.structure import copied
from tests.doubles.apiserver.writes import NAMESPACES, Writes

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PROTECTED = frozenset({"default", "kube-system", "kube-public"})


@dataclass
class Deletion:
    """DELETE, and what follows from it."""

    store: Store
    catalogue: Catalogue
    writes: Writes
    _collected: int = -1
    """The version at which nothing was left to collect."""

    def delete(self, call: Call) -> tuple[int, Tree]:
        """DELETE of one object."""
        options = self._options(call)
        key = (call.target.namespace, call.target.name)
        live = self.store.get(call.resource.collection, key)
        if live is None:
            raise not_found(call.subject)
        if call.resource.collection == NAMESPACES and call.target.name in PROTECTED:
            raise forbidden(call.subject, "this namespace may not be deleted")
        _check_preconditions(call, live, options.get("preconditions") or {})
        new = self._marked(call.resource, live, options.get("propagationPolicy", ""))
        if call.request.dry_run or options.get("dryRun"):
            return 200, live if new is not None else deleted_status(call, live)
        if new is None:
            final = self.store.remove(call.resource.collection, key)
            whole = call.resource.kind in builtin.RETURNED_WHEN_DELETED and not call.resource.custom
            return 200, final if whole else deleted_status(call, live)
        if new != live:
            new = self.store.put(call.resource.collection, key, new)
        if call.resource.collection == crds.DEFINITIONS:
            self.finish_definition(call.target.name)
        return 200, new

    def delete_collection(self, call: Call, chosen: list[tuple[Key, Tree]]) -> tuple[int, Tree]:
        """DELETE of all that a list would show."""
        options = self._options(call)
        for key, live in chosen:
            self._delete_quietly(call.resource, key, live, options.get("propagationPolicy", ""))
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    @staticmethod
    def _options(call: Call) -> Tree:
        body = body_of(call.request) if call.request.body else {}
        options: Tree = dict(body) if isinstance(body, Mapping) else {}
        if "propagationPolicy" in call.request.query:
            options["propagationPolicy"] = call.request.query["propagationPolicy"]
        return options

    def _marked(self, resource: Resource, live: Tree, propagation: str) -> Tree | None:
        """The object with its deletion timestamp; None when it can go at once."""
        finalizers = list(live["metadata"].get("finalizers", ()))
        if "deletionTimestamp" in live["metadata"]:
            return live
        if propagation == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        elif propagation == "Orphan" and ORPHAN not in finalizers:
            finalizers.append(ORPHAN)
        if resource.collection == crds.DEFINITIONS and crds.CLEANUP not in finalizers:
            finalizers.append(crds.CLEANUP)
        if not finalizers and not live.get("spec", {}).get("finalizers"):
            return None
        new = copied(live)
        new["metadata"] |= {"deletionTimestamp": self.writes.time(), "deletionGracePeriodSeconds": 0}
        if finalizers:
            new["metadata"]["finalizers"] = finalizers
        if resource.collection == crds.DEFINITIONS:
            new["metadata"].pop("deletionGracePeriodSeconds")
            new["status"] = crds.terminating_status(new, now=self.writes.time())
        elif has_generation(resource):
            new["metadata"]["generation"] = new["metadata"].get("generation", 0) + 1
        if resource.collection == NAMESPACES:
            new["metadata"].pop("deletionGracePeriodSeconds")
            new["status"] = {"phase": "Terminating"}
        return new

    def _delete_quietly(self, resource: Resource, key: Key, live: Tree, propagation: str = "") -> None:
        new = self._marked(resource, live, propagation)
        if new is None:
            self.store.remove(resource.collection, key)
        elif new != live:
            self.store.put(resource.collection, key, new)

    # -- collectors ----------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Run the garbage collector, the namespace controller and the definition finalizer until nothing changes."""
        while self._collected != self.store.version:
            self._collected = self.store.version
            for resource, key, tree in [item for item in self._objects() if _is_of_interest(item[2])]:
                if self.store.get(resource.collection, key) is tree:
                    self._collect_one(resource, key, tree)

    def _objects(self) -> Iterator[tuple[Resource, Key, Tree]]:
        known = {item.collection: item for item in self.catalogue.all()}
        for collection, key, tree in self.store.everything():
            if collection in known:
                yield known[collection], key, tree

    def _collect_one(self, resource: Resource, key: Key, tree: Tree) -> None:
        owners = tree["metadata"].get("ownerReferences", ())
        present = [reference for reference in owners if self._owner(reference, key[0]) is not None]
        if owners and not present:
            self._delete_quietly(resource, key, tree)
            return
        waiting = [reference for reference in present if self._waits(reference, key[0])]
        if owners and len(waiting) == len(present):
            self._delete_quietly(resource, key, tree)
        if "deletionTimestamp" not in tree["metadata"]:
            return
        if resource.collection == NAMESPACES:
            self._finish_namespace(key, tree)
        elif resource.collection == crds.DEFINITIONS:
            self.finish_definition(key[1])
        else:
            self._finish_propagation(resource, key)

    def _owner(self, reference: Mapping[str, Any], namespace: str) -> Tree | None:
        for resource in self.catalogue.all():
            if resource.kind == reference["kind"] and resource.api_version == reference["apiVersion"]:
                place = namespace if resource.namespaced else ""
                found = self.store.get(resource.collection, (place, reference["name"]))
                return found if found is not None and found["metadata"]["uid"] == reference["uid"] else None
        return None

    def _waits(self, reference: Mapping[str, Any], namespace: str) -> bool:
        owner = self._owner(reference, namespace) or {"metadata": {}}
        return FOREGROUND in owner["metadata"].get("finalizers", ()) and "deletionTimestamp" in owner["metadata"]

    def _finish_propagation(self, resource: Resource, key: Key) -> None:
        tree = self.store.get(resource.collection, key)
        if tree is None:
            return
        finalizers = list(tree["metadata"].get("finalizers", ()))
        dependents = [item for item in self._objects() if _refers_to(item[2], tree["metadata"]["uid"])]
        if ORPHAN in finalizers:
            for other, place, dependent in dependents:
                new = copied(dependent)
                new["metadata"]["ownerReferences"] = [
                    item for item in new["metadata"]["ownerReferences"] if item["uid"] != tree["metadata"]["uid"]
                ]
                if not new["metadata"]["ownerReferences"]:
                    del new["metadata"]["ownerReferences"]
                self.store.put(other.collection, place, new)
            finalizers.remove(ORPHAN)
        if FOREGROUND in finalizers and not any(_blocks(item[2], tree["metadata"]["uid"]) for item in dependents):
            finalizers.remove(FOREGROUND)
        self._with_finalizers(resource.collection, key, tree, finalizers)

    def _with_finalizers(self, collection: Collection, key: Key, tree: Tree, finalizers: list[str]) -> None:
        if finalizers == tree["metadata"].get("finalizers", []) and finalizers:
            return
        new = copied(tree)
        new["metadata"].pop("finalizers", None)
        if finalizers:
            new["metadata"]["finalizers"] = finalizers
            self.store.put(collection, key, new)
        else:
            self.store.remove(collection, key, new)

    def _finish_namespace(self, key: Key, tree: Tree) -> None:
        inside = [(resource, place, item) for resource, place, item in self._objects() if place[0] == key[1]]
        for resource, place, item in inside:
            self._delete_quietly(resource, place, item)
        if any(place[0] == key[1] for _, place, _ in self._objects()) or tree["metadata"].get("finalizers"):
            return
        self.store.remove(NAMESPACES, key)

    def finish_definition(self, name: str) -> None:
        """Delete the instances of a definition that is being deleted, and the definition when none is left."""
        tree = self.store.get(crds.DEFINITIONS, ("", name))
        if tree is None or "deletionTimestamp" not in tree["metadata"]:
            return
        collection = crds.collection_of(tree)
        resource = next((item for item in self.catalogue.all() if item.collection == collection), None)
        if resource is not None:
            for key, item in self.store.all(collection):
                self._delete_quietly(resource, key, item)
        finalizers = list(tree["metadata"].get("finalizers", ()))
        if not self.store.all(collection) and crds.CLEANUP in finalizers:
            finalizers.remove(crds.CLEANUP)
            self._with_finalizers(crds.DEFINITIONS, ("", name), tree, finalizers)


def deleted_status(call: Call, live: Tree) -> Tree:
    """The answer to a deletion that took place."""
    details = {"name": call.target.name, **({"group": call.resource.group} if call.resource.group else {})}
    details |= {"kind": call.resource.plural, "uid": live["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _check_preconditions(call: Call, live: Tree, wanted: Mapping[str, Any]) -> None:
    for field, word, hint in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        found = live["metadata"][field]
        if wanted.get(field, found) != found:
            subject = Named(call.resource.group, call.resource.kind, call.target.name)
            text = f"the {word} in the precondition ({wanted[field]}) does not match the {word} in record ({found}). {hint}"
            raise conflict(subject, text)


def _is_of_interest(tree: Tree) -> bool:
    """Whether a collector may have something to do with the object."""
    return "ownerReferences" in tree["metadata"] or "deletionTimestamp" in tree["metadata"]


def _refers_to(tree: Tree, uid: str) -> bool:
    return any(item["uid"] == uid for item in tree["metadata"].get("ownerReferences", ()))


def _blocks(tree: Tree, uid: str) -> bool:
    references = tree["metadata"].get("ownerReferences", ())
    return any(item["uid"] == uid and item.get("blockOwnerDeletion") for item in references)
