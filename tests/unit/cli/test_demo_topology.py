"""The world of `gitops-ctl demo topology`, as far as it needs no cluster.

Out of scope: the story itself (tests/e2e/test_topology_demo.py).
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.demotopologyrepository import NODES, SNAPSHOT_FILE, SOURCE_FILE, with_racks
from gitops_ctl.cli.demotopologyworld import stopped_workload, topology_world
from gitops_ctl.cli.topologycheckout import checkout_documents
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import is_true
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.state import SystemFolder, locked, state_home
from gitops_ctl.scheduling.options import Options
from tests.support.cli import run_cli
from tests.support.scheduling_objects import ZONED_FLAVOR, workload

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)


def test_the_hall_of_the_example_has_no_error_and_describes_the_nodes_of_the_demo():
    found = checkout_documents(EXAMPLES / "clusters/hall", options=Options())
    assert [one["metadata"]["name"] for one in found.proposed.sources] == ["hall-7"]
    assert [one["metadata"]["name"] for one in found.proposed.queues] == ["epyc"]
    (text,) = found.proposed.config_maps.values()
    assert tuple(yaml.safe_load(text["data"]["snapshot.yaml"])["nodes"]) == NODES


def test_racks_are_written_into_source_and_snapshot():
    source, snapshot = with_racks(*((EXAMPLES / file).read_text() for file in (SOURCE_FILE, SNAPSHOT_FILE)))
    assert yaml.safe_load(source)["spec"]["levels"][-1] == "topology.gpustack.ai/rack"
    nodes = yaml.safe_load(yaml.safe_load(snapshot)["data"]["snapshot.yaml"])["nodes"]
    assert {name: labels["topology.gpustack.ai/rack"] for name, labels in nodes.items()} == {
        "gpu-n01": "a1",
        "gpu-n02": "a2",
        "gpu-n03": "b1",
        "gpu-n04": "b2",
    }


def test_a_workload_that_is_evicted_gives_its_quota_back():
    tree = workload("train", queue="pool", flavor=ZONED_FLAVOR, evicted=True)
    stopped = stopped_workload(tree, now=NOW)
    assert "admission" not in stopped["status"]
    assert not is_true(stopped["status"], "QuotaReserved")
    assert is_true(stopped["status"], "Evicted")
    assert stopped_workload(stopped, now=NOW) is None


def test_a_workload_that_runs_is_left_alone():
    assert stopped_workload(workload("train", queue="pool"), now=NOW) is None


async def test_a_second_demo_is_told_and_the_first_one_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = SystemFolder(state_home() / "demo-topology" / "system")
    first.create()
    with locked(state_home() / "demo-topology.lock", busy=BlockedError("not expected here")):
        with pytest.raises(BlockedError) as caught:
            async with asyncio.timeout(30), topology_world(say=print):
                pass
        assert first.path.is_dir()
    assert caught.value.code is ErrorCode.LOCAL_BUSY


async def test_an_option_before_the_name_of_the_demo_is_a_mistake(tmp_path):
    done = await run_cli("demo", "--keep", "topology", environment={"XDG_STATE_HOME": str(tmp_path)})
    assert done.code == 1
    assert "--keep belongs behind topology" in done.err
