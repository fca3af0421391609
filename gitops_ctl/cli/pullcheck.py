"""What checks one pull request for the manager, with the rules of all kinds: `python -m gitops_ctl.cli.pullcheck`; started by it alone."""

import sys

import msgspec

from gitops_ctl.cli import pullplans
from gitops_ctl.cli.policycheck import register
from gitops_ctl.scheduling import documentrules
from gitops_ctl.scheduling.options import Options
from gitops_ctl.source.pullchild import PullChild, serve

MODULE = "gitops_ctl.cli.pullcheck"


def pull_child(options: Options) -> PullChild:
    """Children that judge by the options of this manager: a pull request is told what the Sync would say after the merge."""
    return PullChild(MODULE, settings=msgspec.json.encode(options).decode())


def prepare(settings: str) -> None:
    """Register the rules and plans of all kinds; without settings with the options that nobody changed."""
    register()
    pullplans.register()
    if settings:
        documentrules.register(msgspec.json.decode(settings, type=Options))


if __name__ == "__main__":
    serve(sys.argv[1:], prepare=prepare)
