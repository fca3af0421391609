"""Documents that live in Git only: TrustPolicy and Consent (gitops.md, section 4.4).

Shape and bounds only.  What names refer to, whose key is whose, and which change is judged by which rule is decided where
trust is decided.
"""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import DnsLabel, FilePath, Timestamp, ValueRule
from gitops_ctl.api.model import StrictModel, parse, rule
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject

RuleVerb = Literal[
    "edit",
    "topology",
    "plan",
    "approve",
    "activate",
    "recover",
    "control",
    "consent",
    "endpoint",
    "policy",
    "trust",
    "delete",
    "merge",
]
"""Verbs that a rule can give; `propose` is given by being a proposer."""

ConsentVerb = Literal[
    "edit", "topology", "plan", "approve", "activate", "recover", "control", "endpoint", "policy", "trust", "delete"
]
"""Verbs that a Consent document can agree to."""

ForgeVerb = Literal["trust", "policy", "approve", "activate", "recover", "consent"]
"""Verbs that a merge by a forge carries only when the policy lists them."""

KindRef = Annotated[str, Field(min_length=1, max_length=317, pattern=patterns.KIND_AND_GROUP)]
"""`<Kind>.<group>`; `<Kind>` for the core group."""

PathGlob = Annotated[str, Field(min_length=1, max_length=1024, pattern=patterns.GLOB)]
Names = Annotated[tuple[DnsLabel, ...], Field(min_length=1, max_length=500)]
PublicKeyLine = Annotated[str, Field(min_length=32, max_length=16_384, pattern=patterns.PUBLIC_KEY)]
"""`<type> <base64>`: no options before it, no comment after it."""

Fingerprint40 = Annotated[str, Field(min_length=40, max_length=40, pattern=patterns.OPENPGP_FINGERPRINT)]


class DisplayMeta(StrictModel):
    """Only a name, for display."""

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = None


class OpenPgpKey(StrictModel):
    """An OpenPGP certificate and the fingerprint that it must have."""

    fingerprint: Fingerprint40
    certificate: Annotated[str, Field(min_length=64, max_length=262_144, pattern=patterns.CERTIFICATE)]


class SshCertificateAuthority(StrictModel):
    """A CA whose user certificates count for one person."""

    key: PublicKeyLine
    principals: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256, pattern=patterns.PRINCIPAL)], ...],
        Field(min_length=1, max_length=16),
    ]
    """Exact names; one of them must be in the certificate."""


class PlainKey(StrictModel):
    """A key of a forge or a proposer: SSH or OpenPGP, and when it counts."""

    ssh: PublicKeyLine | None = None
    openpgp: OpenPgpKey | None = None
    require_user_verification: bool = False
    """Only for `sk-` keys: the device must have verified its user."""
    namespaces: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.PRINTABLE)], ...],
        Field(min_length=1, max_length=16),
    ] = ("git",)
    """SSH signature namespaces that are accepted."""
    valid_from: Timestamp | None = None
    valid_until: Timestamp | None = None

    @rule("[has(self.ssh), has(self.openpgp)].filter(x, x).size() == 1", message="name exactly one of ssh and openpgp")
    def _one_key(self) -> bool:
        return (self.ssh is None) != (self.openpgp is None)


class PersonKey(StrictModel):
    """A key of a person: SSH, OpenPGP, or a CA that certifies the person's SSH keys."""

    ssh: PublicKeyLine | None = None
    openpgp: OpenPgpKey | None = None
    ssh_certificate_authority: SshCertificateAuthority | None = None
    require_user_verification: bool = False
    """Only for `sk-` keys, or certified ones: the device must have verified its user."""
    namespaces: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.PRINTABLE)], ...],
        Field(min_length=1, max_length=16),
    ] = ("git",)
    """SSH signature namespaces that are accepted."""
    valid_from: Timestamp | None = None
    valid_until: Timestamp | None = None

    @rule(
        "[has(self.ssh), has(self.openpgp), has(self.sshCertificateAuthority)].filter(x, x).size() == 1",
        message="name exactly one of ssh, openpgp and sshCertificateAuthority",
    )
    def _one_key(self) -> bool:
        return [self.ssh, self.openpgp, self.ssh_certificate_authority].count(None) == 2


class Person(StrictModel):
    """Somebody who signs."""

    name: DnsLabel
    kubernetes_user: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Left out: `gitops-ctl:<name>`."""
    emails: Annotated[
        tuple[Annotated[str, Field(min_length=3, max_length=254, pattern=patterns.EMAIL)], ...],
        Field(max_length=16),
    ] = ()
    """When set, the committer address must be one of them."""
    forge_accounts: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256, pattern=patterns.FORGE_ACCOUNT)], ...],
        Field(max_length=16),
    ] = ()
    """`login` or `login#<id>` at the forge of the source."""
    keys: Annotated[tuple[PersonKey, ...], Field(min_length=1, max_length=32)]

    @property
    def user(self) -> str:
        """The name that identity members carry."""
        return self.kubernetes_user or f"gitops-ctl:{self.name}"


class PolicyRule(StrictModel):
    """Who may do what where; the first match per path and verb decides."""

    paths: Annotated[tuple[PathGlob, ...], Field(min_length=1, max_length=100)] | None = None
    kinds: Annotated[tuple[KindRef, ...], Field(min_length=1, max_length=100)] | None = None
    verbs: Annotated[tuple[RuleVerb, ...], Field(min_length=1, max_length=13)]
    roles: Annotated[tuple[DnsLabel, ...], Field(min_length=1, max_length=100)]
    threshold: Annotated[int, Field(ge=1, le=10)] = 1
    distinct_from_author: bool | None = None
    """Left out: true for approve, activate and recover, false for every other verb."""

    @rule(
        "has(self.paths) || has(self.kinds) || self.verbs.all(v, v == 'merge')",
        message="name paths, kinds or both; only a rule for merge alone has neither",
    )
    def _has_a_scope(self) -> bool:
        return self.paths is not None or self.kinds is not None or set(self.verbs) == {"merge"}

    @rule(
        "!self.verbs.exists(v, v == 'merge') || (!has(self.kinds) && (!has(self.paths) || self.paths == ['**']))",
        message="merge is asked for the whole tree: leave paths and kinds out, or write paths: ['**']",
    )
    def _merge_is_for_the_whole_tree(self) -> bool:
        return "merge" not in self.verbs or (self.kinds is None and self.paths in (None, ("**",)))


class Merges(StrictModel):
    """When a merge by the forge is accepted."""

    forge_keys: Annotated[tuple[PlainKey, ...], Field(max_length=8)] = ()
    require_reviews: Annotated[int, Field(ge=0, le=10)] = 1
    reviewer_roles: Annotated[tuple[DnsLabel, ...], Field(max_length=100)] = ()
    allow_verbs: Annotated[tuple[ForgeVerb, ...], Field(max_length=6)] = ()


class ProposerIdentity(StrictModel):
    """A key that may only propose."""

    name: DnsLabel
    keys: Annotated[tuple[PlainKey, ...], Field(min_length=1, max_length=8)]
    paths: Annotated[tuple[PathGlob, ...], Field(min_length=1, max_length=100)]


class Revocation(StrictModel):
    """A key that is distrusted from a commit or a time on."""

    fingerprint: Annotated[str, Field(max_length=50, pattern=patterns.ANY_FINGERPRINT)]
    distrust_from: Annotated[
        str,
        Field(
            alias="from",
            max_length=40,
            pattern=patterns.COMMIT_OR_MOMENT,
        ),
    ]
    """Commit id: it and whatever is not one of its ancestors; time: what was first seen at or after it."""


class TrustPolicyDocument(StrictModel):
    """Who may sign which change."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["TrustPolicy"]
    metadata: DisplayMeta | None = None
    people: Annotated[tuple[Person, ...], Field(min_length=1, max_length=500)]
    roles: Annotated[dict[DnsLabel, Annotated[tuple[DnsLabel, ...], Field(max_length=500)]], Field(max_length=100)]
    """Role name to people names; a role may be empty."""
    rules: Annotated[tuple[PolicyRule, ...], Field(min_length=1, max_length=500)]
    merges: Merges | None = None
    """Left out: no merge by a forge is accepted."""
    proposers: Annotated[tuple[ProposerIdentity, ...], Field(max_length=16)] = ()
    revoked: Annotated[tuple[Revocation, ...], Field(max_length=1000)] = ()


class ConsentDocument(StrictModel):
    """One person's agreement to one change that somebody else makes later."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["Consent"]
    metadata: DisplayMeta | None = None
    verb: ConsentVerb
    path: Annotated[
        FilePath,
        ValueRule("!self.matches('[*?]')", "must be one path, no glob", lambda text: not set(text) & set("*?")),
    ]
    """The file that will change."""
    blob: Annotated[str, Field(min_length=40, max_length=40, pattern=patterns.COMMIT)]
    """Git blob id of the resulting file; forty zeros when the file goes."""
    not_after: Timestamp


def parse_trust_policy(tree: JsonObject) -> TrustPolicyDocument:
    """The policy that `tree` holds.

    Raises:
        Refused: POLICY_INVALID; the message names each wrong member by its path.
    """
    return parse(TrustPolicyDocument, tree, code=ErrorCode.POLICY_INVALID)


def parse_consent(tree: JsonObject) -> ConsentDocument:
    """The consent that `tree` holds.

    Raises:
        Refused: SCHEMA; the message names each wrong member by its path.
    """
    return parse(ConsentDocument, tree)
