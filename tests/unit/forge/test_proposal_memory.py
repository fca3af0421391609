"""Which version of a Proposal a pass works on: that of the cache, or what our own last write left."""

import pytest

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge.controller import _Memory
from gitops_ctl.kube.expectations import DEADLINE_S
from tests.support.proposals import ManualClock


def proposal(version: str, *, uid: str = "1") -> JsonObject:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


@pytest.fixture
def memory() -> _Memory:
    """Our write left version 10 at the present moment of the clock."""
    found = _Memory()
    found.wrote(proposal("10"), ManualClock())
    return found


def test_a_cache_that_is_behind_our_write_is_not_believed_for_a_while(memory: _Memory) -> None:
    now_s = memory.written_s
    assert memory.newest(proposal("9"), now_s=now_s + DEADLINE_S - 1) == proposal("10")
    assert memory.newest(proposal("11"), now_s=now_s) == proposal("11")
    assert memory.newest(proposal("2", uid="2"), now_s=now_s) == proposal("2", uid="2")


def test_a_server_that_was_restored_from_before_our_write_is_believed_in_the_end(memory: _Memory) -> None:
    assert memory.newest(proposal("5"), now_s=memory.written_s + DEADLINE_S) == proposal("5")


def test_without_a_write_the_cache_is_believed() -> None:
    found = _Memory(stored=proposal("10"))
    assert found.newest(proposal("9"), now_s=0.0) == proposal("9")
