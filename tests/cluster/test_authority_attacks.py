"""Attacks on authority with real keys, on the real API server: each is refused or held by name, and moves nothing.

After each of them the other source and the other objects go on at once, and the documented way back leads on.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from tests.support.authority import (
    APPROVER,
    CLUSTER,
    CONSENTS,
    FORGE,
    GUARDED,
    ROBOT,
    ROLLOUT,
    SECOND_KEY,
    Scene,
    attacked_policy,
    rollout,
    talos,
)
from tests.support.git_keys import SshKey
from tests.support.product import ADMIN, AUTHOR, PLATFORM, Product, config_map, make_keys, product_world  # noqa: F401

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SshKey]:
    """One more set of keys than other tests have."""
    names = (AUTHOR, PLATFORM, ADMIN, APPROVER, SECOND_KEY, FORGE, ROBOT)
    return make_keys(tmp_path_factory.mktemp("attackers"), names)


@pytest.fixture
async def scene(world: Product, tmp_path: Path) -> Scene:
    return await Scene.begin(world, tmp_path)


def blob_of(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def agreed(text: str, *, path: str, verb: str = "edit") -> str:
    """A Consent to exactly this content of a file."""
    return (
        f"apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\nverb: {verb}\npath: {path}\n"
        f'blob: "{blob_of(text)}"\nnotAfter: "2036-01-01T00:00:00Z"\n'
    )


async def test_a_consent_by_a_person_without_the_role_is_refused(scene: Scene) -> None:
    last = await scene.world.accepted()
    bad = scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=AUTHOR)
    ready = await scene.refused("PathNotAuthorised", commit=bad, last=last)
    rejected = (await scene.world.source_status())["rejected"]
    assert (rejected["path"], rejected["verb"]) == (CLUSTER, "consent")
    assert f"git reset --hard {last}" in ready["message"]
    assert await scene.mode() == "enabled"

    scene.reset(last)  # the documented way back
    scene.world.commit({CLUSTER: talos("replaced")}, by=AUTHOR)
    good = scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=APPROVER)
    await scene.world.until_applied(good)
    assert await scene.mode() == "replaced"


async def test_a_consent_for_one_cluster_admits_no_other_and_copying_it_needs_the_role(scene: Scene) -> None:
    two = "site/clusters/two.yaml"
    start = scene.world.push({two: talos("enabled", name="two")}, by=AUTHOR)
    await scene.world.until_applied(start)
    scene.world.commit({CLUSTER: talos("enabled", "replaced")}, by=APPROVER)
    last = scene.world.push({two: talos("replaced", name="two"), "site/beside.yaml": config_map("beside")}, by=AUTHOR)
    held = await scene.held("ConsentMissing", name="two")
    assert "confirm-kube-proxy-switch" in held["message"]
    assert await scene.mode("two") == "enabled"
    assert await scene.world.config_map("beside") == "1", "other objects of the same commit are applied"

    copied = scene.world.push({two: talos("replaced", "replaced", name="two")}, by=AUTHOR)
    await scene.refused("PathNotAuthorised", commit=copied, last=last)
    assert await scene.mode("two") == "enabled"
    scene.reset(last)
    good = scene.world.push({two: talos("replaced", "replaced", name="two")}, by=APPROVER)
    await scene.world.until_applied(good)
    assert await scene.mode("two") == "replaced"


async def test_a_consent_for_one_mode_admits_no_switch_to_the_other(scene: Scene) -> None:
    scene.world.commit({CLUSTER: talos("replaced")}, by=AUTHOR)
    there = scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=APPROVER)
    await scene.world.until_applied(there)
    scene.world.push({CLUSTER: talos("enabled", "replaced"), "site/beside.yaml": config_map("beside")}, by=AUTHOR)
    held = await scene.held("ConsentMissing")
    assert "enabled" in held["message"]
    assert (await scene.mode(), await scene.world.config_map("beside")) == ("replaced", "1")
    back = scene.world.push({CLUSTER: talos("enabled", "enabled")}, by=APPROVER)
    await scene.world.until_applied(back)
    assert await scene.mode() == "enabled"


async def test_a_consent_on_another_branch_is_none_and_signing_it_anew_needs_the_role(scene: Scene) -> None:
    last = await scene.world.accepted()
    scene.branch("elsewhere")
    scene.world.commit({CLUSTER: talos("enabled", "replaced")}, by=APPROVER)
    scene.world.repo.switch("main")
    scene.world.push({CLUSTER: talos("replaced"), "site/beside.yaml": config_map("beside")}, by=AUTHOR)
    await scene.held("ConsentMissing")
    assert (await scene.mode(), await scene.world.config_map("beside")) == ("enabled", "1")
    last = await scene.world.accepted()

    picked = scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=AUTHOR, message="picked from elsewhere")
    await scene.refused("PathNotAuthorised", commit=picked, last=last)
    scene.reset(last)
    merged = scene.merge("elsewhere", by=APPROVER)
    await scene.world.until_applied(merged)
    assert await scene.mode() == "replaced", "through a merge the very commit of the approver counts"


async def test_a_consent_that_kubectl_wrote_authorises_nothing(scene: Scene) -> None:
    path = f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{scene.world.namespace}/talosclusters/one"
    mark = {"metadata": {"annotations": {"ichor.maesh.dev/confirm-kube-proxy-switch": "replaced"}}}
    await scene.world.admin.patch_merge(path, mark, manager="kubectl-edit")
    scene.world.push({CLUSTER: talos("replaced"), "site/beside.yaml": config_map("beside")}, by=AUTHOR)
    await scene.held("ConsentMissing")
    assert (await scene.mode(), await scene.world.config_map("beside")) == ("enabled", "1")
    good = scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=APPROVER)
    await scene.world.until_applied(good)
    assert await scene.mode() == "replaced"


async def test_an_approval_by_the_author_of_the_plan_is_refused(scene: Scene) -> None:
    planned = scene.world.push({ROLLOUT: rollout(plan={"image": "17.12"})}, by=AUTHOR)
    await scene.world.until_applied(planned)
    approved = rollout(plan={"image": "17.12"}, approval={"planHash": "sha256:1"})
    for key in (AUTHOR, SECOND_KEY):  # another key makes no other person
        bad = scene.world.push({ROLLOUT: approved}, by=key)
        ready = await scene.refused("PathNotAuthorised", commit=bad, last=planned)
        assert f"{AUTHOR} introduced what it authorises" in ready["message"]
        scene.reset(planned)
    good = scene.world.push({ROLLOUT: approved}, by=APPROVER)
    await scene.world.until_accepted(good)


async def test_two_keys_of_one_person_are_one_person(scene: Scene) -> None:
    wanted = config_map("guarded", "wanted")
    last = scene.world.push({f"{CONSENTS}/mine.yaml": agreed(wanted, path=GUARDED)}, by=SECOND_KEY)
    await scene.world.until_applied(last)
    bad = scene.world.push({GUARDED: wanted}, by=AUTHOR)
    ready = await scene.refused("PathNotAuthorised", commit=bad, last=last)
    assert f"needs 2 persons, counted are 1 ({AUTHOR})" in ready["message"]
    assert await scene.world.config_map("guarded") is None

    scene.reset(last)
    scene.world.commit({f"{CONSENTS}/other.yaml": agreed(wanted, path=GUARDED)}, by=APPROVER)
    good = scene.world.push({GUARDED: wanted}, by=AUTHOR)
    await scene.world.until_applied(good)
    assert await scene.world.config_map("guarded") == "wanted"


def proposed(scene: Scene, files: dict[str, str]) -> tuple[str, str]:
    """A proposer's commit on a branch, and the forge's merge of it: (head, merge)."""
    scene.branch("gitops-ctl/change")
    head = scene.world.commit(files, by=ROBOT)
    return head, scene.merge("gitops-ctl/change", by=FORGE)


async def test_a_merge_of_the_forge_whose_reviews_cannot_be_read_waits_and_then_goes_on(scene: Scene) -> None:
    last = await scene.world.accepted()
    head, merge = proposed(scene, {"site/new.yaml": config_map("new")})
    ready = await scene.world.until_reason("NeedsForgeReviews")
    assert "the forge does not answer" in ready["message"]
    status = await scene.world.source_status()
    assert "rejected" not in status, "that is no refusal"
    assert status["accepted"]["revision"] == last
    await scene.others_go_on()
    assert await scene.world.config_map("new") is None

    scene.reviews.approve(merge, head=head, by=[AUTHOR])
    scene.world.poke()
    await scene.world.until_applied(merge)
    (kept,) = (await scene.world.source_status())["accepted"]["reviewEvidence"]
    assert (kept["merge"], kept["head"], [each["person"] for each in kept["reviewers"]]) == (merge, head, [AUTHOR])
    scene.reviews.said.clear()
    await scene.world.reborn()
    scene.listen()
    later = scene.world.push({"site/new.yaml": config_map("new", "2")}, by=PLATFORM)
    await scene.world.until_applied(later)


@pytest.mark.parametrize("about", ["nobody", "an older head"])
async def test_a_merge_of_the_forge_without_a_review_of_its_head_is_refused(scene: Scene, about: str) -> None:
    last = await scene.world.accepted()
    scene.branch("gitops-ctl/change")
    older = scene.world.commit({"site/new.yaml": config_map("new")}, by=ROBOT)
    head = scene.world.commit({"site/new.yaml": config_map("new", "evil")}, by=ROBOT)
    scene.world.repo.switch("main")
    merge = scene.world.repo.merge(
        "gitops-ctl/change", author="who pressed it <who@example.net>", signer=scene.world.keys[FORGE]
    )
    scene.reviews.approve(merge, head=head, by=[] if about == "nobody" else [AUTHOR], at=older)
    scene.world.poke()
    ready = await scene.refused("PathNotAuthorised", commit=older, last=last)
    assert f"1 approving reviews by persons in author or approver of {head} are needed" in ready["message"]
    assert about == "nobody" or f"{AUTHOR}: is about {older}" in ready["message"]
    assert await scene.world.config_map("new") is None

    scene.reset(last)  # and a person merges, with an own signature
    merged = scene.merge("gitops-ctl/change", by=AUTHOR)
    await scene.world.until_applied(merged)
    assert await scene.world.config_map("new") == "evil"


async def test_a_merge_of_the_forge_carries_no_consent_that_the_policy_does_not_let_it_carry(scene: Scene) -> None:
    last = await scene.world.accepted()
    head, merge = proposed(scene, {CLUSTER: talos("replaced", "replaced")})
    scene.reviews.approve(merge, head=head, by=[AUTHOR, APPROVER])
    ready = await scene.refused("PathNotAuthorised", commit=head, last=last)
    assert "merges.allowVerbs" in ready["message"]
    assert await scene.mode() == "enabled"


async def test_a_policy_that_grants_itself_a_right_is_judged_by_the_one_before(scene: Scene) -> None:
    last = await scene.world.accepted()
    roles = {"author": [AUTHOR, PLATFORM], "approver": [AUTHOR], "platform": [PLATFORM], "admin": [AUTHOR]}
    mine = attacked_policy(scene.world.keys, roles=roles)
    bad = scene.world.push({POLICY_PATH: mine}, by=AUTHOR)
    scene.world.push({CLUSTER: talos("replaced", "replaced")}, by=AUTHOR)
    ready = await scene.refused("PathNotAuthorised", commit=bad, last=last)
    rejected = (await scene.world.source_status())["rejected"]
    assert (rejected["path"], rejected["verb"]) == (POLICY_PATH, "trust")
    assert AUTHOR in ready["message"]
    assert await scene.mode() == "enabled"
    scene.reset(last)
    good = scene.world.push({POLICY_PATH: mine}, by=ADMIN)
    await scene.world.until_applied(good)


async def test_a_rewound_branch_moves_nothing_and_repair_goes_on(scene: Scene) -> None:
    older = await scene.world.accepted()
    last = scene.world.push({"site/config/a.yaml": config_map("a")}, by=AUTHOR)
    await scene.world.until_applied(last)
    scene.reset(older)
    other = scene.world.push({"site/config/a.yaml": config_map("a", "other")}, by=AUTHOR)
    ready = await scene.world.until_reason("HistoryRewritten")
    assert f"commit: {other}, policyDigest: sha256:" in ready["message"]
    assert await scene.world.accepted() == last
    await scene.others_go_on()
    assert await scene.world.config_map("a") == "1"
    await scene.world.set_config_map("a", "by hand")
    await scene.world.request("site")
    assert await scene.world.config_map("a") == "1", "what is accepted stays in force"

    scene.world.root = other  # the operator pins what the message says
    await scene.world.source()
    await scene.world.until_applied(other)
    assert await scene.world.config_map("a") == "other"


async def test_X15_each_refusal_names_repository_commit_key_person_and_rule(scene: Scene) -> None:
    last = await scene.world.accepted()
    bad = scene.world.push({CLUSTER: talos("enabled", "enabled")}, by=AUTHOR)
    ready = await scene.refused("PathNotAuthorised", commit=bad, last=last)
    facts: tuple[Any, ...] = (
        scene.world.repo.url,
        "refs/heads/main",
        bad,
        scene.world.keys[AUTHOR].fingerprint,
        AUTHOR,
    )
    assert [fact for fact in facts if str(fact) not in ready["message"]] == []
    assert "rule 3 (verbs consent; roles approver)" in ready["message"]
    assert json.loads(talos("enabled"))["spec"]["cni"]["kubeProxy"] == await scene.mode()
