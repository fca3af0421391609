"""The command line of the worker, and which processes know Talos at all (cni-switch.md, section 2.1)."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.cli import run_cli

LOADED = "import sys, {}; print(sorted(name for name in sys.modules if name in ('grpc', 'gitops_ctl.talos.client')))"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A cluster that nobody answers for."""
    tree = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}],
        "current-context": "a",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(tree))
    return path


@pytest.mark.parametrize("module", ["gitops_ctl.cli.main", "gitops_ctl.cli.manager", "gitops_ctl.cli.worker"])
def test_only_a_running_worker_loads_the_talos_client(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED.format(module)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_wrong_address_ends_it_before_anything_is_watched(kubeconfig: Path) -> None:
    done = await run_cli("worker", "cluster", "--health-address=nowhere", kubeconfig=kubeconfig)
    assert done.code == 1
    assert "'nowhere' is not <host>:<port>" in done.err


@pytest.mark.parametrize("option", ["--service-probe=maybe", "--service-probe-port=70000", "--observation-interval=0"])
async def test_wrong_options_are_refused(kubeconfig: Path, option: str) -> None:
    done = await run_cli("worker", "cluster", option, kubeconfig=kubeconfig)
    assert done.code == 1
    assert "GC9002" in done.err
