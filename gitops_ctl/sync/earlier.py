"""What a unit declared of an object when it last applied it, also after a restart (gitops.md, section 7.2).

Force is only for fields that were ours before.  A process that has just started finds them in the commits that the status
names: an object counts when its declared digest is that of the inventory, so nothing is taken for ours that was not applied.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.model import Desired

LoadCommit = Callable[[str], Awaitable[Mapping[ObjectId, Desired]]]
"""The objects that a unit asked for in a commit; none when it cannot be read any more."""


class Earlier:
    """Reads each commit at most once, and only when somebody asks; lives for one pass."""

    def __init__(self, load: LoadCommit, *, commits: Iterable[str]) -> None:
        """`commits` are tried in this order."""
        self._load = load
        self._commits = [commit for commit in dict.fromkeys(commits) if commit]
        self._loaded: dict[str, Mapping[ObjectId, Desired]] = {}
        self._loading = asyncio.Lock()

    async def declared(self, item: ObjectId, *, digest: str) -> Desired | None:
        """The object with that declared digest, None when no commit has it."""
        async with self._loading:
            for commit in self._commits:
                if commit not in self._loaded:
                    self._loaded[commit] = await self._load(commit)
                found = self._loaded[commit].get(item)
                if found is not None and found.digest == digest:
                    return found
        return None
