"""What a checkout would change, asked from a real server without writing anything."""

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.kube.transport import WRITE_VERBS
from gitops_ctl.sync.apply import Target
from gitops_ctl.sync.desired import UnitSpec, desired_state
from gitops_ctl.sync.inventory import entry_of
from gitops_ctl.sync.preview import preview_unit, would_change
from tests.support.sync import NOBODY, OWNER, documents
from tests.support.sync_cluster import Bench, document, sync_site

__all__ = ["sync_site"]

pytestmark = pytest.mark.cluster


async def nothing_before(_item: ObjectId) -> None:
    return None


async def test_a_preview_tells_what_an_apply_would_do_and_does_nothing(site: Bench) -> None:
    limits = {"limits": {"cpu": "1000m"}}
    labels = {"app": "web"}
    container = {"name": "web", "image": "example.net/web:1", "resources": limits}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "web", "namespace": site.namespace}
    web = document({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    site.push({"a.yaml": site.config_map("same") + site.config_map("changed") + site.config_map("removed") + web})
    await site.sync()
    await site.until_ready()
    owner = site.room.world.listing.owner_of(next(iter(site.room.syncs.all())))  # type: ignore[union-attr]
    text = site.config_map("same") + site.config_map("changed", "2") + site.config_map("new") + web
    bad = site.config_map("bad").replace("key: '1'", "bad key!: '1'")
    mapper = Mapper(site.manager)
    discovery = await mapper.all()
    state = desired_state(
        documents(text + bad),
        unit=UnitSpec(owner),
        provenance=NOBODY,
        is_namespaced=lambda gvk: discovery.resources[gvk].namespaced,
    )
    entries = {item.id: item for item in map(entry_of, await site.inventory())}
    target = Target(
        client=site.manager,
        mapper=mapper,
        clock=site.manager.clock,
        account=None,
        before=nothing_before,
        lists=lambda _owner, _item: False,
    )
    site.manager.calls.clear()
    found = {item.id.name: item for item in await preview_unit(state, entries, target=target)}
    assert {name: item.kind for name, item in found.items()} == {
        "same": "same",
        "changed": "change",
        "new": "create",
        "removed": "remove",
        "bad": "held",
        "web": "same",
    }
    assert [item.pointer for item in found["changed"].differences] == ["/data/key"]
    assert would_change(found.values())
    assert not WRITE_VERBS & {verb for verb, _ in site.manager.calls}
    assert owner != OWNER
