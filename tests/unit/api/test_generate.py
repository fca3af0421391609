"""The committed schemas are those of the models, and the tool says so with an exit code."""

import json
from pathlib import Path

import jsonschema
import jsonschema_rs
import pytest
import yaml

from gitops_ctl.api import generate
from gitops_ctl.api.model import parse
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.core.errors import Refused
from tests.support.api import a_consent, a_policy, a_source, a_sync, an_inventory
from tests.support.api_rollouts import a_device, a_full_rollout, a_rollout, an_upgrade
from tests.support.api_talos import a_cluster, a_machine, a_patch, an_operation

GOOD = {
    "gitsource": a_source(),
    "sync": a_sync(),
    "inventory": an_inventory(),
    "trustpolicy": a_policy(),
    "consent": a_consent(),
    "taloscluster": a_cluster(),
    "talosmachine": a_machine(),
    "talosoperation": an_operation(),
    "talosconfigpatch": a_patch(),
    "ciscodevice": a_device(),
    "iosxesoftwarerollout": a_rollout(),
    "iosxesoftwareupgrade": an_upgrade(),
}


def editor_schema_of(name: str):
    return json.loads((generate.SCHEMAS / "json" / f"{name}.json").read_text())


def test_the_committed_files_are_fresh():
    assert generate.differences(generate.SCHEMAS) == ()
    assert generate.main(["--check"]) == 0


def test_a_changed_a_missing_and_a_left_over_file_are_found_and_put_right(tmp_path: Path, capsys):
    generate.write(tmp_path)
    assert generate.differences(tmp_path) == ()
    changed, missing = tmp_path / "json/sync.json", tmp_path / "json/consent.json"
    changed.write_text(changed.read_text() + " ")
    missing.unlink()
    (tmp_path / "crds/old.yaml").write_text("")
    assert generate.differences(tmp_path) == ("crds/old.yaml", "json/consent.json", "json/sync.json")
    assert generate.main(["--check", "--into", str(tmp_path)]) == 1
    assert "json/sync.json: not fresh" in capsys.readouterr().err
    assert generate.main(["--into", str(tmp_path)]) == 0
    assert generate.differences(tmp_path) == ()


def test_two_runs_give_the_same_bytes():
    assert generate.generated() == generate.generated()


def test_yaml_is_written_without_anchors_and_read_back_equal():
    shared = {"a": [1]}
    text = generate.to_yaml({"x": shared, "y": shared, "pattern": r"^[^\x00-\x20]+$", "no": "no"})
    assert "&" not in text
    assert yaml.load(text, Loader=yaml.CSafeLoader)["no"] == "no"


@pytest.mark.parametrize("name", GOOD)
def test_an_editor_accepts_a_good_document_and_shows_a_misspelt_member(name):
    schema = editor_schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema_rs.Draft202012Validator(schema, pattern_options=jsonschema_rs.RegexOptions())
    assert [error.message for error in check.iter_errors(GOOD[name])] == []
    assert not check.is_valid({**GOOD[name], "sepc": {}})
    inner = "spec" if "spec" in GOOD[name] else "metadata"
    keeps_unknown = name == "ciscodevice"
    assert check.is_valid({**GOOD[name], inner: {**GOOD[name].get(inner, {}), "unknown": 1}}) is keeps_unknown


def test_an_editor_knows_no_status():
    for name in ("gitsource", "sync", "taloscluster", "talosoperation"):
        assert "status" not in editor_schema_of(name)["properties"]


def test_an_editor_accepts_a_rollout_without_the_names_of_people_and_a_server_does_not():
    tree = {key: value for key, value in a_full_rollout().items() if key != "status"}
    people = ("requestedBy", "requestedAt", "approvedBy", "approvedAt")
    bare = {
        key: {name: item for name, item in block.items() if name not in people} for key, block in tree["spec"].items()
    }
    check = jsonschema_rs.Draft202012Validator(
        editor_schema_of("iosxesoftwarerollout"), pattern_options=jsonschema_rs.RegexOptions()
    )
    assert [error.message for error in check.iter_errors({**tree, "spec": bare})] == []
    with pytest.raises(Refused, match=r"spec\.plan\.requestedBy: Field required.*spec\.approval\.approvedBy"):
        parse(IOSXESoftwareRollout, {**tree, "spec": bare})


def test_an_editor_leaves_members_of_a_newer_device_alone():
    check = jsonschema_rs.Draft202012Validator(editor_schema_of("ciscodevice"))
    assert check.is_valid(a_device(transport="restconf", xe={"networking": {"interface": {"type": "Management"}}}))
    assert not check.is_valid(a_device(driver=7))
