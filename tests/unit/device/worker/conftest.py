"""The world of one leaf, as the tests of its worker build it."""

import pytest

from tests.support.leaf_world import LeafWorld


@pytest.fixture
def build(tmp_path):
    made = []

    def make(**settings):
        made.append(LeafWorld(tmp_path, **settings))
        return made[-1]

    yield make
    for world in made:
        world.journal.close()
        assert world.violations() == []
