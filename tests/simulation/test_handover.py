"""The leader stands still in the middle of an apply, another process takes the Lease and goes on; then the first one wakes up (H13, H15)."""

from collections.abc import Callable

import pytest

from tests.support.simulation_explorer import Explorer
from tests.support.simulation_faults import Kind
from tests.support.simulation_stories import Story, handover

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]


def test_H13_a_write_of_a_leader_that_was_replaced_meanwhile_changes_nothing_in_the_end(
    explorers: Callable[[Story], Explorer], record_property: Callable[[str, object], None]
) -> None:
    explorer = explorers(handover())
    wanted = explorer.singles((Kind.STOPPED,))
    explorer.runs.clear()
    wrong = explorer.explore((Kind.STOPPED,), stride=1)
    record_property("simulated runs", dict(explorer.runs))
    assert not wrong, f"{len(wrong)} of {len(wanted)}:\n" + "\n\n".join(wrong[:3])
    assert len(wanted) > 10
