"""Long signed histories, made in memory: half of the commits signed by SSH (ed25519), half by OpenPGP (ed25519).

git would need minutes for ten thousand signatures; here each object is written as it is, and git accepts all of it.
"""

import subprocess
from pathlib import Path

import pysequoia

from tests.support.git_repos import START, tree_bytes
from tests.support.trust import POLICY_PATH, Story, config_map, person, policy_text
from tests.support.trust_software import SoftKey

FOLDER = b"clusters"


def signed_history(path: Path, *, commits: int, files: int = 50) -> Story:
    """A repository whose branch `main` has that many commits above the pinned root, each changing one of the files.

    Args:
        path: where the repository is made.
        commits: above the root, all on the first-parent line.
        files: how many documents take turns.
    """
    ssh, openpgp = SoftKey.ed25519(), pysequoia.Tsk.generate("bob <bob@example.net>")
    story = Story.begin(path, _policy(ssh, openpgp))
    signer = openpgp.signer()
    write = story.repo.write_object
    control = story.repo.git("rev-parse", f"HEAD:{POLICY_PATH.split('/', maxsplit=1)[0]}")
    blobs: dict[bytes, str] = {}
    parent, moment = story.root.commit, int(START.timestamp())
    for number in range(commits):
        name = b"a%03d.yaml" % (number % files)
        blobs[name] = write("blob", config_map(name.decode()[:-5], v=str(number)).encode())
        folder = write("tree", tree_bytes(*((0o100644, each, blobs[each]) for each in sorted(blobs))))
        tree = write("tree", tree_bytes((0o40000, b".gitops-ctl", control), (0o40000, FOLDER, folder)))
        stamp = f"ann <ann@example.net> {moment + number} +0000"
        payload = f"tree {tree}\nparent {parent}\nauthor {stamp}\ncommitter {stamp}\n\nchange {number}\n".encode()
        signature = ssh.sign(payload) if number % 2 else _detached(signer, payload)
        parent = write("commit", _signed(payload, signature))
    story.repo.point("refs/heads/main", parent)
    subprocess.run(["git", "repack", "-adq"], cwd=path, check=True)
    return story


def _policy(ssh: SoftKey, openpgp: pysequoia.Tsk) -> str:
    public = pysequoia.Cert.from_bytes(bytes(openpgp))
    certificate = {"fingerprint": public.fingerprint.upper(), "certificate": str(public)}
    people = [person("ann", {"ssh": ssh.line}), person("bob", {"openpgp": certificate})]
    return policy_text(people, roles={"author": ["ann", "bob"], "approver": ["bob"], "admin": ["ann"]})


def _detached(signer: object, payload: bytes) -> bytes:
    return bytes(pysequoia.sign(signer, payload, mode=pysequoia.SignatureMode.DETACHED))


def _signed(payload: bytes, signature: bytes) -> bytes:
    head, _, body = payload.partition(b"\n\n")
    return head + b"\ngpgsig " + signature.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n\n" + body
