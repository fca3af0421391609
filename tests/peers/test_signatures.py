"""Our verdict on signatures beside what git, gpg and ssh-keygen say about the same bytes.

Every difference is in one of the two tables `STRICTER_*` below, each with its reason; docs/explanation/signatures.md lists them
for people.  There is no case in which we accept and the tools refuse, the clock of the signer apart.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from gitops_ctl.core.errors import Refused
from gitops_ctl.git.objects import parse_commit
from gitops_ctl.trust.keys import KeyRing
from gitops_ctl.trust.policy import load_policy
from tests.support.git_keys import GpgHome, GpgKey, SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.trust import person, policy_text, ssh_line, verdict_on
from tests.support.trust_software import PRESENT, VERIFIED, SoftKey

pytestmark = pytest.mark.peers
PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nhello\n"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture(scope="module")
def home():
    with GpgHome() as made:
        yield made


def ring_of(*entries: dict[str, object]) -> KeyRing:
    names = [str(entry["name"]) for entry in entries]
    return load_policy(policy_text(entries, roles=dict.fromkeys(("author", "approver", "admin"), names)).encode()).keys


def ssh_keygen_accepts(directory: Path, signature: bytes, allowed: str, *, at: datetime | None = None) -> bool:
    """`ssh-keygen -Y verify` with one line of allowed signers, at a moment."""
    (directory / "allowed").write_text(f"{allowed}\n")
    (directory / "signature").write_bytes(signature)
    when = [f"-Overify-time={at.strftime('%Y%m%d%H%M%SZ')}"] if at else []
    arguments = ["ssh-keygen", "-Y", "verify", *when, "-n", "git", "-I", "ann", "-f", "allowed", "-s", "signature"]
    done = subprocess.run(arguments, cwd=directory, input=PAYLOAD, capture_output=True, check=False, env=ENVIRONMENT)
    return done.returncode == 0


def git_accepts(repo: RepoBuilder, commit: str, *config: str) -> bool:
    """`git verify-commit`."""
    options = [part for setting in config for part in ("-c", setting)]
    done = subprocess.run(
        ["git", *options, "verify-commit", commit], cwd=repo.path, capture_output=True, check=False, env=ENVIRONMENT
    )
    return done.returncode == 0


def ours(repo: RepoBuilder, commit: str, keys: KeyRing, *, now: datetime | None = None) -> bool:
    raw = parse_commit(commit, repo.raw(commit))
    assert raw.signature is not None
    moment = now or datetime.now(UTC)
    return verdict_on(raw.payload, raw.signature, keys, at=moment, now=moment) == "Accepted"


# SSH, blob by blob


@dataclass(frozen=True)
class Blob:
    """A signature over PAYLOAD, the line that allows it, and the policy entry that does."""

    signature: bytes
    allowed: str
    entry: dict[str, object]


def _plain(key: SshKey | SoftKey, **members: object) -> Callable[[bytes], Blob]:
    line = key.line if isinstance(key, SoftKey) else ssh_line(key)
    options = 'namespaces="git"' + (",verify-required" if members.get("requireUserVerification") else "")
    return lambda signature: Blob(signature, f"ann {options} {line}", {"ssh": line, **members})


def _soft(key: SoftKey, *, hash_name: bytes = b"sha512", **members: object) -> Blob:
    return _plain(key, **members)(key.sign(PAYLOAD, hash_name=hash_name))


def _made(directory: Path, *, payload: bytes = PAYLOAD, namespace: str = "git", **options: object) -> Blob:
    key = SshKey.generate(directory, **options)
    return _plain(key)(key.sign(payload, namespace=namespace))


SSH_BLOBS: dict[str, Callable[[Path], Blob]] = {
    "ed25519": _made,
    "ecdsa 256": partial(_made, type="ecdsa", bits=256),
    "ecdsa 384": partial(_made, type="ecdsa", bits=384),
    "ecdsa 521": partial(_made, type="ecdsa", bits=521),
    "rsa 3072": partial(_made, type="rsa", bits=3072),
    "another content": partial(_made, payload=PAYLOAD + b"x"),
    "another namespace": partial(_made, namespace="file"),
    "software ed25519": lambda d: _soft(SoftKey.ed25519()),
    "software ed25519, sha256": lambda d: _soft(SoftKey.ed25519(), hash_name=b"sha256"),
    "sk-ed25519": lambda d: _soft(SoftKey.ed25519(security_key=True)),
    "sk-ecdsa": lambda d: _soft(SoftKey.ecdsa_sk()),
    "sk-ed25519 verified": lambda d: _soft(SoftKey.ed25519(security_key=True, flags=PRESENT | VERIFIED)),
    "bytes after the blob": lambda d: _soft(replace(SoftKey.ed25519(), extra=b"\0")),
}
STRICTER_SSH: dict[str, tuple[Callable[[Path], Blob], str]] = {
    "sk-ed25519 without presence": (
        lambda d: _soft(SoftKey.ed25519(security_key=True, flags=0)),
        "a security key that nobody touched proves no person; ssh-keygen checks presence for logins only",
    ),
}


@pytest.mark.parametrize("name", SSH_BLOBS)
def test_an_ssh_signature_has_the_verdict_of_ssh_keygen(name: str, tmp_path: Path) -> None:
    blob = SSH_BLOBS[name](tmp_path)
    theirs = ssh_keygen_accepts(tmp_path, blob.signature, blob.allowed)
    keys = ring_of(person("ann", blob.entry))
    assert (verdict_on(PAYLOAD, blob.signature, keys) == "Accepted") == theirs


@pytest.mark.parametrize("name", STRICTER_SSH)
def test_where_we_are_stricter_than_ssh_keygen_the_tool_accepts_and_we_refuse(name: str, tmp_path: Path) -> None:
    make, reason = STRICTER_SSH[name]
    blob = make(tmp_path)
    assert reason
    assert ssh_keygen_accepts(tmp_path, blob.signature, blob.allowed)
    assert verdict_on(PAYLOAD, blob.signature, ring_of(person("ann", blob.entry))) != "Accepted"


# SSH certificates

AT = datetime(2026, 6, 15, tzinfo=UTC)
CERTIFICATES: dict[str, tuple[list[str], datetime]] = {
    "valid": (["-n", "ann", "-V", "20260601:20260701"], AT),
    "one of several principals": (["-n", "bob,ann", "-V", "20260601:20260701"], AT),
    "for ever": (["-n", "ann"], AT),
    "another principal": (["-n", "bob", "-V", "20260601:20260701"], AT),
    "not yet": (["-n", "ann", "-V", "20260601:20260701"], AT - timedelta(days=30)),
    "too late": (["-n", "ann", "-V", "20260601:20260701"], AT + timedelta(days=30)),
    "a host certificate": (["-h", "-n", "ann", "-V", "20260601:20260701"], AT),
    "no principal at all": ([], AT),
}
STRICTER_CERTIFICATES = {
    "a critical option for logins": (
        ["-n", "ann", "-O", "force-command=/bin/false"],
        "an option that restricts logins has no meaning for a signature; what is not understood is refused",
    ),
    "an address restriction": (
        ["-n", "ann", "-O", "source-address=192.0.2.0/24"],
        "an option that restricts logins has no meaning for a signature; what is not understood is refused",
    ),
    "an unknown critical option": (
        ["-n", "ann", "-O", "critical:odd@example.net=1"],
        "an authority that calls an option critical wants a reader who does not know it to refuse",
    ),
}


def _certified(directory: Path, options: list[str]) -> tuple[bytes, str, KeyRing]:
    authority, key = SshKey.generate(directory, name="ca"), SshKey.generate(directory, name="ann")
    public = key.path.with_name(key.path.name + ".pub")
    subprocess.run(["ssh-keygen", "-q", "-s", str(authority.path), "-I", "ann", *options, str(public)], check=True)
    signature = replace(key, path=key.path.with_name(key.path.name + "-cert.pub")).sign(PAYLOAD)
    entry = {"sshCertificateAuthority": {"key": ssh_line(authority), "principals": ["ann"]}}
    return signature, f'ann cert-authority,namespaces="git" {ssh_line(authority)}', ring_of(person("ann", entry))


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certified_signature_has_the_verdict_of_ssh_keygen(name: str, tmp_path: Path) -> None:
    options, at = CERTIFICATES[name]
    signature, allowed, keys = _certified(tmp_path, options)
    theirs = ssh_keygen_accepts(tmp_path, signature, allowed, at=at)
    assert (verdict_on(PAYLOAD, signature, keys, at=at) == "Accepted") == theirs


@pytest.mark.parametrize("name", STRICTER_CERTIFICATES)
def test_where_we_are_stricter_about_certificates_the_tool_accepts_and_we_refuse(name: str, tmp_path: Path) -> None:
    options, reason = STRICTER_CERTIFICATES[name]
    assert reason
    signature, allowed, keys = _certified(tmp_path, options)
    assert ssh_keygen_accepts(tmp_path, signature, allowed, at=AT)
    assert verdict_on(PAYLOAD, signature, keys, at=AT) == "UnknownSigner"


# Commits, as git judges them


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "stranger"])
def test_a_commit_with_an_ssh_signature_has_the_verdict_of_git(tmp_path: Path, listed: bool) -> None:
    repo, key, other = (
        RepoBuilder(tmp_path / "repo"),
        SshKey.generate(tmp_path),
        SshKey.generate(tmp_path, name="other"),
    )
    commit = repo.commit({"a": "1"}, signer=key)
    named = key if listed else other
    (tmp_path / "allowed").write_text(f'ann namespaces="git" {ssh_line(named)}\n')
    theirs = git_accepts(repo, commit, "gpg.format=ssh", f"gpg.ssh.allowedSignersFile={tmp_path / 'allowed'}")
    assert ours(repo, commit, ring_of(person("ann", named))) == theirs == listed


def test_X07_git_accepts_a_back_dated_commit_by_an_expired_ssh_key_and_we_do_not(tmp_path: Path) -> None:
    repo, key = RepoBuilder(tmp_path / "repo"), SshKey.generate(tmp_path)
    commit = repo.commit({"a": "1"}, signer=key, date=datetime(2026, 1, 1, tzinfo=UTC))
    (tmp_path / "allowed").write_text(f'ann namespaces="git",valid-before="20260601" {ssh_line(key)}\n')
    assert git_accepts(repo, commit, "gpg.format=ssh", f"gpg.ssh.allowedSignersFile={tmp_path / 'allowed'}")
    entry = {"ssh": ssh_line(key), "validUntil": "2026-06-01T00:00:00Z"}
    assert not ours(repo, commit, ring_of(person("ann", entry)))


def _openpgp(key: GpgKey) -> dict[str, object]:
    return {"openpgp": {"fingerprint": key.fingerprint, "certificate": key.public}}


def _git_with(home: GpgHome, key: GpgKey, repo: RepoBuilder, commit: str) -> bool:
    program = home.path / "verify"
    program.write_text(f"#!/bin/sh\nexec gpg --homedir '{home.path}' --batch --no-tty \"$@\"\n")
    program.chmod(0o700)
    return git_accepts(repo, commit, f"gpg.program={program}")


@pytest.mark.parametrize(
    ("kind", "sub_key"),
    [
        ("ed25519", False),
        ("ed25519", True),
        ("rsa3072", False),
        ("rsa3072", True),
        ("nistp256", False),
        ("nistp384", False),
        ("nistp521", False),
    ],
)
def test_a_commit_with_an_openpgp_signature_has_the_verdict_of_git(
    tmp_path: Path, home: GpgHome, kind: str, sub_key: bool
) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    key = GpgKey.generate(home, kind=kind, name=f"{kind}-{sub_key}", signing_subkey=sub_key)
    commit = repo.commit({"a": "1"}, signer=key)
    assert _git_with(home, key, repo, commit)
    assert ours(repo, commit, ring_of(person("ann", _openpgp(key))))


def test_a_changed_commit_is_refused_by_git_and_by_us(tmp_path: Path, home: GpgHome) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    key = GpgKey.generate(home, name="changed")
    commit = repo.commit({"a": "1"}, signer=key)
    changed = repo.write_object("commit", repo.raw(commit).replace(b"\n\nchange", b"\n\nchanged"))
    assert not _git_with(home, key, repo, changed)
    assert not ours(repo, changed, ring_of(person("ann", _openpgp(key))))


STRICTER_OPENPGP = {
    "rsa2048": "RSA keys need 3072 bits",
    "dsa3072": "DSA is not accepted",
    "brainpoolP256r1": "curves besides P-256, P-384, P-521 and ed25519 are not accepted",
    "secp256k1": "curves besides P-256, P-384, P-521 and ed25519 are not accepted",
}


@pytest.mark.parametrize("kind", STRICTER_OPENPGP)
def test_where_we_are_stricter_about_keys_git_accepts_and_the_policy_is_refused(
    tmp_path: Path, home: GpgHome, kind: str
) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    key = GpgKey.generate(home, kind=kind, name=kind)
    commit = repo.commit({"a": "1"}, signer=key)
    assert _git_with(home, key, repo, commit)
    with pytest.raises(Refused, match="not accepted") as caught:
        ring_of(person("ann", _openpgp(key)))
    assert caught.value.reason == "PolicyInvalid"


def test_a_revoked_key_is_refused_by_us_although_git_accepts_what_it_signed_before(
    tmp_path: Path, home: GpgHome
) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    key = GpgKey.generate(home, name="revoked")
    commit = repo.commit({"a": "1"}, signer=key)
    key.revoke()
    assert not ours(repo, commit, ring_of(person("ann", _openpgp(key))))


def test_a_key_that_expired_is_refused_by_us_at_first_sight_although_git_accepts_older_signatures(
    tmp_path: Path, home: GpgHome
) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    made = datetime.now(UTC) - timedelta(days=10)
    key = GpgKey.generate(home, name="old", expires="2d", created=made.strftime("%Y%m%dT%H%M%S"))
    commit = repo.commit({"a": "1"}, signer=key)
    keys = ring_of(person("ann", _openpgp(key)))
    assert not ours(repo, commit, keys)
    raw = parse_commit(commit, repo.raw(commit))
    assert raw.signature is not None
    seen_then = made + timedelta(days=1)
    assert verdict_on(raw.payload, raw.signature, keys, at=seen_then, now=datetime.now(UTC)) == "Accepted"


@pytest.mark.parametrize("digest", ["SHA1", "SHA224"])
def test_a_weak_digest_is_refused_by_us_whatever_gpg_says(home: GpgHome, digest: str) -> None:
    key = GpgKey.generate(home, kind="rsa3072", name=f"weak-{digest}")
    signature = key.sign(PAYLOAD, digest=digest)
    keys = ring_of(person("ann", _openpgp(key)))
    assert verdict_on(PAYLOAD, signature, keys, at=datetime.now(UTC)) == "UnsupportedFormat"
