"""The manager's own signatures: git itself verifies them, and a key that no policy may list is refused with one clear error
(forges.md, section 13; acceptance check 7)."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.writing import Identity, borrow_objects, commit_files
from gitops_ctl.trust.signing import CommitSigner, load_signer
from tests.support.git_keys import GpgHome, GpgKey, SshKey
from tests.support.git_repos import RepoBuilder

AT = datetime(2026, 11, 30, 8, tzinfo=UTC)
ROBOT = Identity("gitops-ctl", "gitops-ctl@example.net")
KINDS = [("ed25519", None), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 3072)]


def signed_commit(signer: CommitSigner, folder: Path) -> tuple[RepoBuilder, str]:
    repo = RepoBuilder(folder / "repo")
    base = repo.commit({"a.yaml": "x: 1\n"})
    place = borrow_objects(folder / "desk", of=repo.git_dir)
    with ObjectStore.open(place) as store:
        commit = commit_files(
            store, base=base, changes={"a.yaml": b"x: 2\n"}, message="change\n", author=ROBOT, at=AT, signer=signer
        )
        repo.write_object("tree", store.read(store.links(commit).tree).data)
        repo.write_object("blob", b"x: 2\n")
        return repo, repo.write_object("commit", store.read(commit).data)


@pytest.mark.parametrize(("kind", "bits"), KINDS)
def test_git_verifies_what_each_kind_of_ssh_key_signs(tmp_path: Path, kind: str, bits: int | None):
    key = SshKey.generate(tmp_path, type=kind, bits=bits)
    signer = load_signer({"identity": key.path.read_bytes()})
    assert signer.fingerprint == key.fingerprint
    assert signer.public == " ".join(key.public.split()[:2])
    repo, commit = signed_commit(signer, tmp_path)
    allowed = tmp_path / "allowed"
    allowed.write_text(f'gitops-ctl@example.net namespaces="git" {signer.public}\n')
    repo.git("verify-commit", commit, config=[f"gpg.ssh.allowedSignersFile={allowed}"])
    allowed.write_text(f"gitops-ctl@example.net {SshKey.generate(tmp_path, name='other').public}\n")
    with pytest.raises(RuntimeError):
        repo.git("verify-commit", commit, config=[f"gpg.ssh.allowedSignersFile={allowed}"])


def test_ed25519_gives_the_same_commit_for_the_same_input(tmp_path: Path):
    key = SshKey.generate(tmp_path)
    made = {signed_commit(load_signer({"identity": key.path.read_bytes()}), tmp_path / name)[1] for name in ("a", "b")}
    assert len(made) == 1


@pytest.mark.parametrize("form", [("-m", "PKCS8"), ()], ids=["PKCS#8", "OpenSSH"])
def test_a_key_under_a_passphrase_is_opened_with_the_password(tmp_path: Path, form: tuple[str, ...]):
    key = SshKey.generate(tmp_path, type="ecdsa", bits=256)
    _encrypt(key, *form)
    data = key.path.read_bytes()
    assert load_signer({"ssh-privatekey": data, "password": b"open-it\n"}).fingerprint == key.fingerprint
    for password in ({}, {"password": b"wrong"}):
        with pytest.raises(BlockedError, match="private key is refused"):
            load_signer({"identity": data, **password})


def test_a_cipher_that_cannot_be_read_is_refused_with_the_way_out(tmp_path: Path):
    key = SshKey.generate(tmp_path)
    _encrypt(key, "-Z", "chacha20-poly1305@openssh.com")
    with pytest.raises(BlockedError, match="ssh-keygen -p -m PKCS8"):
        load_signer({"identity": key.path.read_bytes(), "password": b"open-it"})


def _encrypt(key: SshKey, *options: str) -> None:
    command = ["ssh-keygen", "-q", "-p", *options, "-P", "", "-N", "open-it", "-f", str(key.path)]
    subprocess.run(command, check=True, capture_output=True)


def test_gpg_verifies_what_an_openpgp_key_signs(tmp_path: Path):
    with GpgHome() as home:
        key = GpgKey.generate(home, signing_subkey=True)
        secret = home.run("--armor", "--export-secret-keys", key.fingerprint)
        signer = load_signer({"openpgp": secret})
        assert signer.fingerprint == key.fingerprint.upper()
        repo, commit = signed_commit(signer, tmp_path)
        block = repo.raw(commit).partition(b"gpgsig ")[2].partition(b"\n\n")[0].replace(b"\n ", b"\n")
        payload = repo.raw(commit).replace(b"gpgsig " + block.replace(b"\n", b"\n ") + b"\n", b"")
        (tmp_path / "sig").write_bytes(block + b"\n")
        (tmp_path / "payload").write_bytes(payload)
        home.run("--verify", str(tmp_path / "sig"), str(tmp_path / "payload"))
        (tmp_path / "payload").write_bytes(payload + b"x")
        with pytest.raises(RuntimeError):
            home.run("--verify", str(tmp_path / "sig"), str(tmp_path / "payload"))


def test_an_expired_openpgp_key_signs_nothing():
    with GpgHome() as home:
        key = GpgKey.generate(home, created="20200101T000000", expires="1d")
        secret = home.run("--armor", "--export-secret-keys", key.fingerprint)
        with pytest.raises(BlockedError) as error:
            load_signer({"openpgp": secret}).sign(b"payload")
        assert error.value.code is ErrorCode.SIGNING_KEY_INVALID


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ({}, "it holds none"),
        ({"identity": b"x", "openpgp": b"y"}, "it holds identity and openpgp"),
        ({"identity": b"-----BEGIN OPENSSH PRIVATE KEY-----\nSECRETBYTES\n"}, "cannot be read"),
        ({"identity": b"SECRETBYTES"}, "cannot be read"),
        ({"openpgp": b"SECRETBYTES"}, "OpenPGP secret key cannot be read"),
    ],
)
def test_a_secret_without_one_usable_key_is_one_clear_error_that_shows_none_of_it(secret: dict[str, bytes], told: str):
    with pytest.raises(BlockedError, match=told) as error:
        load_signer(secret, subject="Secret/team-a/signing")
    assert error.value.code is ErrorCode.SIGNING_KEY_INVALID
    assert error.value.subject == "Secret/team-a/signing"
    assert "SECRETBYTES" not in f"{error.value!r} {error.value.__cause__} {error.value.hint}"


@pytest.mark.parametrize(("kind", "bits"), [("rsa", 2048), ("dsa", None)])
def test_a_weak_key_is_refused_because_no_policy_may_list_it(tmp_path: Path, kind: str, bits: int | None):
    try:
        key = SshKey.generate(tmp_path, type=kind, bits=bits)
    except RuntimeError:
        assert kind == "dsa"  # newer OpenSSH makes none
        return
    with pytest.raises(BlockedError, match="refused"):
        load_signer({"identity": key.path.read_bytes()})


def test_nothing_shows_the_key(tmp_path: Path):
    key = SshKey.generate(tmp_path)
    signer = load_signer({"identity": key.path.read_bytes()})
    assert repr(signer) == f"<signer {key.fingerprint}>"
