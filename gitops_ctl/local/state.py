"""The folder of one local system, and what is known about it.

system.json    what runs: written when it is ready, removed when it stops
lock           held by the process that runs it, with its id: whoever cannot take it knows that the system is up
last-failure   why the last run ended by itself
ports.json     ports of the last start, preferred at the next
certs/         authorities, keys, certificates
etcd/          the data; survives `down`, removed by `down --purge`
gitea/         the forge with its accounts and repositories, when one was asked for; as etcd/
logs/          one file per process, and audit.log when asked for
*.kubeconfig   admin, and one per further identity
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError
from gitops_ctl.local.certificates import write_private


def state_home() -> Path:
    """Where local systems are kept when no folder is named."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "gitops-ctl"


@dataclass(frozen=True, slots=True)
class SystemState:
    """A system that is up.  `kind` is `processes`, `kind` or `external`; `pids` is empty unless it is `processes`.

    `manager` is the process id of the product's manager, 0 when it does not run here; it changes when that is started again.
    `forge` is the address of the forge, empty when none runs here.
    """

    kind: str
    url: str
    kubeconfig: str
    version: str
    supervisor: int
    pids: Mapping[str, int]
    audit_log: str = ""
    kubectl: str = ""
    manager: int = 0
    forge: str = ""


class SystemFolder:
    """Names of the files in the folder, and the two records in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.certs = path / "certs"
        self.etcd = path / "etcd"
        self.forge = path / "gitea"
        self.logs = path / "logs"
        self.admin_kubeconfig = path / "admin.kubeconfig"
        self._system = path / "system.json"
        self._failure = path / "last-failure"
        self._ports = path / "ports.json"
        self._lock = path / "lock"

    def create(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def ports(self) -> tuple[int, ...]:
        """Ports of the last start, none when they are not known."""
        with suppress(OSError, ValueError, TypeError):
            return tuple(int(port) for port in json.loads(self._ports.read_bytes()))
        return ()

    def remember_ports(self, ports: tuple[int, ...]) -> None:
        write_private(self._ports, json.dumps(ports).encode())

    def state(self) -> SystemState | None:
        """What is up, None when nothing is.  A record that a killed supervisor left behind does not count."""
        with suppress(OSError, ValueError, TypeError):
            state = SystemState(**json.loads(self._system.read_bytes()))
            if state.kind != "processes" or self.is_held():
                return state
        return None

    def write_state(self, state: SystemState) -> None:
        write_private(self._system, json.dumps(asdict(state), indent=2).encode())

    def clear_state(self) -> None:
        self._system.unlink(missing_ok=True)

    def last_failure(self) -> str:
        """Why the last run ended by itself, empty when it was stopped or there was none."""
        with suppress(OSError):
            return self._failure.read_text()
        return ""

    def write_failure(self, reason: str) -> None:
        """Keep why a run ended by itself; an empty reason forgets the last one."""
        if reason:
            write_private(self._failure, reason.encode())
        else:
            self._failure.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder with everything in it; only while holding it."""
        shutil.rmtree(self.path)

    def is_held(self) -> bool:
        """Whether a process runs this system, also one that is still starting or stopping."""
        return self.holder() is not None

    def holder(self) -> int | None:
        """Process id of whoever runs this system, None when nobody does."""
        try:
            stream = self._lock.open("rb")
        except FileNotFoundError:
            return None
        with stream:
            return None if _try_lock(stream) else int(stream.read() or 0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the process that runs this system.

        Raises:
            BlockedError: another process does (LOCAL_BUSY).
        """
        self.create()
        busy = BlockedError(
            "another process already runs this local system",
            code=ErrorCode.LOCAL_BUSY,
            subject=str(self.path),
            hint="use it as it is, or stop it with `gitops-ctl down`",
        )
        with locked(self._lock, busy=busy):
            yield


@contextmanager
def locked(lock: Path, *, busy: GitopsError) -> Iterator[None]:
    """Hold a lock file, with our process id in it.

    Raises:
        GitopsError: `busy`, when another process holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock.open("ab") as stream:
        if not _try_lock(stream):
            raise busy
        stream.truncate(0)
        stream.write(str(os.getpid()).encode())
        stream.flush()
        yield


def _try_lock(stream: IO[bytes]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
