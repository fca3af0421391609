"""Carries out one Proposal: looks at forge and Git, decides, does one thing, and remembers it (forges.md, section 9).

May be called any number of times, from a restarted process too.  The forge is read before Git, so that a merge that it tells is in the
base that is fetched after.  A push is remembered before it is made; everything else is found again by looking.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import BlockedError, Conflict, Forbidden, NotFound, TerminalError
from gitops_ctl.documents.splice import SpliceRefused
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.branchname import MOST_SUFFIX, branch_name, number_of, with_suffix
from gitops_ctl.forge.content import FileEdit, edit_digest
from gitops_ctl.forge.conversation import CLOSE_MARKER, OPEN_MARKER
from gitops_ctl.forge.desk import Authorship, BaseView, Desk
from gitops_ctl.forge.errors import AlreadyExists, BaseMissing, ForbiddenOrMissing
from gitops_ctl.forge.marker import Marker, read_marker, same_body, search_text, with_block
from gitops_ctl.forge.model import Action, Decision, Ended, Facts, Pull, Refresh, Remembered, Tip, Wanted
from gitops_ctl.forge.neutral import MergeState, PullRequest, Repository, Review
from gitops_ctl.forge.plan import decide
from gitops_ctl.forge.project import base_missing, of_project, project_of
from gitops_ctl.forge.text import Told, body_of, commit_message, diff_of, title_of
from gitops_ctl.git.pushing import PushRefused

LABELS: Final = ("gitops-ctl",)
NOTE_MARKER: Final = "<!-- gitops-ctl:note -->"
VERIFY_READS: Final = 5
VERIFY_S: Final = 1.0

_RECORDED: Final = (Action.NOTHING, Action.PUSH_CREATE, Action.PUSH_UPDATE)
"""What needs no record of its own before it: nothing happens, or the push has one."""

_NO_REOPEN: Final = (Conflict, Forbidden, NotFound, TerminalError)
Record = Callable[[Remembered], Awaitable[None]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one Proposal asks for.

    Attributes:
        told: everything for texts; its branch is filled in here, its notes by the edits.
        operation: UID of the operation.
        ended: see `model.Wanted`.
        reopen: the unanswered annotation of a person; empty for none.
    """

    told: Told
    operation: str
    ended: Ended = ""
    reopen: str = ""
    refresh: Refresh = Refresh.ON_CONFLICT

    @property
    def edits(self) -> tuple[FileEdit, ...]:
        return self.told.edits

    @property
    def first_branch(self) -> str:
        return branch_name(self.told.subject, purpose=self.told.purpose)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass came to.

    Attributes:
        warning: something that a person may want to know and that stops nothing.
        diff: for plain Git, the change as a unified diff.
    """

    decision: Decision
    reviews: tuple[Review, ...] = ()
    merge: MergeState | None = None
    head: str = ""
    warning: str = ""
    diff: str = ""


@dataclass(slots=True)
class _Seen:
    """One look, and the objects behind it."""

    facts: Facts
    view: BaseView | None
    pull: PullRequest | None


class Carrier:
    """One pass.  `remembered` is what the status should hold afterwards, also when the pass ends with an error."""

    def __init__(  # noqa: PLR0913  each is a port of the pass
        self,
        asked: Asked,
        *,
        desk: Desk,
        forge: ForgeAdapter | None,
        by: Authorship,
        remembered: Remembered,
        record: Record,
        clock: Clock,
    ) -> None:
        """`forge` is None for plain Git; `record` stores what must be known before an act, and raises when this process may not act."""
        self.remembered = remembered
        self._asked = asked
        self._desk = desk
        self._forge = forge
        self._by = by
        self._record = record
        self._clock = clock
        self._warning = ""
        self._project: Repository | None = None

    async def run(self) -> Outcome:
        """Look, decide, act.

        Raises:
            SpliceRefused: the edits cannot be made on the present base; nothing was pushed.
            PushRefused, LeaseLost, BaseMissing and the errors of the forge: see there.
        """
        if self._forge is None:
            return await self._pass()
        self._project = await project_of(self._forge)
        try:
            return await self._pass()
        except BaseMissing as error:
            raise base_missing(error, self._project) from error

    async def _pass(self) -> Outcome:
        pull = await self._find_pull()
        view = await self._view(pull)
        seen, decision = await self._choose(pull, view)
        if decision.action not in _RECORDED:
            await self._record(self.remembered)  # looking took time: who does not lead any more does nothing
        if decision.phase == "Open" and pull is not None and pull.state == "open":
            await self._take_up(pull)
        seen.pull = await self._act(seen, decision) or seen.pull
        self._remember(seen, decision)
        return await self._report(seen, decision)

    # -- look --------------------------------------------------------------------------------------------------------

    async def _find_pull(self) -> PullRequest | None:
        """The pull request of this purpose: the remembered one, else the open one of the branch, else by its marker (rule 6)."""
        if self._forge is None:
            return None
        branch = self.remembered.branch or self._asked.first_branch
        if self.remembered.number and (known := await self._known(self.remembered.number)) is not None:
            if known.state == "open" or known.head.branch == branch:
                return known
            # It was given up for a branch of another name, whose pull request was not recorded, or not made.
            return await self._open_one(branch)
        found = await self._open_one(branch) or await self._find_marked()
        self.remembered = replace(self.remembered, number=0, url="")
        return found

    async def _known(self, number: int) -> PullRequest | None:
        """The one that is remembered; None when the number is another's now: the repository was deleted and made anew.

        A token that may not see it fails at the next call.
        """
        assert self._forge is not None
        try:
            known = self._here(await self._forge.get(number))
        except ForbiddenOrMissing:
            return None
        first, branch = self._asked.first_branch, known.head.branch
        is_ours = branch == self.remembered.branch or number_of(branch, first=first) > 0
        return known if is_ours and not known.is_fork else None

    async def _take_up(self, pull: PullRequest) -> None:
        """Take back what we said when we closed one that a person opened again: who closes it next says no."""
        if self.remembered.phase != "Open" and await self._closed_by_us(pull):
            assert self._forge is not None
            await self._forge.put_comment(pull, marker=CLOSE_MARKER, text=f"Taken up again.\n\n{OPEN_MARKER}")

    async def _find_marked(self) -> PullRequest | None:
        assert self._forge is not None
        purpose = self._asked.told.purpose
        fits = []
        for pr in await self._forge.find_by_marker(search_text(purpose)):
            marker = read_marker(self._here(pr).body)
            known = isinstance(marker, Marker) and marker.purpose == purpose
            named = number_of(pr.head.branch, first=self._asked.first_branch)
            if known and named and not pr.is_fork and pr.base.branch == self._desk.base_branch:
                fits.append(pr)
        return max(fits, key=lambda pr: (pr.state == "open", pr.number), default=None)

    async def _view(self, pull: PullRequest | None) -> BaseView | None:
        """The edits on the present base; None when nothing is wanted any more and they cannot be made."""
        keep = tuple(filter(None, (self.remembered.head, self.remembered.base)))
        commit = await self._desk.fetch_base(keep=keep)
        try:
            return await self._desk.view(commit, self._asked.edits)
        except SpliceRefused as error:
            if self._asked.ended:
                return None
            if pull is not None and pull.state == "open" and self._forge is not None:
                text = f"The change cannot be made on the present base any more: {error.message}. Make it by hand, or close this."
                await self._forge.put_comment(pull, marker=NOTE_MARKER, text=text)
            raise

    async def _choose(self, pull: PullRequest | None, view: BaseView | None) -> tuple[_Seen, Decision]:
        """Look at one branch name after the other until one is ours or free."""
        first = self._asked.first_branch
        branch = (pull.head.branch if pull is not None else "") or self.remembered.branch or first
        number = number_of(branch, first=first) or 1
        while number <= MOST_SUFFIX:
            branch = with_suffix(first, number)
            mine = pull if pull is not None and pull.head.branch == branch else None
            tip = await self._tip(branch, pull=mine, view=view)
            seen = _Seen(await self._facts(branch, tip=tip, pull=pull, view=view), view, pull)
            decision = decide(seen.facts)
            self._decline(decision.declined, wanted=seen.facts.wanted)
            log.debug("proposal looked at", branch=branch, action=decision.action.value, reason=decision.reason)
            if decision.action is not Action.NEXT_BRANCH:
                return seen, decision
            number += 1
            pull = await self._open_one(with_suffix(first, number))
        raise BlockedError(f"the names {first} to {with_suffix(first, MOST_SUFFIX)} are all taken")

    async def _open_one(self, branch: str) -> PullRequest | None:
        if self._forge is None:
            return None
        found = await self._forge.find_open(branch, base=self._desk.base_branch)
        return self._here(found) if found is not None else None

    def _here(self, pull: PullRequest) -> PullRequest:
        assert self._project is not None
        return of_project(pull, self._project)

    async def _tip(self, branch: str, *, pull: PullRequest | None, view: BaseView | None) -> Tip | None:
        commit = await self._desk.tip_of(branch)
        if commit is None:
            return None
        marker = read_marker(pull.body) if pull is not None else None
        known = {self.remembered.head, self.remembered.pushing}
        if isinstance(marker, Marker):
            known.add(marker.head)
        if commit not in known and not await self._would_be(branch, commit, view):
            return Tip(commit, ours=False)
        if view is None or self._asked.ended:
            return Tip(commit, ours=True)
        return await self._desk.look(branch, commit, base=view, edits=self._asked.edits)

    async def _would_be(self, branch: str, commit: str, view: BaseView | None) -> bool:
        """Whether it is the commit that we would make, but for a signature of ours that is another each time: nobody else made it."""
        if view is None or not view.edited.changed:
            return False
        made = await self._desk.commit(view, message=self._message(view), by=self._by)
        return commit == made or await self._desk.is_made_twice(branch, commit, made=made, signer=self._by.signer)

    async def _facts(self, branch: str, *, tip: Tip | None, pull: PullRequest | None, view: BaseView | None) -> Facts:
        wanted = Wanted(
            operation=self._asked.operation,
            content=view.content if view else "",
            edits=edit_digest(self._asked.edits),
            in_base=view is not None and not view.edited.changed,
            ended=self._asked.ended,
            reopen=bool(self._asked.reopen),
            is_merged=await self._is_merged(pull, view),
        )
        known = await self._pull_facts(pull, view) if pull is not None else None
        return Facts(wanted, self.remembered, branch, tip, known, self._forge is None, self._asked.refresh)

    async def _is_merged(self, pull: PullRequest | None, view: BaseView | None) -> bool:
        """Whether what was pushed last has been taken; asked only once the edits cannot say so any more."""
        if self._asked.ended not in ("withdrawn", "deleted"):
            return False
        if pull is not None and pull.state == "merged":
            return True
        head = self.remembered.head
        return bool(head) and view is not None and await self._desk.is_in(view.commit, head)

    async def _pull_facts(self, pull: PullRequest, view: BaseView | None) -> Pull:
        marker = read_marker(pull.body)
        whole = marker if isinstance(marker, Marker) else None
        content = whole.content if whole else ""
        if pull.state == "closed" and whole and view is not None:
            # When the base has moved since, the same edits gave another digest then.
            same = content == await self._desk.content_at(whole.base, self._asked.edits)
            content = view.content if same else content
        return Pull(
            number=pull.number,
            state=pull.state,
            branch=pull.head.branch,
            closed_by_us=pull.state == "closed" and await self._closed_by_us(pull),
            content=content,
            operation=whole.op if whole else "",
            closed_for=whole.closed_for if whole else (),
            text_differs=whole is not None and not same_body(pull.body, self._body(pull, whole, view)),
            marked=whole is not None,
        )

    async def _closed_by_us(self, pull: PullRequest) -> bool:
        assert self._forge is not None
        own = pull.author.login.lower()
        comments = await self._forge.comments(pull)
        said = (comment.text for comment in comments if comment.author.login.lower() == own)
        return any(CLOSE_MARKER in text and OPEN_MARKER not in text for text in said)

    # -- act ---------------------------------------------------------------------------------------------------------

    async def _act(self, seen: _Seen, decision: Decision) -> PullRequest | None:
        """Do it; the pull request as it is then, None when there is none or nothing about it changed."""
        match decision.action:
            case Action.PUSH_CREATE | Action.CREATE:
                return await self._or_elsewhere(seen, self._create)
            case Action.PUSH_UPDATE:
                return await self._or_elsewhere(seen, self._rebuild)
            case Action.PUSH_REOPEN:
                return await self._reopen(seen)
            case Action.UPDATE:
                return await self._update(seen, self._marker_of(seen.pull))
            case Action.CLOSE if seen.pull is not None and self._forge is not None:
                return await self._forge.close(seen.pull, reason=f"Closed: {decision.message}.")
            case Action.COMMENT if seen.pull is not None and self._forge is not None:
                text = f"Not touched any more: {decision.message}."
                await self._forge.put_comment(seen.pull, marker=NOTE_MARKER, text=text)
        return None

    async def _create(self, seen: _Seen) -> PullRequest | None:
        head = await self._push(seen)
        if self._forge is None:
            return None
        assert seen.view is not None
        told = self._told(seen.facts.branch, seen.view)
        body = with_block("", text=body_of(told), marker=self._marker(seen, head))
        branch, base = seen.facts.branch, self._desk.base_branch
        try:
            made = await self._forge.create(branch, base=base, title=title_of(told), body=body, labels=LABELS)
        except AlreadyExists:
            found = await self._open_one(branch)
            if found is None:
                raise
            made = found
        if not set(LABELS) <= set(made.labels):
            self._warning = "the label could not be set; the token lacks a right"
        return await self._verified(made, head)

    async def _rebuild(self, seen: _Seen) -> PullRequest | None:
        head = await self._push(seen)
        if seen.pull is None:
            return None
        updated = await self._update(seen, self._marker(seen, head))
        return await self._verified(updated, head)

    async def _or_elsewhere(
        self, seen: _Seen, work: Callable[[_Seen], Awaitable[PullRequest | None]]
    ) -> PullRequest | None:
        """Where our branch exists and must not be rebuilt, the change goes on under the next name."""
        try:
            return await work(seen)
        except PushRefused:
            if seen.facts.tip is None:
                raise
            return await self._elsewhere(seen)

    async def _elsewhere(self, seen: _Seen) -> PullRequest | None:
        """Where nothing may be forced, the change goes on under the next name, and the old one is closed (rule 5)."""
        old = seen.pull
        first = self._asked.first_branch
        branch = with_suffix(first, number_of(seen.facts.branch, first=first) + 1)
        there = await self._open_one(branch)
        tip = await self._tip(branch, pull=there, view=seen.view)
        if tip is not None and not tip.ours:
            raise PushRefused(f"the branch {seen.facts.branch} must not be rebuilt, and {branch} is taken")
        seen.facts = replace(seen.facts, branch=branch, tip=tip)
        made = there or await self._create(seen)
        if old is not None and old.state == "open" and self._forge is not None:
            await self._forge.close(old, reason=f"Closed: the branch must not be rebuilt here; it goes on in {branch}.")
        return made

    async def _reopen(self, seen: _Seen) -> PullRequest | None:
        assert self._forge is not None
        assert seen.pull is not None
        head = await self._push(seen)
        try:
            again = await self._forge.reopen(seen.pull)
        except _NO_REOPEN as error:
            log.info("not opened again", number=seen.pull.number, code=error.code.label)
            seen.facts = replace(seen.facts, branch=self._next_free(seen.facts.branch), tip=None)
            return await self._create(seen)
        seen.pull = again
        return await self._verified(await self._update(seen, self._marker(seen, head)), head)

    def _next_free(self, branch: str) -> str:
        first = self._asked.first_branch
        return with_suffix(first, number_of(branch, first=first) + 1)

    async def _push(self, seen: _Seen) -> str:
        """Have our commit on the branch; nothing is sent when it is there (rules 4 and 13)."""
        facts, view = seen.facts, seen.view
        assert view is not None
        if facts.tip is not None and facts.tip.is_current:
            return facts.tip.commit
        commit = await self._desk.commit(view, message=self._message(view), by=self._by)
        expected = facts.tip.commit if facts.tip else None
        if expected != commit:
            self.remembered = replace(self.remembered, pushing=commit, pushing_branch=facts.branch)
            await self._record(self.remembered)
            await self._desk.push(facts.branch, commit, base=view, expected=expected)
        self.remembered = replace(
            self.remembered,
            branch=facts.branch,
            head=commit,
            base=view.commit,
            content=view.content,
            pushing="",
            pushing_branch="",
        )
        return commit

    async def _update(self, seen: _Seen, marker: Marker | None) -> PullRequest:
        """Our block as it should be; people's text around it stays, and a damaged marker stays as it is."""
        assert self._forge is not None
        assert seen.pull is not None
        if marker is None or not isinstance(read_marker(seen.pull.body), Marker):
            self._warning = "the marker in the pull request was edited: its text is not touched any more"
            return seen.pull
        body = self._body(seen.pull, marker, seen.view)
        return seen.pull if same_body(seen.pull.body, body) else await self._forge.update(seen.pull, body=body)

    async def _verified(self, pull: PullRequest, head: str) -> PullRequest:
        """The pull request once the forge shows the pushed head; after some reads as it is (rule 3)."""
        assert self._forge is not None
        for _ in range(VERIFY_READS):
            if pull.head.sha == head:
                return pull
            await self._clock.sleep(VERIFY_S)
            pull = await self._forge.get(pull.number)
        self._warning = f"the forge still shows the head {pull.head.sha}, not {head}"
        return pull

    # -- texts -------------------------------------------------------------------------------------------------------

    def _told(self, branch: str, view: BaseView | None) -> Told:
        notes = view.edited.notes if view else ()
        return replace(self._asked.told, branch=branch, notes=notes, base=self._desk.base_branch)

    def _message(self, view: BaseView) -> str:
        return commit_message(self._asked.told, operation=self._asked.operation, content=view.content)

    def _marker(self, seen: _Seen, head: str) -> Marker:
        assert seen.view is not None
        purpose, operation = self._asked.told.purpose, self._asked.operation
        return Marker(purpose, operation, seen.view.content, seen.view.commit, head, self.remembered.declined)

    def _marker_of(self, pull: PullRequest | None) -> Marker | None:
        """The one that the body should have while the commit stays."""
        found = read_marker(pull.body) if pull is not None else None
        return replace(found, op=self._asked.operation) if isinstance(found, Marker) else None

    def _body(self, pull: PullRequest, marker: Marker, view: BaseView | None) -> str:
        marker = replace(marker, op=self._asked.operation)
        return with_block(pull.body, text=body_of(self._told(pull.head.branch, view)), marker=marker)

    # -- remember ----------------------------------------------------------------------------------------------------

    def _decline(self, digests: tuple[str, ...], *, wanted: Wanted) -> None:
        """Add to what a person has declined; a request to open it again takes the present content out."""
        known = tuple(dict.fromkeys((*self.remembered.declined, *digests)))
        if wanted.reopen:
            known = tuple(digest for digest in known if digest not in (wanted.content, wanted.edits))
        self.remembered = replace(self.remembered, declined=known[-20:])

    def _remember(self, seen: _Seen, decision: Decision) -> None:
        pull, tip = seen.pull, seen.facts.tip
        if pull is not None:
            self.remembered = replace(self.remembered, number=pull.number, url=pull.url)
            marker = read_marker(pull.body)
            if not self.remembered.head and isinstance(marker, Marker):
                self.remembered = replace(self.remembered, head=marker.head, base=marker.base, content=marker.content)
        if not self.remembered.head and tip is not None and tip.ours:
            self.remembered = replace(self.remembered, head=tip.commit)
        self.remembered = replace(
            self.remembered,
            phase=decision.phase,
            branch=seen.facts.branch,
            reopen_answered=self._asked.reopen or self.remembered.reopen_answered,
        )
        if self.remembered.pushing and self.remembered.pushing == self.remembered.head:
            self.remembered = replace(self.remembered, pushing="", pushing_branch="")

    async def _report(self, seen: _Seen, decision: Decision) -> Outcome:
        if self._forge is None:
            return Outcome(decision, warning=self._warning, diff=diff_of(seen.view.edited) if seen.view else "")
        if seen.pull is None or seen.pull.state != "open":
            return Outcome(decision, warning=self._warning)
        reviews = await self._forge.reviews(seen.pull)
        merge = await self._forge.merge_state(seen.pull)
        return Outcome(decision, reviews=reviews, merge=merge, head=seen.pull.head.sha, warning=self._warning)
