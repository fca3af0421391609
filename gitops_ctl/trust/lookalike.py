"""Paths that some file system takes for the policy's own (gitops.md, section 4.1, A9; faults X12 and X14).

Git keeps `.GITOPS-CTL/trust.yaml` beside `.gitops-ctl/trust.yaml`, and a checkout that ignores case has one file for both.
Whoever commits there would sign another person's text as the policy, so such a path is refused, and so is all that lies in a
folder which only looks like the policy's.
"""

from functools import lru_cache

from gitops_ctl.core.foldedname import folded


def is_lookalike(path: str, *, of: str) -> bool:
    """Whether the path is not `of`, and the same, or inside one of its folders, where case and invisible marks do not count."""
    for one, other, same in zip(path.split("/"), of.split("/"), _folded(of), strict=False):
        if one != other:
            return folded(one) == same
    return False


@lru_cache(maxsize=64)
def _folded(path: str) -> tuple[str, ...]:
    return tuple(map(folded, path.split("/")))
