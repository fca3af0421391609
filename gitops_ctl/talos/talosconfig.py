"""The credentials file of Talos: which authority signs the machines' certificates, and who we are (cni-switch.md, section 14.3).

Roles are the organisations in the subject of the client certificate.  Talos writes Ed25519 keys under a PEM label of its own, which
TLS libraries do not know: the key is written anew under the common label.  No error shows a value of the file.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID, NameOID

from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, text_at
from gitops_ctl.documents.yamltree import TreeLimits, read_tree
from gitops_ctl.talos.errors import TalosconfigInvalid

_LIMITS = TreeLimits(depth=16, size=2**20)
_TALOS_LABEL = b"ED25519 PRIVATE KEY"
_COMMON_LABEL = b"PRIVATE KEY"


@dataclass(frozen=True, slots=True)
class TalosConfig:
    """One context of a talosconfig.

    Attributes:
        context: its name.
        endpoints: addresses that its writer meant for it; information only, every machine is contacted by its own address.
        ca: PEM of the authority of the machines.
        certificate: PEM of the client certificate.
        key: PEM of its private key.
        roles: what the certificate may do, `os:admin` and the like.
        not_after: when the certificate ends.
    """

    context: str
    endpoints: tuple[str, ...]
    ca: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    roles: tuple[str, ...]
    not_after: datetime


def parse_talosconfig(text: bytes, *, context: str = "") -> TalosConfig:
    """Read one context, by default the one that the file itself names.

    Raises:
        TalosconfigInvalid: no YAML, no such context, or certificate and key are missing, damaged or do not belong together.
    """
    tree = read_tree(text, limits=_LIMITS)
    if tree.findings:
        found = tree.findings[0]
        raise TalosconfigInvalid(f"the talosconfig cannot be read: {found.code.slug} in line {found.line}")
    root: JsonObject = tree.value if isinstance(tree.value, Mapping) else {}
    name = context or text_at(root, "context")
    chosen = object_at(root, "contexts", name)
    if not name or not chosen:
        raise TalosconfigInvalid(
            f"the talosconfig has no context {name!r}" if name else "the talosconfig names no context"
        )
    ca, crt, key = (_pem(chosen, member) for member in ("ca", "crt", "key"))
    certificate = _certificate(crt, member="crt")
    _certificate(ca, member="ca")
    _require_pair(certificate, key)
    return TalosConfig(
        context=name,
        endpoints=tuple(item for item in list_at(chosen, "endpoints") if isinstance(item, str)),
        ca=ca,
        certificate=crt,
        key=key,
        roles=tuple(str(item.value) for item in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        not_after=certificate.not_valid_after_utc,
    )


def _pem(chosen: JsonObject, member: str) -> bytes:
    try:
        text = base64.b64decode("".join(text_at(chosen, member).split()), validate=True)
    except (binascii.Error, ValueError):
        raise TalosconfigInvalid(f"{member} of the talosconfig is not base64") from None
    if not text:
        raise TalosconfigInvalid(f"the talosconfig has no {member}")
    return text.replace(_TALOS_LABEL, _COMMON_LABEL) if member == "key" else text


def _certificate(pem: bytes, *, member: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise TalosconfigInvalid(f"{member} of the talosconfig is not a certificate") from None


def _require_pair(certificate: x509.Certificate, pem: bytes) -> None:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TalosconfigInvalid("key of the talosconfig is not an unencrypted private key") from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise TalosconfigInvalid("crt and key of the talosconfig do not belong together")
    with_purpose = [item for item in certificate.extensions if item.oid == ExtensionOID.EXTENDED_KEY_USAGE]
    if not with_purpose:
        raise TalosconfigInvalid("crt of the talosconfig is not a client certificate: it names no extended key usage")
