"""What checks one pull request for the manager, with the rules of all kinds: `python -m gitops_ctl.cli.pullcheck`; started by it alone."""

import sys

from gitops_ctl.cli.policycheck import register
from gitops_ctl.source.pullchild import serve

MODULE = "gitops_ctl.cli.pullcheck"

if __name__ == "__main__":
    serve(sys.argv[1:], prepare=register)
