"""The trust policy of any commit, parsed once per blob (gitops.md, section 4.4)."""

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import entry_at
from gitops_ctl.trust.bounded import Bounded
from gitops_ctl.trust.policy import load_policy
from gitops_ctl.trust.rulebook import POLICY_LIMIT_BYTES, TrustPolicy

PolicyCache = Bounded[tuple[str, str], TrustPolicy]
"""(path, blob id) to policy."""


class Policies:
    """Policies of the commits of one store, at one path."""

    def __init__(self, store: ObjectStore, *, path: str, cache: PolicyCache) -> None:
        self._store = store
        self._path = path
        self._cache = cache
        self.fixed: TrustPolicy | None = None
        """Stands for the policy of every commit, to try a policy out on history."""
        self._blobs: Bounded[str, str] = Bounded(1024)

    def at(self, commit: str) -> TrustPolicy:
        """The policy in the tree of a commit.

        Raises:
            Refused: POLICY_INVALID when it is missing, is no regular file, or fails its checks.
            NotFound: the commit or a tree of it is not in the store.
        """
        if self.fixed is not None:
            return self.fixed
        blob = self.blob_at(commit)
        if blob is None:
            raise Refused(
                f"the tree of {commit} has no trust policy at {self._path}",
                code=ErrorCode.POLICY_INVALID,
                subject=self._path,
                hint=f"bring {self._path} back",
            )
        known = self._cache.get((self._path, blob))
        return known or self._cache.put((self._path, blob), self._read(blob))

    def blob_at(self, commit: str) -> str | None:
        """Blob id of the policy file, None when there is no regular file."""
        known = self._blobs.get(commit)
        if known is None:
            entry = entry_at(self._store, self._store.links(commit).tree, self._path)
            known = self._blobs.put(commit, entry.id if entry is not None and entry.is_file else "")
        return known or None

    def _read(self, blob: str) -> TrustPolicy:
        size = self._store.size(blob)
        if size > POLICY_LIMIT_BYTES:
            raise Refused(
                f"the policy has {size} bytes; at most {POLICY_LIMIT_BYTES} are read",
                code=ErrorCode.POLICY_INVALID,
                subject=self._path,
            )
        return load_policy(self._store.blob(blob), path=self._path)
