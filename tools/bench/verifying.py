"""Verification of a long range: our judge in a fresh process beside `git log --format=%G?` on commits of the same range.

`python -m tools.bench.verifying REPO ROOT DIGEST TIP` is the measured process.  Ours judges more than a signature: the change of
every commit, its paths and verbs, by the policy of its parent.  git starts gpg or ssh-keygen for each commit.
"""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, Root, VerdictCache, judge_range
from gitops_ctl.trust.firstseen import FirstSeen
from tools.bench.figures import Figure, Report, Target
from tools.bench.process import rss_mib
from tools.bench.signed import History, history

SAMPLE = 500
FLAT = 1.1
"""Most memory of a range against that of half of it; both are longer than the caches that fill at the beginning."""


def judge(path: Path, root: str, digest: str, tip: str) -> dict[str, float | str]:
    """Judge root..tip in passes of 1000, as the controller does; seconds without the start of the interpreter."""
    began, used = time.monotonic(), time.process_time()
    now = datetime.now(UTC)
    cache, accepted, passes = VerdictCache(), None, 0
    seen = FirstSeen().observed(tip, at=now)
    judged = 0
    with ObjectStore.open(path) as store:
        while True:
            request = RangeRequest("bench", "refs/heads/main", Root(root, digest), accepted, tip, seen, now)
            verdict = judge_range(store, request=request, cache=cache)
            accepted, passes, judged = verdict.accepted, passes + 1, judged + verdict.judged
            if verdict.refused is not None:
                raise RuntimeError(verdict.message)
            if accepted == tip:
                break
    peak = rss_mib(os.getpid(), peak=True)
    return {
        "seconds": time.monotonic() - began,
        "cpu_s": time.process_time() - used,
        "peak_mib": peak,
        "judged": judged,
        "passes": passes,
    }


def _measured(made: History) -> dict[str, float]:
    argv = (sys.executable, "-m", "tools.bench.verifying", str(made.path), made.root, made.policy_digest, made.tip)
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _git(made: History, commits: int) -> float:
    """Seconds a commit of `git log` over the newest ones.

    Raises:
        RuntimeError: git finds another signature than a good one, so that the comparison would be of different work.
    """
    environment = {"PATH": os.environ["PATH"], "HOME": str(made.gnupg.parent), "GNUPGHOME": str(made.gnupg)}
    argv = ("git", "-C", str(made.path), "-c", f"gpg.ssh.allowedSignersFile={made.allowed_signers}")
    began = time.monotonic()
    done = subprocess.run(
        (*argv, "log", "--format=%G?", f"-{commits}", made.tip),
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    took = time.monotonic() - began
    # U: good, by a key of unknown ownertrust; that the policy trusts it is what ours decides.
    wrong = [letter for letter in done.stdout.split() if letter not in ("G", "U")]
    if wrong or len(done.stdout.split()) != commits:
        raise RuntimeError(f"git says {sorted(set(wrong))} of {len(wrong)} commits")
    return took / commits


def verifying(report: Report, *, commits: int, rounds: int) -> None:
    """Rounds of both on the same range."""
    small, large = history(max(commits // 2, 1)), history(commits)
    sample = min(SAMPLE, commits)
    ours: list[float] = []
    per_core: list[float] = []
    git: list[float] = []
    peaks: dict[str, list[float]] = {"small": [], "large": []}
    for number in range(rounds):
        if number % 2:
            git.append(1 / _git(large, sample))
        one = _measured(large)
        if not number % 2:
            git.append(1 / _git(large, sample))
        ours.append(one["judged"] / one["seconds"])
        per_core.append(one["judged"] / one["cpu_s"])
        peaks["large"].append(one["peak_mib"])
        peaks["small"].append(_measured(small)["peak_mib"])
    against = f"git log --format=%G?, {sample} commits of it"
    report.add(
        Figure(
            f"verification of {commits} signed commits",
            "commits/s",
            tuple(ours),
            tuple(git),
            against,
            target=Target(5, at_least=True, of_ratio=True),
            note="half ed25519 by SSH, half OpenPGP",
        ),
        Figure("the same for each CPU second", "commits/s", tuple(per_core), target=Target(2000, at_least=True)),
        Figure(
            f"most memory of {commits} commits",
            "MiB",
            tuple(peaks["large"]),
            tuple(peaks["small"]),
            f"{max(commits // 2, 1)} commits",
            target=Target(FLAT, of_ratio=True),
        ),
    )


if __name__ == "__main__":
    print(json.dumps(judge(Path(sys.argv[1]), *sys.argv[2:5])))
