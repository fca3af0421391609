"""The table of public repositories is as wide as it should be: every form, and each repository once."""

from tests.unit.cni import (
    test_values_public_argo,
    test_values_public_flux,
    test_values_public_other,
    test_values_public_talos,
)

TABLE = (
    *test_values_public_flux.ROWS,
    *test_values_public_argo.ROWS,
    *test_values_public_other.ROWS,
    *test_values_public_talos.ROWS,
)


def test_the_table_names_many_repositories_once_and_every_form():
    names = [row.repository for row in TABLE]
    assert len(set(names)) == len(names) >= 30
    assert {row.shape for row in TABLE} >= set("ABCDEFGHIJK")
    assert all(row.quirk for row in TABLE)
    assert all(isinstance(row.expected, str) == (row.shape == "K") for row in TABLE)
