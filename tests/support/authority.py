"""A tenant whose policy knows authors, approvers, a forge and a proposer, and a bystander whose source nobody attacks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gitops_ctl.api.names import API_VERSION, POLICY_PATH
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.source.forge_reviews import Reading
from gitops_ctl.trust.reviews import Review, ReviewEvidence
from tests.support.git_keys import SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.product import ADMIN, AUTHOR, PLATFORM, Product, config_map, policy_text
from tests.support.sync_cluster import until
from tests.support.trust import NOW, ssh_line

APPROVER, FORGE, ROBOT, SECOND_KEY = "change-approver", "forge", "gitops-ctl-proposer", "network-author-second"
CLUSTER, ROLLOUT, GUARDED = "site/clusters/one.yaml", "rollouts/r.yaml", "site/guarded/a.yaml"
CONSENTS = ".gitops-ctl/consents"
OTHER = "other"


def attacked_policy(keys: Mapping[str, SshKey], **changes: Any) -> str:
    """Who may do what in these tests; `changes` replace members."""

    def person(name: str, *names: str) -> dict[str, object]:
        return {"name": name, "keys": [{"ssh": ssh_line(keys[each])} for each in names], "forgeAccounts": [name]}

    both = ["author", "approver"]
    tree: dict[str, object] = {
        "apiVersion": API_VERSION,
        "kind": "TrustPolicy",
        "people": [
            person(AUTHOR, AUTHOR, SECOND_KEY),
            person(APPROVER, APPROVER),
            person(PLATFORM, PLATFORM),
            person(ADMIN, ADMIN),
        ],
        "roles": {"author": [AUTHOR, PLATFORM], "approver": [APPROVER], "platform": [PLATFORM], "admin": [ADMIN]},
        "rules": [
            {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
            {"paths": [f"{CONSENTS}/**"], "verbs": ["consent", "edit"], "roles": both},
            {"paths": ["site/clusters/**"], "verbs": ["consent"], "roles": ["approver"]},
            {"paths": ["site/guarded/**"], "verbs": ["edit", "delete"], "roles": both, "threshold": 2},
            {"paths": ["rollouts/**"], "verbs": ["approve"], "roles": both},
            {"paths": ["rollouts/**"], "verbs": ["plan", "control"], "roles": ["author"]},
            {"paths": ["**"], "verbs": ["edit", "delete", "control"], "roles": ["author"]},
            {"verbs": ["merge"], "roles": both},
        ],
        "merges": {"forgeKeys": [{"ssh": ssh_line(keys[FORGE])}], "requireReviews": 1, "reviewerRoles": both},
        "proposers": [{"name": "gitops-ctl", "keys": [{"ssh": ssh_line(keys[ROBOT])}], "paths": ["site/**"]}],
    }
    return json.dumps({**tree, **changes}, indent=1) + "\n"


def talos(mode: str, confirm: str = "", *, name: str = "one") -> str:
    """A cluster with a wanted mode, and a consent when one is named."""
    metadata: dict[str, object] = {"name": name}
    metadata |= {"annotations": {"ichor.maesh.dev/confirm-kube-proxy-switch": confirm}} if confirm else {}
    spec = {"talosconfigSecretRef": {"name": "talosconfig"}, "cni": {"kubeProxy": mode}}
    tree = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster", "metadata": metadata, "spec": spec}
    return json.dumps(tree, indent=1) + "\n"


def rollout(**spec: object) -> str:
    """A rollout of any spec."""
    metadata = {"name": "r", "namespace": "fabric"}
    tree = {"apiVersion": "ops.cisco.vk/v1alpha1", "kind": "IOSXESoftwareRollout", "metadata": metadata, "spec": spec}
    return json.dumps(tree, indent=1) + "\n"


@dataclass(slots=True)
class Reviews:
    """What a forge would say: reviews by merge; a merge that is not listed cannot be read."""

    said: dict[str, tuple[str, tuple[Review, ...]]] = field(default_factory=dict)

    async def read(self, merge: str) -> Reading:
        from gitops_ctl.core.errors import Unavailable

        if merge not in self.said:
            raise Unavailable("the forge does not answer")
        head, reviews = self.said[merge]
        return Reading(ReviewEvidence(merge, head, reviews, 7), "gitea", NOW)

    def approve(self, merge: str, *, head: str, by: Sequence[str] = (), at: str = "") -> None:
        """The forge now knows the merge; each of these accounts approved `at`, or the merged head."""
        self.said[merge] = (head, tuple(Review(name, 0, at or head, True, NOW) for name in by))


@dataclass(slots=True)
class Scene:
    """The attacked tenant and the bystander beside it."""

    world: Product
    bystander: RepoBuilder
    reviews: Reviews
    number: int = 0

    @classmethod
    async def begin(cls, world: Product, folder: Path) -> "Scene":
        """The policy of this module is in force, a cluster runs in mode `enabled`, and the bystander is applied."""
        scene = cls(world, RepoBuilder(folder / "bystander"), Reviews())
        scene.listen()
        world.push({POLICY_PATH: attacked_policy(world.keys)}, by=ADMIN)
        tip = world.push({CLUSTER: talos("enabled")}, by=AUTHOR)
        root = scene.bystander.commit(
            {POLICY_PATH: policy_text(world.keys, people=(AUTHOR, PLATFORM, ADMIN)), "site/b.yaml": config_map(OTHER)},
            signer=world.keys[ADMIN],
        )
        await scene._follow(root)
        await world.until_applied(tip)
        await scene.others_go_on()
        return scene

    def listen(self) -> None:
        """Reviews come from `reviews` in place of a forge; a new process needs this again."""
        assert self.world.rooms is not None
        controller = self.world.rooms.sources.controller
        controller._ports = replace(controller._ports, reviews=lambda _source: self.reviews.read)

    async def _follow(self, root: str) -> None:
        world, digest = self.world, digest_bytes(self.bystander.raw(f"{root}:{POLICY_PATH}", "blob"))
        trust = {"root": {"commit": root, "policyDigest": digest}}
        spec = {"url": self.bystander.url, "ref": {"branch": "main"}, "interval": "1h", "trust": trust}
        await self._put("GitSource", "gitsources", spec)
        unit = {"sourceRef": {"name": OTHER}, "serviceAccountName": "applier", "path": "site"}
        await self._put("Sync", "syncs", {**unit, "targetNamespace": world.namespace})

    async def _put(self, kind: str, plural: str, spec: Mapping[str, object]) -> None:
        namespace = self.world.namespace
        tree: Any = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": OTHER, "namespace": namespace},
            "spec": spec,
        }
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/{plural}/{OTHER}"
        await self.world.admin.apply(path, tree, manager="tests", force=True)

    async def others_go_on(self) -> None:
        """A push to the other source is applied as ever."""
        self.number += 1
        commit = self.bystander.commit(
            {"site/b.yaml": config_map(OTHER, str(self.number))}, signer=self.world.keys[PLATFORM]
        )
        assert self.world.rooms is not None
        self.world.rooms.sources.poke(NamespacedName(self.world.namespace, OTHER))
        await self.world.until_applied(commit, OTHER)
        assert await self.world.config_map(OTHER) == str(self.number)

    async def cluster(self, name: str = "one") -> Any:
        """The live TalosCluster; None when there is none."""
        return await self.world.admin.find(
            f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{self.world.namespace}/talosclusters/{name}"
        )

    async def mode(self, name: str = "one") -> str:
        found = await self.cluster(name)
        return "" if found is None else str(found["spec"]["cni"]["kubeProxy"])

    async def refused(self, reason: str, *, commit: str, last: str) -> Any:
        """The Ready condition of the refused source; nothing moved, and the bystander is not delayed."""

        async def named() -> bool:
            return bool((await self.world.source_status()).get("rejected", {}).get("commit") == commit)

        applied = (await self.world.sync_status())["lastAppliedRevision"]
        await until(named, what=f"{commit} is refused; Ready is {await self.world.condition()}")
        ready = await self.world.condition()
        assert (ready["status"], ready["reason"]) == ("False", reason)
        assert await self.world.accepted() == last
        await self.others_go_on()
        assert (await self.world.sync_status())["lastAppliedRevision"] == applied
        return ready

    async def held(self, reason: str, *, name: str = "one") -> Any:
        """The entry of the held object; the bystander is not delayed."""

        async def there() -> Any:
            held = (await self.world.sync_status()).get("held", ())
            return next(
                (each for each in held if each["reason"] == reason and each["object"].endswith(f"/{name}")), None
            )

        found = await until(there, what=f"{name} is held with {reason}")
        await self.others_go_on()
        return found

    def reset(self, commit: str) -> None:
        """The documented way back from a refused commit."""
        self.world.repo.git("reset", "--quiet", "--hard", commit)

    def branch(self, name: str) -> None:
        self.world.repo.git("checkout", "--quiet", "-b", name)

    def merge(self, name: str, *, by: str) -> str:
        """A merge commit on main that this key signs."""
        self.world.repo.switch("main")
        commit = self.world.repo.merge(name, author=f"{by} <{by}@example.net>", signer=self.world.keys[by])
        self.world.poke()
        return commit
