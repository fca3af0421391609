"""`python -m tools.peers`: build everything that tests need into the user's cache and say what is there.

`python -m tools.peers --beside COMMAND ...` runs the command at once and builds beside it, quietly: whoever needs a component waits for
it and shows what is being built.  The exit code is the command's; an interrupt ends the command too (130).
"""

import asyncio
import sys
import time

from gitops_ctl.cli.output import report_error
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.local.binaries import from_assets
from gitops_ctl.local.build import Builder, peers_cache
from gitops_ctl.local.kueue import KUEUE_CRDS
from gitops_ctl.local.kwok import STAGES
from gitops_ctl.local.nfd import NFD_CRDS
from gitops_ctl.local.progress import Progress, progress_for
from gitops_ctl.local.published import published_files
from gitops_ctl.local.recipes import CONTROL_PLANE, GITEA, KUEUE, KWOK, NFD
from gitops_ctl.local.supervise import tied_argv
from tools.peers.beside import beside
from tools.peers.descriptions import GITHUB, described
from tools.peers.kueue_manager import KUEUE_MANAGER, KUEUE_WEBHOOKS

# What the most tests wait for comes first; tests/support/whole_run.py orders the tests in the same way.
_AFTER_CONTROL_PLANE = ((KWOK,), (GITEA,), (NFD,), (KUEUE,), (KUEUE_MANAGER,))


async def build_all(progress: Progress) -> int:
    """Have every component; returns how many programs and published files there are."""
    programs = 0
    for group in _AFTER_CONTROL_PLANE if from_assets() else (CONTROL_PLANE, *_AFTER_CONTROL_PLANE):
        programs += len(await Builder(progress=progress).programs(group))
    files = 0
    for published in (KUEUE_CRDS, KUEUE_WEBHOOKS, NFD_CRDS, STAGES):
        progress.update(f"manifests of {published.module}")
        files += len(await published_files(published))
    for description in (GITHUB,):
        progress.update(f"description {description.package}")
        files += len(list((await described(description)).iterdir()))
    progress.update(f"{programs} programs and {files} published files are in {peers_cache()}")
    return programs + files


def main() -> int:
    """The program."""
    if sys.argv[1:2] == ["--beside"]:
        build = tied_argv((sys.executable, "-m", "tools.peers"))
        return asyncio.run(beside(sys.argv[2:], build=build, log=peers_cache() / "build.log"))
    began = time.monotonic()
    try:
        with progress_for(sys.stderr) as progress:
            count = asyncio.run(build_all(progress))
    except GitopsError as error:
        report_error(error)
        return 1
    print(f"{count} components and published files ready in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
