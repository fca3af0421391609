"""Whether Kueue and Node Feature Discovery are there, at versions that we understand (topology-scheduling.md, 7, D17)."""

from collections.abc import Iterable
from typing import Any, Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, NotFound
from gitops_ctl.core.jsonvalue import objects_at, text_at
from gitops_ctl.kube.informer import Informer, State
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.caches import Caches
from gitops_ctl.scheduling.resources import KUEUE_GROUP, KUEUE_VERSION

KUEUE: Final = "kueue"
NFD: Final = "nfd"
SERVED: Final = ""
UNKNOWN: Final = "not seen yet"
NOT_INSTALLED: Final = "not installed"
FORBIDDEN: Final = "the manager may not read it"


class Presence:
    """What the room needs of others, by name; the text says why it is not there, and is empty when it is.

    Attributes:
        problem: the code of a state that waiting does not cure; None for the others.
    """

    def __init__(self, client: KubeClient, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self.state = {KUEUE: UNKNOWN, NFD: UNKNOWN}
        self.problem: ErrorCode | None = None

    async def look(self) -> bool:
        """Look anew; whether anything changed."""
        caches = self._caches
        kueue = _state((caches.topologies, caches.flavors, caches.queues))
        problem = None
        if kueue == NOT_INSTALLED and (others := await self._other_versions()):
            problem = ErrorCode.KUEUE_VERSION_UNSUPPORTED
            kueue = f"it serves {', '.join(others)} and not {KUEUE_VERSION}"
        found = {KUEUE: kueue, NFD: _state((caches.features,))}
        is_new = found != self.state
        self.state, self.problem = found, problem
        return is_new

    async def _other_versions(self) -> tuple[str, ...]:
        """The versions of Kueue's group, when ours is not among them."""
        try:
            group = await self._client.get(f"/apis/{KUEUE_GROUP}")
        except NotFound:
            return ()
        except GitopsError:
            return ()
        found = tuple(text_at(version, "version") for version in objects_at(group, "versions"))
        return () if KUEUE_VERSION in found else found


def _state(informers: Iterable[Informer[Any]]) -> str:
    states = {informer.health.state for informer in informers if not informer.synced.is_set()}
    if not states:
        return SERVED
    if State.ABSENT in states:
        return NOT_INSTALLED
    return FORBIDDEN if State.FORBIDDEN in states else UNKNOWN
