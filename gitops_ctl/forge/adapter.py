"""What every forge offers to us (forges.md, section 2).

Commits are pushed with Git, never through a contents API, so that path, signature and conflict are the same everywhere.  Nothing here
merges, approves, or changes protection.  Each call may raise `TokenRejected`, `ForbiddenOrMissing`, `RepositoryUnavailable`, `RateLimited`,
`Unavailable` and `AnswerRefused`; calls that write may also raise `ReplyLost`: then look before sending again.
"""

from typing import Protocol

from gitops_ctl.forge.neutral import Branch, Comment, MergeState, PullRequest, Repository, Review, StatusState


class ForgeAdapter(Protocol):
    """One project at one forge, with one token."""

    @property
    def name(self) -> str:
        """`gitea`, `forgejo`, `github`, `gitlab` or `plain`; Gitea is told from Forgejo by the first call of `repo`."""
        ...

    async def repo(self) -> Repository:
        """The project.

        Raises:
            RepositoryUnavailable: it answers under another name than it is asked for: it was moved.
        """
        ...

    async def branch(self, name: str) -> Branch | None:
        """The branch, None when there is none."""
        ...

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        """The open one of that branch of this very repository into `base`, looked for on all pages; forks do not count."""
        ...

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        """Open ones into `base`, the one that was changed last first."""
        ...

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        """Those in any state whose body holds `marker`, among the `most` that were changed last, in that order."""
        ...

    async def get(self, number: int) -> PullRequest: ...

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        """Open one.  A label that could not be set is not among the labels of the answer, and no error.

        GitLab, Gitea and Forgejo open one without any difference too: whether there is one is the caller's question.

        Raises:
            AlreadyExists: there is an open one already: look it up.
            NoDiff: the forge sees no commit that base lacks.
            Gone: the head branch is not there.
            BaseMissing: the base branch is not there.
        """
        ...

    async def update(
        self,
        pr: PullRequest,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: tuple[str, ...] | None = None,
    ) -> PullRequest:
        """Change what is given; labels are added, none is taken away.

        Raises:
            Conflict: somebody changed the text since `pr` was read, where the forge can tell.
        """
        ...

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        """The conversation, oldest first."""
        ...

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        """Have exactly one comment of ours with `marker` (an HTML comment that is put behind `text`); gives its id.

        Found by author and marker, then updated when its text differs; of several, which only a lost reply can make, the first is used.
        """
        ...

    async def close(self, pr: PullRequest, *, reason: str) -> PullRequest:
        """Say why in a comment, then close."""
        ...

    async def reopen(self, pr: PullRequest) -> PullRequest:
        """Open it again.

        Raises:
            Gone: its branch is not there: a forge would open a broken one.
        """
        ...

    async def reviews(self, pr: PullRequest) -> tuple[Review, ...]:
        """All reviews, oldest first; `stale` is judged by the head of `pr`."""
        ...

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        """The merged one whose merge made the commit `sha`; its head is the one that was merged."""
        ...

    async def merge_state(self, pr: PullRequest) -> MergeState: ...

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        """Set the status of that context; False when it was so already and nothing was sent."""
        ...

    async def verification(self, sha: str) -> str:
        """What the forge says about the signature: `verified`, or its reason; information only."""
        ...
