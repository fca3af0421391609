"""Checks the head of a pull request against the accepted base: `gitops-ctl check`, the trust policy, and what the change touches.

Rules (forges.md, section 11.3):
  * Nothing of the head is configuration: policy, schemas and the files that are left out are those of the accepted base.
  * Looked at is what the merge would give; where it cannot be made by itself, the head as it is.
  * Only what the base does not have too is told.  What would change is told about trusted heads alone.
  * Runs in a process of its own with bounds (`pullchild`), and asks no cluster for anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pygit2
from pygit2.enums import MergeFlag

from gitops_ctl.api.names import ICHOR_GROUP
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.core.ids import GroupKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.documents.check import Checker, check_between, check_own_source
from gitops_ctl.documents.collection import DocumentSet, FileReader, assemble
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.documents.loader import Document, Loaded, LoadLimits
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.references import Node, references_of
from gitops_ctl.documents.schema import SchemaCatalog, is_crd
from gitops_ctl.documents.setrules import judge_set
from gitops_ctl.documents.tree import CONTROL_FOLDER, TreeFile, has_ignore_name, is_document_name
from gitops_ctl.git.history import merge_bases
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import FileEntry, PathChange, TreeLimits, tree_changes, walk_tree
from gitops_ctl.source.pullneeds import brought_in, needs_of
from gitops_ctl.source.pullplans import plans_of
from gitops_ctl.source.pullreport import (
    MOST_PATHS,
    MOST_TOUCHED,
    Order,
    PullReport,
    Touched,
    findings_of,
    report_of_error,
)
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.chain import RangeRequest, Root
from gitops_ctl.trust.changes import BlobDocuments, changes_of
from gitops_ctl.trust.firstseen import FirstSeen, SeenTip
from gitops_ctl.trust.kindverbs import DEVICE
from gitops_ctl.trust.policies import Policies
from gitops_ctl.trust.policy import load_policy
from gitops_ctl.trust.rulebook import POLICY_LIMIT_BYTES, TrustPolicy

MOST_BYTES: Final = 500 * 2**20
"""Of all files of a head together."""

TALOS_MACHINE: Final = GroupKind(ICHOR_GROUP, "TalosMachine")
DEVICES: Final = frozenset({DEVICE, TALOS_MACHINE})

_TALOS_CLUSTER: Final = GroupKind(ICHOR_GROUP, "TalosCluster")
_SIGNATURE: Final = pygit2.Signature("gitops-ctl", "gitops-ctl@invalid", 0, 0)
_Key: TypeAlias = tuple[str, str, str, str, ObjectId | None]


def check_pull(order: Order) -> PullReport:
    """The report; a head that cannot be read to its end is one finding."""
    try:
        with ObjectStore.open(Path(order.repository)) as store:
            return _Check(store, order).run()
    except GitopsError as error:
        if error.code is ErrorCode.REPOSITORY_DAMAGED:
            return PullReport(unready=cut(error.message, limit=500))
        return report_of_error(error)
    except pygit2.GitError as error:
        return report_of_error(Refused(f"the merge cannot be tried: {error}", code=ErrorCode.CHECK_ENDED))


@dataclass(frozen=True, slots=True)
class _Merged:
    """What is looked at: the tree that a merge gives, compared with `before`; or the head, compared with what it began from."""

    before: str
    tree: str
    conflicts: tuple[str, ...]


class _Check:
    """One check; reads the base's documents once."""

    def __init__(self, store: ObjectStore, order: Order) -> None:
        self._store = store
        self._order = order
        self._limits = TreeLimits(entries=order.entries, depth=order.depth, bytes=MOST_BYTES)
        self._load_limits = LoadLimits()
        self._cache = DocumentCache()

    def run(self) -> PullReport:
        store, order = self._store, self._order
        policy = Policies(store, path=order.policy_path, cache=Bounded(2)).at(order.base)
        base_tree = store.links(order.base).tree
        for _ in walk_tree(store, store.links(order.head).tree, limits=self._limits):
            pass  # its bounds; libgit2's merge knows none
        merged = self._merged(base_tree)
        base_files = list(walk_tree(store, base_tree, limits=self._limits))
        head_files = list(walk_tree(store, merged.tree, limits=self._limits))
        ignores = [file for file in base_files if has_ignore_name(file.path)]
        base = self._set(base_files, ignores)
        head = self._set(head_files, ignores)
        changed = tree_changes(store, merged.before, merged.tree)
        problems = [*self._problems(base, head, base_files), *self._control(changed, policy)]
        findings, errors, warnings = findings_of(in_reading_order(problems))
        brought = brought_in(store, request=self._request(merged), policy=policy)
        documents = BlobDocuments(store, cache=self._cache, policy_path=order.policy_path)
        changes = changes_of(documents, changed, policy_path=order.policy_path)
        trusted = brought.signed and not order.is_fork
        touched = list(_touched(base, head)) if trusted else []
        plans = plans_of(touched, base, head, now=order.now)
        devices = tuple(sorted(_devices(touched, base, head) | plans.devices))
        return PullReport(
            findings=findings,
            errors=errors,
            warnings=warnings,
            conflicts=merged.conflicts,
            needs=needs_of(changes, policy=policy, allowed=brought.allowed),
            commits=brought.commits,
            proposed=brought.proposed,
            refused=tuple(brought.refused),
            refused_count=brought.refused_count,
            trusted=trusted,
            by_forge=policy.merges is not None,
            touched=tuple(Touched(action, str(name)) for action, name in touched[:MOST_TOUCHED]),
            touched_count=len(touched),
            devices=tuple(str(name) for name in devices[:MOST_TOUCHED]),
            device_count=len(devices),
            plans=plans.shown,
            plan_count=plans.count,
        )

    def _merged(self, base_tree: str) -> _Merged:
        store, order = self._store, self._order
        index = store.repository.merge_commits(order.base, order.head, flags=MergeFlag(0))
        if index.conflicts is None:
            return _Merged(base_tree, str(index.write_tree(store.repository)), ())
        paths = dict.fromkeys(_conflict_paths(index.conflicts))
        began = merge_bases(store, order.base, order.head)
        before = store.links(began[0]).tree if began else base_tree
        return _Merged(before, store.links(order.head).tree, tuple(paths)[:MOST_PATHS])

    def _set(self, files: Sequence[FileEntry], ignores: Sequence[FileEntry]) -> DocumentSet:
        """The documents of a tree, without what the ignore files of the base leave out."""
        entries = [TreeFile(*file) for file in files if not has_ignore_name(file.path)]
        entries += [TreeFile(*file) for file in ignores]
        return assemble(FileReader(lambda entry: self._store.blob(entry.id), self._load), entries, path="")

    def _load(self, entry: TreeFile) -> Loaded:
        size = self._store.size(entry.id)
        if size > self._load_limits.file_bytes:
            message = f"the file has {size / 2**20:.1f} MiB, allowed are {self._load_limits.file_bytes // 2**20}"
            return Loaded((), (Problem(ErrorCode.DOCUMENT_TOO_LARGE, message, entry.path),))
        return self._cache.load(
            file=entry.path, blob=entry.id, read=lambda: self._store.blob(entry.id), limits=self._load_limits
        )

    def _problems(self, base: DocumentSet, head: DocumentSet, base_files: Sequence[FileEntry]) -> Iterator[Problem]:
        """What is wrong in the head's documents and not in the base's."""
        known = {_key(problem) for problem in (*base.problems, *base.warnings, *_between(base))}
        own = NamespacedName(*self._order.source)
        found = [*head.problems, *head.warnings, *_between(head), *check_own_source(head, own=own)]
        yield from (problem for problem in found if _key(problem) not in known)
        crds = [document for document in base.documents if is_crd(document)]
        checker = Checker(SchemaCatalog(crds=crds))
        same = {(file.path, file.id) for file in base_files}
        for document in head.documents:
            if (document.file, document.blob) not in same:
                before = base.by_id.get(document.id)
                yield from checker.check(document, before=None if before is None else before.tree)

    def _control(self, changed: Iterable[PathChange], policy: TrustPolicy) -> Iterator[Problem]:
        """Trust policies and consents that the change brings: looked at as documents, never used."""
        checker = Checker(SchemaCatalog())
        for change in changed:
            path, entry = change.path, change.new
            is_policy = path == policy.path
            if entry is None or not (is_policy or path.startswith(f"{CONTROL_FOLDER}/")) or not is_document_name(path):
                continue
            if not entry.is_file:
                yield Problem(ErrorCode.PATH_REFUSED, "what is no regular file is not followed", path)
                continue
            loaded = self._load(TreeFile(path, entry.mode, entry.id))
            yield from loaded.problems
            for document in loaded.documents:
                yield from checker.check(document)
            if is_policy:
                yield from self._policy(path, entry.id)

    def _policy(self, path: str, blob: str) -> Iterator[Problem]:
        if self._store.size(blob) > POLICY_LIMIT_BYTES:
            yield Problem(ErrorCode.POLICY_INVALID, f"at most {POLICY_LIMIT_BYTES} bytes are read", path)
            return
        try:
            load_policy(self._store.blob(blob), path=path)
        except Refused as error:
            yield Problem(error.code, error.message, path, hint=error.hint)

    def _request(self, merged: _Merged) -> RangeRequest:
        """A merge that nobody made stands for the one that would bring the head in."""
        order = self._order
        parents = [pygit2.Oid(hex=order.base), pygit2.Oid(hex=order.head)]
        tree = pygit2.Oid(hex=merged.tree)
        tip = self._store.repository.create_commit(None, _SIGNATURE, _SIGNATURE, "merged for a check", tree, parents)
        return RangeRequest(
            url=order.url,
            ref=order.ref,
            root=Root(order.root, order.root_digest),
            accepted=order.base,
            tip=str(tip),
            first_seen=FirstSeen(tuple(SeenTip(commit, at) for commit, at in order.first_seen)),
            now=order.now,
            policy_path=order.policy_path,
        )


def _conflict_paths(conflicts: Iterable[Sequence[pygit2.IndexEntry | None]]) -> Iterator[str]:
    for sides in conflicts:
        yield from (str(side.path) for side in sides if side is not None)


def _key(problem: Problem) -> _Key:
    """A finding without its line: a comment above it makes it no new one."""
    return problem.code.label, problem.file, problem.message, problem.pointer, problem.object


def _between(found: DocumentSet) -> list[Problem]:
    nodes = [Node(document.id, references_of(document.tree)) for document in found.documents]
    between = check_between(nodes, declared=found.declared | found.hidden_ids, documents=found.by_id)
    return [*between, *judge_set(found.documents)]


def _touched(base: DocumentSet, head: DocumentSet) -> Iterator[tuple[str, ObjectId]]:
    """What the merge adds, changes and removes, by identity."""
    before, after = base.by_id, head.by_id
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            yield "added", name
        elif new is None:
            # A broken document removes nothing: its object is held.
            if name not in head.declared:
                yield "removed", name
        elif old.tree is not new.tree and old.digest != new.digest:
            yield "changed", name


def _devices(touched: Iterable[tuple[str, ObjectId]], base: DocumentSet, head: DocumentSet) -> set[ObjectId]:
    """Devices among the objects, those that an object names, and the machines of a cluster that changes."""
    names = {name for _, name in touched}
    declared: Mapping[ObjectId, Document] = {**base.by_id, **head.by_id}
    found = {name for name in names if name.group_kind in DEVICES}
    for name in names & declared.keys():
        found.update(one.target for one in references_of(declared[name].tree) if one.target.group_kind in DEVICES)
    clusters = {(name.namespace, name.name) for name in names if name.group_kind == _TALOS_CLUSTER}
    if clusters:
        found.update(
            name
            for name, document in declared.items()
            if name.group_kind == TALOS_MACHINE
            and (name.namespace, text_at(document.tree, "spec", "clusterRef", "name")) in clusters
        )
    return found
