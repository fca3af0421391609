"""Whether a policy can still be changed by anybody (gitops.md, section 4.4).

A policy that nobody can change is sound by its own checks, and may be meant: all keys can be revoked when all were stolen.  So no commit is
refused for it; people are warned before they sign it, because afterwards only a new pinned root helps (section 4.5).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gitops_ctl.trust.consent import CONSENT_FOLDER
from gitops_ctl.trust.keys import OwnerKind, TrustedKey
from gitops_ctl.trust.rulebook import POLICY_KIND, PolicyRule, TrustPolicy
from gitops_ctl.trust.sshkey import fingerprint_of
from gitops_ctl.trust.verbs import CONSENT_KIND

HINT: Final = "afterwards only a new root that an operator pins would help"
_TRUST: Final = "trust"
_CONSENT: Final = "consent"


def lockout(policy: TrustPolicy, *, now: datetime) -> str:
    """Why nobody could change the policy any more, one sentence; empty when somebody can.

    Args:
        now: keys count that are neither expired nor revoked then; one that becomes valid later counts too.
    """
    rule = policy.rule_for(path=policy.path, verb=_TRUST, kind=POLICY_KIND)
    if rule is None:
        return f"no rule gives the verb {_TRUST} on {policy.path}"
    with_key = people_with_a_key(policy, now=now)
    able = {name for role in rule.roles for name in policy.roles.get(role, ()) if name in with_key}
    if len(able) < rule.threshold:
        has = f"only {', '.join(sorted(able))}" if able else "nobody"
        return f"{rule} asks for {rule.threshold}, and {has} of its people has a key that counts"
    if not _others_suffice(policy, rule, able):
        return f"{rule} asks for more than one person, and too few of them may add a Consent in {CONSENT_FOLDER}"
    return ""


def people_with_a_key(policy: TrustPolicy, *, now: datetime) -> frozenset[str]:
    """Names of the people with a key that is neither expired nor revoked."""
    revoked = {entry.fingerprint for entry in policy.revoked if entry.time is None or entry.time <= now}
    return frozenset(
        key.owner.name
        for key, names, end in _keys(policy)
        if key.owner.kind is OwnerKind.PERSON
        and not names & revoked
        and not any(limit is not None and limit <= now for limit in (key.valid_until, end))
    )


def _keys(policy: TrustPolicy) -> Iterator[tuple[TrustedKey, frozenset[str], datetime | None]]:
    """Each key that can sign, with the fingerprints by which it can be revoked and the end that it carries itself."""
    for ssh, key in policy.keys.ssh.values():
        yield key, frozenset({ssh.fingerprint}), None
    for blob, entries in policy.keys.authorities.items():
        for key in entries:
            yield key, frozenset({fingerprint_of(blob)}), None
    for certificate in {id(one): one for found in policy.keys.openpgp.values() for one in found}.values():
        if not certificate.revoked:
            yield certificate.trusted, frozenset({certificate.fingerprint}), certificate.expires


def _may_be_about_consents(rule: PolicyRule) -> bool:
    """Whether the rule could decide about some file in the folder for consents."""
    if _CONSENT not in rule.verbs or (rule.kinds is not None and CONSENT_KIND not in rule.kinds):
        return False
    folder = f"{CONSENT_FOLDER}/"
    return rule.paths is None or any(
        folder.startswith(glob.folder) or glob.folder.startswith(folder) for glob in rule.paths
    )


def _others_suffice(policy: TrustPolicy, rule: PolicyRule, able: set[str]) -> bool:
    """Whether the people beside the one who commits can be counted: each has to have added a Consent before."""
    needed = rule.threshold if rule.is_distinct(_TRUST) else rule.threshold - 1
    agreeing = [each for each in policy.rules if _may_be_about_consents(each)]
    consenting = {name for name in able if any(policy.holds_role(name, each.roles) for each in agreeing)}
    return needed == 0 or any(len(consenting - {name}) >= needed for name in able)
