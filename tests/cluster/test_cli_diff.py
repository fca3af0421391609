"""`gitops-ctl diff` on the real API server, beside a running product.

In scope: what it says about a work tree and a commit, exit codes, that it writes nothing and shows no secret.  Out of scope: what a
Sync then does (test_sync_*.py), the pure parts (tests/unit/cli).
"""

import base64
from typing import Any

import pytest

from tests.support.authority import talos
from tests.support.cli import Done, run_cli
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.product import Product, config_map, people, product_world  # noqa: F401

pytestmark = pytest.mark.cluster

HIDDEN = "correct-horse-battery"


class Diff:
    """The command in the checkout of a tenant."""

    def __init__(self, world: Product, plane: ControlPlaneHandle) -> None:
        self.world = world
        self._plane = plane

    async def __call__(self, *arguments: str) -> Done:
        chosen = ("diff", "site", "-n", self.world.namespace, *arguments)
        return await run_cli(*chosen, kubeconfig=self._plane.kubeconfig, cwd=self.world.repo.path)

    async def actions(self, *arguments: str) -> dict[str, str]:
        """Name of each object to what would become of it."""
        done = await self("-o", "json", *arguments)
        assert done.err == ""
        return {item["object"].rpartition("/")[2]: item["action"] for item in done.json["items"]}


@pytest.fixture
def diff(world: Product, control_plane: ControlPlaneHandle) -> Diff:
    return Diff(world, control_plane)


def secret(name: str, value: str) -> str:
    data = base64.b64encode(value.encode()).decode()
    return (
        f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ndata: {{password: {data}, same: c2FtZQ==}}\n"
    )


async def test_an_equal_checkout_ends_with_0_and_says_so(world: Product, diff: Diff) -> None:
    done = await diff()
    assert (done.code, done.err) == (0, "")
    assert done.out == f"ACTION   OBJECT   PLACE   REASON\n\n{world.namespace}/site: 1 same\n"


async def test_a_work_tree_shows_what_would_be_made_changed_and_pruned_and_nothing_is_written(
    world: Product, diff: Diff, audit_log: AuditLog
) -> None:
    await world.until_applied(world.push({"site/old.yaml": config_map("old"), "site/more.yaml": config_map("more")}))
    world.repo.write("site/new.yaml", config_map("new"))
    world.repo.write("site/base.yaml", config_map("base", "2"))
    (world.repo.path / "site/old.yaml").unlink()
    audit_log.mark()

    done = await diff()

    name = f"ConfigMap/{world.namespace}"
    assert done.code == 2, done.err
    assert done.out.splitlines()[1:] == [
        *_rows(
            ("create", f"{name}/new", "site/new.yaml:2"),
            ("change", f"{name}/base", "site/base.yaml:2"),
            ("prune", f"{name}/old", ""),
        ),
        "",
        f"{name}/base",
        "  /data/value: '1' -> '2'",
        "",
        *[line for line in done.out.splitlines() if line.startswith("set to prune: sha256:")],
        "",
        f"{world.namespace}/site: 1 create, 1 change, 1 prune, 1 same",
    ]
    real = [entry for entry in audit_log.writes(user_agent="cli") if "dryRun=All" not in entry["requestURI"]]
    assert real == []
    assert await world.config_map("base") == "1"
    assert (await diff("-o", "name")).out.splitlines() == [f"{name}/new", f"{name}/base", f"{name}/old"]


def _rows(*rows: tuple[str, str, str]) -> list[str]:
    widths = [max(len(row[i]) for row in (("ACTION", "OBJECT", "PLACE"), *rows)) for i in range(3)]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


async def test_the_set_to_prune_is_the_one_that_the_sync_asks_a_consent_for(world: Product, diff: Diff) -> None:
    names = [f"n{number}" for number in range(8)]
    await world.until_applied(world.push({f"site/{name}.yaml": config_map(name) for name in names}))
    for name in names:
        (world.repo.path / f"site/{name}.yaml").unlink()
    done = await diff("-o", "json")
    assert done.code == 1
    assert {item["action"] for item in done.json["items"]} == {"kept", "same"}
    digest = done.json["prune"]["digest"]
    assert digest in done.json["prune"]["blocked"]

    world.push(delete=[f"site/{name}.yaml" for name in names])
    blocked = await world.until_reason("PruneBlocked", sync="site")
    assert digest in blocked["message"]
    assert (await diff("--revision", "HEAD~1")).code == 0


async def test_drift_is_shown_where_the_sync_does_not_repair_it(world: Product, diff: Diff) -> None:
    await world.sync(drift="Report")
    await world.set_config_map("base", "by hand")
    done = await diff()
    assert done.code == 2
    assert "  /data/value: 'by hand' -> '1'" in done.out.splitlines()


async def test_secret_values_are_never_shown_and_their_change_is(world: Product, diff: Diff) -> None:
    await world.until_applied(world.push({"site/login.yaml": secret("login", HIDDEN)}))
    world.repo.write("site/login.yaml", secret("login", "another-value-of-it"))
    done = await diff()
    assert done.code == 2
    assert "  /data/password: '[redacted]' -> '[redacted]'" in done.out.splitlines()
    texts = [done.out + done.err] + [(await diff("-o", form)).out for form in ("json", "yaml", "wide")]
    for value in (HIDDEN, "another-value-of-it"):
        for text in texts:
            assert value not in text
            assert base64.b64encode(value.encode()).decode() not in text


async def test_an_error_in_a_document_holds_its_object_and_the_prune(world: Product, diff: Diff) -> None:
    await world.until_applied(world.push({"site/old.yaml": config_map("old")}))
    (world.repo.path / "site/old.yaml").unlink()
    world.repo.write("site/base.yaml", config_map("base").replace('"1"', "1"))
    done = await diff("-o", "json")
    assert done.code == 1
    found = {item["object"].rpartition("/")[2]: item for item in done.json["items"]}
    assert (found["base"]["action"], found["base"]["reason"]) == ("held", "DocumentInvalid")
    assert (found["base"]["file"], found["base"]["line"]) == ("site/base.yaml", 7)
    assert found["old"]["action"] == "kept"
    assert done.json["prune"]["blocked"] == "nothing is pruned while a document of the unit has an error"


async def test_fields_of_others_and_immutable_fields_are_held(world: Product, diff: Diff) -> None:
    path = f"/api/v1/namespaces/{world.namespace}"
    await world.admin.apply(
        f"{path}/configmaps/theirs",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"value": "0"}},
        manager="somebody",
    )
    fixed = config_map("fixed") + "immutable: true\n"
    await world.until_applied(world.push({"site/fixed.yaml": fixed}))
    world.repo.write("site/fixed.yaml", fixed.replace('"1"', '"2"'))
    world.repo.write("site/theirs.yaml", config_map("theirs"))
    done = await diff("-o", "json")
    found = {item["object"].rpartition("/")[2]: item for item in done.json["items"]}
    assert (found["theirs"]["action"], found["theirs"]["reason"]) == ("held", "FieldConflict")
    assert "of somebody" in found["theirs"]["message"]
    assert found["fixed"]["reason"] == "RecreateRequired"
    uid = (await world.admin.get(f"{path}/configmaps/fixed"))["metadata"]["uid"]  # type: ignore[index,call-overload]
    assert f"gitops-ctl.dev/recreate: {uid}" in found["fixed"]["message"]


async def test_an_object_that_moved_to_another_sync_of_the_source_is_not_pruned(world: Product, diff: Diff) -> None:
    await world.sync("other", path="elsewhere")
    await world.until_applied(world.push({"site/moves.yaml": config_map("moves"), "elsewhere/a.yaml": config_map("a")}))
    (world.repo.path / "site/moves.yaml").rename(world.repo.path / "elsewhere/moves.yaml")
    shown = await diff("-o", "json")
    assert shown.json["prune"]["digest"] == ""
    assert [item["action"] for item in shown.json["items"] if item["object"].endswith("/moves")] in ([], ["kept"])
    world.repo.write("site/a.yaml", config_map("a"))
    done = await diff("-o", "json")
    held = next(item for item in done.json["items"] if item["object"].endswith("/a"))
    assert (held["action"], held["reason"]) == ("held", "OwnedElsewhere")


async def test_new_namespaces_and_kinds_are_created_with_what_needs_them(world: Product, diff: Diff) -> None:
    fresh = f"{world.namespace}-2"
    world.repo.write(
        "site/fresh.yaml",
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {fresh}}}\n"
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: inside, namespace: {fresh}}}\ndata: {{a: b}}\n"
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: lost, namespace: {fresh}-3}}\ndata: {{a: b}}\n",
    )
    actions = await diff.actions()
    assert {name: actions[name] for name in (fresh, "inside", "lost")} == {
        fresh: "create",
        "inside": "create",
        "lost": "held",
    }


async def test_as_sync_asks_with_the_rights_of_the_account(world: Product, diff: Diff, audit_log: AuditLog) -> None:
    account = f"system:serviceaccount:{world.namespace}:applier"
    world.repo.write("site/new.yaml", config_map("new"))
    audit_log.mark()
    assert (await diff("--as-sync")).code == 2
    asked: list[Any] = audit_log.writes(user=account, user_agent="cli")
    assert sorted(entry["objectRef"]["name"] for entry in asked) == ["base", "new"]
    await world.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{world.namespace}")
    refused = await diff("--as-sync", "-o", "json")
    assert refused.code == 1
    assert {(item["action"], item["reason"]) for item in refused.json["items"]} == {("unknown", "Forbidden")}


async def test_what_cannot_be_compared_is_one_clear_error(world: Product, diff: Diff) -> None:
    missing = await diff("--revision", "no-such-branch")
    assert (missing.code, missing.out) == (1, "")
    assert "there is no commit 'no-such-branch'" in missing.err
    await world.sync("other", path="elsewhere")
    plane = diff._plane
    several = await run_cli("diff", "-n", world.namespace, kubeconfig=plane.kubeconfig, cwd=world.repo.path)
    assert "the namespace has several Syncs: other, site" in several.err
    unknown = await run_cli("diff", "lab", "-n", world.namespace, kubeconfig=plane.kubeconfig, cwd=world.repo.path)
    assert "there are: other, site" in unknown.err
    nowhere = await run_cli("diff", "other", "-n", world.namespace, kubeconfig=plane.kubeconfig, cwd=world.repo.path)
    assert "there is no folder elsewhere" in nowhere.err


async def test_a_switch_without_consent_is_held_in_the_words_of_the_sync(world: Product, diff: Diff) -> None:
    await world.until_applied(world.push({"site/one.yaml": talos("enabled")}))
    world.repo.write("site/one.yaml", talos("replaced"))
    done = await diff("-o", "json")
    assert (done.code, done.err) == (1, "")
    (held,) = [item for item in done.json["items"] if item["action"] == "held"]
    assert held["reason"] == "ConsentMissing"
    assert "under metadata.annotations belongs ichor.maesh.dev/confirm-kube-proxy-switch: replaced" in held["message"]
    world.repo.write("site/one.yaml", talos("replaced", "replaced"))
    assert (await diff.actions())["one"] == "change"
