"""Readers and schemas name the same members: an object with everything in it is read with nothing missing."""

from dataclasses import fields, is_dataclass

from gitops_ctl.api.manifests import manifest
from gitops_ctl.documents.loader import load
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.evidence import sample_of
from gitops_ctl.fleet.leaf import leaf_of
from tests.support.api_devices import a_full_device, a_sample
from tests.support.api_leaves import a_full_upgrade

OF_THE_SERVER = {".uid", ".generation", ".resource_version", ".annotations", ".labels", ".deleting"}


def missing(value, path=""):
    """Paths of members that are empty; a list is judged by its entries."""
    if is_dataclass(value):
        for field in fields(value):
            yield from missing(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple) and value:
        for entry in value:
            yield from missing(entry, path)
    elif value in (None, "", 0, (), {}, False):
        yield path


def test_a_device_with_every_member_is_read_with_every_member():
    zeros = {".conditions.message", ".session.control_revision"}
    assert set(missing(device_of(a_full_device()))) - OF_THE_SERVER == zeros


def test_a_leaf_with_every_member_is_read_with_every_member():
    found = set(missing(leaf_of(a_full_upgrade()))) - OF_THE_SERVER
    zeros = {".admission.revocation_reason", ".claims.control_revision", ".manager_control.pause"}
    others = {".created", ".finalizers", ".is_preinstalled", ".settled"}
    assert {path for path in found if not path.startswith(".binding.")} == zeros | others


def test_a_sample_of_the_schema_is_read_whole():
    sample = sample_of(a_sample())
    assert set(missing(sample)) == {".unknown_reason", ".flaw"}
    assert sample.interfaces[0].headroom == 90


def test_the_order_of_a_sample_names_exactly_the_members_of_the_schema():
    text = (manifest("crds") / "cisco.vk_ciscodevices.yaml").read_bytes()
    (document,) = load(text, file="crd.yaml").documents
    tree = document.tree["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    sample = tree["healthObservation"]["properties"]["network"]["properties"]
    assert set(sample) == set(names.SAMPLE_MEMBERS)
    assert set(sample["interfaces"]["items"]["properties"]) == set(names.SAMPLE_INTERFACE_MEMBERS)
    assert set(sample["neighbors"]["items"]["properties"]) == set(names.SAMPLE_NEIGHBOR_MEMBERS)
