"""Signing keys made by the real tools, for tests.

`SshKey` comes from ssh-keygen, `GpgKey` from gpg in a home directory of its own.  Both know how to make git sign with them
(`git_config`), give their public part, and sign any bytes.  A gpg home runs an agent: use `GpgHome` as a context manager.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

GPG_TIMEOUT_S = 60
GPG_UNATTENDED = ("--batch", "--no-tty", "--yes", "--pinentry-mode=loopback", "--passphrase=")


@dataclass(frozen=True, slots=True)
class SshKey:
    """One key pair on disk; `path` is the private half, `path.pub` the public one."""

    name: str
    path: Path

    @classmethod
    def generate(cls, directory: Path, *, type: str = "ed25519", name: str = "signer", bits: int | None = None) -> Self:
        """A fresh key without passphrase: ed25519, ecdsa (bits 256, 384 or 521) or rsa (bits)."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{name}-{type}{bits or ''}"
        size = ["-b", str(bits)] if bits else []
        _run(["ssh-keygen", "-q", "-t", type, *size, "-N", "", "-C", f"{name}@example.net", "-f", str(path)])
        return cls(name, path)

    @property
    def public(self) -> str:
        """`type base64 comment`, one line without its newline."""
        return self.path.with_name(self.path.name + ".pub").read_text().strip()

    @property
    def fingerprint(self) -> str:
        """`SHA256:…` as ssh-keygen prints it."""
        return _run(["ssh-keygen", "-l", "-E", "sha256", "-f", str(self.path)]).split()[1]

    def git_config(self) -> tuple[str, ...]:
        return ("gpg.format=ssh", f"user.signingKey={self.path}")

    def sign(self, data: bytes, *, namespace: str = "git") -> bytes:
        """An armored SSHSIG over `data`."""
        with tempfile.TemporaryDirectory() as scratch:
            target = Path(scratch, "data")
            target.write_bytes(data)
            _run(["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(self.path), str(target)])
            return Path(scratch, "data.sig").read_bytes()

    def certify(
        self, authority: "SshKey", *, principals: tuple[str, ...], validity: str = "always:forever", serial: int = 1
    ) -> "SshKey":
        """The same key with a user certificate by `authority`; sign with the returned one to use the certificate.

        Args:
            authority: the CA key.
            principals: names inside the certificate.
            validity: as for `ssh-keygen -V`.
            serial: number of the certificate.
        """
        copy = self.path.with_name(f"{self.path.name}-certified-{serial}")
        shutil.copy(self.path, copy)
        public = copy.with_name(copy.name + ".pub")
        shutil.copy(self.path.with_name(self.path.name + ".pub"), public)
        arguments = ["-s", str(authority.path), "-I", self.name, "-n", ",".join(principals), "-V", validity]
        _run(["ssh-keygen", "-q", *arguments, "-z", str(serial), str(public)])
        return SshKey(self.name, copy.with_name(copy.name + "-cert.pub"))


class GpgHome:
    """A GnuPG home with an agent that ends with the `with` block."""

    def __init__(self) -> None:
        # The agent's socket path is limited to 108 bytes, which a pytest directory can exceed.
        self.path = Path(tempfile.mkdtemp(prefix="gpg-"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.path), "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self, *arguments: str, data: bytes = b"", moment: str | None = None) -> bytes:
        """gpg's standard output; `moment` (`20250101T000000`) fakes its clock."""
        clock = ["--faked-system-time", moment] if moment else []
        done = subprocess.run(
            ["gpg", "--homedir", str(self.path), *GPG_UNATTENDED, *clock, *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=GPG_TIMEOUT_S,
        )
        if done.returncode:
            raise RuntimeError(f"gpg {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout


@dataclass(frozen=True, slots=True)
class GpgKey:
    """One secret key in a `GpgHome`.  `moment` is the clock that it signs by, None for the real one."""

    home: GpgHome
    name: str
    fingerprint: str
    signing_key: str
    moment: str | None = None

    @classmethod
    def generate(
        cls,
        home: GpgHome,
        *,
        kind: str = "ed25519",
        name: str = "signer",
        email: str = "",
        signing_subkey: bool = False,
        expires: str = "never",
        created: str | None = None,
    ) -> Self:
        """A fresh key.

        Args:
            home: where it is kept.
            kind: gpg's algorithm name: ed25519, rsa3072, rsa2048, nistp256, ed448 …
            name: user id.
            email: `<name>@example.net` when empty.
            signing_subkey: the primary only certifies, a sub-key signs.
            expires: `never`, or as gpg's `--quick-gen-key` takes it (`1d`, `seconds=60`).
            created: faked moment of creation and of every later signature; makes expired keys possible.
        """
        user = f"{name} <{email or f'{name}@example.net'}>"
        usage = "cert" if signing_subkey else "sign"
        before = set(_fingerprints(home))
        home.run("--quick-gen-key", user, kind, usage, expires, moment=created)
        (primary,) = [found for found in _primaries(home) if found not in before]
        signing = primary
        if signing_subkey:
            known = set(_fingerprints(home))
            home.run("--quick-add-key", primary, kind, "sign", expires, moment=created)
            (signing,) = [found for found in _fingerprints(home) if found not in known]
        return cls(home, name, primary, signing, created)

    @property
    def public(self) -> str:
        """Armored certificate as it is now, with revocations."""
        return self.home.run("--armor", "--export", self.fingerprint).decode()

    def revoke(self) -> None:
        """Import the revocation certificate that gpg made with the key; the key can no longer sign in this home."""
        stored = self.home.path / "openpgp-revocs.d" / f"{self.fingerprint}.rev"
        text = stored.read_text().replace(":-----BEGIN", "-----BEGIN")
        self.home.run("--import", data=text.encode())

    def git_config(self) -> tuple[str, ...]:
        return ("gpg.format=openpgp", f"gpg.program={self._program()}", f"user.signingKey={self.signing_key}!")

    def sign(self, data: bytes, *, digest: str = "SHA256") -> bytes:
        """An armored detached signature over `data`."""
        options = ["--armor", "--detach-sign", "--digest-algo", digest, "--local-user", f"{self.signing_key}!"]
        return self.home.run(*options, data=data, moment=self.moment)

    def _program(self) -> Path:
        path = self.home.path / f"sign-{self.signing_key}"
        clock = f"--faked-system-time {self.moment}" if self.moment else ""
        path.write_text(f"#!/bin/sh\nexec gpg --homedir '{self.home.path}' --batch --no-tty {clock} \"$@\"\n")
        path.chmod(0o700)
        return path


def _primaries(home: GpgHome) -> list[str]:
    return _fields(home, after="sec")


def _fingerprints(home: GpgHome) -> list[str]:
    return _fields(home, after="")


def _fields(home: GpgHome, *, after: str) -> list[str]:
    found, last = [], ""
    for line in home.run("--with-colons", "--list-secret-keys").decode().splitlines():
        fields = line.split(":")
        if fields[0] == "fpr" and (not after or last == after):
            found.append(fields[9])
        elif fields[0] in ("sec", "ssb"):
            last = fields[0]
    return found


def _run(arguments: list[str]) -> str:
    done = subprocess.run(arguments, capture_output=True, check=False, timeout=GPG_TIMEOUT_S, env=_environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C"}
