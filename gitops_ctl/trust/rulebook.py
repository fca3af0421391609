"""The trust policy of one commit as a value: who may do what where (gitops.md, section 4.4).

The policy of a commit judges the children of that commit, never the commit itself.  `policy` reads it from bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.api.names import GROUP
from gitops_ctl.core.canonical import digest_bytes, digest_lines
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.trust.globs import Glob
from gitops_ctl.trust.keys import KeyRing

POLICY_KIND = GroupKind(GROUP, "TrustPolicy")
POLICY_LIMIT_BYTES = 1024 * 1024
ORDINARY = frozenset({"edit", "delete"})
"""Verbs of a file without documents, and of a document of which nothing says more."""
DISTINCT_BY_DEFAULT = frozenset({"approve", "activate", "recover"})


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who signs.  `emails` are in lower case; `accounts` are `login` or `login#id`."""

    name: str
    kubernetes_user: str
    emails: frozenset[str] = frozenset()
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One entry of `rules[]`; `number` counts from 1, as people do."""

    number: int
    paths: tuple[Glob, ...] | None
    kinds: frozenset[GroupKind] | None
    verbs: frozenset[str]
    roles: tuple[str, ...]
    threshold: int = 1
    distinct: bool | None = None
    text: str = field(init=False, repr=False, compare=False)
    """How messages and records name it."""

    def __post_init__(self) -> None:
        text = f"rule {self.number} (verbs {', '.join(sorted(self.verbs))}; roles {', '.join(self.roles)})"
        object.__setattr__(self, "text", text)

    def matches(self, *, path: str, verb: str, kind: GroupKind | None) -> bool:
        """Whether this rule decides about the verb on the path, for a document of the kind."""
        if verb not in self.verbs:
            return False
        if self.kinds is not None and kind not in self.kinds:
            return False
        return self.paths is None or any(glob.matches(path) for glob in self.paths)

    def is_distinct(self, verb: str) -> bool:
        """Whether the author of what the verb authorises may not be counted."""
        return verb in DISTINCT_BY_DEFAULT if self.distinct is None else self.distinct

    def __str__(self) -> str:
        return self.text


class RuleIndex:
    """Finds the first rule about a path without asking all of them.

    A rule about paths is listed under the folder that every path of one of its patterns lies in; a path asks the lists of
    its own folders.  Whether a rule matches is for the rule itself to say.
    """

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self._listed: dict[tuple[str, str], list[PolicyRule]] = {}
        ordinary = (rule.kinds or () for rule in rules if not rule.verbs.isdisjoint(ORDINARY))
        self.ordinary_kinds = frozenset(kind.kind for kinds in ordinary for kind in kinds)
        """Names of the kinds for which a rule of their own can decide about an ordinary verb."""
        for rule in rules:
            folders = dict.fromkeys(glob.folder for glob in rule.paths) if rule.paths is not None else {"": None}
            for verb in rule.verbs:
                for folder in folders:
                    self._listed.setdefault((verb, folder), []).append(rule)

    def first(self, *, path: str, verb: str, kind: GroupKind | None) -> PolicyRule | None:
        """The rule with the smallest number that matches."""
        best: PolicyRule | None = None
        end = 0
        while True:
            for rule in self._listed.get((verb, path[:end]), ()):
                if best is not None and best.number < rule.number:
                    break
                if rule.matches(path=path, verb=verb, kind=kind):
                    best = rule
                    break
            end = path.find("/", end) + 1
            if not end:
                return best


@dataclass(frozen=True, slots=True)
class ForgeMerges:
    """What a merge by the forge may carry."""

    require_reviews: int
    reviewer_roles: tuple[str, ...]
    allow_verbs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Proposer:
    """A key holder whose changes count only through a merge."""

    name: str
    paths: tuple[Glob, ...]


@dataclass(frozen=True, slots=True)
class Revocation:
    """A key that is distrusted from a commit or from a time on; exactly one of the two is set."""

    fingerprint: str
    commit: str | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.fingerprint} from {self.commit or (self.time.isoformat() if self.time else '')}"


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Everything that judges the next commit.

    Attributes:
        digest: over the bytes of the file; what the operator pins.
        key_set_digest: over fingerprints, roles and revocations in force.
    """

    digest: str
    key_set_digest: str
    path: str
    people: Mapping[str, Person]
    roles: Mapping[str, frozenset[str]]
    rules: tuple[PolicyRule, ...]
    merges: ForgeMerges | None
    proposers: Mapping[str, Proposer]
    revoked: tuple[Revocation, ...]
    keys: KeyRing
    fingerprints: Mapping[str, tuple[str, ...]]
    """Owner (`person`, `proposer x`, `forge`) to the fingerprints of its keys, for people to read."""
    index: RuleIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", RuleIndex(self.rules))

    def rule_for(self, *, path: str, verb: str, kind: GroupKind | None) -> PolicyRule | None:
        """The first rule that matches, or None: then the change is refused."""
        return self.index.first(path=path, verb=verb, kind=kind)

    def merge_rule(self) -> PolicyRule | None:
        """The rule about merges, which is asked once for the whole tree."""
        return next((rule for rule in self.rules if "merge" in rule.verbs), None)

    def holds_role(self, person: str, roles: Iterable[str]) -> bool:
        return any(person in self.roles.get(role, ()) for role in roles)

    def holds_any_role(self, person: str) -> bool:
        return any(person in members for members in self.roles.values())

    def roles_of(self, person: str) -> tuple[str, ...]:
        return tuple(sorted(role for role, members in self.roles.items() if person in members))


def policy_digest(data: bytes) -> str:
    """Of the bytes of the policy file, as an operator pins it."""
    return digest_bytes(data)


def key_set_digest(
    *,
    fingerprints: Mapping[str, tuple[str, ...]],
    roles: Mapping[str, frozenset[str]],
    revoked: Iterable[Revocation],
) -> str:
    """Over the sorted fingerprints with their owners, the roles, and the revocations."""
    lines = [f"key {fingerprint} {owner}" for owner, found in fingerprints.items() for fingerprint in found]
    lines += [f"role {role} {','.join(sorted(members))}" for role, members in roles.items()]
    lines += [f"revoked {entry}" for entry in revoked]
    return digest_lines(lines)
