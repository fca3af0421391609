"""`status`, `explain`, `events`, `suspend`, `resume`, `reconcile` and `report` against a running product.

In scope: what they say about real objects.  Out of scope: the pure parts (tests/unit/cli).
"""

import asyncio
import base64
import json
import signal
import sys
from pathlib import Path

import pytest
import yaml

from gitops_ctl.kube.events import EventRecorder
from tests.support.cli import Done, run_cli
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.product import ADMIN, AUTHOR, PLATFORM, Product, config_map, people, product_world  # noqa: F401
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


class Desk:
    """The commands in the checkout of a tenant."""

    def __init__(self, world: Product, plane: ControlPlaneHandle) -> None:
        self.world = world
        self._plane = plane

    async def __call__(self, *arguments: str, anywhere: Path | None = None) -> Done:
        cwd = anywhere or self.world.repo.path
        return await run_cli(*arguments, "-n", self.world.namespace, kubeconfig=self._plane.kubeconfig, cwd=cwd)


@pytest.fixture
def desk(world: Product, control_plane: ControlPlaneHandle) -> Desk:
    return Desk(world, control_plane)


async def test_status_is_0_when_all_is_ready_and_names_revision_and_reason(world: Product, desk: Desk) -> None:
    done = await desk("status")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()[1:]]
    assert [row[:6] for row in rows] == [
        ["GitSource", world.namespace, "network", "True", "Succeeded", world.root[:12]],
        ["Sync", world.namespace, "site", "True", "Succeeded", world.root[:12]],
    ]
    assert (await desk("status", "-o", "name")).out == "gitsource/network\nsync/site\n"


async def test_status_says_which_commit_is_refused_why_and_by_which_rule(world: Product, desk: Desk) -> None:
    commit = world.push({"site/base.yaml": config_map("base", "2")}, by=AUTHOR)
    await world.until_reason("PathNotAuthorised")
    done = await desk("status")
    assert done.code == 1
    lines = done.out.splitlines()
    start = lines.index(f"GitSource/{world.namespace}/network: refused commit {commit[:12]}")
    assert lines[start + 1 : start + 4] == [
        "  reason: PathNotAuthorised",
        "  path:   site/base.yaml",
        "  verb:   edit",
    ]
    item = (await desk("status", "-o", "json")).json["items"][0]
    assert item["rejected"]["commit"] == commit
    assert item["revision"] == world.root


async def test_status_lists_held_objects_with_their_place(world: Product, desk: Desk) -> None:
    world.push({"site/broken.yaml": config_map("broken").replace('"1"', "1")})
    await world.until_reason("ObjectsHeld", sync="site")
    done = await desk("status")
    assert done.code == 1
    held = f"  ConfigMap/{world.namespace}/broken (site/broken.yaml:7): DocumentInvalid: "
    assert any(line.startswith(held) for line in done.out.splitlines())


async def test_status_watch_shows_each_change_and_ends_with_ctrl_c(
    world: Product, control_plane: ControlPlaneHandle
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(
            "-m",
            "gitops_ctl",
            "status",
            "--watch",
            "-n",
            world.namespace,
            "--kubeconfig",
            str(control_plane.kubeconfig),
        ),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        await _line_with(process.stdout, world.root[:12])
        commit = world.push({"site/base.yaml": config_map("base", "2")})
        await _line_with(process.stdout, commit[:12])
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 30) == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _line_with(stream: asyncio.StreamReader, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in (line := (await stream.readline()).decode()):
            assert line, "the command ended"


async def test_explain_in_the_checkout_names_file_commit_signer_and_rule(world: Product, desk: Desk) -> None:
    commit = world.push({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    await world.until_applied(commit)
    name = f"ConfigMap/{world.namespace}/a"
    done = await desk("explain", name, "-o", "json")
    assert (done.code, done.err) == (0, "")
    facts = done.json
    assert facts["object"] == name
    assert facts["owner"] == f"Sync/{world.namespace}/site"
    assert facts["accepted"] == commit
    assert facts["file"] == "site/config/a.yaml:2"
    assert facts["drift"] == "none reported"
    assert facts["lastApply"].endswith("Z")
    assert facts["commit"]["commit"] == commit
    text = (await desk("explain", name)).out
    assert AUTHOR in text
    assert "edit" in text
    assert f"{AUTHOR}-role" in text


async def test_explain_says_the_same_reason_as_the_status_of_a_held_object(world: Product, desk: Desk) -> None:
    await world.until_applied(world.push({"site/a.yaml": config_map("a")}))
    world.push({"site/a.yaml": config_map("a").replace('"1"', "1")})
    await world.until_reason("ObjectsHeld", sync="site")
    (held,) = (await world.sync_status("site"))["held"]
    facts = (await desk("explain", held["object"], "-o", "json")).json
    assert facts["held"] == f"{held['reason']}: {held['message']}"
    assert facts["place"] == "site/a.yaml:7"


async def test_explain_says_drift_and_who_made_it(world: Product, desk: Desk) -> None:
    await world.sync(drift="Report")
    await world.set_config_map("base", "by hand")

    async def drifted() -> bool:
        return bool((await world.sync_status("site")).get("drift"))

    await until(drifted, what="the drift is reported")
    facts = (await desk("explain", f"ConfigMap/{world.namespace}/base", "-o", "json")).json
    assert facts["drift"] == "Changed /data/value somebody"


async def test_explain_outside_of_a_checkout_says_so_and_the_rest(world: Product, desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    facts = (await desk("explain", f"ConfigMap/{world.namespace}/base", "-o", "json", anywhere=outside)).json
    assert facts["history"].startswith("not looked up: ")
    assert facts["applied"] == world.root
    stranger = (await desk("explain", f"ConfigMap/{world.namespace}/kube-root-ca.crt", "-o", "json")).json
    assert stranger["owner"] == "no Sync of gitops-ctl"


async def test_events_shows_the_newest_last_and_only_those_of_our_kinds(world: Product, desk: Desk) -> None:
    recorder = EventRecorder(world.manager, instance="tests")
    running = asyncio.create_task(recorder.run())
    source = await world.admin.get(world.source_path)
    other = await world.admin.get(f"/api/v1/namespaces/{world.namespace}/configmaps/base")
    try:
        recorder.emit(other, type="Normal", reason="Strange", action="Sync", note="of another kind")
        for number in ("1", "2"):
            recorder.emit(source, type="Warning", reason=f"Refused{number}", action="Verify", note=f"note {number}")

            async def told(text: str = f"note {number}") -> bool:
                return text in (await desk("events")).out

            await until(told, what=f"event {number}")
        done = await desk("events")
        name = f"GitSource/{world.namespace}/network"
        assert [line.split(maxsplit=1)[1].split("   ") for line in done.out.splitlines()[1:]] == [
            ["Warning", "Refused1", name, "note 1"],
            ["Warning", "Refused2", name, "note 2"],
        ]
        newest = await desk("events", "--limit", "1", "-o", "json")
        assert [item["reason"] for item in newest.json["items"]] == ["Refused2"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_suspended_sync_applies_nothing_until_it_is_resumed(world: Product, desk: Desk) -> None:
    done = await desk("suspend", "gsync/site")
    assert (done.code, done.out) == (0, f"Sync/{world.namespace}/site suspended\n")
    asked = await desk("reconcile", "gsync/site")
    assert asked.code == 0
    assert f"note: Sync/{world.namespace}/site is suspended, so nothing was fetched or applied" in asked.out
    assert "those of the last pass" in (await desk("status")).out
    await world.until_reason("Suspended", sync="site")
    commit = world.push({"site/base.yaml": config_map("base", "2")})
    await world.until_accepted(commit)
    assert await world.config_map("base") == "1"
    resumed = await desk("resume", "gsync/site")
    assert resumed.out == f"Sync/{world.namespace}/site resumed\n"
    await world.until_applied(commit)


async def test_reconcile_asks_and_waits_for_the_answer(world: Product, desk: Desk) -> None:
    commit = world.commit({"site/base.yaml": config_map("base", "2")})
    name = f"GitSource/{world.namespace}/network"
    done = await desk("reconcile", "gsrc/network")
    assert (done.code, done.out) == (0, f"{name} requested\n{name} answered\n")
    assert await world.accepted() == commit
    await world.stop()
    late = await desk("reconcile", "gsync/site", "--timeout", "0.5")
    assert late.code == 1
    assert "no answer within 0.5 s" in late.err


async def test_the_report_is_one_file_with_the_state_and_no_secret(world: Product, desk: Desk, tmp_path: Path) -> None:
    hidden = "correct-horse-battery"
    data = base64.b64encode(hidden.encode()).decode()
    secret = f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\ndata: {{password: {data}}}\n"
    await world.until_applied(world.push({"site/login.yaml": secret}))
    refused = world.push({"site/login.yaml": config_map("x")}, by=AUTHOR)
    await world.until_reason("PathNotAuthorised")
    file = tmp_path / "report.html"
    done = await desk("report", "--file", str(file))
    assert (done.code, done.out, done.err) == (0, "", f"written to {file}\n")
    page = file.read_text()
    assert refused in page
    assert "PathNotAuthorised" in page
    assert hidden not in page
    assert data not in page
    embedded = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert [item["name"] for item in embedded["syncs"]] == ["site"]
    nowhere = await desk("report", "--file", str(tmp_path / "no/such/folder.html"))
    assert (nowhere.code, nowhere.err.splitlines()[0]) == (1, "error GC9002 usage")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("suspend", "deployment/site"), "is not <kind>/<name>"),
        (("resume", "gsync/none"), "none"),
        (("explain", "Nonsense/a/b/c/d"), "write ConfigMap/network/site-a"),
        (("explain", "Frobnicator/lab/a"), "Frobnicator"),
    ],
    ids=["kind", "absent", "form", "unknown"],
)
async def test_a_wrong_name_is_one_clear_error(desk: Desk, arguments: tuple[str, ...], said: str) -> None:
    done = await desk(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error GC")
    assert said in done.err


async def test_rights_are_those_that_the_account_was_seen_to_use_and_those_that_it_lacks(
    world: Product, desk: Desk, audit_log: AuditLog
) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await world.admin.delete(f"{rbac}/clusterrolebindings/{world.namespace}")
    meta = {"name": "a", "namespace": world.namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
    commit = world.push({"site/a.yaml": config_map("a"), "site/lease.yaml": yaml.safe_dump(lease)})
    await world.until_reason("ObjectsHeld", sync="site")
    done = await desk("rights", "site")
    assert (done.code, done.err) == (0, "")
    role, binding, *own = yaml.safe_load_all(done.out)
    for tree in (role, binding):
        await world.admin.apply(f"{rbac}/{tree['kind'].lower()}s/{tree['metadata']['name']}", tree, manager="tests")
    try:
        await world.until_applied(commit)
    finally:
        for tree in (role, binding):
            await world.admin.delete(f"{rbac}/{tree['kind'].lower()}s/{tree['metadata']['name']}")
    granted = {
        (rule["apiGroups"][0], resource): set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]
    }
    used: dict[tuple[str, str], set[str]] = {}
    account = f"system:serviceaccount:{world.namespace}:applier"
    for entry in audit_log.entries(user=account, namespace=world.namespace):
        at = entry["objectRef"]
        used.setdefault((at.get("apiGroup", ""), at["resource"]), set()).add(entry["verb"])
    assert granted.keys() == used.keys() == {("", "configmaps"), ("coordination.k8s.io", "leases")}
    assert all(used[kind] <= granted[kind] for kind in used)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "applier", "namespace": world.namespace}]
    assert [tree["kind"] for tree in own] == ["Role", "RoleBinding"]


async def test_rights_of_a_sync_that_is_not_there_are_one_clear_error(world: Product, desk: Desk) -> None:
    done = await desk("rights", "missing")
    assert (done.code, done.out) == (1, "")
    assert "missing" in done.err
