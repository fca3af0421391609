"""A repository with many signed commits, made fast: raw objects, signed in software, half by SSH ed25519 and half by OpenPGP.

It is kept in the user's cache under a name that says what made it, because making it takes longer than judging it.
"""

import base64
import hashlib
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pygit2
import pysequoia
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.local.build import peers_cache
from tools.bench.documents import config_map
from tools.bench.world import policy_text

EMAIL = "network-author@example.net"
_FILES = 200
_BLOB, _TREE, _COMMIT = pygit2.enums.ObjectType.BLOB, pygit2.enums.ObjectType.TREE, pygit2.enums.ObjectType.COMMIT


@dataclass(frozen=True)
class History:
    """A bare repository: the root holds the policy, `commits` signed changes of one file each follow.

    Attributes:
        made_s: seconds that it took to make; 0 when it was there.
    """

    path: Path
    root: str
    tip: str
    policy_digest: str
    allowed_signers: Path
    gnupg: Path
    made_s: float = 0.0


def history(commits: int) -> History:
    """The repository with so many signed commits, from the cache or made now."""
    source = "".join(sorted(path.read_text() for path in (Path(__file__), Path(__file__).with_name("documents.py"))))
    key = hashlib.sha256(f"{commits}\n{source}".encode()).hexdigest()[:16]
    folder = peers_cache().parent / "bench" / f"history-{key}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        began = time.monotonic()
        _make(folder, commits)
        return _opened(folder, time.monotonic() - began)
    return _opened(folder, 0.0)


def _opened(folder: Path, made_s: float) -> History:
    root, tip, digest = (folder / "made").read_text().split()
    return History(folder / "repo.git", root, tip, digest, folder / "allowed_signers", folder / "gnupg", made_s)


class SshKey:
    """An ed25519 key in memory that signs as git does; `line` is its public half."""

    def __init__(self) -> None:
        self._private = ed25519.Ed25519PrivateKey.generate()
        public = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.blob = _string(b"ssh-ed25519") + _string(public)
        self.line = f"ssh-ed25519 {base64.b64encode(self.blob).decode()}"

    def sign(self, payload: bytes) -> bytes:
        digest = hashlib.sha512(payload).digest()
        signed = b"SSHSIG" + b"".join(_string(part) for part in (b"git", b"", b"sha512", digest))
        inner = _string(b"ssh-ed25519") + _string(self._private.sign(signed))
        blob = b"SSHSIG" + (1).to_bytes(4, "big") + _string(self.blob)
        blob += b"".join(_string(part) for part in (b"git", b"", b"sha512", inner))
        text = base64.b64encode(blob)
        lines = [text[at : at + 70] for at in range(0, len(text), 70)]
        return b"\n".join((b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----"))


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _make(folder: Path, commits: int) -> None:
    folder.mkdir(parents=True)
    ssh = SshKey()
    certificate = pysequoia.Cert.generate(f"Network Author <{EMAIL}>")
    signer = certificate.secrets.signer()
    armored = str(certificate)
    (folder / "allowed_signers").write_text(f"{EMAIL} {ssh.line}\n")
    (folder / "gnupg").mkdir(mode=0o700)
    subprocess.run(
        ["gpg", "--homedir", str(folder / "gnupg"), "--batch", "--quiet", "--import"],
        input=armored.encode(),
        check=True,
        capture_output=True,
    )
    indented = "".join(f"            {line}\n" for line in armored.strip().splitlines())
    openpgp = f"openpgp:\n          fingerprint: {certificate.fingerprint.upper()}\n          certificate: |\n{indented.rstrip()}"
    policy = policy_text([f'ssh: "{ssh.line}"', openpgp]).encode()
    repository = pygit2.init_repository(str(folder / "repo.git"), bare=True)
    writer = _Writer(repository, policy)
    root = parent = writer.commit("", 0, ssh.sign)
    for number in range(1, commits + 1):

        def sign(payload: bytes) -> bytes:
            return bytes(pysequoia.sign(signer, payload, mode=pysequoia.SignatureMode.DETACHED)).rstrip(b"\n")

        parent = writer.commit(parent, number, ssh.sign if number % 2 else sign)
    repository.references.create("refs/heads/main", parent)
    subprocess.run(["git", "-C", str(folder / "repo.git"), "repack", "-adq"], check=True)
    (folder / "made").write_text(f"{root} {parent} {digest_bytes(policy)}")


class _Writer:
    """Writes a commit that changes one ConfigMap of a few hundred."""

    def __init__(self, repository: pygit2.Repository, policy: bytes) -> None:
        self._odb = repository.odb
        self._began = int(time.time())
        blobs = {f"site-{number:05d}.yaml": config_map(number).encode() for number in range(_FILES)}
        self._sites = {name: bytes.fromhex(str(self._odb.write(_BLOB, data))) for name, data in blobs.items()}
        trust = self._tree([(b"100644", POLICY_PATH.rpartition("/")[2].encode(), self._odb.write(_BLOB, policy).raw)])
        self._top = (b"40000", POLICY_PATH.partition("/")[0].encode(), trust)

    def _tree(self, entries: list[tuple[bytes, bytes, bytes]]) -> bytes:
        data = b"".join(b"%s %s\0%s" % entry for entry in entries)
        return bytes(self._odb.write(_TREE, data).raw)

    def commit(self, parent: str, number: int, sign: object) -> str:
        name = f"site-{number % _FILES:05d}.yaml"
        text = config_map(number % _FILES, value=f"{number}").encode()
        self._sites[name] = self._odb.write(_BLOB, text).raw
        sites = self._tree([(b"100644", key.encode(), self._sites[key]) for key in sorted(self._sites)])
        tree = self._tree([self._top, (b"40000", b"sites", sites)])
        person = f"Network Author <{EMAIL}> {self._began} +0000".encode()
        lines = [b"tree " + tree.hex().encode()]
        lines += [b"parent " + parent.encode()] if parent else []
        lines += [b"author " + person, b"committer " + person]
        message = f"Change {name} for the {number}. time\n".encode()
        payload = b"\n".join((*lines, b"", message))
        assert callable(sign)
        signature = sign(payload).replace(b"\n", b"\n ")
        data = b"\n".join((*lines, b"gpgsig " + signature, b"", message))
        return str(self._odb.write(_COMMIT, data))
