"""A repository with an accepted base and heads to check: what the tests of the checks of pull requests share."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gitops_ctl.git.writing import borrow_objects
from gitops_ctl.source.pullreport import Order
from tests.support.git_repos import Signer
from tests.support.trust import NOW, POLICY_PATH, URL, Story, Team, config_map

MACHINE: Mapping[str, Any] = {
    "apiVersion": "ichor.maesh.dev/v1alpha1",
    "kind": "TalosMachine",
    "metadata": {"name": "site-1-cp-1", "namespace": "demo"},
    "spec": {"clusterRef": {"name": "site-1"}, "address": "192.0.2.11", "role": "controlplane"},
}


_KINDS = {"040000": "tree", "160000": "commit"}


@dataclass
class Bench:
    """`story` is the history; `base` the accepted commit."""

    folder: Path
    team: Team
    story: Story
    base: str
    orders: int = 0

    @classmethod
    def make(cls, folder: Path, **policy: Any) -> "Bench":
        team = Team(folder)
        files = {"clusters/a.yaml": config_map("a", v="1"), "clusters/b.yaml": config_map("b", v="1")}
        story = Story.begin(folder / "repo", team.policy(**policy), files=files)
        return cls(folder, team, story, story.repo.head("main"))

    def head(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        signer: Signer | None = None,
        delete: tuple[str, ...] = (),
        at: str = "",
        branch: str = "topic",
    ) -> str:
        """A commit on a branch of its own that starts at the base."""
        repo = self.story.repo
        repo.branch(branch, at=at or self.base)
        commit = repo.commit(files, delete=delete, signer=signer, message="change")
        repo.switch("main")
        return commit

    def accept(self, files: Mapping[str, str], *, by: str = "ann") -> str:
        """The base moves on."""
        self.story.repo.switch("main")
        self.base = self.story.repo.commit(files, signer=self.team[by], message="base")
        return self.base

    def order(self, head: str, **members: Any) -> Order:
        """The order to check it, with a repository of its own."""
        self.orders += 1
        repository = borrow_objects(self.folder / f"order-{self.orders}.git", of=self.story.repo.git_dir)
        least = Order(
            repository=str(repository),
            base=self.base,
            head=head,
            url=URL,
            ref="refs/heads/main",
            root=self.story.root.commit,
            root_digest=self.story.root.policy_digest,
            policy_path=POLICY_PATH,
            source=("demo", "network"),
            first_seen=((self.base, NOW),),
            now=NOW,
            entries=200_000,
            depth=64,
            is_fork=False,
        )
        return replace(least, **members)

    def write_head(self, *entries: tuple[str, str, str]) -> str:
        """An unsigned commit on the base whose tree has these (mode, id, name) entries beside the base's; made by plumbing."""
        repo = self.story.repo
        listed = repo.git("ls-tree", self.base).splitlines()
        lines = [
            *listed,
            *(f"{mode} {_KINDS.get(mode, 'blob')} {oid}\t{name}" for mode, oid, name in entries),
        ]
        tree = self.plumb("mktree", data="\n".join(lines) + "\n")
        return repo.git("commit-tree", tree, "-p", self.base, "-m", "hostile").strip()

    def plumb(self, *arguments: str, data: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.story.repo.git_dir, input=data, text=True, capture_output=True, check=True
        )
        return done.stdout.strip()
