"""The kind GitSource: one ref of one repository, where its trust starts, and how far it was accepted (gitops.md, sections 4.5 and 22.1)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import (
    CommitId,
    Conditions,
    ConfigMapRef,
    Count,
    Digest,
    DnsLabel,
    FilePath,
    Generation,
    LongText,
    MaxAge,
    ObjectMeta,
    PollInterval,
    SecretRef,
    ShortText,
    Timeout,
    Timestamp,
    ValueRule,
)
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model, rule
from gitops_ctl.api.names import POLICY_PATH

_SCHEMES = ("https://", "ssh://", "file://")


def _has_password(authority: str) -> bool:
    user, at, _ = authority.partition("@")
    return bool(at) and ":" in user


Url = Annotated[
    str,
    Field(min_length=8, max_length=2048, pattern=patterns.PRINTABLE),
    ValueRule(
        "self.startsWith('https://') || self.startsWith('ssh://') || self.startsWith('file://')",
        "must start with https:// or ssh:// (file:// only with the local flag)",
        lambda text: text.startswith(_SCHEMES),
    ),
    ValueRule(
        "!self.startsWith('https://') || !self.split('/', 4)[2].contains('@')",
        "must not hold credentials: name a Secret in credentialsSecretRef",
        lambda text: not text.startswith("https://") or "@" not in text.split("/", 3)[2],
    ),
    ValueRule(
        "!self.startsWith('ssh://') || !self.split('/', 4)[2].contains('@') || !self.split('/', 4)[2].split('@', 2)[0].contains(':')",
        "must not hold a password: name a Secret in credentialsSecretRef",
        lambda text: not text.startswith("ssh://") or not _has_password(text.split("/", 3)[2]),
    ),
]

RefName = Annotated[
    str,
    Field(min_length=1, max_length=244, pattern=patterns.REF),
    ValueRule(
        "!self.startsWith('refs/')",
        "must be the short name of the branch or tag, without refs/",
        lambda text: not text.startswith("refs/"),
    ),
    ValueRule("!self.startsWith('-')", "must not start with a dash", lambda text: not text.startswith("-")),
]


class GitRef(Model):
    """What is followed: a branch, or a tag whose annotated tag object is judged too."""

    branch: RefName | None = None
    """Branch to follow."""
    tag: RefName | None = None
    """Tag to follow; it must be an annotated, signed tag."""

    @rule("has(self.branch) != has(self.tag)", message="name exactly one of branch and tag")
    def _one_ref(self) -> bool:
        return (self.branch is None) != (self.tag is None)


class TrustRoot(Model):
    """The commit that all trust rests on, with the digest of the trust policy in its tree."""

    commit: CommitId
    """Pinned commit; itself not judged."""
    policy_digest: Digest
    """SHA-256 of the trust policy's bytes at that commit."""


class Trust(Model):
    """How commits of this source are judged."""

    policy_path: FilePath = POLICY_PATH
    """Path of the trust policy in the repository."""
    root: TrustRoot
    """Where judging starts; another value is a new root."""


class Limits(Model):
    """Bounds of one fetch, of one tree walk, and of one verification pass."""

    objects: Annotated[int, Field(ge=1, le=10_000_000)] = 500_000
    """Objects that one fetch may bring."""
    bytes: Annotated[int, Field(ge=1024, le=17_179_869_184)] = 1_073_741_824
    """Bytes that one fetch may receive."""
    entries: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """Files and folders of one tree walk."""
    depth: Annotated[int, Field(ge=1, le=256)] = 64
    """Nested folders of one tree walk."""
    commits_per_pass: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Commits that are judged in one pass; the next pass goes on."""


class Forge(Model):
    """The forge that the repository lives on, for pull requests and review evidence."""

    provider: Literal["github", "gitlab", "gitea", "plain"]
    """Interface that the forge speaks."""
    base_url: Annotated[str, Field(alias="baseURL", min_length=9, max_length=2048, pattern=patterns.HTTPS)]
    """Address of the forge's API."""
    project: Annotated[str, Field(min_length=1, max_length=512, pattern=patterns.PRINTABLE)]
    """Project as the forge names it, such as `net/fabric`."""
    credentials_secret_ref: SecretRef | None = None
    """Token for the API."""
    webhook_secret_ref: SecretRef | None = None
    """Shared secret of the push webhook; a push only makes the next poll come at once."""


Refresh = Literal["Never", "OnConflict", "Always"]


class Proposer(Model):
    """With which identity the manager signs proposals."""

    name: DnsLabel
    """Name of the proposer in the trust policy."""
    email: Annotated[str, Field(min_length=3, max_length=254, pattern=patterns.EMAIL)]
    """Committer address of the proposals."""
    signing_key_secret_ref: SecretRef
    """SSH or OpenPGP private key."""
    refresh: Refresh = "OnConflict"
    """When an open pull request is rebuilt because its base moved, which drops approvals: `Never`, `OnConflict` or `Always`."""


class GitSourceSpec(Model):
    """What is fetched, and who is trusted."""

    url: Url
    """Address of the repository: https or ssh."""
    ref: GitRef
    """Branch or tag."""
    interval: PollInterval = "60s"
    """Time between two polls, varied by a tenth."""
    timeout: Timeout = "60s"
    """Deadline of one fetch."""
    credentials_secret_ref: SecretRef | None = None
    """Secret with `username` and `password`, or `bearerToken`, or `identity` (an SSH key; `password` when encrypted)."""
    ca_config_map_ref: ConfigMapRef | None = None
    """ConfigMap whose `ca.crt` replaces the system's authorities."""
    known_hosts_config_map_ref: ConfigMapRef | None = None
    """ConfigMap whose `known_hosts` lists the host keys of an ssh server."""
    trust: Trust | None = None
    """Left out: the source is never verified, and feeds Proposals only, never a Sync."""
    limits: Limits = Limits()
    """Bounds against hostile and accidental size."""
    forge: Forge | None = None
    """Needed for pull requests and for review evidence."""
    proposer: Proposer | None = None
    """Needed for proposals."""
    max_tip_age: MaxAge | None = None
    """Alarm `SourceStale` when no newer tip was seen for so long: a server that serves an old state looks like silence."""
    suspend: bool = False
    """No fetch; what was accepted stays in force."""

    @rule(
        "!self.url.startsWith('ssh://') || has(self.knownHostsConfigMapRef)",
        message="an ssh url needs knownHostsConfigMapRef: host keys are never taken on trust",
    )
    def _ssh_has_known_hosts(self) -> bool:
        return not self.url.startswith("ssh://") or self.known_hosts_config_map_ref is not None


class Observation(Model):
    """The tip at the last poll."""

    revision: CommitId
    at: Timestamp
    """Own time at which this revision was seen first."""


class Reviewer(Model):
    """One counted review."""

    person: DnsLabel
    account: ShortText
    at: Timestamp


class ReviewEvidence(Model):
    """The reviews of one merge by the forge, read once and kept with the acceptance."""

    merge: CommitId
    head: CommitId
    forge: ShortText
    number: Count
    read_at: Timestamp
    reviewers: Annotated[tuple[Reviewer, ...], Field(max_length=32)] = ()


class Accepted(Model):
    """The accepted revision: durable, written before any effect of it."""

    revision: CommitId
    tag: CommitId | None = None
    """Id of the tag object, when a tag is followed."""
    policy_digest: Digest
    """Digest of the policy at this revision, which judges the next commit."""
    key_set_digest: Digest
    """Digest over fingerprints, roles and revocations in force."""
    root: CommitId
    """The pinned commit under which it was accepted."""
    verifier_version: Annotated[str, Field(min_length=1, max_length=64)]
    at: Timestamp
    review_evidence: Annotated[tuple[ReviewEvidence, ...], Field(max_length=100)] = ()


class Rejected(Model):
    """The oldest refused commit above the accepted revision."""

    commit: CommitId
    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.KIND)]
    path: Annotated[str, Field(max_length=4096)] = ""
    verb: Annotated[str, Field(max_length=32)] = ""
    rule: ShortText = ""
    hint: LongText = ""


class FirstSeenTip(Model):
    """When one tip was seen for the first time, by our own clock."""

    tip: CommitId
    first_seen_at: Timestamp


class GitSourceStatus(Model):
    """How far the source was fetched, judged and accepted."""

    observed_generation: Generation = 0
    last_handled_reconcile_at: ShortText | None = None
    """The last `requested-at` annotation that was answered."""
    observed: Observation | None = None
    accepted: Accepted | None = None
    first_seen: Annotated[tuple[FirstSeenTip, ...], Field(max_length=200)] = ()
    """Oldest first."""
    rejected: Rejected | None = None
    conditions: Conditions = ()


class GitSource(Model):
    """One ref of one Git repository, verified commit by commit from a pinned root."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["GitSource"]
    metadata: ObjectMeta
    spec: GitSourceSpec
    status: GitSourceStatus = GitSourceStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="GitSource",
        plural="gitsources",
        short_names=("gsrc",),
        columns=(
            condition_column("Ready", "Ready", "status"),
            condition_column("Reason", "Ready", "reason"),
            Column("Revision", ".status.accepted.revision", description="Newest accepted commit"),
            condition_column("Since", "Ready", "lastTransitionTime"),
            AGE,
            Column("Url", ".spec.url", priority=1),
            Column("Rejected", ".status.rejected.commit", priority=1, description="Oldest refused commit"),
            Column("Suspended", ".spec.suspend", "boolean", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
        ),
    )
