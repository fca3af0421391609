"""The strict parser of trees: names, modes, order.  Walks and differences: test_trees.py."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.entries import EXECUTABLE, FILE, GITLINK, SYMLINK, TreeEntry
from gitops_ctl.git.objects import object_id_of, parse_tree
from tests.support.git_repos import RepoBuilder, tree_bytes

BLOB = "ce013625030ba8dba906f756967f9e9ca394464a"


def entries_of(*entries):
    data = tree_bytes(*entries)
    return parse_tree(object_id_of("tree", data), data)


def refusal_of(*entries):
    with pytest.raises(Refused) as caught:
        entries_of(*entries)
    assert caught.value.code is ErrorCode.MALFORMED_OBJECT
    return caught.value.message


def test_a_tree_that_git_wrote_is_read_as_git_shows_it(tmp_path):
    repo = RepoBuilder(tmp_path)
    repo.commit({"a/b.yaml": "1", "a.yaml": "2", "a-b": "3", "run.sh": "4", ".gitignore": "5", "größe": "6"})
    repo.path.joinpath("run.sh").chmod(0o755)
    repo.path.joinpath("link").symlink_to("a.yaml")
    repo.commit()
    shown = [line.split(None, 3) for line in repo.git("ls-tree", "-z", "HEAD").split("\0") if line]
    data = repo.raw(repo.tree(), "tree")
    assert parse_tree(repo.tree(), data) == tuple(
        TreeEntry(name.encode(errors="surrogateescape").decode(), int(mode, 8), oid) for mode, _, oid, name in shown
    )


def test_each_mode_that_git_writes_is_known():
    found = entries_of((FILE, b"a", BLOB), (EXECUTABLE, b"b", BLOB), (SYMLINK, b"c", BLOB), (GITLINK, b"d", BLOB))
    assert [entry.is_file for entry in found] == [True, True, False, False]


@pytest.mark.parametrize(
    "name",
    [
        ".git", ".GIT", ".GiT", "git~1", "GIT~1", "git~2", ".git ", ".git.", ".git. .", ".git:x", ".git::$INDEX_ALLOCATION",
        ".git\u200c", ".g\u200cit", "\ufeff.git", ".gi\u202at", ".", "..",
    ],
)  # fmt: skip
def test_X12_names_that_become_the_git_folder_are_refused(name):
    assert "an entry is named" in refusal_of((FILE, name.encode(), BLOB))
    assert "an entry is named" in refusal_of((0o40000, name.encode(), BLOB))


@pytest.mark.parametrize("name", [b"a/b", b"a\\b", b"..\\x", b""], ids=["slash", "backslash", "backslash up", "empty"])
def test_X12_names_of_several_parts_are_refused(name):
    assert "one path segment" in refusal_of((FILE, name, BLOB))


@pytest.mark.parametrize("name", [".gitignore", ".gitmodules", "git", "git~", "git~a", ".gitx", "x.git", "...", "..a"])
def test_names_that_only_look_alike_are_allowed(name):
    assert entries_of((FILE, name.encode(), BLOB))[0].name == name


@pytest.mark.parametrize("mode", [0o100664, 0o100600, 0o120777, 0o0, 0o40755])
def test_unknown_modes_are_refused(mode):
    assert "has the mode" in refusal_of((mode, b"a", BLOB))


def test_a_zero_padded_mode_is_refused():
    data = b"040000 a\0" + bytes.fromhex(BLOB)
    with pytest.raises(Refused, match="has the mode '040000'"):
        parse_tree(object_id_of("tree", data), data)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([(FILE, b"b", BLOB), (FILE, b"a", BLOB)], "order"),
        ([(0o40000, b"a", BLOB), (FILE, b"a.b", BLOB)], "order"),
        ([(FILE, b"a", BLOB), (FILE, b"a", BLOB)], "twice"),
        ([(FILE, b"a", BLOB), (FILE, b"a.b", BLOB), (0o40000, b"a", BLOB)], "twice"),
    ],
    ids=["files", "folder sorts with a slash", "same name", "file and folder"],
)
def test_wrong_order_and_repeated_names_are_refused(entries, words):
    assert words in refusal_of(*entries)


def test_a_truncated_tree_is_refused():
    data = tree_bytes((FILE, b"a", BLOB), (FILE, b"b", BLOB))[:-1]
    with pytest.raises(Refused, match="ends within the entry 'b'"):
        parse_tree(object_id_of("tree", data), data)


def test_names_that_are_not_text_are_shown_with_escapes():
    names = [entry.name for entry in entries_of((FILE, b"a\x1bb", BLOB), (FILE, b"\xff", BLOB))]
    assert names == ["a\\x1bb", "\\xff"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x85b", "a\\u0085b"),
        ("a\x9b31mb", "a\\u009b31mb"),
        ("gpj.\u202elmay", "gpj.\\u202elmay"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("a\u2028b", "a\\u2028b"),
        ("r\u00e4ck\u00a0\u200d", "r\u00e4ck\u00a0\u200d"),
    ],
    ids=["next line", "escape of eight bits", "right to left", "isolate", "line separator", "letters and joiners"],
)
def test_names_that_would_move_a_cursor_or_turn_a_line_are_shown_with_escapes(name, shown):
    assert [entry.name for entry in entries_of((FILE, name.encode(), BLOB))] == [shown]


def test_two_names_are_never_shown_alike():
    names = [entry.name for entry in entries_of((FILE, b"a\x85", BLOB), (FILE, "a\x85".encode(), BLOB))]
    assert len(set(names)) == 2
