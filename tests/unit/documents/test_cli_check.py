"""`gitops-ctl check` as a person, a hook and a pipeline call it."""

import json
import os
import subprocess
import sys
import time

import pytest

from gitops_ctl.cli.main import run
from tests.support.documents import config_map


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    (root / "site").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    (root / "site/good.yaml").write_text(config_map("good"))
    return root


@pytest.fixture
def broken(checkout):
    (checkout / "site/bad.yaml").write_text(config_map("bad", data="{mode: no}"))
    return checkout


def test_a_sound_checkout_exits_0(checkout, capsys):
    assert run(["check"]) == 0
    assert capsys.readouterr().out == "0 errors, 0 warnings in 1 document of 1 file\n"


def test_an_error_exits_1_and_says_code_cause_place_and_hint(broken, capsys):
    assert run(["check", "site"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "error GC1006 not-a-string",
        "  data.mode is a boolean, a string is due",
        "  place: site/bad.yaml:4:8, document 1, /data/mode",
        '  hint:  quote it: "no"',
        "",
        "1 error, 0 warnings in 2 documents of 2 files",
    ]


def test_another_folder_is_checked_as_git_does_it(broken, capsys, monkeypatch, tmp_path):
    (broken / "site/rules.yaml").write_text(config_map("rules"))
    monkeypatch.chdir(tmp_path)
    assert run(["check", "bad.yaml", "--policies", "rules.yaml", "-C", "repo/site"]) == 1
    assert "place: site/bad.yaml:4:8" in capsys.readouterr().out
    assert os.getcwd() == str(tmp_path)
    assert run(["check", "-C", "none"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_warnings_exit_0_unless_strict(checkout, capsys):
    (checkout / "site/status.yaml").write_text(config_map("s") + "status: {}\n")
    assert run(["check"]) == 0
    assert run(["check", "--strict"]) == 1
    assert "GC1014" in capsys.readouterr().out


def test_json_has_a_version_and_every_part_of_a_finding(broken, capsys):
    assert run(["check", "-o", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["apiVersion"], answer["kind"], answer["errors"]) == ("cli.gitops-ctl.dev/v1", "Check", 1)
    assert answer["problems"] == [
        {
            "code": "GC1006",
            "slug": "not-a-string",
            "severity": "error",
            "message": "data.mode is a boolean, a string is due",
            "file": "site/bad.yaml",
            "line": 4,
            "column": 8,
            "document": 1,
            "pointer": "/data/mode",
            "object": "ConfigMap/team-a/bad",
            "hint": 'quote it: "no"',
        }
    ]


def test_sarif_names_the_rule_and_the_region(broken, capsys):
    run(["check", "-o", "sarif"])
    (log,) = json.loads(capsys.readouterr().out)["runs"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["GC1006"]
    (result,) = log["results"]
    assert (result["ruleId"], result["level"]) == ("GC1006", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "site/bad.yaml"}, "region": {"startLine": 4, "startColumn": 8}}


def test_github_annotations_escape_what_would_end_them(checkout, capsys):
    (checkout / "site/odd,name.yaml").write_text(config_map("odd", data='{"50%: a": no}'))
    assert run(["check", "-o", "github"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("::error file=site/odd%2Cname.yaml,line=4,col=8,title=GC1006 not-a-string::")
    assert "50%25: a" in line


def test_a_hook_gives_files_and_gets_what_concerns_them(broken, capsys):
    (broken / "site/other.yaml").write_text(config_map("good"))
    assert run(["check", "site/good.yaml"]) == 0
    assert run(["check", "site/other.yaml"]) == 1
    assert "GC1013" in capsys.readouterr().out


def test_names_come_from_stdin_too(broken, capsys, monkeypatch):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("site/bad.yaml\nREADME.md\n"))
    assert run(["check", "-"]) == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run(["check", "-"]) == 0


def test_changed_shows_what_git_shows_as_changed(broken, capsys):
    git = ["git", "-C", str(broken), "-c", "user.name=a", "-c", "user.email=a@example.net"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert run(["check", "--changed"]) == 0
    (broken / "site/bad.yaml").write_text(config_map("bad", data="{mode: yes}"))
    assert run(["check", "--changed"]) == 1


def test_policies_see_the_accepted_version(checkout, capsys):
    policy = (
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: only-up}\nspec:\n"
        "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}\n"
        '  validations: [{expression: "oldObject == null || object.data.v > oldObject.data.v", message: v only grows}]\n'
    )
    (checkout.parent / "policies").mkdir()
    (checkout.parent / "policies/a.yaml").write_text(policy)
    (checkout / "site/good.yaml").write_text(config_map("good", data="{v: '2'}"))
    git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@example.net"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    (checkout / "site/good.yaml").write_text(config_map("good", data="{v: '1'}"))
    options = ["check", "--policies", "../policies"]
    assert run(options) == 0
    assert run([*options, "--against", "HEAD"]) == 1
    assert "policy only-up: v only grows" in capsys.readouterr().out


def test_the_trust_policy_is_checked_for_what_it_means(checkout, capsys):
    (checkout / ".gitops-ctl").mkdir()
    (checkout / ".gitops-ctl/trust.yaml").write_text(
        "apiVersion: gitops-ctl.dev/v1alpha1\nkind: TrustPolicy\npeople: []\n"
    )
    assert run(["check"]) == 1
    out = capsys.readouterr().out
    assert "GC1111 policy-invalid" in out
    assert ".gitops-ctl/trust.yaml" in out


@pytest.mark.parametrize("arguments", [["nowhere"], ["/"], ["--against", "no-such-revision"], ["-o", "xml"]])
def test_a_mistake_in_the_arguments_is_one_error_on_stderr(checkout, capsys, arguments):
    assert run(["check", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "GC9002 usage" in captured.err


def test_nothing_is_left_for_the_next_run_without_the_store(checkout):
    assert run(["check", "--no-cache"]) == 0
    assert not (checkout.parent / "cache").exists()


def modules_of_a_run():
    """Names of the modules that one run of the command loads."""
    program = "import sys; from gitops_ctl.cli.main import run; code = run(['check']); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


def test_a_run_that_checks_a_file_imports_only_what_this_file_needs(checkout):
    heavy = {"cel_expr_python", "pygit2", "pydantic", "rich", "cryptography", "concurrent.futures.process", "asyncio"}
    loaded = modules_of_a_run()
    assert "yaml" in loaded
    assert loaded & heavy == set()


def test_a_run_that_finds_everything_known_imports_neither_parser_nor_schemas(checkout):
    old = time.time() - 3600
    os.utime(checkout / "site/good.yaml", (old, old))
    deadline = time.monotonic() + 30
    # The file is too young for its stamp to be believed until the clock of the file system has moved on.
    while loaded := modules_of_a_run() & {"yaml", "jsonschema_rs", "cel_expr_python", "pygit2", "pydantic", "asyncio"}:
        assert time.monotonic() < deadline, loaded
