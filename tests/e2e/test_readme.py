"""What the README promises: `gitops-ctl demo` tells the main job, ends with 0, and leaves nothing running.

The command runs as a person starts it, with a state folder of its own; the components come from the cache that all share.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from tests.support.processes import processes_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

STORY = (
    "control plane: Kubernetes v",
    "Git server: https://",
    "1. A platform author has signed and pushed; the source is pinned and applied",
    "the source is accepted and the Sync is Ready",
    "2. A network author pushes a signed commit",
    "3. Somebody edits a managed object with kubectl",
    "4. The network author changes what only the platform may change",
    "PathNotAuthorised",
    "5. The commit is taken back",
    "6. The network author removes a site",
    "Everything came as it was claimed.",
)
"""Lines of the story, in their order."""


def test_the_demo_of_the_readme_tells_its_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    begun_s = SystemClock().boot_s()
    done = subprocess.run(
        [sys.executable, "-m", "gitops_ctl", "demo"],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    told = done.stdout
    assert done.returncode == 0, f"{told[-4000:]}\n{done.stderr[-4000:]}"
    place = -1
    for line in STORY:
        found = told.find(line, place + 1)
        assert found > place, f"{line!r} is missing or out of order in:\n{told}"
        place = found
    assert "Traceback" not in told + done.stderr
    until(lambda: not processes_of(str(tmp_path)), what="no process of the demo is left", timeout_s=15)
    assert SystemClock().boot_s() - begun_s < 500


def test_the_readme_names_the_commands_that_are_tried_here() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
