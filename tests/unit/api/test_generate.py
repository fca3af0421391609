"""The committed schemas are those of the models, and the tool says so with an exit code."""

import json
from pathlib import Path

import jsonschema
import jsonschema_rs
import pytest
import yaml

from gitops_ctl.api import generate
from tests.support.api import a_consent, a_policy, a_source, a_sync, an_inventory
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
    assert not check.is_valid({**GOOD[name], inner: {**GOOD[name].get(inner, {}), "unknown": 1}})


def test_an_editor_knows_no_status():
    for name in ("gitsource", "sync", "taloscluster", "talosoperation"):
        assert "status" not in editor_schema_of(name)["properties"]
