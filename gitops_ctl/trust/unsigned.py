"""Names all unsigned commits of a merge at once (gitops.md, section 4.3; faults X16, X17)."""

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.lines import Line
from gitops_ctl.trust.verdict import CommitRefused

_SHOWN = 10
FORGE_HINT = "let the forge sign its merges and list its key in merges.forgeKeys, or merge on a workstation"


def explain_unsigned(store: ObjectStore, error: CommitRefused, *, line: Line) -> CommitRefused:
    """The same refusal; when a commit is unsigned, with every unsigned one of the line, the newest first."""
    if error.code is not ErrorCode.UNSIGNED:
        return error
    unsigned = [commit for commit in reversed((*line.merged, line.tip)) if _is_unsigned(store, commit)]
    shown = ", ".join(unsigned[:_SHOWN]) + (f" and {len(unsigned) - _SHOWN} more" if len(unsigned) > _SHOWN else "")
    message = f"{error.message}; a signed merge covers nothing below it; unsigned are: {shown}"
    only_merge = unsigned == [line.tip] and bool(line.merged)
    return CommitRefused(
        message if line.merged else error.message,
        code=error.code,
        commit=error.commit,
        hint=FORGE_HINT if only_merge else error.hint,
        where=error.where,
    )


def _is_unsigned(store: ObjectStore, commit: str) -> bool:
    try:
        return store.commit(commit).signature is None
    except GitopsError:
        return False
