"""A story whose repository lies on a real Gitea: people and a proposer push, the button merges, reviews are read back."""

import base64
import time
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gitops_ctl.api.gitops import parse_git_source
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.http import HttpClient
from gitops_ctl.documents.index import load_set
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.local.gitea import BOT
from gitops_ctl.source.forge_reviews import ReadReviews, reader_of
from gitops_ctl.source.judging import Judged
from gitops_ctl.source.reviewing import Reviewed, judge_reviewed
from gitops_ctl.trust.chain import RangeRequest, judge_range
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.provenance import Provenance
from gitops_ctl.trust.reviews import ReviewEvidence
from tests.support.git_keys import SshKey
from tests.support.gitea import GiteaHandle, GiteaRepo
from tests.support.trust import DEFAULT_RULES, URL, Story, Team, person

AUTHOR, APPROVER, SECOND, STRANGER = "network-author", "change-approver", "second-approver", "stranger"
RULES = (
    {"paths": ["clusters/**"], "verbs": ["approve"], "roles": ["approver", "author"]},
    {"paths": ["clusters/**"], "verbs": ["plan"], "roles": ["author"]},
    *DEFAULT_RULES,
)


def forge_policy(gitea: GiteaHandle, team: Team, **merges: object) -> str:
    """`network-author` writes, `change-approver` (who has two accounts) approves; the instance key and a proposer are listed."""
    key = " ".join(gitea.signing_key_pub.split()[:2])
    people = [
        person(AUTHOR, team[AUTHOR], forgeAccounts=[AUTHOR]),
        person(APPROVER, team[APPROVER], forgeAccounts=[f"{APPROVER}#{gitea.account_id(APPROVER)}", SECOND]),
        person("adm", team["adm"]),
    ]
    return team.policy(
        {"author": [AUTHOR], "approver": [APPROVER], "admin": ["adm"], "merger": [AUTHOR, APPROVER]},
        rules=tuple({**rule, "roles": ["merger"]} if rule["verbs"] == ["merge"] else rule for rule in RULES),
        people=people,
        merges={"forgeKeys": [{"ssh": key}], "requireReviews": 1, "allowVerbs": ["approve"], **merges},
        proposers=[
            {"name": "robot", "keys": [{"ssh": " ".join(team["robot"].public.split()[:2])}], "paths": ["clusters/**"]}
        ],
    )


@dataclass(slots=True)
class OnForge:
    """One repository on the forge, and the source that follows it."""

    gitea: GiteaHandle
    repo: GiteaRepo
    story: Story
    team: Team
    http: HttpClient
    numbers: list[int] = field(default_factory=list)

    # -- what people and the proposer do -----------------------------------------------------------------------------

    def commit(self, files: Mapping[str, str], *, by: str, branch: str = "main") -> str:
        """A commit on the branch, signed with the key of that name, and pushed."""
        builder = self.story.repo
        if branch != "main" and branch not in builder.git("branch", "--format=%(refname:short)").split():
            builder.git("checkout", "--quiet", "-b", branch, "main")
        builder.git("checkout", "--quiet", branch)
        commit = builder.commit(files, signer=self.team[by], author=f"{by} <{by}@example.net>")
        self.push(branch)
        return commit

    def push(self, branch: str = "main") -> None:
        self._git("push", "--quiet", "--force", self.repo.clone_url, f"{branch}:refs/heads/{branch}")

    def pull(self) -> None:
        """Take over main as the forge has it."""
        self.story.repo.git("checkout", "--quiet", "main")
        self._git("fetch", "--quiet", self.repo.clone_url, "main")
        self.story.repo.git("reset", "--quiet", "--hard", "FETCH_HEAD")

    def open(self, branch: str, *, user: str = BOT) -> int:
        """A pull request into main, as soon as the forge has seen the push."""
        deadline = time.monotonic() + 30
        while True:
            said = self.repo.api("POST", "/pulls", {"head": branch, "base": "main", "title": branch}, user=user)
            if said.status == 201:
                return int(said.body["number"])
            assert said.status == 404, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def take_back(self) -> None:
        """The documented way back: main is what was accepted last."""
        builder = self.story.repo
        builder.git("checkout", "--quiet", "main")
        builder.git("reset", "--quiet", "--hard", self.story.accepted or self.story.root.commit)
        self.push()

    def approve(self, number: int, *users: str) -> None:
        for user in users:
            said = self.repo.review(number, user, "APPROVED")
            assert said.status == 200, said

    def merge(self, number: int, *, how: str = "merge") -> str:
        """The button; gives the new tip of main."""
        self.repo.merge(number, how=how)
        self.pull()
        return self.story.repo.head("main")

    def _git(self, *arguments: str) -> None:
        login = base64.b64encode(f"{BOT}:{self.gitea.bot_token}".encode()).decode()
        config = (f"http.sslCAInfo={self.gitea.ca_file}", f"http.extraHeader=Authorization: Basic {login}")
        self.story.repo.git(*arguments, config=config)

    # -- what the source does ----------------------------------------------------------------------------------------

    @property
    def reader(self) -> ReadReviews:
        """The product's reader: its Secret and its authorities come from the cluster."""
        cluster: Any = _Cluster({"token": self.gitea.bot_token.encode()}, self.gitea.ca.decode())
        spec = {
            "url": self.repo.clone_url,
            "ref": {"branch": "main"},
            "caConfigMapRef": {"name": "ca"},
            "forge": {
                "provider": "gitea",
                "baseURL": self.gitea.url,
                "project": self.repo.project,
                "credentialsSecretRef": {"name": "token"},
            },
        }
        metadata = {"name": "network", "namespace": "tenant"}
        source = parse_git_source(
            {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": "GitSource", "metadata": metadata, "spec": spec}  # type: ignore[dict-item]
        )
        return reader_of(cluster, http=self.http, clock=SystemClock())(source)

    async def judge(
        self, *, read: ReadReviews | None = None, reviews: Mapping[str, ReviewEvidence] | None = None
    ) -> Reviewed:
        """One pass over main, with evidence that was kept; what it accepts is remembered."""
        story, tip = self.story, self.story.repo.head("main")
        story.first_seen = story.first_seen.observed(tip, at=story.now)
        request = RangeRequest(
            url=URL,
            ref="refs/heads/main",
            root=story.root,
            accepted=story.accepted,
            tip=tip,
            first_seen=story.first_seen,
            now=story.now,
            reviews=reviews or {},
        )

        async def once(wanted: RangeRequest) -> Judged:
            with ObjectStore.open(story.repo.git_dir) as store:
                return Judged(judge_range(store, request=wanted, cache=story.cache))

        found = await judge_reviewed(request, judge=once, read=read or self.reader)
        story.accepted = found.judged.verdict.accepted
        return found

    def answers(self, found: Reviewed) -> Provenance:
        """Who introduced what, as the pass saw it."""
        tip = found.request.tip
        with ObjectStore.open(self.story.repo.git_dir) as store:
            documents = load_set(store, tree=store.links(tip).tree, cache=self.story.cache.documents).documents
            request = replace(found.request, accepted=tip)
            return provenance_of(store, request=request, commit=tip, documents=documents, cache=self.story.cache)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The two objects that the reader asks for."""

    secret: Mapping[str, bytes]
    authorities: str

    async def get(self, path: str) -> Any:
        if path == "/api/v1/namespaces/tenant/secrets/token":
            return {"data": {key: base64.b64encode(value).decode() for key, value in self.secret.items()}}
        assert path == "/api/v1/namespaces/tenant/configmaps/ca", path
        return {"data": {"ca.crt": self.authorities}}


@asynccontextmanager
async def on_forge(gitea: GiteaHandle, team: Team, folder: Path, **merges: object) -> Any:
    """A repository on that forge whose main begins with the policy."""
    repo = gitea.create_repo()
    gitea.token_of(STRANGER)
    story = Story.begin(folder / "checkout", forge_policy(gitea, team, **merges))
    async with HttpxClient(clock=SystemClock()) as http:
        made = OnForge(gitea, repo, story, team, http)
        made.push()
        yield made


def people_of(found: Reviewed) -> Sequence[str]:
    """Accounts whose reviews were read, in their order."""
    return [review.login for reading in found.readings for review in reading.evidence.reviews]


def instance_key(gitea: GiteaHandle, folder: Path) -> SshKey:
    """The forge's own key, which signs what the button makes: in the hands of whoever owns the machine."""
    private = gitea.folder / "keys" / "instance"
    assert private.exists(), sorted(path.name for path in (gitea.folder / "keys").iterdir())
    copy = folder / "instance"
    copy.write_bytes(private.read_bytes())
    copy.chmod(0o600)
    copy.with_name("instance.pub").write_text(gitea.signing_key_pub + "\n")
    return SshKey("instance", copy)
