"""Fixtures of the gNOI tests: import `pki` into the module."""

import pytest

from tests.support.gnoi_pki import GnoiPki


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> GnoiPki:
    """One authority of devices."""
    return GnoiPki(tmp_path_factory.mktemp("pki"))
