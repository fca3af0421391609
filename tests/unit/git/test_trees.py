"""Walks and differences of trees.  The form of single trees: test_raw_trees.py."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.entries import DIRECTORY, EXECUTABLE, FILE, GITLINK, SYMLINK
from gitops_ctl.git.tree import KnownFolders, TreeLimits, entry_at, tree_changes, walk_tree
from tests.support.git_repos import tree_bytes


def shown(changes):
    """(letter, path) of each change, as `git diff --name-status` prints it."""
    letters = {(False, True): "A", (True, False): "D"}
    return [(letters.get((bool(change.old), bool(change.new)), "M"), change.path) for change in changes]


def git_shows(repo, old, new):
    lines = repo.git("diff-tree", "-r", "--no-renames", "--name-status", old, new).splitlines()
    found = [tuple(line.split("\t")) for line in lines]
    split = [
        pair for letter, path in found for pair in ([("A", path), ("D", path)] if letter == "T" else [(letter, path)])
    ]
    return sorted(split, key=lambda pair: pair[1])


def test_differences_are_those_that_git_shows_without_rename_detection(repo, open_store):
    old = repo.commit(
        {"a/b/c.yaml": "1", "a/b/d.yaml": "2", "moved.yaml": "same", "gone/x": "1", "turns": "file", "s/x": "1"}
    )
    repo.git("mv", "moved.yaml", "elsewhere.yaml")
    repo.path.joinpath("a/b/c.yaml").chmod(0o755)
    new = repo.commit({"a/b/e.yaml": "3", "z": "9"}, delete=["gone", "turns", "s"])
    new = repo.commit({"turns/into/folder": "x", "s": "file"})
    store = open_store(repo)
    changes = tree_changes(store, repo.tree(old), repo.tree(new))
    assert shown(changes) == git_shows(repo, old, new)
    assert [(c.old.mode, c.new.mode) for c in changes if c.path == "a/b/c.yaml"] == [(FILE, EXECUTABLE)]


def test_equal_trees_have_no_differences_and_none_stands_for_the_empty_tree(repo, open_store):
    commit = repo.commit({"a/b": "1", "c": "2"})
    store, tree = open_store(repo), repo.tree(commit)
    assert tree_changes(store, tree, tree) == ()
    assert shown(tree_changes(store, None, tree)) == [("A", "a/b"), ("A", "c")]
    assert shown(tree_changes(store, tree, None)) == [("D", "a/b"), ("D", "c")]


def test_a_file_that_becomes_a_symlink_is_one_change_with_both_modes(repo, open_store):
    old = repo.commit({"a": "1"})
    repo.path.joinpath("a").unlink()
    repo.path.joinpath("a").symlink_to("/etc/passwd")
    new = repo.commit()
    (change,) = tree_changes(open_store(repo), repo.tree(old), repo.tree(new))
    assert (change.path, change.old.mode, change.new.mode) == ("a", FILE, SYMLINK)


def test_a_walk_gives_whole_paths_in_git_order_and_starts_where_it_is_told(repo, open_store):
    repo.commit({"a/b/c": "1", "a/d": "2", "a.b": "3", "e": "4"})
    store, tree = open_store(repo), repo.tree()
    assert [f.path for f in walk_tree(store, tree)] == repo.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert [f.path for f in walk_tree(store, tree, path="/a/")] == ["a/b/c", "a/d"]
    assert [f.path for f in walk_tree(store, tree, path="a/d")] == ["a/d"]
    assert list(walk_tree(store, tree, path="nothing/here")) == []


def test_an_entry_is_found_by_its_path(repo, open_store):
    repo.commit({"a/b": "1"})
    store, tree = open_store(repo), repo.tree()
    assert entry_at(store, tree, "a/b").mode == FILE
    assert entry_at(store, tree, "a").mode == DIRECTORY
    assert entry_at(store, tree, "").id == tree
    assert entry_at(store, tree, "a/b/c") is None
    assert entry_at(store, tree, "b") is None


def test_a_name_with_escapes_is_found_by_what_the_walk_shows(repo, open_store):
    blob = repo.write_object("blob", b"x")
    tree = repo.write_object("tree", tree_bytes((FILE, b"\xe9", blob)))
    store = open_store(repo)
    (found,) = walk_tree(store, tree)
    assert entry_at(store, tree, found.path).id == blob


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (TreeLimits(entries=3), "more than 3 entries"),
        (TreeLimits(depth=1), "folders more than 1 deep"),
        (TreeLimits(bytes=10), "more than 10 bytes"),
    ],
    ids=["entries", "depth", "bytes"],
)
def test_a_walk_ends_at_its_limits(repo, open_store, limits, words):
    repo.commit({"a/b/c/d": "x" * 20, "e": "1"})
    with pytest.raises(Refused, match=words) as caught:
        list(walk_tree(open_store(repo), repo.tree(), limits=limits))
    assert (caught.value.code, caught.value.reason) == (ErrorCode.TREE_LIMIT, "FetchTooLarge")


def test_a_walk_with_known_folders_gives_the_same_and_counts_the_same(repo, open_store):
    repo.commit({"a/b/c/d": "x" * 20, "a/b/e": "2", "e": "1"})
    store, known = open_store(repo), KnownFolders()
    fresh = list(walk_tree(store, repo.tree()))
    assert list(walk_tree(store, repo.tree(), known=known)) == fresh == list(walk_tree(store, repo.tree(), known=known))
    for limits in (TreeLimits(entries=3), TreeLimits(depth=1), TreeLimits(bytes=10)):
        with pytest.raises(Refused):
            list(walk_tree(store, repo.tree(), limits=limits, known=known))


def test_the_same_folder_at_two_places_is_two_known_folders(repo, open_store):
    repo.commit({"a/f": "x", "b/f": "x"})
    store, known = open_store(repo), KnownFolders(limit=1)
    for _ in range(2):
        assert [f.path for f in walk_tree(store, repo.tree(), known=known)] == ["a/f", "b/f"]


def test_a_tree_that_describes_a_billion_files_ends_the_walk_early(repo, open_store):
    inner = repo.write_object("tree", tree_bytes((FILE, b"f", repo.write_object("blob", b"x"))))
    for _ in range(9):
        inner = repo.write_object("tree", tree_bytes(*((0o40000, b"d%d" % n, inner) for n in range(10))))
    store = open_store(repo)
    with pytest.raises(Refused, match="more than 1000 entries"):
        list(walk_tree(store, inner, limits=TreeLimits(entries=1000)))
    with pytest.raises(Refused, match="more than 1000 entries"):
        tree_changes(store, None, inner, limits=TreeLimits(entries=1000))


def test_a_missing_tree_is_not_found_and_a_blob_in_its_place_is_refused(repo, open_store):
    blob = repo.write_object("blob", b"x")
    absent = repo.write_object("tree", tree_bytes((0o40000, b"a", "1" * 40)))
    wrong = repo.write_object("tree", tree_bytes((0o40000, b"a", blob)))
    store = open_store(repo)
    with pytest.raises(NotFound, match="1111"):
        list(walk_tree(store, absent))
    with pytest.raises(Refused, match="is a blob where a tree is needed"):
        list(walk_tree(store, wrong))


def a_submodule(repo, *, path, url):
    repo.write(".gitmodules", f'[submodule "x"]\n\tpath = {path}\n\turl = {url}\n')
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'5' * 40},{path}")
    repo.git("add", ".gitmodules")
    repo.git("commit", "--quiet", "--message=submodule")


def test_G14_a_submodule_address_is_only_a_file_that_nobody_follows(repo, open_store):
    repo.commit({"app/a": "1"})
    a_submodule(repo, path="sub", url="https://old.example.net/x")
    old = repo.head()
    a_submodule(repo, path="sub", url="https://new.example.net/x")
    changes = tree_changes(open_store(repo), repo.tree(old), repo.tree())
    assert shown(changes) == [("M", ".gitmodules")]


def test_G15_a_submodule_beside_the_used_path_is_never_opened(repo, open_store):
    repo.commit({"app/a": "1"})
    a_submodule(repo, path="sub", url="https://private.example.net/x")
    assert [f.path for f in walk_tree(open_store(repo), repo.tree(), path="app")] == ["app/a"]


def test_G16_a_submodule_under_the_used_path_is_shown_as_what_it_is(repo, open_store):
    repo.commit({"app/a": "1"})
    a_submodule(repo, path="app/sub", url="https://private.example.net/x")
    found = {f.path: f.mode for f in walk_tree(open_store(repo), repo.tree(), path="app")}
    assert found == {"app/a": FILE, "app/sub": GITLINK}


def test_G18_a_symlink_inside_the_repository_is_shown_and_not_followed(repo, open_store):
    repo.commit({"app/a": "1", "shared/b": "2"})
    repo.path.joinpath("app/b").symlink_to("../shared/b")
    repo.path.joinpath("app/all").symlink_to("../shared")
    repo.commit()
    found = {f.path: f.mode for f in walk_tree(open_store(repo), repo.tree(), path="app")}
    assert found == {"app/a": FILE, "app/all": SYMLINK, "app/b": SYMLINK}
    assert list(walk_tree(open_store(repo), repo.tree(), path="app/all/b")) == []


def test_G19_a_symlink_out_of_bounds_elsewhere_does_not_touch_the_used_path(repo, open_store):
    repo.commit({"app/a": "1"})
    repo.path.joinpath("x").symlink_to("/etc/passwd")
    repo.commit()
    assert [f.path for f in walk_tree(open_store(repo), repo.tree(), path="app")] == ["app/a"]
    assert {f.path: f.mode for f in walk_tree(open_store(repo), repo.tree())}["x"] == SYMLINK


def test_X14_a_submodule_below_a_symlink_of_another_case_puts_nothing_on_disk(repo, open_store, tmp_path):
    hook = repo.write_object("blob", b"#!/bin/sh\n")
    hooks = repo.write_object("tree", tree_bytes((EXECUTABLE, b"post-checkout", hook)))
    inner = repo.write_object("tree", tree_bytes((0o40000, b"hooks", hooks)))
    link = repo.write_object("blob", b".git")
    root = repo.write_object(
        "tree", tree_bytes((0o40000, b"A", inner), (SYMLINK, b"a", link), (GITLINK, b"b", "5" * 40))
    )
    before = sorted(path for path in tmp_path.rglob("*") if "objects" not in path.parts)
    found = [(f.path, f.mode) for f in walk_tree(open_store(repo), root)]
    assert found == [("A/hooks/post-checkout", EXECUTABLE), ("a", SYMLINK), ("b", GITLINK)]
    assert sorted(path for path in tmp_path.rglob("*") if "objects" not in path.parts) == before
