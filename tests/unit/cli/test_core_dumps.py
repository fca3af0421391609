"""A process that holds keys, tokens or machine configurations writes no core file (cni-switch.md, section 21; forges.md, section 21)."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, resource
from click.testing import CliRunner
from gitops_ctl.cli.{module} import {module} as command

def begun(work):
    work.close()
    print("begins with", *resource.getrlimit(resource.RLIMIT_CORE))
    return 0

soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
asyncio.run = begun
print(CliRunner().invoke(command, {arguments!r}).output)
"""


@pytest.mark.parametrize(("module", "arguments"), [("manager", []), ("worker", ["cluster"])])
def test_manager_and_worker_begin_without_core_dumps(module: str, arguments: list[str]) -> None:
    program = PROGRAM.format(module=module, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert "begins with 0 0" in done.stdout
