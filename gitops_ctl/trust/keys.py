"""Keys that a trust policy lists, in the form in which a signature is looked up."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.trust.sshkey import SshKey


class OwnerKind(enum.Enum):
    """What a key's signature is worth (gitops.md, section 4.6)."""

    PERSON = "person"
    PROPOSER = "proposer"
    FORGE = "forge"


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """Whose key it is; the name is empty for the forge."""

    kind: OwnerKind = field(compare=False)
    name: str

    def __str__(self) -> str:
        return self.name if self.kind is OwnerKind.PERSON else f"{self.kind.value} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """One entry of `keys[]`.

    Attributes:
        principals: only for a certificate authority: names, one of which a certificate must hold.
        namespaces: SSH signature namespaces that are accepted for the key.
    """

    owner: Owner
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    require_user_verification: bool = False
    namespaces: tuple[str, ...] = ("git",)
    principals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenPgpKey:
    """A certificate of the policy with what the library does not tell.

    Attributes:
        certificate: the library's object, opaque outside `openpgp`.
        fingerprint: primary key, 40 lower-case hex digits.
        expires: of the primary key, None for never.
        revoked: by the certificate itself, softly or not.
        subkeys: fingerprint to (expires, revoked), signing-capable ones.
    """

    trusted: TrustedKey
    certificate: object
    fingerprint: str
    expires: datetime | None
    revoked: bool
    subkeys: Mapping[str, tuple[datetime | None, bool]]


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Everything a signature may be checked with.

    Attributes:
        ssh: key blob to key and entry.
        authorities: key blob of a certificate authority to its entries, one per person.
        openpgp: fingerprint of a primary or signing key, and its last 16 digits, to the certificates.
    """

    ssh: Mapping[bytes, tuple[SshKey, TrustedKey]] = field(default_factory=dict)
    authorities: Mapping[bytes, tuple[TrustedKey, ...]] = field(default_factory=dict)
    openpgp: Mapping[str, tuple[OpenPgpKey, ...]] = field(default_factory=dict)
