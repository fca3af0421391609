"""Trust policies and signed repositories for tests.

`Team` holds one key per person; `policy_text` writes a policy from plain values; `Story` is a repository whose first commit
holds the policy, with the calls that judge it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, RangeVerdict, Root, VerdictCache, judge_range
from gitops_ctl.trust.firstseen import FirstSeen
from gitops_ctl.trust.keys import KeyRing
from gitops_ctl.trust.policy import load_policy
from gitops_ctl.trust.signature import SignatureRefused, Signer, verify_signature
from gitops_ctl.trust.verifiers import VERIFIERS
from tests.support.git_keys import SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.git_repos import Signer as GitSigner

POLICY_PATH = ".gitops-ctl/trust.yaml"
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
URL = "https://git.example.net/network.git"


def ssh_line(key: SshKey) -> str:
    """`<type> <base64>`, as a policy holds it."""
    return " ".join(key.public.split()[:2])


def person(name: str, *keys: Mapping[str, object] | SshKey, **members: object) -> dict[str, object]:
    """One entry of `people[]`; an SSH key stands for its member."""
    entries = [{"ssh": ssh_line(key)} if isinstance(key, SshKey) else dict(key) for key in keys]
    return {"name": name, "keys": entries, **members}


DEFAULT_RULES: tuple[Mapping[str, object], ...] = (
    {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
    {"paths": [".gitops-ctl/consents/**"], "verbs": ["consent", "edit"], "roles": ["admin", "approver"]},
    {"paths": ["clusters/**"], "verbs": ["consent"], "roles": ["approver"]},
    {"paths": ["clusters/**"], "verbs": ["edit", "delete"], "roles": ["author"]},
    {"verbs": ["merge"], "roles": ["author", "admin"]},
)


def policy_text(
    people: Sequence[Mapping[str, object]],
    *,
    roles: Mapping[str, Sequence[str]],
    rules: Sequence[Mapping[str, object]] = DEFAULT_RULES,
    **members: object,
) -> str:
    """A policy file; JSON is YAML."""
    tree = {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "TrustPolicy",
        "people": list(people),
        "roles": {role: list(names) for role, names in roles.items()},
        "rules": list(rules),
        **members,
    }
    return json.dumps(tree, indent=1) + "\n"


def config_map(name: str, **data: str) -> str:
    """A document with no verbs of its own."""
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "demo"}, "data": data}
    return json.dumps(tree, indent=1) + "\n"


@dataclass(slots=True)
class Team:
    """SSH keys by person, made when they are first asked for."""

    directory: Path
    keys: dict[str, SshKey] = field(default_factory=dict)

    def __getitem__(self, name: str) -> SshKey:
        if name not in self.keys:
            self.keys[name] = SshKey.generate(self.directory, name=name)
        return self.keys[name]

    def policy(
        self,
        roles: Mapping[str, Sequence[str]] | None = None,
        *,
        rules: Sequence[Mapping[str, object]] = DEFAULT_RULES,
        people: Sequence[Mapping[str, object]] | None = None,
        **members: object,
    ) -> str:
        """A policy of people `ann` (author), `bob` (approver), `eve` (nothing) and `adm` (admin), unless told otherwise."""
        found = roles or {"author": ["ann"], "approver": ["bob"], "admin": ["adm"], "nobody": []}
        listed = people or [person(name, self[name]) for name in ("ann", "bob", "eve", "adm")]
        return policy_text(listed, roles=found, rules=rules, **members)


@dataclass(slots=True)
class Story:
    """A repository and the state of a source that follows its branch `main`."""

    repo: RepoBuilder
    root: Root
    cache: VerdictCache = field(default_factory=VerdictCache)
    first_seen: FirstSeen = field(default_factory=FirstSeen)
    accepted: str | None = None
    key_set_digest: str | None = None
    now: datetime = NOW
    git_dir: Path | None = None
    """Where to read from, when it is not the builder's own repository."""

    @classmethod
    def begin(
        cls, path: Path, policy: str, *, files: Mapping[str, str] | None = None, signer: GitSigner | None = None
    ) -> "Story":
        """Commit the policy as the pinned root."""
        repo = RepoBuilder(path)
        commit = repo.commit({POLICY_PATH: policy, **(files or {})}, signer=signer, message="root")
        return cls(repo, Root(commit, digest_bytes(policy.encode())))

    def pin(self, commit: str) -> None:
        """A new root with the digest of the policy that the commit holds."""
        data = self.repo.raw(f"{commit}:{POLICY_PATH}", "blob")
        self.root = Root(commit, digest_bytes(data))

    def judge(self, tip: str | None = None, **members: object) -> RangeVerdict:
        """One pass, as the source makes it: the tip is observed first, and an outcome is remembered."""
        target = tip or self.repo.head("main")
        self.first_seen = self.first_seen.observed(target, at=self.now)
        request = {
            "url": URL,
            "ref": "refs/heads/main",
            "root": self.root,
            "accepted": self.accepted,
            "accepted_key_set_digest": self.key_set_digest,
            "tip": target,
            "first_seen": self.first_seen,
            "now": self.now,
            **members,
        }
        with ObjectStore.open(self.git_dir or self.repo.git_dir) as store:
            verdict = judge_range(store, request=RangeRequest(**request), cache=self.cache)
        self.accepted = verdict.accepted
        self.key_set_digest = verdict.key_set_digest
        return verdict


def ring_of(*people: Mapping[str, object], **members: object) -> KeyRing:
    """The keys of a policy of these people, all of them authors and admins."""
    names = [str(entry["name"]) for entry in people]
    roles = {"author": names, "approver": names, "admin": names}
    return load_policy(policy_text(people, roles=roles, **members).encode()).keys


def signer(
    payload: bytes, signature: bytes, keys: KeyRing, *, at: datetime = NOW, now: datetime | None = None
) -> Signer:
    """Who signed the payload; raises as `verify_signature`."""
    return verify_signature(payload, signature=signature, keys=keys, at=at, now=now or at, verifiers=VERIFIERS)


def verdict_on(
    payload: bytes, signature: bytes, keys: KeyRing, *, at: datetime = NOW, now: datetime | None = None
) -> str:
    """`Accepted`, or the reason of the refusal."""
    try:
        signer(payload, signature, keys, at=at, now=now)
    except SignatureRefused as refused:
        return refused.reason
    return "Accepted"
