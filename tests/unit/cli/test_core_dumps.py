"""A process that holds keys, tokens or machine configurations writes no core file (cni-switch.md, section 21; forges.md, section 21)."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

PROGRAM = """
import asyncio, resource
from click.testing import CliRunner
from gitops_ctl.cli.{module} import {command} as command

def begun(work):
    work.close()
    print("begins with", *resource.getrlimit(resource.RLIMIT_CORE))
    return 0

soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
asyncio.run = begun
print(CliRunner().invoke(command, {arguments!r}).output)
"""
DEVICE = ["--namespace=fleet", "--plane=network", f"--template-digest=sha256:{'0' * 64}"]
NOBODY = """
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {}}]
current-context: a
"""


@pytest.mark.parametrize(
    ("module", "command", "arguments"),
    [("manager", "manager", []), ("worker", "worker", ["cluster"]), ("deviceworker", "device", DEVICE)],
)
def test_manager_and_workers_begin_without_core_dumps(module: str, command: str, arguments: list[str]) -> None:
    program = PROGRAM.format(module=module, command=command, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert "begins with 0 0" in done.stdout


def allow_core_dumps() -> None:
    """What a node may give to the containers that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    Path("/proc/self/coredump_filter").write_text("0x33")


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own, until the end of the test."""
    command = [sys.executable, "-c", "from gitops_ctl.cli.main import main; main()", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=allow_core_dumps)  # noqa: PLW1509
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until_said(stream: IO[str] | None, word: str) -> str:
    """The first line with that word; the end of the process ends the wait."""
    assert stream is not None
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if word in line:
            return line
    raise AssertionError("".join(lines))


def test_a_running_cluster_worker_can_leave_neither_a_core_file_nor_its_memory_to_a_collector(tmp_path: Path) -> None:
    """A collector that the node pipes core dumps to is not stopped by the limit: it gets nothing of what the process wrote."""
    kubeconfig, credentials = tmp_path / "kubeconfig", tmp_path / "credentials"
    kubeconfig.write_text(NOBODY)
    credentials.mkdir()
    with running("worker", "cluster", f"--kubeconfig={kubeconfig}", f"--credentials-dir={credentials}") as worker:
        assert "health" in until_said(worker.stderr, '"working"')
        seen = Path(f"/proc/{worker.pid}")
        [limit] = [line for line in (seen / "limits").read_text().splitlines() if line.startswith("Max core file size")]
        assert limit.split()[4:6] == ["0", "0"]
        assert int((seen / "coredump_filter").read_text(), 16) == 0
        assert worker.poll() is None
