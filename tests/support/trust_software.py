"""Signatures made in software, for what the real tools cannot make here: security keys, odd blobs, and many commits fast."""

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PRESENT = 0x01
VERIFIED = 0x04


def ssh_string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def ssh_mpint(number: int) -> bytes:
    return ssh_string(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def armor(blob: bytes) -> bytes:
    """An SSH signature block with lines of 70 characters, as ssh-keygen writes them."""
    text = base64.b64encode(blob)
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return b"\n".join((b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----", b""))


@dataclass(slots=True)
class SoftKey:
    """A key in memory; with `application` it behaves like a security key.

    Attributes:
        type: SSH key type.
        key_blob: public key in wire form.
        sign_raw: signs bytes and gives the inner signature string.
    """

    type: str
    key_blob: bytes
    sign_raw: Callable[[bytes], bytes]
    application: bytes = b""
    flags: int = PRESENT
    extra: bytes = field(default=b"")

    @classmethod
    def ed25519(cls, *, security_key: bool = False, flags: int = PRESENT, application: bytes = b"ssh:") -> "SoftKey":
        private = ed25519.Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        name = b"sk-ssh-ed25519@openssh.com" if security_key else b"ssh-ed25519"
        blob = ssh_string(name) + ssh_string(public) + (ssh_string(application) if security_key else b"")
        return cls(name.decode(), blob, private.sign, application if security_key else b"", flags)

    @classmethod
    def ecdsa_sk(cls, *, flags: int = PRESENT, application: bytes = b"ssh:") -> "SoftKey":
        private = ec.generate_private_key(ec.SECP256R1())
        point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        name = b"sk-ecdsa-sha2-nistp256@openssh.com"
        blob = ssh_string(name) + ssh_string(b"nistp256") + ssh_string(point) + ssh_string(application)

        def sign_raw(data: bytes) -> bytes:
            r, s = decode_dss_signature(private.sign(data, ec.ECDSA(hashes.SHA256())))
            return ssh_mpint(r) + ssh_mpint(s)

        return cls(name.decode(), blob, sign_raw, application, flags)

    @property
    def line(self) -> str:
        return f"{self.type} {base64.b64encode(self.key_blob).decode()}"

    def signature(self, payload: bytes, *, namespace: bytes = b"git", hash_name: bytes = b"sha512") -> bytes:
        """The blob inside the armor."""
        digest = hashlib.new(hash_name.decode(), payload).digest()
        signed = b"SSHSIG" + b"".join(ssh_string(part) for part in (namespace, b"", hash_name, digest))
        tail = b""
        if self.application:
            tail = bytes([self.flags]) + (7).to_bytes(4, "big")
            signed = hashlib.sha256(self.application).digest() + tail + hashlib.sha256(signed).digest()
        inner = ssh_string(self.type.encode()) + ssh_string(self.sign_raw(signed)) + tail
        head = b"SSHSIG" + (1).to_bytes(4, "big") + ssh_string(self.key_blob)
        return head + b"".join(ssh_string(part) for part in (namespace, b"", hash_name, inner)) + self.extra

    def sign(self, payload: bytes, *, namespace: bytes = b"git", hash_name: bytes = b"sha512") -> bytes:
        """An armored signature."""
        return armor(self.signature(payload, namespace=namespace, hash_name=hash_name))

    def git_config(self) -> tuple[str, ...]:
        raise NotImplementedError("git cannot sign with a key in memory; use RepoBuilder.signed_object")


def nonce() -> bytes:
    return os.urandom(16)
