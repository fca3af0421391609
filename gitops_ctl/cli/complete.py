"""What `kubectl gitops-ctl <TAB>` calls: prints one candidate per line, then what the shell shall do with them.

kubectl finds this program as `kubectl_complete-gitops_ctl` and gives it the words so far, the last of them unfinished.
"""

import sys
from collections.abc import Sequence

from click.shell_completion import ShellComplete

from gitops_ctl.cli.main import PROGRAM, cli

# Do not fall back to file names.
_NO_FILES = ":4"


def candidates(words: Sequence[str]) -> list[str]:
    """Completions of the last word, given those before it."""
    *before, incomplete = words or [""]
    found = ShellComplete(cli, {}, PROGRAM, "_GITOPS_CTL_COMPLETE").get_completions(before, incomplete)
    return [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in found]


def main() -> None:
    """The program."""
    sys.stdout.writelines(f"{line}\n" for line in [*candidates(sys.argv[1:]), _NO_FILES])
