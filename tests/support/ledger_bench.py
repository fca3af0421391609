"""Policy and ledger on the API server in memory, with a client whose requests may fail at a chosen one."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from gitops_ctl.core.errors import Conflict, ReplyLost
from gitops_ctl.fleet.ledger import Ledger, decode_ledger, encode_ledger
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.rollout.ledger_store import LedgerAt, LedgerStore
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.direct import Side, direct_client
from tests.support.kube_clock import JumpingClock
from tests.support.kube_crash import Crash

NAMESPACE = "topology-system"
POLICY, LEDGER = "topology-policy", "topology-ledger"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class Faults:
    """What happens to the writes of a client: fault by number, from 1.

    Attributes:
        writes: each write that was tried, as `verb path`.
        before, after: called before or after each write is carried out, for what others do in between.
    """

    KINDS = ("conflict", "lost before", "lost after", "crash before", "crash after")

    def __init__(self) -> None:
        self.at: dict[int, str] = {}
        self.writes: list[str] = []
        self.before: Callable[[int], None] = lambda _number: None
        self.after: Callable[[int], None] = lambda _number: None
        self.dead = False

    def point(self, call: Call, side: Side) -> None:
        if self.dead:
            raise Crash
        if call.verb not in WRITE_VERBS:
            return
        if side == "before":
            self.writes.append(f"{call.verb} {call.path}")
            self.before(len(self.writes))
        else:
            self.after(len(self.writes))
        self._fail(self.at.get(len(self.writes), ""), side)

    def _fail(self, fault: str, side: Side) -> None:
        if fault == f"crash {side}":
            self.dead = True
            raise Crash
        if fault == f"lost {side}":
            self.at.pop(len(self.writes))
            raise ReplyLost("no answer")
        if fault == "conflict" and side == "before":
            raise Conflict("somebody wrote first")


class LedgerBench:
    """One server, one ledger.  `store` sees the faults; `others` writes without any."""

    def __init__(self, api: ApiServer, clock: JumpingClock) -> None:
        self.api, self.clock, self.faults = api, clock, Faults()
        self.uid = ""

    def client(self, *, faulty: bool = True) -> KubeClient:
        return direct_client(
            self.api,
            component="test",
            clock=self.clock,
            **({"point": self.faults.point} if faulty else {}),
        )

    def reborn(self) -> KubeClient:
        """The client of the next process; the former one stays dead."""
        self.faults = Faults()
        return self.client()

    def at(self) -> LedgerAt:
        return LedgerAt(NAMESPACE, LEDGER, self.uid)

    def store(self, client: KubeClient) -> LedgerStore:
        return LedgerStore(client, self.at())

    def tree(self, name: str = LEDGER) -> Any:
        return self.api.store.get(("", "configmaps"), (NAMESPACE, name))

    @property
    def text(self) -> str:
        found: str = self.tree().get("data", {}).get("ledger.json", "")
        return found

    @property
    def ledger(self) -> Ledger:
        return decode_ledger(self.text, self.uid)


@asynccontextmanager
async def ledger_bench(ledger: Callable[[str], Ledger] | None = None) -> AsyncIterator[LedgerBench]:
    """A server with a namespace and a ledger, blank when `ledger` is None."""
    bench = LedgerBench(ApiServer(seed=7, lag=0), JumpingClock())
    async with bench.client(faulty=False) as client:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await client.create("/api/v1/namespaces", space)
        annotations = {"topology.cisco.vk/managed-ledger": "true"}
        tree: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LEDGER, "annotations": annotations}}
        made: Any = await client.create(PATH, tree)
        bench.uid = made["metadata"]["uid"]
        if ledger is not None:
            text = encode_ledger(ledger(bench.uid))
            await client.patch_merge(f"{PATH}/{LEDGER}", {"data": {"ledger.json": text}})
        yield bench
