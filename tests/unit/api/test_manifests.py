"""The files that are carried by the package are found, and all of them are carried."""

import tomllib

import pytest
import yaml

from gitops_ctl.api.generate import SCHEMAS
from gitops_ctl.api.manifests import manifest

CARRIED = ("install.yaml", "crds", "json", "policies")


def test_a_checkout_has_every_file():
    documents = yaml.load_all(manifest("install.yaml").read_text(), Loader=yaml.CSafeLoader)
    assert "Deployment" in [tree["kind"] for tree in documents]
    assert sorted(manifest("policies").glob("*.yaml"))
    assert (manifest("crds"), manifest("json")) == (SCHEMAS / "crds", SCHEMAS / "json")


def test_the_wheel_carries_every_file():
    build = tomllib.loads((SCHEMAS.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    included = {target: source for source, target in build["force-include"].items()}
    for name in CARRIED:
        assert manifest(name) == SCHEMAS.parent / included[f"gitops_ctl/manifests/{name}"]


def test_a_file_that_no_installation_has_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"other\.yaml is not part of this installation"):
        manifest("other.yaml")
