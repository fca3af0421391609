"""What a person must see before a source is trusted: the root commit, its signer, the policy's digest, people and keys."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.objects import RawCommit
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import Credentials, FetchLimits, FetchRequest, GitTransport, Ref
from gitops_ctl.git.tree import entry_at
from gitops_ctl.git.url import parse_url
from gitops_ctl.trust.policy import TrustPolicy, load_policy
from gitops_ctl.trust.signers import Sight, signer_of
from gitops_ctl.trust.verdict import CommitRefused


@dataclass(frozen=True, slots=True)
class Remote:
    """A branch of a repository and how it is reached."""

    url: str
    branch: str
    policy_path: str
    credentials: Credentials | None = None
    ca: bytes | None = None
    known_hosts: bytes | None = None
    allow_file: bool = False
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Introduction:
    """The root as it was fetched; `signer` says who signed it, or why nobody did."""

    commit: RawCommit
    signer: str
    policy: TrustPolicy
    store: Path

    @property
    def digest(self) -> str:
        return self.policy.digest

    def lines(self) -> list[str]:
        """For people; the digest and the id are what a second person compares from a clone of their own."""
        found = [
            f"root commit    {self.commit.id}",
            f"  subject      {self.commit.subject}",
            f"  committer    {self.commit.committer_name} <{self.commit.committer_email}>",
            f"  signed by    {self.signer}",
            f"trust policy   {self.policy.path}",
            f"  digest       {self.digest}",
            "people",
        ]
        keys = self.policy.fingerprints
        for name in sorted(self.policy.people):
            roles = ", ".join(self.policy.roles_of(name)) or "no role"
            found.append(f"  {name} ({roles})")
            found += [f"    {fingerprint}" for fingerprint in keys.get(name, ())]
        others = sorted(owner for owner in keys if owner not in self.policy.people)
        for owner in others:
            found.append(f"other key, of the {owner}")
            found += [f"    {fingerprint}" for fingerprint in keys[owner]]
        return found


@asynccontextmanager
async def introduced(remote: Remote, *, transport: GitTransport, now: datetime) -> AsyncIterator[Introduction]:
    """Fetch the tip of the branch into a folder that goes away with the context.

    Raises:
        NotFound: no such branch, or no policy at its path.  Refused: the address or the policy is not acceptable.
        TransientError: the server cannot be reached, or takes other credentials.
    """
    with tempfile.TemporaryDirectory(prefix="gitops-ctl-bootstrap-") as folder:
        repository = Path(folder) / "repository"
        request = FetchRequest(
            url=parse_url(remote.url, allow_file=remote.allow_file),
            repository=repository,
            ref=Ref("branch", remote.branch),
            credentials=remote.credentials,
            ca=remote.ca,
            known_hosts=remote.known_hosts,
            limits=FetchLimits(timeout_s=remote.timeout_s),
            shallow_only=True,
        )
        fetched = await transport.fetch(request)
        with ObjectStore.open(repository) as store:
            commit = store.commit(fetched.tip)
            policy = _policy(store, commit, path=remote.policy_path)
            signer = _signer(store, commit, policy=policy, now=now)
        yield Introduction(commit, signer, policy, repository)


def _policy(store: ObjectStore, commit: RawCommit, *, path: str) -> TrustPolicy:
    entry = entry_at(store, commit.tree, path)
    if entry is None:
        raise NotFound(
            f"the tip {commit.id} has no trust policy",
            code=ErrorCode.POLICY_INVALID,
            subject=path,
            hint="write one with `gitops-ctl trust init`, commit it with a signature and push",
        )
    found = store.read(entry.id)
    if found.kind != "blob":
        raise Refused("the trust policy is no file", code=ErrorCode.POLICY_INVALID, subject=path)
    return load_policy(found.data, path=path)


def _signer(store: ObjectStore, commit: RawCommit, *, policy: TrustPolicy, now: datetime) -> str:
    """Who signed the root by its own policy.  Information only: the root is trusted because a person confirms it."""
    try:
        signer = signer_of(store, commit, policy=policy, revoked=policy.revoked, sight=Sight(now, now))
    except CommitRefused as error:
        return f"nobody that the policy knows ({error.message})"
    return f"{signer.key.owner}, key {signer.fingerprint}"
