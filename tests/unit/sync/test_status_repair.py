"""A status that this process did not leave so is written again, without anybody asking for a pass."""

from pathlib import Path

from gitops_ctl.api.names import API_VERSION, FIELD_MANAGER_STATUS
from tests.doubles.apiserver import FakeApiServer
from tests.support.sync_cluster import fake_bench, until

STALE = "0" * 40


async def test_H13_a_late_status_of_a_replaced_process_is_put_right(tmp_path: Path) -> None:
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as site:
        commit = site.push(site.config_maps(1))
        await site.sync()
        await site.until_ready()
        await site.until_idle()
        path = f"/apis/{API_VERSION}/namespaces/{site.namespace}/syncs/site"
        body = {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": "site", "namespace": site.namespace},
            "status": {**await site.status(), "lastAppliedRevision": STALE},
        }
        await site.admin.apply(path, body, manager=FIELD_MANAGER_STATUS, subresource="status", force=True)

        async def right() -> bool:
            return (await site.status())["lastAppliedRevision"] == commit

        assert (await site.status())["lastAppliedRevision"] in (STALE, commit)
        await until(right, what="the status says what is true")
        await site.until_idle()
