"""Keeps a copy small: everything that is still needed, in one pack, in a new place.

Each fetch adds a pack, and what a moved branch left behind is never asked for again (gitops.md, section 2.1; fault G11).
The old place stays untouched, so readers of it go on (G08, G09).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pygit2

from gitops_ctl.git.history import reachable
from gitops_ctl.git.layout import KEPT, pack_files, prepare_repository, read_ref
from gitops_ctl.git.store import EMPTY_TREE, ObjectStore

FEW_PACKS: Final = 50
MANY_PACKS: Final = 500
WORTH_IT: Final = 4
"""Between few and many packs, collecting pays when the small ones are a quarter of the largest: its cost is the largest."""


def is_due(path: Path) -> bool:
    """Whether the copy has grown so far that collecting pays."""
    sizes = [pack.stat().st_size for pack in pack_files(path)]
    return len(sizes) > MANY_PACKS or (len(sizes) > FEW_PACKS and sum(sizes[1:]) * WORTH_IT > sizes[0])


def collect_garbage(path: Path, *, keep: tuple[str, ...], into: Path) -> None:
    """Build in `into` a repository with one pack of what `keep` and the refs of `path` reach; `path` stays as it is.

    Args:
        path: the copy; the caller is its only writer, readers go on.
        keep: commits and tags that no ref reaches, such as the last accepted one; absent ones are passed over.
        into: a directory that does not exist yet.

    Raises:
        NotFound, Refused: the copy has holes or is damaged.
    """
    prepare_repository(into)
    with ObjectStore.open(path) as store:
        names = [name for name in store.repository.references if name.startswith(KEPT)]
        refs = {name: target for name in names if (target := read_ref(store, name))}
        tips = tuple(oid for oid in (*refs.values(), *keep) if store.contains(oid))
        builder = pygit2.PackBuilder(store.repository)
        builder.set_threads(1)
        for object_id in _closure(store, tips):
            builder.add(pygit2.Oid(hex=object_id))
        builder.write(into / "objects" / "pack")
        if (path / "shallow").exists():
            shutil.copy(path / "shallow", into / "shallow")
    with ObjectStore.open(into) as copy:
        for name, target in refs.items():
            copy.repository.references.create(name, target)


def _closure(store: ObjectStore, tips: tuple[str, ...]) -> Iterator[str]:
    """Every object that the tips reach in the copy, once."""
    commits = []
    for tip in tips:
        found = store.read(tip)
        if found.kind == "tag":
            yield tip
            commits.append(store.tag(tip).target)
        else:
            commits.append(tip)
    seen = {EMPTY_TREE}
    for commit in reachable(store, commits):
        yield commit
        waiting = [store.links(commit).tree]
        while waiting:
            tree = waiting.pop()
            if tree in seen:
                continue
            seen.add(tree)
            yield tree
            for mode, _, binary_id in store.tree(tree):
                object_id = binary_id.hex()
                if mode == b"40000":
                    waiting.append(object_id)
                elif mode != b"160000" and object_id not in seen:
                    seen.add(object_id)
                    yield object_id
