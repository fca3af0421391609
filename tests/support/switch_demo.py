"""Runs `gitops-ctl demo cni` (or another demo) as a person does, and looks at its processes and at everything that they say."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.processes import processes_of, until

STILL = "Still running; Ctrl-C ends it."
LISTENING, SAMPLE_S = "0A", 0.1


@dataclass
class Demo:
    """One running demo; everything of it lies below `folder`."""

    folder: Path
    process: subprocess.Popen[str]
    output: Path
    name: str = "cni"

    @property
    def home(self) -> Path:
        return self.folder / "state" / "gitops-ctl" / f"demo-{self.name}"

    @property
    def told(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def system(self, name: str) -> Any:
        """What runs in one of its folders, such as `management` or `target`; empty while nothing does."""
        with suppress(OSError, ValueError):
            return json.loads((self.home / name / "system.json").read_bytes())
        return {}

    def until_over(self, *, timeout_s: float) -> None:
        """Until the story is told, or has failed."""
        ended = lambda: self.process.poll() is not None or STILL in self.told  # noqa: E731
        until(ended, timeout_s=timeout_s, what="the end of the story")
        assert STILL in self.told, self.told[-6000:]

    def kill(self) -> None:
        """As loss of its terminal and more: it cannot end anything itself."""
        self.process.kill()
        self.process.wait()
        until(lambda: not processes_of(str(self.folder)), what="everything ended with the demo", timeout_s=30)

    def interrupt(self) -> int:
        """Ctrl-C; its exit code once nothing of it is left."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        until(lambda: not processes_of(str(self.folder)), what="no process of the demo is left", timeout_s=15)
        return code

    def machine(self, name: str) -> Any:
        """What a machine has kept: its boots, and the configurations that it took."""
        return json.loads((self.home / "talos" / f"{name}.json").read_bytes())

    def kubectl(self, system: str, *arguments: str, check: bool = True) -> str:
        """Output of kubectl as the administrator of one of its clusters."""
        state = self.system(system)
        argv = [state["kubectl"], f"--kubeconfig={state['kubeconfig']}", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout


def start_demo(folder: Path, *options: str, name: str = "cni") -> Demo:
    """Start the demo of that name, in a state folder of its own."""
    output = folder / "told.txt"
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with output.open("w") as stream:
        argv = [sys.executable, "-m", "gitops_ctl", "demo", name, *options]
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, text=True
        )
    return Demo(folder, process, output, name)


@dataclass
class Watch:
    """Which addresses manager and cluster worker were connected to, with their child processes, sampled all the time.

    Attributes:
        manager, worker: `ip:port` of remote ends.
        samples: how often was looked while both ran.
    """

    demo: Demo
    manager: set[str] = field(default_factory=set)
    worker: set[str] = field(default_factory=set)
    samples: int = 0
    _end: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Watch":
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(SAMPLE_S):
            manager = int(self.demo.system("management").get("manager", 0))
            workers = [pid for pid in children_of(self.demo.process.pid) if "worker" in command_of(pid)]
            if manager and workers:
                self.manager |= remotes_of([manager, *descendants_of(manager)])
                self.worker |= remotes_of(workers)
                self.samples += 1


def remotes_of(pids: list[int]) -> set[str]:
    """Remote ends of the TCP sockets of processes."""
    return {remote for _, remote, state in sockets_of(pids) if state != LISTENING}


def listening_of(pid: int) -> list[int]:
    """Ports that a process listens on."""
    return [int(local.rpartition(":")[2]) for local, _, state in sockets_of([pid]) if state == LISTENING]


def sockets_of(pids: list[int]) -> Iterator[tuple[str, str, str]]:
    """Local end, remote end and state of each TCP socket."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(entry)))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        parts = line.split()
        if parts[9] in inodes:
            yield _address(parts[1]), _address(parts[2]), parts[3]


def _address(text: str) -> str:
    host, _, port = text.partition(":")
    return f"{'.'.join(str(byte) for byte in reversed(bytes.fromhex(host)))}:{int(port, 16)}"


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def descendants_of(pid: int) -> list[int]:
    found = children_of(pid)
    return [*found, *(deeper for child in found for deeper in descendants_of(child))]


def scrape(pid: int) -> str:
    """The metrics that a process of this machine serves on one of its ports."""
    for port in listening_of(pid):
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            return str(reply.read().decode())
    raise AssertionError(f"process {pid} serves no metrics")


def forge_says(demo: Demo) -> str:
    """Every pull request with its comments, as the forge shows them to its owner."""
    accounts = demo.home / "management" / "gitea"
    context = ssl.create_default_context(cafile=str(accounts / "certs" / "forge.crt"))
    login = b64encode(f"owner:{(accounts / 'accounts' / 'owner.password').read_text()}".encode()).decode()
    base = f"{demo.system('management')['forge']}/api/v1/repos/owner/network"
    texts = []
    for path in ("/pulls?state=all&limit=50", "/issues/comments?limit=50"):
        request = urllib.request.Request(base + path, headers={"Authorization": f"Basic {login}"})
        with urllib.request.urlopen(request, context=context, timeout=30) as reply:
            texts.append(reply.read().decode())
    return "\n".join(texts)


def planted(demo: Demo) -> dict[str, str]:
    """Secret texts that are really there: name to a part that could not come from anywhere else."""
    mounted, forge = demo.home / "mounted" / "clusters" / "north", demo.home / "management" / "gitea"
    talos = (mounted / "talosconfig").read_text()
    state = json.loads((demo.home / "talos" / "north-cp-1.json").read_text())
    return {
        "token in the machine configurations": "4fdo1x.this0is0no0real0token",
        "a whole machine configuration": state["persistent"][:60],
        "a line of a machine configuration": "disk: /dev/sda # The disk used for installations.",
        "key of the talosconfig": re.findall(r"key: (\S+)", talos)[0][40:100],
        "key of the target's kubeconfig": re.findall(r"client-key-data: (\S+)", (mounted / "kubeconfig").read_text())[
            0
        ][40:100],
        "token of the forge": (forge / "accounts" / "bot.token").read_text(),
        "password of the forge": (forge / "accounts" / "owner.password").read_text(),
        "key of the proposer": (forge / "keys" / "bot").read_text().splitlines()[2],
    }
