"""The shapes of built-in kinds that the double ships are those that a real server publishes today."""

from typing import Any

import pytest

from tests.doubles.apiserver.builtin_kinds import BUILTIN_KINDS
from tests.doubles.apiserver.generate import FILE, rendered, select

pytestmark = [pytest.mark.contract, pytest.mark.cluster]


def test_the_file_of_shapes_is_what_the_server_says(control_plane: Any) -> None:
    paths = {f"apis/{kind.group}/{kind.version}" if kind.group else "api/v1" for kind in BUILTIN_KINDS}
    documents = [control_plane.request("GET", f"/openapi/v3/{path}").body for path in sorted(paths)]
    kinds = [(kind.group, kind.version, kind.kind) for kind in BUILTIN_KINDS]
    assert rendered(select(documents, kinds=kinds)) == FILE.read_text(encoding="utf-8")


def test_scope_and_status_of_each_kind_are_what_discovery_says(control_plane: Any) -> None:
    for kind in BUILTIN_KINDS:
        path = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        found = {item["name"]: item for item in control_plane.request("GET", path).body["resources"]}
        entry = found[kind.plural]
        assert (entry["kind"], entry["namespaced"]) == (kind.kind, kind.namespaced)
        assert tuple(entry.get("shortNames", ())) == kind.short_names
        assert (f"{kind.plural}/status" in found) is kind.has_status, kind
