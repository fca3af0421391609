"""The ledger in its ConfigMap: one compare-and-swap (rollouts.md, section 8.5).

Each round reads the object without any cache, checks that it is the ledger that it was, decodes strictly, runs the callback on that fresh
ledger, validates, and writes a merge patch that carries the resourceVersion.  Only a 409 is tried again, and then the callback runs again
from the start: it repeats every check on other objects, so that nothing stands on what was true one round ago.  A callback that changes
nothing writes nothing, and one that refuses writes nothing either.

The size limit here is the absolute one: that of the policy counts only for a new reservation, so a tightened policy can never keep a
cancelled campaign from giving back what it has.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Conflict, InternalError, Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet.ledger import Ledger, decode_ledger, encode_ledger
from gitops_ctl.fleet.names import LEDGER_KEY
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.refusal import Refusal

T = TypeVar("T")
FIELD_MANAGER: Final = "gitops-ctl-rollout"
ROUNDS: Final = 4
FIRST_PAUSE_S: Final = 0.01
PAUSE_FACTOR: Final = 5.0
PAUSE_JITTER: Final = 0.1


@dataclass(frozen=True, slots=True)
class LedgerAt:
    """Which ledger is meant: a ConfigMap by its place and its UID."""

    namespace: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        return config_map_path(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Stored:
    """The ledger as the server has it after an update; `written` says whether this update changed it."""

    ledger: Ledger
    written: bool


class LedgerCallback(Protocol):
    """Decides on one fresh ledger; called once for each round, so it reads again what it depends on."""

    def __call__(self, ledger: Ledger) -> Awaitable[Ledger | Refusal]: ...


@dataclass(slots=True)
class LedgerSize:
    """How large the ledger was when it was seen last, for metrics."""

    reservations: int = 0
    size: int = 0


class LedgerStore:
    """Reads and changes one ledger."""

    def __init__(self, client: KubeClient, at: LedgerAt, *, seen: LedgerSize | None = None) -> None:
        """`seen` is told the size of every ledger that is read or written."""
        self._client = client
        self._at = at
        self._seen = seen or LedgerSize()

    @property
    def uid(self) -> str:
        return self._at.uid

    async def read(self) -> Ledger:
        """The ledger as it stands on the server.

        Raises:
            Refused: it is another object than the one that is bound, or its content is invalid.
            NotFound: it is gone.
        """
        _, ledger = await self._read()
        return ledger

    async def update(self, callback: LedgerCallback) -> Stored | Refusal:
        """Change the ledger as `callback` says, or say why not.

        Raises:
            Conflict: others wrote first in each of the four rounds.
            Refused: as for `read`, or the result breaks a rule of the document or its absolute limit.
            TransientError: the server did not answer; whether it wrote is found out by running the same update again.
        """

        async def one_round() -> Stored | Refusal:
            tree, ledger = await self._read()
            after = await callback(ledger)
            if isinstance(after, Refusal):
                return after
            if after.uid != self._at.uid:
                raise InternalError("a callback changed the identity of the ledger", subject=str(self._at.name))
            text = encode_ledger(after)
            if text == text_at(object_at(tree, "data"), LEDGER_KEY):
                return Stored(after, written=False)
            await self._client.patch_merge(
                self._at.path, swap(tree, {"data": {LEDGER_KEY: text}}), manager=FIELD_MANAGER
            )
            self._saw(after, text)
            return Stored(after, written=True)

        return await swapped(self._client, one_round)

    async def _read(self) -> tuple[JsonObject, Ledger]:
        tree = await self._client.get(self._at.path)
        uid = text_at(tree, "metadata", "uid")
        if uid != self._at.uid or not text_at(tree, "metadata", "resourceVersion"):
            raise LedgerIdentity(f"has UID {uid or 'none'}, bound is {self._at.uid}", subject=self._subject)
        text = text_at(object_at(tree, "data"), LEDGER_KEY)
        if not text.strip():
            raise LedgerIdentity(f"has no {LEDGER_KEY} although it is bound", subject=self._subject)
        ledger = decode_ledger(text, self._at.uid)
        self._saw(ledger, text)
        return tree, ledger

    def _saw(self, ledger: Ledger, text: str) -> None:
        self._seen.reservations, self._seen.size = len(ledger.reservations), len(text.encode())

    @property
    def _subject(self) -> str:
        return f"ConfigMap {self._at.namespace}/{self._at.name}"


class LedgerIdentity(Refused):
    """The ledger is not the one that the policy is bound to.  Nothing is reserved, granted or released until a person has looked."""

    code = ErrorCode.LEDGER_IDENTITY


def swap(tree: JsonObject, change: JsonObject) -> JsonObject:
    """A merge patch that counts only for the object as it was read."""
    metadata = {name: text_at(tree, "metadata", name) for name in ("uid", "resourceVersion")}
    return {**change, "metadata": {**object_at(change, "metadata"), **metadata}}


async def swapped(client: KubeClient, one_round: Callable[[], Awaitable[T]]) -> T:
    """Run a round until nobody wrote in between, at most four times; the pauses grow from 10 ms by the factor 5.

    Raises:
        Conflict: somebody wrote in between in every round.
    """
    pause_s = FIRST_PAUSE_S
    for _ in range(ROUNDS - 1):
        try:
            return await one_round()
        except Conflict:
            await client.clock.sleep(pause_s * (1.0 + PAUSE_JITTER * client.draw()))
            pause_s *= PAUSE_FACTOR
    return await one_round()


def config_map_path(namespace: str, name: str) -> str:
    """Where the API server has that ConfigMap."""
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"
