"""From the bytes of a policy file to a `TrustPolicy`: one document, its shape, its keys, and its own checks.

All findings are collected, so that one run names them all; each has its line (gitops.md, section 4.4, "own checks").
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import ValidationError

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.api.trust_policy import (
    PersonKey,
    PlainKey,
    TrustPolicyDocument,
)
from gitops_ctl.api.trust_policy import (
    PolicyRule as RuleModel,
)
from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.loader import Document, load
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.trust.globs import Glob
from gitops_ctl.trust.keys import KeyRing, OpenPgpKey, Owner, OwnerKind, TrustedKey
from gitops_ctl.trust.openpgp import CertificateRefused, load_certificate, lookup_names
from gitops_ctl.trust.rulebook import (
    POLICY_KIND,
    POLICY_LIMIT_BYTES,
    ForgeMerges,
    Person,
    PolicyRule,
    Proposer,
    Revocation,
    TrustPolicy,
    key_set_digest,
    policy_digest,
)
from gitops_ctl.trust.sshkey import SshFormatError, SshKey, SshUnsupported, parse_key_line

__all__ = ["TrustPolicy", "key_set_digest", "load_policy", "policy_digest"]

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Finding:
    pointer: str
    message: str


def load_policy(data: bytes, *, path: str = POLICY_PATH) -> TrustPolicy:
    """The policy that the file holds.

    Raises:
        Refused: POLICY_INVALID; the message names each wrong member with its line, at most ten of them.
    """
    document = _the_document(data, path=path)
    try:
        model = TrustPolicyDocument.model_validate_json(canonical_json(document.tree), by_alias=True, by_name=False)
    except ValidationError as error:
        found = [_Finding(pointer_of(item["loc"]), item["msg"]) for item in error.errors(include_url=False)]
        raise _invalid(document, found) from None
    reading = _Reading(path=path)
    policy = reading.read(model, data=data)
    if reading.findings:
        raise _invalid(document, reading.findings)
    return policy


def _the_document(data: bytes, *, path: str) -> Document:
    def refused(text: str, place: str = path) -> Refused:
        return Refused(text, code=ErrorCode.POLICY_INVALID, subject=place)

    if len(data) > POLICY_LIMIT_BYTES:
        raise refused(f"the policy has {len(data)} bytes; at most {POLICY_LIMIT_BYTES} are read")
    loaded = load(data, file=path)
    for problem in loaded.problems:
        if problem.is_error:
            raise refused(problem.message, problem.place)
    others = [document for document in loaded.documents if document.gvk.group_kind != POLICY_KIND]
    if others:
        line, column = others[0].where("/kind")
        raise refused(f"the policy file holds a document of kind {others[0].gvk.kind}", f"{path}:{line}:{column}")
    if len(loaded.documents) != 1:
        raise refused(f"the policy file holds {len(loaded.documents)} TrustPolicy documents; exactly one is needed")
    return loaded.documents[0]


def _invalid(document: Document, findings: Iterable[_Finding]) -> Refused:
    all_found = list(findings)
    shown = []
    for finding in all_found[:_SHOWN]:
        line, column = document.where(finding.pointer)
        shown.append(f"{document.file}:{line}:{column} {finding.pointer or '/'}: {finding.message}")
    more = len(all_found) - len(shown)
    line, column = document.where(all_found[0].pointer)
    return Refused(
        "; ".join(shown) + (f"; and {more} more" if more > 0 else ""),
        code=ErrorCode.POLICY_INVALID,
        subject=f"{document.file}:{line}:{column}",
    )


@dataclass(slots=True)
class _Reading:
    """Collects keys and findings of one policy."""

    path: str
    findings: list[_Finding] = field(default_factory=list)
    ssh: dict[bytes, tuple[SshKey, TrustedKey]] = field(default_factory=dict)
    authorities: dict[bytes, list[TrustedKey]] = field(default_factory=dict)
    openpgp: dict[str, OpenPgpKey] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    fingerprints: dict[str, list[str]] = field(default_factory=dict)

    def read(self, model: TrustPolicyDocument, *, data: bytes) -> TrustPolicy:
        self._read_keys(model)
        self._check_names(model)
        rules = tuple(self._rules(model))
        roles = {role: frozenset(names) for role, names in model.roles.items()}
        revoked = tuple(self._revocations(model))
        fingerprints = {owner: tuple(sorted(found)) for owner, found in self.fingerprints.items()}
        merges = model.merges
        policy = TrustPolicy(
            digest=policy_digest(data),
            key_set_digest=key_set_digest(fingerprints=fingerprints, roles=roles, revoked=revoked),
            path=self.path,
            people={
                person.name: Person(
                    person.name,
                    person.user,
                    frozenset(email.lower() for email in person.emails),
                    person.forge_accounts,
                )
                for person in model.people
            },
            roles=roles,
            rules=rules,
            merges=None
            if merges is None
            else ForgeMerges(merges.require_reviews, merges.reviewer_roles, frozenset(merges.allow_verbs)),
            proposers={entry.name: Proposer(entry.name, self._globs(entry.paths, "")) for entry in model.proposers},
            revoked=revoked,
            keys=self._ring(),
            fingerprints=fingerprints,
        )
        if policy.rule_for(path=self.path, verb="trust", kind=POLICY_KIND) is None:
            self._add("/rules", f"no rule gives the verb trust on {self.path}: nobody could ever change the policy")
        return policy

    def _add(self, pointer: str, message: str) -> None:
        self.findings.append(_Finding(pointer, message))

    def _ring(self) -> KeyRing:
        by_name: dict[str, list[OpenPgpKey]] = {}
        for key in self.openpgp.values():
            for name in lookup_names(key):
                by_name.setdefault(name, []).append(key)
        return KeyRing(
            ssh=self.ssh,
            authorities={blob: tuple(entries) for blob, entries in self.authorities.items()},
            openpgp={name: tuple(found) for name, found in by_name.items()},
        )

    def _read_keys(self, model: TrustPolicyDocument) -> None:
        for number, person in enumerate(model.people):
            owner = Owner(OwnerKind.PERSON, person.name)
            for place, key in enumerate(person.keys):
                self._read_key(key, owner=owner, pointer=f"/people/{number}/keys/{place}")
        for number, proposer in enumerate(model.proposers):
            owner = Owner(OwnerKind.PROPOSER, proposer.name)
            for place, plain in enumerate(proposer.keys):
                self._read_key(plain, owner=owner, pointer=f"/proposers/{number}/keys/{place}")
            self._globs(proposer.paths, f"/proposers/{number}/paths")
        for place, plain in enumerate(model.merges.forge_keys if model.merges else ()):
            self._read_key(plain, owner=Owner(OwnerKind.FORGE, ""), pointer=f"/merges/forgeKeys/{place}")

    def _read_key(self, key: PersonKey | PlainKey, *, owner: Owner, pointer: str) -> None:
        authority = key.ssh_certificate_authority if isinstance(key, PersonKey) else None
        trusted = TrustedKey(
            owner=owner,
            valid_from=from_rfc3339(key.valid_from) if key.valid_from else None,
            valid_until=from_rfc3339(key.valid_until) if key.valid_until else None,
            require_user_verification=key.require_user_verification,
            namespaces=key.namespaces,
            principals=authority.principals if authority else (),
        )
        if trusted.valid_from and trusted.valid_until and trusted.valid_from >= trusted.valid_until:
            self._add(f"{pointer}/validUntil", "validUntil is not after validFrom")
        try:
            if authority is not None:
                self._add_authority(authority.key, trusted=trusted, pointer=f"{pointer}/sshCertificateAuthority")
            elif key.ssh is not None:
                self._add_ssh(key.ssh, trusted=trusted, pointer=f"{pointer}/ssh")
            elif key.openpgp is not None:
                self._require_plain(key, pointer=pointer)
                loaded = load_certificate(key.openpgp.certificate, fingerprint=key.openpgp.fingerprint, trusted=trusted)
                self._add_openpgp(loaded, pointer=f"{pointer}/openpgp")
        except SshUnsupported as error:
            self._add(f"{pointer}", f"the SSH key is not accepted: {error}")
        except SshFormatError as error:
            self._add(f"{pointer}", f"the SSH key cannot be read: {error}")
        except CertificateRefused as error:
            self._add(f"{pointer}/openpgp", f"the OpenPGP certificate is not accepted: {error}")

    def _require_plain(self, key: PersonKey | PlainKey, *, pointer: str) -> None:
        if key.require_user_verification:
            self._add(f"{pointer}/requireUserVerification", "only sk- keys and certified keys can verify their user")
        if "namespaces" in key.model_fields_set:
            self._add(f"{pointer}/namespaces", "only SSH keys have namespaces")

    def _add_ssh(self, line: str, *, trusted: TrustedKey, pointer: str) -> None:
        key = parse_key_line(line)
        if trusted.require_user_verification and not key.is_security_key:
            self._add(pointer, "requireUserVerification: only sk- keys and certified keys can verify their user")
        if self._claim(key.fingerprint, owner=trusted.owner, pointer=pointer):
            self.ssh[key.blob] = (key, trusted)

    def _add_authority(self, line: str, *, trusted: TrustedKey, pointer: str) -> None:
        key = parse_key_line(line)
        before = self.authorities.setdefault(key.blob, [])
        if not before and key.fingerprint in self.owners:
            self._add(pointer, f"{key.fingerprint} is already the key of {self.owners[key.fingerprint]}")
            return
        for other in before:
            if shared := set(other.principals) & set(trusted.principals):
                self._add(pointer, f"principal {min(shared)} of this authority already stands for {other.owner}")
        before.append(trusted)
        self.owners[key.fingerprint] = "a certificate authority"
        self.fingerprints.setdefault(str(trusted.owner), []).append(f"{key.fingerprint} (authority)")

    def _add_openpgp(self, key: OpenPgpKey, *, pointer: str) -> None:
        # Not `all` over a generator: every clash is named, not only the first.
        free = [self._claim(name, owner=key.trusted.owner, pointer=pointer) for name in (key.fingerprint, *key.subkeys)]
        if all(free):
            self.openpgp[key.fingerprint] = key

    def _claim(self, fingerprint: str, *, owner: Owner, pointer: str) -> bool:
        if fingerprint in self.owners:
            self._add(pointer, f"key {fingerprint} already belongs to {self.owners[fingerprint]}")
            return False
        self.owners[fingerprint] = str(owner)
        shown = fingerprint if fingerprint.startswith("SHA256:") else fingerprint.upper()
        self.fingerprints.setdefault(str(owner), []).append(shown)
        return True

    def _check_names(self, model: TrustPolicyDocument) -> None:
        seen: set[str] = set()
        named = [(f"/people/{number}/name", person.name) for number, person in enumerate(model.people)]
        named += [(f"/proposers/{number}/name", entry.name) for number, entry in enumerate(model.proposers)]
        for pointer, name in named:
            if name in seen:
                self._add(pointer, f"the name {name} is used twice")
            seen.add(name)
        people = {person.name for person in model.people}
        for role, members in model.roles.items():
            for number, name in enumerate(members):
                if name not in people:
                    self._add(pointer_of(("roles", role, number)), f"there is no person {name}")
        for number, role in enumerate(model.merges.reviewer_roles if model.merges else ()):
            if role not in model.roles:
                self._add(f"/merges/reviewerRoles/{number}", f"there is no role {role}")

    def _rules(self, model: TrustPolicyDocument) -> Iterator[PolicyRule]:
        for number, rule in enumerate(model.rules):
            for place, role in enumerate(rule.roles):
                if role not in model.roles:
                    self._add(f"/rules/{number}/roles/{place}", f"there is no role {role}")
            members = {name for role in rule.roles for name in model.roles.get(role, ())}
            if rule.threshold > len(members):
                few = f"threshold {rule.threshold} can never be reached: the roles have {len(members)} people"
                self._add(f"/rules/{number}/threshold", few)
            yield self._rule(rule, number=number)

    def _rule(self, rule: RuleModel, *, number: int) -> PolicyRule:
        return PolicyRule(
            number=number + 1,
            paths=None if rule.paths is None else self._globs(rule.paths, f"/rules/{number}/paths"),
            kinds=None if rule.kinds is None else frozenset(GroupKind.parse(kind) for kind in rule.kinds),
            verbs=frozenset(rule.verbs),
            roles=rule.roles,
            threshold=rule.threshold,
            distinct=rule.distinct_from_author,
        )

    def _revocations(self, model: TrustPolicyDocument) -> Iterator[Revocation]:
        for number, entry in enumerate(model.revoked):
            fingerprint = entry.fingerprint if entry.fingerprint.startswith("SHA256:") else entry.fingerprint.lower()
            if "T" not in entry.distrust_from:
                yield Revocation(fingerprint, commit=entry.distrust_from)
                continue
            try:
                yield Revocation(fingerprint, time=from_rfc3339(entry.distrust_from))
            except (ValueError, OverflowError):
                self._add(f"/revoked/{number}/from", f"{entry.distrust_from} is no moment that exists")

    def _globs(self, patterns: Iterable[str], pointer: str) -> tuple[Glob, ...]:
        found = []
        for place, pattern in enumerate(patterns):
            try:
                found.append(Glob(pattern))
            except ValueError as error:
                if pointer:
                    self._add(f"{pointer}/{place}", f"{pattern!r}: {error}")
        return tuple(found)
