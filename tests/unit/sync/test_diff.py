"""What differs between a live object and the answer of a dry run, and what must never be shown."""

from typing import Any

import pytest

from gitops_ctl.sync.diff import Difference, differences, last_writer, rendered
from gitops_ctl.sync.driftreport import compared


def an(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **members}


@pytest.mark.parametrize(
    ("live", "wanted", "pointers"),
    [
        (an(data={"k": "1"}), an(data={"k": "2"}), ["/data/k"]),
        (an(data={"k": "1"}), an(), ["/data"]),
        (an(data={"a/b": "1"}), an(data={"a/b": "2"}), ["/data/a~1b"]),
        (an(status={"x": 1}), an(status={"x": 2}), []),
        (
            an(spec={"ports": [{"name": "a"}, {"name": "b", "port": 1}]}),
            an(spec={"ports": [{"name": "b", "port": 2}, {"name": "a"}]}),
            ["/spec/ports/name=b/port"],
        ),
        (an(spec={"args": ["x", "y"]}), an(spec={"args": ["y", "x"]}), ["/spec/args"]),
    ],
    ids=["value", "member", "escaped", "status is left out", "lists with keys", "lists with an order"],
)
def test_every_place_that_differs_is_named_once(live: Any, wanted: Any, pointers: list[str]) -> None:
    assert [item.pointer for item in differences(live, wanted)] == pointers


def test_metadata_of_the_server_is_no_difference() -> None:
    live = an()
    live["metadata"] = {"name": "a", "resourceVersion": "1", "uid": "u", "generation": 3, "managedFields": [{}]}
    assert differences(live, an()) == ()


def test_of_a_secret_only_the_keys_are_shown() -> None:
    live = {**an(data={"a": "b2xk", "same": "eA=="}), "kind": "Secret"}
    wanted = {**an(data={"a": "bmV3", "same": "eA=="}), "kind": "Secret"}
    assert compared(live, wanted) == (Difference("/data/a", None, None),)


def test_a_change_of_a_secret_member_is_told_and_its_value_is_not() -> None:
    live = an(spec={"password": "old-value", "env": [{"name": "DB_PASSWORD", "value": "old-value"}]})
    wanted = an(spec={"password": "new-value", "env": [{"name": "DB_PASSWORD", "value": "new-value"}], "size": 1})
    lines = rendered(differences(live, wanted))
    assert [line.partition(":")[0] for line in lines] == [
        "/spec/env/name=DB_PASSWORD/value",
        "/spec/password",
        "/spec/size",
    ]
    assert "old-value" not in str(lines)
    assert "new-value" not in str(lines)
    assert lines[2] == "/spec/size: (nothing) -> 1"


def test_the_last_writer_is_the_newest_manager_that_is_not_ours() -> None:
    managers = [
        {"manager": "gitops-ctl", "time": "2026-11-30T09:00:00Z"},
        {"manager": "kubectl-edit", "time": "2026-11-30T08:30:00Z"},
        {"manager": "old", "time": "2026-11-30T08:00:00Z"},
        {"manager": "controller", "time": "2026-11-30T10:00:00Z", "subresource": "status"},
    ]
    tree = {"metadata": {"managedFields": managers}}
    assert last_writer(tree, but="gitops-ctl") == "kubectl-edit"
    assert last_writer({}, but="gitops-ctl") == ""
