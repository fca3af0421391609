"""What Git says about one rollout: a file of the accepted revision, who introduced its blocks, and the Sync that has it in its inventory."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, API_VERSION, GROUP, VERSION
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.collection import DocumentSet
from gitops_ctl.documents.loader import load
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions, Introduced, Provenance

SOURCE, SYNC, FILE = "network", "site", "rollouts/spring.yaml"
WHEN = datetime(2026, 1, 1, 8, tzinfo=UTC)
PERSON = "change-approver"


class RolloutInGit:
    """One repository with one rollout in it.

    Attributes:
        tree: the document.
        who: pointer of a block to (verb, person) of who introduced it.
        lost: pointers of blocks whose introducer was revoked.
    """

    def __init__(self, revisions: AcceptedRevisions, tree: Any) -> None:
        self.revisions, self.tree = revisions, tree
        self.who: dict[str, tuple[str, str]] = {}
        self.lost: set[str] = set()
        self.effects_allowed = True
        self._commits = 0

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return f"# The rollout of this site.\n{yaml.safe_dump(self.tree, sort_keys=False)}".encode()

    def read(self, _revision: AcceptedRevision, _path: str) -> DocumentSet:
        """The documents of the accepted revision."""
        return DocumentSet("", "", load(self.data, file=FILE).documents, ())

    def accept(self) -> str:
        """A commit with the tree as it is now is accepted; its id."""
        self._commits += 1
        [document] = load(self.data, file=FILE).documents
        commit = f"{self._commits:040x}"
        fields = {
            (document.id, pointer): Introduced(commit, person, verb, f"gitops-ctl:{person}", WHEN, WHEN, (person,))
            for pointer, (verb, person) in self.who.items()
            if pointer not in self.lost
        }
        lost = frozenset((document.id, pointer) for pointer in self.lost)
        void = dict.fromkeys(lost, "the key of its introducer is revoked")
        self.revisions.publish(
            AcceptedRevision(
                source=NamespacedName(self.namespace, SOURCE),
                uid="source-uid",
                url="https://git.example.net/network",
                ref="refs/heads/main",
                commit=commit,
                tree="",
                store_path=Path("store"),
                provenance=Provenance(fields=fields, void=void, lost=lost),
                generation=1,
                trusted=True,
                effects_allowed=self.effects_allowed,
            )
        )
        return commit

    @property
    def namespace(self) -> str:
        return str(self.tree["metadata"]["namespace"])

    @property
    def mark(self) -> str:
        """What the Sync writes on the object that it applied."""
        name = self.tree["metadata"]["name"]
        return f"uid/{self.namespace}/{SOURCE}/{SYNC}:ops.cisco.vk/IOSXESoftwareRollout:{self.namespace}/{name}"

    async def apply(self, client: KubeClient, *, plan_as: str = "network-author") -> Any:
        """What the Sync does with an accepted revision: the object, with the names of people filled in, and its inventory."""
        root = f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}"
        sync = {
            "apiVersion": API_VERSION,
            "kind": "Sync",
            "metadata": {"name": SYNC, "namespace": self.namespace},
            "spec": {"sourceRef": {"name": SOURCE}, "path": "rollouts", "serviceAccountName": "applier"},
        }
        made: Any = await client.apply(f"{root}/syncs/{SYNC}", sync, manager="tests", force=True)
        live = await self._apply_object(client, plan_as)
        entry = {"group": "ops.cisco.vk", "version": "v1alpha1", "kind": "IOSXESoftwareRollout"}
        entry |= {"namespace": self.namespace, "name": live["metadata"]["name"], "uid": live["metadata"]["uid"]}
        inventory = {
            "apiVersion": API_VERSION,
            "kind": "Inventory",
            "metadata": {"name": f"{SYNC}-0", "namespace": self.namespace},
            "spec": {
                "owner": {"sync": SYNC, "uid": made["metadata"]["uid"], "id": self.mark.partition(":")[0]},
                "entries": [entry],
            },
        }
        await client.apply(f"{root}/inventories/{SYNC}-0", inventory, manager="tests", force=True)
        return live

    async def _apply_object(self, client: KubeClient, plan_as: str) -> Any:
        metadata, spec = self.tree["metadata"], json.loads(json.dumps(self.tree["spec"]))
        spec["plan"] |= {"requestedBy": f"gitops-ctl:{plan_as}", "requestedAt": "2026-01-01T07:00:00Z"}
        for block in ("approval", "activationApproval"):
            if block in spec:
                spec[block] |= {"approvedBy": f"gitops-ctl:{PERSON}", "approvedAt": "2026-01-01T08:00:00Z"}
        for block in ("control", "preparationInvalidation"):
            if block in spec and spec[block].get("revision") != 0:
                spec[block] |= {"requestedBy": f"gitops-ctl:{PERSON}", "requestedAt": "2026-01-01T08:00:00Z"}
        body = {
            **{member: self.tree[member] for member in ("apiVersion", "kind")},
            "metadata": {**metadata, "annotations": {ANNOTATION_OWNER_ID: self.mark}},
            "spec": spec,
        }
        path = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{self.namespace}/iosxesoftwarerollouts/{metadata['name']}"
        return await client.apply(path, body, manager="gitops-ctl", force=True)
