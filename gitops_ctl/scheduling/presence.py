"""Whether Kueue and Node Feature Discovery are there, at versions that we understand (topology-scheduling.md, 7, D17).

A kind that is not served is not watched: its group is asked about now and then, by one request each, and rarely while nobody needs it.
"""

from typing import Any, Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, NotFound
from gitops_ctl.core.jsonvalue import objects_at, text_at
from gitops_ctl.kube.informer import Informer, State
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.resources import KUEUE_GROUP, KUEUE_VERSION

UNKNOWN: Final = "not seen yet"
NOT_INSTALLED: Final = "not installed"
FORBIDDEN: Final = "the manager may not read it"


class Peer:
    """One project whose kinds the room watches while they are served.

    Attributes:
        state: why it is not there, empty when it is.
        problem: the code of a state that waiting does not cure; None for the others.
    """

    def __init__(self, client: KubeClient, informers: tuple[Informer[Any], ...]) -> None:
        self.informers = informers
        self.state = UNKNOWN
        self.problem: ErrorCode | None = None
        self._client = client
        self._group = informers[0].resource.gvk.group
        self._version = informers[0].resource.gvk.version

    @property
    def is_absent(self) -> bool:
        """Whether it is known not to be there: then there are no objects of it either."""
        return self.state not in ("", UNKNOWN, FORBIDDEN)

    async def ask(self) -> bool:
        """Ask the server whether every kind is served; an answer that does not come changes nothing."""
        try:
            served = await self._client.get(f"/apis/{self._group}/{self._version}")
        except NotFound:
            await self._ask_for_others()
            return False
        except GitopsError:
            return False
        plurals = {text_at(entry, "name") for entry in objects_at(served, "resources")}
        is_whole = {informer.resource.plural for informer in self.informers} <= plurals
        self.state, self.problem = UNKNOWN if is_whole else NOT_INSTALLED, None
        return is_whole

    def look(self) -> None:
        """Take the state of informers that run."""
        states = {informer.health.state for informer in self.informers if not informer.synced.is_set()}
        if not states:
            self.state = ""
        elif State.FORBIDDEN in states:
            self.state = FORBIDDEN

    def is_gone(self) -> bool:
        """Whether informers that run have found that a kind is not served any more."""
        return any(informer.health.state is State.ABSENT for informer in self.informers)

    async def _ask_for_others(self) -> None:
        """Not there, or at other versions only."""
        self.state, self.problem = NOT_INSTALLED, None
        if self._group != KUEUE_GROUP:
            return
        try:
            group = await self._client.get(f"/apis/{self._group}")
        except GitopsError:
            return
        others = ", ".join(text_at(version, "version") for version in objects_at(group, "versions"))
        if others:
            self.state, self.problem = (
                f"it serves {others} and not {KUEUE_VERSION}",
                ErrorCode.KUEUE_VERSION_UNSUPPORTED,
            )
