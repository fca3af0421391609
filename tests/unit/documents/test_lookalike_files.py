"""Files that some checkout takes for each other are told, and held by nobody (faults X12 and X14)."""

import pytest

from gitops_ctl.core.foldedname import folded
from gitops_ctl.documents.tree import TreeFile, select


def told(*paths):
    """File and message of each warning."""
    found = select([TreeFile(path, 0o100644) for path in paths], path="", ignores=())
    assert [entry.path for entry in found.files] == sorted(paths)
    assert not any(problem.is_error for problem in found.problems)
    return [(problem.file, problem.message) for problem in found.problems]


def test_a_file_in_a_folder_that_a_checkout_takes_for_a_governed_one_is_told():
    ((file, message),) = told("clusters/a.yaml", "Clusters/b.yaml")
    assert file == "Clusters/b.yaml"
    assert "'Clusters/b.yaml' for 'clusters'" in message


def test_two_odd_names_are_told_at_the_second():
    ((file, message),) = told("Sites/a.yaml", "SITES/b.yaml", "x/y.yaml")
    assert file == "Sites/a.yaml"
    assert "for 'SITES'" in message


@pytest.mark.parametrize(
    ("one", "other"),
    [("sites/A.yaml", "sites/a.yaml"), ("a/b/c.yaml", "a/B/c.yaml"), ("x.yaml", "\uff58.yaml")],
    ids=["case of a name", "case of a folder", "a wide letter"],
)
def test_two_files_that_a_checkout_takes_for_each_other_are_told_once(one, other):
    assert len(told(one, other, "elsewhere.yaml")) == 1


def test_files_that_differ_are_no_lookalikes():
    assert told("a/x.yaml", "a/y.yaml", "b/x.yaml", "a.yaml", "ab/x.yaml", "r\u00e4ck.yaml", "rack.yaml") == []


def test_a_very_deep_path_is_looked_at_like_any_other():
    deep = "/".join(["a"] * 2000)
    assert len(told(f"{deep}/x.yaml", f"{deep}/X.yaml")) == 1
    assert len(told(f"{deep}/Y.yaml", f"{deep}/X.yaml")) == 0


def test_marks_that_nobody_sees_do_not_count_as_they_are_and_as_they_are_shown():
    assert folded("ra\u202eck") == folded("ra\\u202eck") == folded("RACK ") == "rack"
