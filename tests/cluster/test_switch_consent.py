"""Consent with real keys through the whole product: when another person is asked for, and when the commit that gave it is a root (4.4, 4.5).

Wrong, missing and left-over consents are in tests/unit/sync/test_hold_switch.py, attacks in tests/cluster/test_authority_attacks.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from tests.support.authority import (
    APPROVER,
    CLUSTER,
    FORGE,
    ROBOT,
    SECOND_KEY,
    Scene,
    attacked_policy,
    talos,
)
from tests.support.git_keys import SshKey
from tests.support.product import ADMIN, AUTHOR, PLATFORM, Product, config_map, make_keys, product_world  # noqa: F401

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SshKey]:
    names = (AUTHOR, PLATFORM, ADMIN, APPROVER, SECOND_KEY, FORGE, ROBOT)
    return make_keys(tmp_path_factory.mktemp("consenting"), names)


@pytest.fixture
async def scene(world: Product, tmp_path: Path) -> Scene:
    """A policy in which author and approver may consent, and a consent needs another person than the field."""
    begun = await Scene.begin(world, tmp_path)
    policy: Any = json.loads(attacked_policy(world.keys))
    consent = next(rule for rule in policy["rules"] if rule.get("paths") == ["site/clusters/**"])
    consent |= {"roles": ["author", "approver"], "distinctFromAuthor": True}
    accepted = world.push({POLICY_PATH: json.dumps(policy, indent=1) + "\n"}, by=ADMIN)
    await world.until_applied(accepted)
    return begun


async def test_a_consent_by_the_author_of_the_field_is_held_and_the_message_names_both(scene: Scene) -> None:
    world = scene.world
    commit = world.push({CLUSTER: talos("replaced", "replaced"), "site/beside.yaml": config_map("beside")}, by=AUTHOR)
    held = await scene.held("ConsentMissing")
    assert f"{AUTHOR} introduced it in {commit}" in held["message"]
    assert f"/spec/cni/kubeProxy was introduced by {AUTHOR}" in held["message"]
    assert await world.accepted() == commit, "a consent that does not count refuses no commit"
    assert (await scene.mode(), await world.config_map("beside")) == ("enabled", "1")

    world.commit({CLUSTER: talos("replaced")}, by=AUTHOR)
    good = world.push({CLUSTER: talos("replaced", "replaced")}, by=APPROVER)
    await world.until_applied(good)
    assert await scene.mode() == "replaced"
    mark = (await scene.cluster())["metadata"]["annotations"]
    assert mark["gitops-ctl.dev/introduced-by"] == f"consent={APPROVER}"
    assert mark["gitops-ctl.dev/introduced-commit"] == f"consent={good}"


async def test_the_order_of_field_and_consent_does_not_matter_when_they_come_from_two(scene: Scene) -> None:
    world = scene.world
    world.commit({CLUSTER: talos("enabled", "replaced")}, by=APPROVER)
    good = world.push({CLUSTER: talos("replaced", "replaced")}, by=AUTHOR)
    await world.until_applied(good)
    assert await scene.mode() == "replaced"


async def test_whoever_steers_a_switch_is_named_on_the_cluster(scene: Scene) -> None:
    world = scene.world
    tree = json.loads(talos("enabled"))
    tree["spec"]["cni"]["operation"] = {"resume": 1}
    commit = world.push({CLUSTER: json.dumps(tree, indent=1) + "\n"}, by=PLATFORM)
    await world.until_applied(commit)
    live = await scene.cluster()
    assert live["spec"]["cni"]["operation"]["resume"] == 1
    assert live["metadata"]["annotations"]["gitops-ctl.dev/introduced-by"] == f"control={PLATFORM}"
