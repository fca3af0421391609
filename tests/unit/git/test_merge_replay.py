"""The replay of merges against real merges by git, honest and not.

The oracle is `git merge` without rename detection: an honest, conflict-free merge by git must replay clean.
"""

import functools
import itertools
import random

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.merge import replay_merge
from gitops_ctl.git.store import ObjectStore
from tests.support.git_repos import RepoBuilder, tree_bytes

LINES = "".join(f"line {number}\n" for number in range(20))
NO_RENAMES = ("--strategy=recursive", "-Xno-renames")
"""The `ort` strategy of git 2.39 pays no heed to `no-renames`."""


def changed(repo, merge):
    """Paths that the replay finds, with (old content, new content)."""
    with ObjectStore.open(repo.git_dir) as store:
        commit = store.commit(merge)
        found = replay_merge(store, *commit.parents, actual_tree=commit.tree)
        return {
            change.path: tuple(
                store.blob(side.id).decode(errors="replace") if side and side.is_file else None
                for side in (change.old, change.new)
            )
            for change in found
        }


@pytest.fixture
def forked(repo):
    """Both branches start from `base` files; ours is main, theirs is `side`."""

    def fork(base, ours, theirs, *, ours_gone=(), theirs_gone=()):
        repo.commit(base)
        repo.branch("side")
        repo.commit(theirs, delete=theirs_gone)
        repo.switch("main")
        repo.commit(ours, delete=ours_gone)
        return repo

    return fork


def test_a_merge_without_conflicts_is_clean(forked):
    repo = forked(
        {"both": LINES, "ours": "1", "theirs": "1", "d/deep/x": "1", "gone": "1", "swap": "file"},
        {"both": "first\n" + LINES, "ours": "2", "d/new": "1"},
        {"both": LINES + "last\n", "theirs": "2", "d/deep/x": "2", "other": "1"},
        ours_gone=["gone"],
    )
    assert changed(repo, repo.merge("side")) == {}


def test_a_change_hidden_in_a_clean_merge_is_found(forked):
    repo = forked({"a": "1", "b": "1", "c": "1"}, {"a": "2"}, {"b": "2"})
    merge = repo.merge("side", resolve={"c": "evil", "new/file": "evil"})
    assert changed(repo, merge) == {"c": ("1", "evil"), "new/file": (None, "evil")}


def test_a_merge_that_drops_the_work_of_one_side_is_found(forked):
    repo = forked({"a": "1", "b": "1"}, {"a": "2"}, {"b": "2"})
    assert changed(repo, repo.merge("side", options=["--strategy=ours"])) == {"b": ("2", "1")}


def test_each_resolved_conflict_is_a_change_whichever_side_was_taken(forked):
    repo = forked({"x": "base", "y": "base", "z": "base"}, dict.fromkeys("xyz", "ours"), dict.fromkeys("xyz", "theirs"))
    merge = repo.merge("side", resolve={"x": "ours", "y": "theirs", "z": "third"})
    assert changed(repo, merge) == {"x": ("theirs", "ours"), "y": ("ours", "theirs"), "z": ("ours", "third")}


def test_a_file_that_one_side_edits_and_the_other_deletes_is_a_conflict(forked):
    repo = forked({"x": "base", "keep": "1"}, {"x": "edited"}, {"keep": "2"}, theirs_gone=["x"])
    assert changed(repo, repo.merge("side", resolve={"x": "edited"})) == {"x": (None, "edited")}


def test_an_edit_of_a_moved_file_does_not_follow_it_into_its_new_path(forked):
    """With rename detection the edit of `free/x` would land in `protected/x` unjudged."""
    repo = forked(
        {"free/x": LINES, "protected/y": "1"},
        {"protected/x": LINES},
        {"free/x": LINES + "evil\n"},
        ours_gone=["free/x"],
    )
    merge = repo.merge("side")
    assert repo.git("show", "HEAD:protected/x") == (LINES + "evil\n").rstrip("\n")
    assert changed(repo, merge)["protected/x"] == (LINES, LINES + "evil\n")


def test_a_folder_in_the_place_of_a_file_leaves_everything_below_unresolved(forked):
    repo = forked({"x": "base", "keep": "1"}, {"x": "edited"}, {"x/inner": "1"}, theirs_gone=["x"])
    repo.git("merge", "--no-ff", "--no-commit", "--strategy=ours", "side")
    repo.git("rm", "--quiet", "x")
    repo.write("x/inner", "1")
    repo.write("x/more", "2")
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=merge")
    assert changed(repo, repo.head()) == {"x": ("edited", None), "x/inner": (None, "1"), "x/more": (None, "2")}


def test_a_change_of_mode_and_a_change_of_content_merge(forked):
    repo = forked({"run": LINES}, {}, {"run": LINES + "more\n"})
    repo.path.joinpath("run").chmod(0o755)
    repo.commit()
    assert changed(repo, repo.merge("side")) == {}
    repo.path.joinpath("run").chmod(0o644)
    repo.git("add", "--all")
    repo.git("commit", "--amend", "--quiet", "--no-edit")
    assert set(changed(repo, repo.head())) == {"run"}


@pytest.mark.parametrize("content", [b"\xff\xfe" * 400, b"a\n" * 5000 + b"\0end\n"], ids=["not text", "late NUL byte"])
def test_content_that_is_not_text_is_never_merged(forked, content):
    repo = forked(
        {"x": b"1\n" + content + b"9\n"}, {"x": b"0\n1\n" + content + b"9\n"}, {"x": b"1\n" + content + b"9\n10\n"}
    )
    merge = repo.merge("side", resolve={"x": "anything"})
    assert set(changed(repo, merge)) == {"x"}


def test_symlinks_that_both_sides_changed_are_unresolved(forked):
    repo = forked({"a": "1"}, {}, {})
    for branch, target in (("side", "theirs"), ("main", "ours")):
        repo.switch(branch)
        repo.path.joinpath("link").symlink_to(target)
        repo.commit()
    repo.git("merge", "--no-ff", "--no-commit", "--strategy=ours", "side")
    repo.git("commit", "--quiet", "--message=merge")
    assert set(changed(repo, repo.head())) == {"link"}


def test_unrelated_histories_are_merged_over_an_empty_base(repo):
    repo.commit({"a": "1", "same": "1"})
    repo.git("checkout", "--quiet", "--orphan", "other")
    repo.git("rm", "-rfq", ".")
    repo.commit({"b": "1", "same": "1"})
    repo.switch("main")
    assert changed(repo, repo.merge("other", options=["--allow-unrelated-histories"])) == {}


@pytest.fixture
def crossed(repo):
    """Two branches that merged each other: both d and e descend from both b and c."""
    repo.commit({"x": LINES, "y": "1", "z": "1"})
    repo.branch("left")
    repo.commit({"x": "left\n" + LINES, "y": "left"})
    repo.branch("right", at="main")
    repo.commit({"x": LINES + "right\n", "z": "right"})
    left, right = repo.head("left"), repo.head("right")
    repo.switch("left")
    repo.merge(right)
    repo.switch("right")
    repo.merge(left)
    return repo


def test_a_criss_cross_merge_is_replayed_over_the_merged_bases(crossed):
    crossed.switch("left")
    crossed.commit({"y": "left again", "n": "1"})
    crossed.switch("right")
    crossed.commit({"z": "right again", "m": "1"})
    assert changed(crossed, crossed.merge("left")) == {}
    evil = crossed.commit({"y": "evil"}) and crossed.git("rev-parse", "HEAD^")
    crossed.git("checkout", "--quiet", "-B", "again", f"{evil}^1")
    assert set(changed(crossed, crossed.merge("left", resolve={"z": "evil"}))) == {"z"}


def test_a_conflict_in_the_merged_base_stays_a_difference(repo):
    repo.commit({"x": "base", "keep": "1"})
    repo.branch("left")
    repo.commit({"x": "left"})
    repo.branch("right", at="main")
    repo.commit({"x": "right"})
    left, right = repo.head("left"), repo.head("right")
    repo.switch("left")
    repo.merge(right, resolve={"x": "left"})
    repo.switch("right")
    repo.merge(left, resolve={"x": "right"})
    merge = repo.merge("left", resolve={"x": "left"})
    assert changed(repo, merge) == {"x": ("right", "left")}


def _ladder(repo, *, wide, deep):
    """Two commits above a ladder: on each of its rungs that many commits merged all of those on the rung below."""
    root, tree = repo.commit({"x": "1"}), repo.tree()
    moment = itertools.count(1_800_000_000)

    def commit(*parents):
        stamp = f"network-author <network-author@example.net> {next(moment)} +0000"
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents), f"author {stamp}", f"committer {stamp}"]
        return repo.write_object("commit", "\n".join((*lines, "", "merge", "")).encode())

    rung = [commit(root) for _ in range(wide)]
    for left in reversed(range(deep)):
        turned = [[*rung[place:], *rung[:place]] for place in range(wide if left else 2)]
        rung = [functools.reduce(commit, each) for each in turned]
    return commit(rung[0], rung[1]), tree


def test_a_ladder_of_criss_crosses_is_replayed(repo):
    merge, tree = _ladder(repo, wide=2, deep=7)
    with ObjectStore.open(repo.git_dir) as store:
        assert replay_merge(store, *store.links(merge).parents, actual_tree=tree) == ()


@pytest.mark.parametrize(("wide", "deep"), [(2, 12), (12, 7), (80, 1)])
def test_a_ladder_that_would_take_longer_than_anybody_waits_is_refused_at_once(repo, wide, deep):
    merge, tree = _ladder(repo, wide=wide, deep=deep)
    with ObjectStore.open(repo.git_dir) as store, pytest.raises(Refused, match="criss-crossed") as refused:
        replay_merge(store, *store.links(merge).parents, actual_tree=tree)
    assert refused.value.code is ErrorCode.MALFORMED_OBJECT
    assert refused.value.hint


def test_folders_that_are_too_deep_for_any_stack_are_refused(repo):
    def deep(content):
        tree = repo.write_object("tree", tree_bytes((0o100644, b"x", repo.write_object("blob", content))))
        for _ in range(1500):
            tree = repo.write_object("tree", tree_bytes((0o40000, b"d", tree)))
        return tree

    stamp = "network-author <network-author@example.net> 1800000000 +0000"

    def commit(tree, *parents):
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents), f"author {stamp}", f"committer {stamp}"]
        return repo.write_object("commit", "\n".join((*lines, "", "deep", "")).encode())

    base = commit(deep(b"0"))
    ours, theirs = commit(deep(b"1"), base), commit(deep(b"2"), base)
    with ObjectStore.open(repo.git_dir) as store, pytest.raises(Refused, match="64 deep") as refused:
        replay_merge(store, ours, theirs, actual_tree=deep(b"1"))
    assert refused.value.code is ErrorCode.TREE_LIMIT


def test_a_missing_merge_base_is_not_taken_for_an_empty_one(forked):
    repo = forked({"a": "1", "b": "1"}, {"a": "2"}, {"b": "2"})
    base = repo.git("merge-base", "main", "side")
    merge = repo.merge("side")
    (repo.git_dir / "objects" / base[:2] / base[2:]).unlink()
    with pytest.raises(NotFound, match=base):
        changed(repo, merge)


def mutate(dice, files):
    """A few edits, additions, deletions and moves of a small set of files."""
    files = dict(files)
    for _ in range(dice.randrange(1, 5)):
        name = dice.choice(sorted(files))
        match dice.randrange(5):
            case 0:
                files.pop(name)
            case 1:
                files[f"d{dice.randrange(3)}/n{dice.randrange(30)}"] = f"new {dice.random()}\n"
            case 2:
                files[f"moved/{name}"] = files.pop(name)
            case _:
                lines = files[name].splitlines(keepends=True)
                lines.insert(dice.randrange(len(lines) + 1), f"edit {dice.random()}\n")
                files[name] = "".join(lines)
        if not files:
            files["last"] = "1\n"
    return files


def replace_all(repo, files):
    repo.git("rm", "-r", "-f", "--quiet", "--ignore-unmatch", ".")
    return repo.commit(files)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_git_merges_without_a_conflict_replays_clean(tmp_path, seed):
    dice = random.Random(seed)
    repo = RepoBuilder(tmp_path / "random")
    base = {f"d{n % 3}/f{n}": LINES + f"{n}\n" for n in range(6)}
    replace_all(repo, base)
    repo.branch("side")
    replace_all(repo, mutate(dice, base))
    repo.switch("main")
    replace_all(repo, mutate(dice, base))
    try:
        merge = repo.merge("side", options=NO_RENAMES)
    except RuntimeError:
        repo.git("add", "--all")
        conflicts = True
    else:
        conflicts = False
    if conflicts:
        repo.git("commit", "--quiet", "--message=merge")
        assert changed(repo, repo.head()) != {}
    else:
        assert changed(repo, merge) == {}
