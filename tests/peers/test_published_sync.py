"""Manifests that nobody here wrote, through the product on a real API server: applied, left alone, repaired, pruned.

One definition of Kueue has 1.4 MB.  In scope: published kinds as they are.  Out of scope: what `check` says about broken ones
(test_published_manifests.py).
"""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.names import ANNOTATION_OWNER_ID
from gitops_ctl.documents.checkcache import CheckCache
from gitops_ctl.documents.repository import CheckRequest, check_repository
from tests.support.cluster import AuditLog
from tests.support.published import published_manifests
from tests.support.sync_cluster import Bench, sync_site, until  # noqa: F401

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COHORTS = f"{CRDS}/cohorts.kueue.x-k8s.io"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture
async def published(site: Bench, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """File name in the repository to content; what they define is removed in the end."""
    folder = tmp_path / "published"
    files = {f"{file.parent.name}/{file.name}": file.read_text() for file in published_manifests(folder)}
    report = check_repository(CheckRequest(folder), cache=CheckCache(folder, folder=tmp_path / "checks"))
    assert report.problems == ()
    await _without_definitions(site, files.values())
    yield files
    await site.kill()
    for collection in (CRDS, ROLES, ROLES.replace("roles", "rolebindings")):
        for tree in (await site.admin.list_all(collection)).items:
            metadata: Any = tree["metadata"]
            if f"/{site.namespace}/" in metadata.get("annotations", {}).get(ANNOTATION_OWNER_ID, ""):
                await site.admin.delete(f"{collection}/{metadata['name']}")
    await _without_definitions(site, files.values())


async def _without_definitions(site: Bench, files: Iterable[str]) -> None:
    """Other tests define some of these kinds on the same server; here they are to be made."""
    names = {
        tree["metadata"]["name"]
        for text in files
        for tree in yaml.load_all(text, Loader=yaml.CSafeLoader)
        if tree and tree.get("kind") == "CustomResourceDefinition"
    }
    there = [name for name in sorted(names) if await site.admin.find(f"{CRDS}/{name}") is not None]
    for name in there:
        await site.admin.delete(f"{CRDS}/{name}")

    async def gone() -> bool:
        return all([await site.admin.find(f"{CRDS}/{name}") is None for name in there])

    await until(gone, what="the definitions of other tests are gone")


async def test_published_manifests_are_applied_left_alone_repaired_and_pruned(
    site: Bench, published: dict[str, str], audit_log: AuditLog
) -> None:
    site.push(published)
    await site.sync(targetNamespace=site.namespace, prune={"enabled": True})
    status = await site.until_ready(timeout_s=90)
    assert status["counts"]["held"] == 0
    count = status["counts"]["applied"]
    assert count >= 20
    names = {entry["name"] for entry in await site.inventory()}
    assert {"cohorts.kueue.x-k8s.io", "workloads.kueue.x-k8s.io", "nodefeatures.nfd.k8s-sigs.io"} <= names

    # Nothing: the same documents in another commit cost no request for any of their objects.
    await site.until_idle()
    audit_log.mark()
    site.push({"README.md": "nothing else\n"})
    await site.until_ready()
    asked = [
        entry
        for entry in audit_log.entries(user=f"system:serviceaccount:{site.namespace}:applier")
        if entry["verb"] != "watch"
    ]
    assert asked == []

    # Drift: a column is added to a definition.
    before: Any = await site.admin.get(COHORTS)
    column = {"name": "Made by hand", "type": "string", "jsonPath": ".metadata.name"}
    changed = [{**version, "additionalPrinterColumns": [column]} for version in before["spec"]["versions"]]
    await site.admin.patch_merge(COHORTS, {"spec": {"versions": changed}}, manager="somebody")

    async def repaired() -> bool:
        now: Any = await site.admin.get(COHORTS)
        return bool(now["spec"]["versions"] == before["spec"]["versions"])

    await until(repaired, what="the definition is what Git says again")

    # A removed document goes, everything else stays.
    gone = next(name for name in published if "cohorts" in name)
    site.push(delete=[gone])
    await until(lambda: _is_gone(site, COHORTS), what="the definition is pruned")
    assert (await site.until_ready())["counts"]["applied"] == count - 1


async def _is_gone(site: Bench, path: str) -> bool:
    return await site.admin.find(path) is None
