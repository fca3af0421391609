"""Walks through commits: the line, the range, ancestors, merge bases, and the edge of a shallow copy."""

import random

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.history import (
    commits_between,
    first_parent_line,
    is_ancestor,
    merge_bases,
    missing_parents,
    reachable,
)
from gitops_ctl.git.store import ObjectStore
from tests.support.git_repos import RepoBuilder


class Graph:
    """Commits made as objects, so that many shapes are cheap; names instead of ids."""

    def __init__(self, repo: RepoBuilder) -> None:
        self.repo = repo
        self.ids: dict[str, str] = {}
        self.tree = repo.write_object("tree", b"")

    def commit(self, name, *parents, time=None):
        when = 1767225600 + (len(self.ids) if time is None else time)
        person = f"A <a@example.net> {when} +0000"
        lines = [
            f"tree {self.tree}",
            *(f"parent {self.ids[p]}" for p in parents),
            f"author {person}",
            f"committer {person}",
        ]
        self.ids[name] = self.repo.write_object("commit", ("\n".join(lines) + f"\n\n{name}\n").encode())

    def names(self, ids):
        by_id = {oid: name for name, oid in self.ids.items()}
        return [by_id[oid] for oid in ids]


@pytest.fixture
def graph(repo):
    """Main line a-b-c-f-g; d-e is a branch from a, merged into f."""
    graph = Graph(repo)
    for name, parents in {"a": (), "b": "a", "c": "b", "d": "a", "e": "d", "f": ("c", "e"), "g": "f"}.items():
        graph.commit(name, *parents)
    return graph


@pytest.fixture
def store(repo, open_store):
    return open_store(repo)


def without(repo, *ids):
    """The store as after a shallow fetch that did not bring these commits."""
    for oid in ids:
        (repo.git_dir / "objects" / oid[:2] / oid[2:]).unlink()
    return ObjectStore.open(repo.git_dir)


def test_the_first_parent_line_is_oldest_first_and_leaves_out_its_start(graph, store):
    ids = graph.ids
    assert graph.names(first_parent_line(store, ids["g"], stop=ids["a"])) == ["b", "c", "f", "g"]
    assert first_parent_line(store, ids["g"], stop=ids["g"]) == ()


def test_a_tip_that_reaches_the_start_only_through_a_merge_is_malformed(graph, store):
    with pytest.raises(Refused, match="only through the second parent") as caught:
        first_parent_line(store, graph.ids["g"], stop=graph.ids["e"])
    assert caught.value.code is ErrorCode.MALFORMED_OBJECT
    assert "rebase" in caught.value.hint


def test_a_tip_that_does_not_descend_from_the_start_is_a_rewritten_history(graph, store):
    with pytest.raises(Refused, match="does not descend") as caught:
        first_parent_line(store, graph.ids["c"], stop=graph.ids["d"])
    assert caught.value.code is ErrorCode.HISTORY_REWRITTEN


def test_the_range_holds_merged_in_commits_and_every_commit_stands_after_its_parents(graph, store):
    ids = graph.ids
    found = graph.names(commits_between(store, ids["b"], ids["g"]))
    assert sorted(found) == ["c", "d", "e", "f", "g"]
    assert found.index("d") < found.index("e") < found.index("f")
    assert found[-1] == "g"
    assert commits_between(store, ids["g"], ids["g"]) == ()
    assert commits_between(store, ids["g"], ids["b"]) == ()


def test_ancestors_and_merge_bases(graph, store):
    ids = graph.ids
    assert is_ancestor(store, ids["a"], ids["g"])
    assert is_ancestor(store, ids["g"], ids["g"])
    assert not is_ancestor(store, ids["g"], ids["a"])
    assert graph.names(merge_bases(store, ids["c"], ids["e"])) == ["a"]
    assert graph.names(merge_bases(store, ids["b"], ids["g"])) == ["b"]


def test_a_criss_cross_has_two_merge_bases_and_unrelated_histories_none(repo, store):
    graph = Graph(repo)
    for name, parents in {"a": (), "b": "a", "c": "a", "d": ("b", "c"), "e": ("c", "b"), "x": ()}.items():
        graph.commit(name, *parents)
    assert sorted(graph.names(merge_bases(store, graph.ids["d"], graph.ids["e"]))) == ["b", "c"]
    assert merge_bases(store, graph.ids["a"], graph.ids["x"]) == ()


def test_a_shallow_edge_is_a_missing_parent_and_never_a_root(graph, repo):
    ids = graph.ids
    with without(repo, ids["a"]) as store:
        assert graph.names(missing_parents(store, [ids["b"], ids["d"], ids["g"]])) == ["a"]
        for question in (
            lambda: first_parent_line(store, ids["g"], stop="0" * 40),
            lambda: is_ancestor(store, "0" * 40, ids["g"]),
            lambda: merge_bases(store, ids["c"], ids["e"]),
            lambda: commits_between(store, ids["a"], ids["g"]),
        ):
            with pytest.raises(NotFound) as caught:
                question()
            assert caught.value.code is ErrorCode.HISTORY_UNAVAILABLE


def test_a_range_is_complete_as_soon_as_what_lies_below_its_start_does_not_matter(graph, repo):
    ids = graph.ids
    with without(repo, ids["a"], ids["b"], ids["d"]) as store:
        assert graph.names(commits_between(store, ids["f"], ids["g"])) == ["g"]
        assert sorted(graph.names(reachable(store, [ids["g"]]))) == ["c", "e", "f", "g"]


def test_a_library_view_of_a_shallow_copy_is_not_used(graph, repo):
    ids = graph.ids
    repo.git_dir.joinpath("shallow").write_text(f"{ids['c']}\n")
    with ObjectStore.open(repo.git_dir) as store:
        assert graph.names(store.links(ids["c"]).parents) == ["b"]


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_git_in_random_histories(repo, open_store, seed):
    dice = random.Random(seed)
    graph = Graph(repo)
    for number in range(40):
        known = list(graph.ids)
        parents = dice.sample(known[-8:], min(len(known), dice.choice((1, 1, 1, 2)))) if known else []
        graph.commit(f"c{number}", *parents)
    store = open_store(repo)
    for _ in range(25):
        one, other = dice.sample(list(graph.ids.values()), 2)
        bases = merge_bases(store, one, other)
        assert set(bases) == set(repo.git("merge-base", "--all", one, other).split() if bases else ())
        assert set(commits_between(store, one, other)) == set(repo.git("rev-list", other, f"^{one}").split())
        assert is_ancestor(store, one, other) == (one in repo.git("rev-list", other).split())


@pytest.mark.parametrize("seed", range(6))
def test_wrong_committer_times_never_take_a_commit_out_of_the_range(repo, open_store, seed):
    dice = random.Random(seed)
    graph = Graph(repo)
    for number in range(40):
        known = list(graph.ids)
        parents = dice.sample(known[-6:], min(len(known), dice.choice((1, 1, 2)))) if known else []
        graph.commit(f"c{number}", *parents, time=dice.randrange(10_000))
    store = open_store(repo)
    ids = list(graph.ids.values())
    for _ in range(25):
        one, other = dice.sample(ids, 2)
        found = set(commits_between(store, one, other))
        everything = set(repo.git("rev-list", other).split())
        assert everything - set(repo.git("rev-list", one).split()) <= found <= everything
