"""Who logs in at a device, as its credential Secret says it (rollouts.md, sections 5.1 and 13.8).

Keys of the Secret: `username` (when the device names none), and `password`, or `privateKey` with an optional `passphrase`;
`known_hosts` (or `knownHosts`) pins the host key.  No error holds a value.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.device.hostkey import HostKey, pinned_keys

_KEY_CLASSES: Final = (
    (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
    (rsa.RSAPrivateKey, paramiko.RSAKey),
    (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
)


@dataclass(frozen=True, slots=True)
class Login:
    """A user with either a password or a private key, in the text of its Secret."""

    username: str
    password: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    passphrase: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never stand in a text."""
        return tuple(value for value in (self.password, self.private_key, self.passphrase) if value)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One device: where its NETCONF is, which host keys it may have, who logs in."""

    name: str
    """How messages call it."""

    address: str
    port: int
    host_keys: tuple[HostKey, ...]
    login: Login


def endpoint_of(data: Mapping[str, bytes], *, name: str, address: str, port: int, username: str = "") -> Endpoint:
    """From the decoded values of a credential Secret; `username` is that of the device's spec and wins.

    Raises:
        TerminalError: DEVICE_CREDENTIAL_INVALID or HOST_KEYS_INVALID.
    """
    texts = {key: _text(value, key=key, name=name) for key, value in data.items() if key in _KEYS}
    login = Login(
        username or texts.get("username", "").strip(),
        texts.get("password", "").rstrip("\r\n"),
        texts.get("privateKey", ""),
        texts.get("passphrase", "").rstrip("\r\n"),
    )
    if not login.username:
        raise _invalid("there is no username, neither at the device nor in its credential Secret", name)
    if bool(login.password) == bool(login.private_key):
        raise _invalid("the credential Secret has to hold one of password and privateKey", name)
    if login.private_key:
        key_of(login, name=name)
    known_hosts = texts.get("known_hosts") or texts.get("knownHosts") or ""
    return Endpoint(name, address, port, pinned_keys(known_hosts, host=address, port=port), login)


_KEYS: Final = ("username", "password", "privateKey", "passphrase", "known_hosts", "knownHosts")


def key_of(login: Login, *, name: str) -> paramiko.PKey:
    """The private key, ready to sign.

    Raises:
        TerminalError: DEVICE_CREDENTIAL_INVALID: it cannot be read, its passphrase is wrong, or its type is not usable.
    """
    raw = login.private_key.encode()
    passphrase = login.passphrase.encode() or None
    opened = None
    for read in (serialization.load_ssh_private_key, serialization.load_pem_private_key):
        try:
            opened = read(raw, password=passphrase)
            break
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
    for kind, key_class in _KEY_CLASSES:
        if isinstance(opened, kind):
            plain = opened.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            )
            return key_class.from_private_key(io.StringIO(plain.decode()))
    raise _invalid(
        "the private key cannot be used: it is no RSA, ECDSA or Ed25519 key, or its passphrase is wrong", name
    )


def _text(value: bytes, *, key: str, name: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _invalid(f"the value of {key} in the credential Secret is not UTF-8", name) from None


def _invalid(message: str, name: str) -> TerminalError:
    return TerminalError(message, code=ErrorCode.DEVICE_CREDENTIAL_INVALID, subject=name)
