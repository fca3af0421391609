"""Judging under a large policy: commits of ten files each, by fifty persons, under two hundred rules.

`python -m tools.bench.judging REPO ROOT DIGEST TIP` is the measured process.  Every commit is judged whole: signature, signer,
the verbs of each changed document, and for each of them the first of the rules that matches.  The reference is what reading the
changed files alone costs: git's own list of signers and changed paths, without any judgement.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pygit2

from gitops_ctl.api.names import API_VERSION, POLICY_PATH
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.local.build import peers_cache
from tools.bench.documents import config_map
from tools.bench.figures import Figure, Report, Target
from tools.bench.signed import EMAIL, SshKey
from tools.bench.verifying import judge

COMMITS, FILES, RULES, PERSONS = 1000, 10, 200, 50
SITES, PER_SITE = 100, 20
TARGET_S = 2.0

_BLOB, _TREE, _COMMIT = pygit2.enums.ObjectType.BLOB, pygit2.enums.ObjectType.TREE, pygit2.enums.ObjectType.COMMIT


@dataclass(frozen=True)
class Case:
    """A bare repository whose root holds the policy."""

    path: Path
    root: str
    tip: str
    policy_digest: str
    allowed_signers: Path


def policy_text(keys: list[SshKey]) -> str:
    """Two rules a site, for two roles; the first match decides, so that on average a hundred rules are asked."""
    people = "".join(f"  - {{name: p{number}, keys: [{{ssh: '{key.line}'}}]}}\n" for number, key in enumerate(keys))
    roles = "".join(f"  r{site}: [p{site % PERSONS}]\n" for site in range(SITES))
    rules = "".join(
        f'  - {{paths: ["sites/s{site:03d}/**"], verbs: [{verb}], roles: [r{site}]}}\n'
        for site in range(SITES)
        for verb in ("edit", "delete")
    )
    last = f'  - {{paths: ["{POLICY_PATH}"], verbs: [trust], roles: [r0]}}\n'
    return f"apiVersion: {API_VERSION}\nkind: TrustPolicy\npeople:\n{people}roles:\n{roles}rules:\n{rules}{last}"


def case(commits: int) -> Case:
    """The repository, from the user's cache or made now."""
    source = "".join(sorted(path.read_text() for path in (Path(__file__), Path(__file__).with_name("documents.py"))))
    key = hashlib.sha256(f"{commits}\n{source}".encode()).hexdigest()[:16]
    folder = peers_cache().parent / "bench" / f"judging-{key}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, commits)
    root, tip, digest = (folder / "made").read_text().split()
    return Case(folder / "repo.git", root, tip, digest, folder / "allowed_signers")


def _make(folder: Path, commits: int) -> None:
    folder.mkdir(parents=True)
    keys = [SshKey() for _ in range(PERSONS)]
    (folder / "allowed_signers").write_text("".join(f"{EMAIL} {key.line}\n" for key in keys))
    policy = policy_text(keys).encode()
    repository = pygit2.init_repository(str(folder / "repo.git"), bare=True)
    writer = _Writer(repository, policy)
    root = parent = writer.commit("", keys[0])
    for number in range(1, commits + 1):
        site = number % SITES
        for place in range(FILES):
            writer.change(site, (number // SITES * FILES + place) % PER_SITE, value=str(number))
        parent = writer.commit(parent, keys[site % PERSONS])
    repository.references.create("refs/heads/main", parent)
    subprocess.run(["git", "-C", str(folder / "repo.git"), "repack", "-adq"], check=True)
    (folder / "made").write_text(f"{root} {parent} {digest_bytes(policy)}")


class _Writer:
    """Sites in folders of their own; a commit writes the trees that changed."""

    def __init__(self, repository: pygit2.Repository, policy: bytes) -> None:
        self._odb = repository.odb
        self._began = int(time.time())
        trust = self._tree([(b"100644", b"trust.yaml", bytes(self._odb.write(_BLOB, policy).raw))])
        self._top = (b"40000", POLICY_PATH.partition("/")[0].encode(), trust)
        self._files: dict[int, dict[bytes, bytes]] = {site: {} for site in range(SITES)}
        self._sites: dict[int, bytes] = {}
        for site in range(SITES):
            for place in range(PER_SITE):
                self.change(site, place, value="0")

    def change(self, site: int, place: int, *, value: str) -> None:
        """Give one file of a site another content."""
        text = config_map(site * PER_SITE + place, value=value).encode()
        self._files[site][b"f%02d.yaml" % place] = bytes(self._odb.write(_BLOB, text).raw)
        self._sites.pop(site, None)

    def commit(self, parent: str, key: SshKey) -> str:
        """One signed commit of everything that changed."""
        for site in self._files.keys() - self._sites.keys():
            entries = [(b"100644", name, self._files[site][name]) for name in sorted(self._files[site])]
            self._sites[site] = self._tree(entries)
        folder = self._tree([(b"40000", b"s%03d" % site, self._sites[site]) for site in range(SITES)])
        tree = self._tree([self._top, (b"40000", b"sites", folder)])
        stamp = f"Network Author <{EMAIL}> {self._began} +0000".encode()
        lines = [b"tree " + tree.hex().encode()]
        lines += [b"parent " + parent.encode()] if parent else []
        lines += [b"author " + stamp, b"committer " + stamp]
        payload = b"\n".join((*lines, b"", b"Change ten files\n"))
        signature = key.sign(payload).replace(b"\n", b"\n ")
        data = b"\n".join((*lines, b"gpgsig " + signature, b"", b"Change ten files\n"))
        return str(self._odb.write(_COMMIT, data))

    def _tree(self, entries: list[tuple[bytes, bytes, bytes]]) -> bytes:
        return bytes(self._odb.write(_TREE, b"".join(b"%s %s\0%s" % entry for entry in entries)).raw)


def _measured(made: Case) -> dict[str, float]:
    argv = (sys.executable, "-m", "tools.bench.judging", str(made.path), made.root, made.policy_digest, made.tip)
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _git(made: Case, commits: int) -> float:
    """Seconds of git's own signers and changed paths of as many commits; it starts ssh-keygen for each of them."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(made.path.parent)}
    argv = ("git", "-C", str(made.path), "-c", f"gpg.ssh.allowedSignersFile={made.allowed_signers}")
    began = time.monotonic()
    done = subprocess.run(
        (*argv, "log", "--format=%G?", "--name-only", f"-{commits}", made.tip),
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    good = sum(line == "G" for line in done.stdout.splitlines())
    if good != commits:
        raise RuntimeError(f"git calls {good} of {commits} signatures good")
    return time.monotonic() - began


def judging(report: Report, *, commits: int, rounds: int) -> None:
    """Rounds of both on the same range."""
    made = case(commits)
    ours: list[float] = []
    cpu: list[float] = []
    git: list[float] = []
    peaks: list[float] = []
    for number in range(rounds):
        if number % 2:
            git.append(_git(made, commits))
        one = _measured(made)
        if not number % 2:
            git.append(_git(made, commits))
        ours.append(one["seconds"])
        cpu.append(one["cpu_s"])
        peaks.append(one["peak_mib"])
    name = f"judging {commits} commits of {FILES} files, {RULES} rules, {PERSONS} persons"
    report.add(
        Figure(
            name,
            "s",
            tuple(ours),
            tuple(git),
            "git log --format=%G? --name-only",
            inverse=True,
            target=Target(TARGET_S * commits / COMMITS),
        ),
        Figure("CPU of it", "s", tuple(cpu)),
        Figure("most memory of it", "MiB", tuple(peaks)),
    )


if __name__ == "__main__":
    print(json.dumps(judge(Path(sys.argv[1]), *sys.argv[2:5])))
