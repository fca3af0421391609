"""What the switch of a cluster is about: cluster, machines, operation and what was observed (cni-switch.md, section 3).

Values only.  They are read from the trees by `reading` and written back by `writing`; no part of it does I/O.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at

KIND: Final = "cni"
"""The kind of operation that this room carries out."""


class Mode(enum.StrEnum):
    """Who serves Services."""

    ENABLED = "enabled"
    """kube-proxy."""
    REPLACED = "replaced"
    """Cilium."""

    @property
    def other(self) -> "Mode":
        return Mode.REPLACED if self is Mode.ENABLED else Mode.ENABLED

    @property
    def proxy_word(self) -> str:
        """What a machine configuration says in this mode."""
        return "enabled" if self is Mode.ENABLED else "disabled"


class Phase(enum.StrEnum):
    """What people see of the step (section 3.3)."""

    PENDING = "Pending"
    PREFLIGHT = "Preflight"
    AWAITING = "AwaitingCNIChange"
    VERIFYING = "VerifyingNewSide"
    SWITCHING = "SwitchingMachines"
    REMOVING = "RemovingKubeProxy"
    PAUSED = "Paused"
    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"

    @property
    def is_over(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.CANCELLED)


class Action(enum.StrEnum):
    """What the cluster worker is asked for (section 2.1)."""

    OBSERVE = "observe"
    APPLY = "apply-mode"
    REMOVE = "remove-kube-proxy"
    RESTORE = "restore-kube-proxy"
    PROBE = "probe-service"

    @property
    def is_effect(self) -> bool:
        """Whether it changes something, and so needs a claim."""
        return self not in (Action.OBSERVE, Action.PROBE)


class Result(enum.StrEnum):
    """What came of a request: done, nothing changed, or not known."""

    DONE = "Done"
    REFUSED = "Refused"
    UNKNOWN = "Unknown"


class Progress(enum.StrEnum):
    """How far a machine is.  `PREPARING`: asked a second time, because the first attempt had no effect."""

    PENDING = "Pending"
    APPLYING = "Applying"
    PREPARING = "Preparing"
    VERIFYING = "Verifying"
    DONE = "Done"
    ON_HOLD = "OnHold"
    FAILED = "Failed"


Role = Literal["controlplane", "worker"]


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt at one effect, or one look; `id` is `<step>/<machine or cluster>#<n>`."""

    id: str
    action: Action
    mode: Mode
    machine: str = ""
    hash_before: str = ""
    hash_wanted: str = ""

    @property
    def number(self) -> int:
        return number_of(self.id)

    @property
    def place(self) -> str:
        """The id without its number."""
        return self.id.rpartition("#")[0]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the worker says about a request."""

    id: str
    result: Result
    at: str
    message: str = ""
    hash_applied: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """One wait; it keeps its times over a restart."""

    name: str
    started: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True)
class RollOut:
    """Counts of a DaemonSet or a Deployment."""

    generation: int = 0
    observed_generation: int = 0
    desired: int = 0
    current: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0

    @property
    def is_complete(self) -> bool:
        """Section 9.1, point 2; nothing desired is not complete (section 9.2)."""
        counts = {self.updated, self.ready, self.available, self.current, self.desired}
        return self.observed_generation == self.generation and self.desired > 0 and len(counts) == 1


@dataclass(frozen=True, slots=True)
class Override:
    """A CiliumNodeConfig that sets the mode for some nodes."""

    object: str
    value: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CiliumSeen:
    """The CNI side as the worker saw it; `value` is None where the key is missing, other members where nothing is there.

    Attributes:
        checksum, template_generation, template_written: of the agents' pod template.
        written: last write to cilium-config by a manager that owns the key.
        oldest_start: of the agents' containers, None while one of them does not run.
    """

    present: bool
    value: str | None = None
    agents: RollOut | None = None
    operator: RollOut | None = None
    checksum: str = ""
    template_generation: int = 0
    template_written: datetime | None = None
    written: datetime | None = None
    oldest_start: datetime | None = None
    lagging: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()
    version: str = ""
    service_host: str = ""
    service_port: str = ""


@dataclass(frozen=True, slots=True)
class ProxySeen:
    """The objects of kube-proxy; `present` is about the DaemonSet."""

    present: bool
    roll_out: RollOut | None = None
    pods: int = 0
    objects: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    rendered: bool = False
    lagging: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """One difference between a machine and its supplied base."""

    path: str
    cls: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What keeps the worker from seeing or doing something."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Gate:
    """One check of section 7.6."""

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """One machine as the worker saw it for the operation; `prism` is None where KubePrism is off."""

    name: str
    reachable: bool
    problem: Problem | None = None
    version: str = ""
    type: str = ""
    contract: str = ""
    proxy: str = ""
    hash_active: str = ""
    hash_persistent: str = ""
    hash_wanted: str = ""
    pending: tuple[Pending, ...] = ()
    prism_healthy: bool = False
    prism_port: int = 0
    gates: tuple[Gate, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """Whether the Service `kubernetes` answered the worker; `request` says for which question."""

    request: str
    result: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The live state of a cluster; `request` is the newest look that was asked for before this one began."""

    at: datetime
    request: str = ""
    cilium: CiliumSeen | None = None
    proxy: ProxySeen | None = None
    machines: Mapping[str, MachineSeen] = field(default_factory=dict)
    service: ServiceSeen | None = None
    kubernetes_version: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the agents' pod template looked before the change of the CNI."""

    checksum: str
    generation: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Row:
    """One machine of the operation's record."""

    name: str
    role: Role
    state: Progress = Progress.PENDING
    hash_before: str = ""
    hash_wanted: str = ""
    hash_applied: str = ""
    applied_at: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Steering:
    """What people ask of the operation that runs (section 6.6)."""

    resume: int = 0
    cancel: bool = False
    break_lock: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A reason for machines and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """The executor's part of an operation's status.

    Attributes:
        step: empty while the operation is Pending.
        said: what the phase waits for, why it is paused, or how it ended.
        noted: a remark beside it, such as a steering value that is refused.
        pull_request: the status member, as it is stored.
    """

    phase: Phase = Phase.PENDING
    step: str = ""
    steering: Steering | None = None
    clocks: tuple[Clock, ...] = ()
    requests: tuple[Request, ...] = ()
    baseline: Baseline | None = None
    rows: tuple[Row, ...] = ()
    said: Said = Said("", "")
    noted: str = ""
    pull_request: JsonObject = field(default_factory=dict)

    def request(self, action: Action) -> Request | None:
        """The standing request of that action."""
        return next((request for request in self.requests if request.action is action), None)

    def clock(self, name: str) -> Clock | None:
        return next((clock for clock in self.clocks if clock.name == name), None)


@dataclass(frozen=True, slots=True)
class Operation:
    """One TalosOperation of kind `cni`; `consent` is the commit whose consent it spends, as it was written at the creation."""

    key: NamespacedName
    uid: str
    created: str
    cluster: str
    target: Mode
    commit: str
    consent: str
    state: State
    claims: frozenset[str] = frozenset()
    receipts: Mapping[str, Receipt] = field(default_factory=dict)
    observed: Observed | None = None

    @property
    def is_over(self) -> bool:
        return self.state.phase.is_over


@dataclass(frozen=True, slots=True)
class Denied:
    """Versions that stop a switch."""

    component: str
    versions: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lock:
    """Who may change the cluster now."""

    holder: str
    uid: str
    kind: str
    since: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """The consent that was spent last."""

    commit: str
    target: Mode
    uid: str


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs after a switch has ended."""

    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Record:
    """The executor's part of a TalosCluster's status; `lock` is whoever holds it."""

    mode: Mode | None = None
    consumed: Consumed | None = None
    drift: Drift | None = None
    lock: Lock | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """One TalosCluster.

    Attributes:
        consent: value of the consent annotation in the cluster; what it is worth, only provenance tells.
        locator: `spec.cni.values`, None when it is not there.
    """

    key: NamespacedName
    uid: str
    mode: Mode
    consent: str
    record: Record
    preset: str = "cilium"
    handover: str = "disabled"
    locator: JsonObject | None = None
    contract: str = ""
    denied: tuple[Denied, ...] = ()
    parallel: int = 1
    cleanup: bool = True
    steering: Steering = Steering()
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """One TalosMachine; `pending` is what its supplied base would change, None while nobody looked."""

    name: str
    role: Role
    held: bool = False
    has_base: bool = False
    proxy: str = ""
    pending: tuple[Pending, ...] | None = None

    @property
    def is_control_plane(self) -> bool:
        return self.role == "controlplane"


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who put a value into Git."""

    commit: str
    person: str


@dataclass(frozen=True, slots=True)
class Authority:
    """What the accepted revision says about a cluster, asked from Git and never from the cluster.

    Attributes:
        revision: the accepted commit; empty: no effect is allowed now, and `why` says the reason.
        mode: the wanted mode in Git.
        consent: the value of the annotation in Git.
        introduced: who introduced that value with the verb `consent`; None when it authorises nothing, for `why_void`.
        steering: only values that somebody with the verb `control` introduced.
        source, file: where the object lies in Git; the file is empty where it cannot be edited.
        held: why the Sync keeps the object back, empty when it does not.
    """

    revision: str = ""
    why: str = ""
    mode: Mode | None = None
    consent: str = ""
    introduced: Introduction | None = None
    why_void: str = ""
    steering: Steering = Steering()
    source: str = ""
    file: str = ""
    held: str = ""


def number_of(identity: str) -> int:
    """The number at the end of a request's id; 0 for anything else."""
    tail = identity.rpartition("#")[2]
    return int(tail) if tail.isdecimal() else 0


def kept_ids(status: JsonObject, *, step: str, keep: int = 50) -> frozenset[str]:
    """Ids of claims and receipts that stay: all of the running step, and the newest `keep` of the others (section 3.3)."""
    listed = {text_at(item, "id") for name in ("claims", "receipts") for item in objects_at(status, name)}
    running = {identity for identity in listed if identity.startswith(f"{step}/")}
    others = sorted(listed - running, key=number_of)
    return frozenset(running) | frozenset(others[-keep:])
