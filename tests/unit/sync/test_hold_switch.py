"""A TalosCluster whose switch lacks something stays as it is, and nothing else waits for it (cni-switch.md, sections 4 and 6.6).

The whole room against the double.  The rule about consent on a real server is in tests/cluster/test_switch_admission.py.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import gitops_ctl.cni.holds  # noqa: F401 - registers what is tried here
from gitops_ctl.api.names import ANNOTATION_CONFIRM_SWITCH
from gitops_ctl.core.ids import ObjectId
from tests.doubles.apiserver import FakeApiServer
from tests.support.api_talos import a_cluster
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation

ICHOR = "ichor.maesh.dev/v1alpha1"
MISSING = (
    "spec.cni.kubeProxy changes from enabled to replaced, and nobody consents; under metadata.annotations belongs "
    "ichor.maesh.dev/confirm-kube-proxy-switch: replaced"
)
POINTER = "/metadata/annotations/ichor.maesh.dev~1confirm-kube-proxy-switch"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Bench]:
    """A tenant with one cluster in mode `enabled`, applied from Git."""
    async with FakeApiServer() as server, fake_bench(server, tmp_path) as made:
        made.push({"north.yaml": cluster(made, "enabled"), **made.config_maps(1)})
        await made.sync()
        await made.until_ready()
        yield made


def cluster(site: Bench, mode: str, *, consent: str = "", name: str = "north", **cni: Any) -> str:
    tree = a_cluster(name=name, namespace=site.namespace, cni={"kubeProxy": mode, **cni})
    if consent:
        tree["metadata"]["annotations"] = {ANNOTATION_CONFIRM_SWITCH: consent}
    return document(tree)


def identity(site: Bench, name: str = "north") -> ObjectId:
    return ObjectId("ichor.maesh.dev", "TalosCluster", site.namespace, name)


async def live(site: Bench, name: str = "north") -> Any:
    return await site.get("talosclusters", name, group=ICHOR)


async def mode(site: Bench) -> str:
    return str((await live(site))["spec"]["cni"]["kubeProxy"])


async def write_status(site: Bench, **status: Any) -> None:
    path = f"{site.path('talosclusters', 'north', group=ICHOR)}/status"
    await site.admin.patch_merge(path, {"status": status}, manager="gitops-ctl-cni")


async def until_mode(site: Bench, wanted: str) -> None:
    async def has() -> bool:
        return await mode(site) == wanted

    await until(has, what=f"the cluster is {wanted}")


async def test_a_change_without_consent_is_held_with_the_line_that_is_missing_and_the_rest_is_applied(site: Bench):
    commit = site.push({"north.yaml": cluster(site, "replaced"), "other.yaml": site.config_map("other")})
    (held,) = await site.until_held("ConsentMissing")
    assert held["object"] == str(identity(site))
    assert held["message"] == MISSING
    assert held["file"] == "north.yaml"
    assert await site.get("configmaps", "other") is not None
    assert await mode(site) == "enabled"
    status = await site.status()
    assert status["lastAttemptedRevision"] == commit
    assert (await site.condition())["reason"] == "ObjectsHeld"


@pytest.mark.parametrize("left_over", ["enabled", "disabled"])
async def test_a_consent_to_another_mode_is_none_and_is_named(site: Bench, left_over: str):
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    site.push({"north.yaml": cluster(site, "replaced", consent=left_over)})
    (held,) = await site.until_held("ConsentMissing")
    assert f"the consent is for {left_over};" in held["message"]
    assert await mode(site) == "enabled"


async def test_a_consent_that_goes_in_the_commit_of_the_change_is_missing(site: Bench):
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    site.push({"north.yaml": cluster(site, "enabled", consent="replaced")})
    await site.until_ready()
    site.push({"north.yaml": cluster(site, "replaced")})
    (held,) = await site.until_held("ConsentMissing")
    assert held["message"] == MISSING


@pytest.mark.parametrize("order", ["before", "with", "after"])
async def test_a_consent_counts_before_with_and_after_the_field(site: Bench, order: str):
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    if order == "before":
        site.push({"north.yaml": cluster(site, "enabled", consent="replaced")})
        await site.until_ready()
        assert await mode(site) == "enabled"
    if order == "after":
        site.push({"north.yaml": cluster(site, "replaced")})
        await site.until_held("ConsentMissing")
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced")})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["cni"]["kubeProxy"] == "replaced"
    assert tree["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == "consent=change-approver"


async def test_a_consent_that_nobody_introduced_authorises_nothing(site: Bench):
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced")})
    (held,) = await site.until_held("ConsentMissing")
    assert "nobody introduced the annotation since the trusted root" in held["message"]
    assert await mode(site) == "enabled"


async def test_a_consent_by_the_author_of_the_field_is_held_where_the_policy_wants_another_and_both_are_named(
    site: Bench,
):
    why = "network-author introduced /spec/cni/kubeProxy and the consent; rules[3] wants another person"
    site.void[identity(site), POINTER] = why
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced")})
    (held,) = await site.until_held("ConsentMissing")
    assert held["message"] == f"the consent to replaced counts for nothing: {why}"
    del site.void[identity(site), POINTER]
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    site.push({"note.yaml": site.config_map("note")})
    await site.until_ready()
    assert await mode(site) == "replaced"


async def test_taking_the_field_away_is_a_change_to_the_default_and_needs_consent(site: Bench):
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced")})
    await site.until_ready()
    bare = a_cluster(namespace=site.namespace)
    site.push({"north.yaml": document(bare)})
    (held,) = await site.until_held("ConsentMissing")
    assert "changes from replaced to enabled" in held["message"]


async def test_a_new_cluster_needs_no_consent(site: Bench):
    site.push({"south.yaml": cluster(site, "replaced", name="south")})
    await site.until_ready()
    assert (await live(site, "south"))["spec"]["cni"]["kubeProxy"] == "replaced"


RUNNING = {
    "lock": {"holder": "north-1", "operationUID": "7f1c", "kind": "cni", "since": "2026-11-30T08:00:00Z"},
    "cni": {
        "consumedConsent": {"commit": "c" * 40, "target": "replaced", "operationUID": "7f1c"},
        "kubeProxy": "replaced",
    },
}


@pytest.fixture
async def switching(site: Bench) -> Bench:
    """The same, in the middle of a switch to `replaced` that has touched machines."""
    site.consent(identity(site), ANNOTATION_CONFIRM_SWITCH)
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced")})
    await site.until_ready()
    await write_status(site, **RUNNING)
    return site


async def test_a_second_change_while_a_switch_runs_is_held_and_the_message_says_what_gets_through(switching: Bench):
    site = switching
    site.push({"north.yaml": cluster(site, "enabled", consent="enabled"), "other.yaml": site.config_map("other")})
    (held,) = await site.until_held("SwitchInProgress")
    assert held["message"] == (
        "the switch to replaced (north-1) has the cluster; other fields, spec.cni.operation too, get through once "
        "spec.cni.kubeProxy is replaced again"
    )
    assert await site.get("configmaps", "other") is not None
    assert await mode(site) == "replaced"


async def test_other_fields_get_through_once_the_running_target_is_named_again(switching: Bench):
    site = switching
    site.push({"north.yaml": cluster(site, "enabled", consent="enabled", operation={"resume": 1})})
    await site.until_held("SwitchInProgress")
    assert (await live(site))["spec"]["cni"]["operation"]["resume"] == 0
    site.push({"north.yaml": cluster(site, "replaced", consent="replaced", operation={"resume": 1})})
    await site.until_ready()
    assert (await live(site))["spec"]["cni"]["operation"]["resume"] == 1


async def test_the_change_goes_on_by_itself_when_the_lock_is_free(switching: Bench):
    site = switching
    site.push({"north.yaml": cluster(site, "enabled", consent="enabled")})
    await site.until_held("SwitchInProgress")
    await write_status(site, lock=None)
    await until_mode(site, "enabled")


async def test_a_change_that_can_still_cancel_the_switch_is_not_held(switching: Bench):
    site = switching
    await write_status(site, cni={"kubeProxy": None})
    site.push({"north.yaml": cluster(site, "enabled", consent="enabled")})
    await site.until_ready()
    assert await mode(site) == "enabled"


async def test_a_lock_of_other_work_holds_no_change(switching: Bench):
    site = switching
    await write_status(site, lock={**RUNNING["lock"], "kind": "upgrade"})
    site.push({"north.yaml": cluster(site, "enabled", consent="enabled")})
    await site.until_ready()
    assert await mode(site) == "enabled"


async def test_one_consent_for_the_clusters_of_two_syncs_holds_both(site: Bench):
    await site.sync(targetNamespace=site.namespace)
    await site.sync("south", targetNamespace="elsewhere")
    nameless = ObjectId("ichor.maesh.dev", "TalosCluster", "", "north")
    site.consent(nameless, ANNOTATION_CONFIRM_SWITCH)
    text = cluster(site, "replaced", consent="replaced").replace(f"  namespace: {site.namespace}\n", "", 1)
    assert site.namespace not in text
    site.push({"north.yaml": text})
    (held,) = await site.until_held("ConsentMissing")
    assert "Sync south makes another object of this document" in held["message"]
    assert await mode(site) == "enabled"
