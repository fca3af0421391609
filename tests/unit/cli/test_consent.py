"""`gitops-ctl consent` and `approve` change exactly one document of a checkout, and say what to sign."""

import subprocess
from pathlib import Path

import pytest
import yaml

from gitops_ctl.api.trust_policy import parse_consent
from gitops_ctl.cli.main import run

UID = "11111111-2222-3333-4444-555555555555"
DIGEST = "sha256:" + "0a" * 32
CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
CLUSTER = """\
# the northern site
apiVersion: ichor.maesh.dev/v1alpha1
kind: TalosCluster
metadata:
  name: north   # agreed name
  namespace: net
spec:
  talosconfigSecretRef: {name: north}
  cni: {kubeProxy: replaced}
"""
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: net
  annotations:
    note: keep   # ours
data: {a: '1'}
"""


@pytest.fixture(autouse=True)
def _checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)


def written(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_consent_to_a_switch_adds_the_annotation_and_nothing_else(capsys):
    file = written("north.yaml", CLUSTER)
    assert run(["consent", "switch", "replaced", "north.yaml"]) == 2
    told = capsys.readouterr().out
    assert file.read_text() == CLUSTER.replace(
        "  namespace: net\n", f"  namespace: net\n  annotations:\n    {CONFIRM}: replaced\n"
    )
    assert f"+    {CONFIRM}: replaced" in told
    assert "git commit -S" in told
    assert run(["consent", "switch", "replaced", "north.yaml"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_consent_to_the_other_mode_is_replaced():
    file = written("north.yaml", CLUSTER)
    run(["consent", "switch", "replaced", "north.yaml"])
    assert run(["consent", "switch", "enabled", "north.yaml"]) == 2
    assert yaml.safe_load(file.read_text())["metadata"]["annotations"] == {CONFIRM: "enabled"}


def test_the_right_one_of_several_documents_is_changed():
    file = written("all.yaml", f"---\n{SETTINGS}---\n{CLUSTER}---\n{CLUSTER.replace('north ', 'south ')}")
    assert run(["consent", "switch", "replaced", "all.yaml", "--name", "south"]) == 2
    settings, north, south = yaml.safe_load_all(file.read_text())
    assert settings["metadata"]["annotations"] == {"note": "keep"}
    assert "annotations" not in north["metadata"]
    assert south["metadata"]["annotations"] == {CONFIRM: "replaced"}


def test_several_that_fit_and_none_that_fits_are_refused(capsys):
    two = f"{CLUSTER}---\n{CLUSTER.replace('north ', 'south ')}"
    written("all.yaml", two)
    assert run(["consent", "switch", "replaced", "all.yaml"]) == 1
    assert "choose one with --name" in capsys.readouterr().err
    written("settings.yaml", SETTINGS)
    assert run(["consent", "switch", "replaced", "settings.yaml"]) == 1
    assert "the file holds no TalosCluster" in capsys.readouterr().err
    assert Path("all.yaml").read_text() == two


def test_consent_to_recreate_joins_annotations_that_are_there():
    file = written("settings.yaml", SETTINGS)
    assert run(["consent", "recreate", UID, "settings.yaml"]) == 2
    assert file.read_text() == SETTINGS.replace(
        "    note: keep   # ours\n", f"    note: keep   # ours\n    gitops-ctl.dev/recreate: {UID}\n"
    )


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (["recreate", "the-old-one"], "needs the UID of the live object"),
        (["prune", "sha256:00"], "needs the digest of the set"),
    ],
)
def test_a_value_that_could_name_nothing_is_refused(command, hint, capsys):
    sync = "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata: {name: site, namespace: net}\nspec: {}\n"
    written("sync.yaml", sync)
    assert run(["consent", *command, "sync.yaml"]) == 1
    assert hint in capsys.readouterr().err
    assert Path("sync.yaml").read_text() == sync


def test_consent_to_a_prune_stands_on_the_sync():
    file = written(
        "sync.yaml", "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Sync\nmetadata:\n  name: site\n  namespace: net\n"
    )
    assert run(["consent", "prune", DIGEST, "sync.yaml"]) == 2
    assert yaml.safe_load(file.read_text())["metadata"]["annotations"] == {"gitops-ctl.dev/allow-prune": DIGEST}


def test_what_cannot_be_edited_in_place_is_refused_and_stays(capsys):
    text = "apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosCluster\nmetadata: {name: north, namespace: net}\n"
    written("north.yaml", text)
    assert run(["consent", "switch", "replaced", "north.yaml"]) == 1
    assert "GC3050" in capsys.readouterr().err
    assert Path("north.yaml").read_text() == text


def test_a_consent_document_names_the_blob_that_git_would_give(capsys):
    proposed = written("proposed.txt", "a: 1\n")
    blob = subprocess.run(
        ["git", "hash-object", str(proposed)], check=True, capture_output=True, text=True
    ).stdout.strip()
    command = ["consent", "change", "--verb", "trust", "--path", ".gitops-ctl/trust.yaml", "--result", "proposed.txt"]
    assert run(command) == 2
    (file,) = Path(".gitops-ctl/consents").iterdir()
    document = parse_consent(yaml.safe_load(file.read_text()))
    assert (document.verb, document.path, document.blob) == ("trust", ".gitops-ctl/trust.yaml", blob)
    assert str(file) in capsys.readouterr().out
    before = file.read_bytes()
    assert run(command) == 0
    assert file.read_bytes() == before
    assert run(["check"]) == 0


def test_a_consent_to_a_removal_has_no_blob():
    assert run(["consent", "change", "--verb", "delete", "--path", "old.yaml", "--delete"]) == 2
    (file,) = Path(".gitops-ctl/consents").iterdir()
    assert yaml.safe_load(file.read_text())["blob"] == "0" * 40


def test_a_consent_to_a_content_that_is_committed_already_would_be_spent(capsys):
    written("a.yaml", "a: 1\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.net", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "add", "a.yaml"], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "a"], check=True)
    assert run(["consent", "change", "--verb", "edit", "--path", "a.yaml"]) == 1
    assert "a.yaml has this content already" in capsys.readouterr().err


def test_a_file_that_is_not_there_needs_its_result(capsys):
    assert run(["consent", "change", "--verb", "edit", "--path", "new.yaml"]) == 1
    assert "--result" in capsys.readouterr().err


ROLLOUT = """\
apiVersion: ops.cisco.vk/v1alpha1
kind: IOSXESoftwareRollout
metadata:
  name: spring
  namespace: net
spec:
  plan:
    batch: 2
"""


def test_an_approval_names_what_is_approved_and_no_person(capsys):
    file = written("spring.yaml", ROLLOUT)
    assert run(["approve", "spring.yaml", f"planHash={DIGEST}"]) == 2
    assert yaml.safe_load(file.read_text())["spec"]["approval"] == {"planHash": DIGEST}
    assert f"This approves IOSXESoftwareRollout.ops.cisco.vk/net/spring: planHash {DIGEST}." in capsys.readouterr().out
    assert run(["approve", "spring.yaml", f"planHash={DIGEST}"]) == 0


@pytest.mark.parametrize("values", [[], ["planHash=md5:0"], ["hash=" + DIGEST], ["planHash"]])
def test_an_approval_of_nothing_in_particular_is_refused(values):
    file = written("spring.yaml", ROLLOUT)
    assert run(["approve", "spring.yaml", *values]) == 1
    assert file.read_text() == ROLLOUT


RECEIPT = {"deviceUID": "d-1", "upgradeUID": "u-1", "receiptHash": DIGEST}
WINDOW = {"notBefore": "2026-12-01T08:00:00Z", "notAfter": "2026-12-01T09:00:00+00:00"}
BLOCKS = [
    (
        ["--verb", "activate"],
        "activationApproval",
        {"planHash": DIGEST, **WINDOW, "receipts": [RECEIPT, {**RECEIPT, "deviceUID": "d-2"}]},
    ),
    (
        ["--block", "preparationInvalidation"],
        "preparationInvalidation",
        {"planHash": DIGEST, "reason": "wrong image: take 2", "receipts": [RECEIPT]},
    ),
    (
        ["--verb", "recover", "--block", "recovery"],
        "recovery",
        {"leafUID": "l-1", "outcome": "DeviceRetired", "reason": "burnt", "claims": []},
    ),
]


def arguments(block):
    """The block as a person gives it."""
    for name, value in block.items():
        for one in value if isinstance(value, list) else [value]:
            yield f"{name}={'/'.join(one.values()) if isinstance(one, dict) else one}"


@pytest.mark.parametrize(("options", "name", "block"), BLOCKS, ids=[name for _, name, _ in BLOCKS])
def test_every_block_that_approves_can_be_written(options, name, block, capsys):
    file = written("spring.yaml", ROLLOUT)
    assert run(["approve", "spring.yaml", *options, *arguments(block)]) == 2
    assert yaml.safe_load(file.read_text())["spec"] == {"plan": {"batch": 2}, name: block}
    assert "IOSXESoftwareRollout.ops.cisco.vk/net/spring" in capsys.readouterr().out
    assert run(["approve", "spring.yaml", *options, *arguments(block)]) == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"notAfter": WINDOW["notBefore"]}, "notBefore must be before notAfter"),
        ({"notAfter": "tomorrow"}, "notAfter must be a time such as"),
        ({"notAfter": "2026-13-01T08:00:00Z"}, "notAfter must be a time such as"),
        (
            {"receipts": []},
            "takes planHash, notBefore, notAfter, receipts (deviceUID/upgradeUID/receiptHash, repeated)",
        ),
        ({"receipts": [RECEIPT, RECEIPT]}, "receipts names one deviceUID twice"),
        ({"receipts": [{"deviceUID": "d"}]}, "receipts must be written as deviceUID/upgradeUID/receiptHash"),
        ({"receipts": [{**RECEIPT, "receiptHash": "x"}]}, "receipts: receiptHash must be sha256: and 64 hex digits"),
        ({"receipts": [{**RECEIPT, "deviceUID": f"d{n}"} for n in range(101)]}, "receipts takes 1 to 100 entries"),
        ({"planHash": [DIGEST, DIGEST]}, "planHash is given once"),
        ({"reason": "x"}, "the block /spec/activationApproval takes"),
    ],
)
def test_what_does_not_fit_a_block_is_refused(changes, told, capsys):
    file = written("spring.yaml", ROLLOUT)
    assert run(["approve", "spring.yaml", "--verb", "activate", *arguments({**BLOCKS[0][2], **changes})]) == 1
    assert told in capsys.readouterr().err
    assert file.read_text() == ROLLOUT


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--verb", "recover"], "has several: choose preparationInvalidation or recovery"),
        (["--verb", "edit"], "has no block for the verb edit: its blocks are approval (verb approve)"),
        (["--block", "plan"], "has no block plan: its blocks are approval (verb approve)"),
    ],
)
def test_a_block_that_is_not_meant_clearly_is_refused_with_the_blocks_that_there_are(options, told, capsys):
    written("spring.yaml", ROLLOUT)
    assert run(["approve", "spring.yaml", *options, "reason=x"]) == 1
    shown = capsys.readouterr().err
    assert told in shown
    assert "choose one with --block NAME" in shown


def test_an_approval_that_is_there_is_not_overwritten(capsys):
    written("spring.yaml", ROLLOUT)
    run(["approve", "spring.yaml", f"planHash={DIGEST}"])
    assert run(["approve", "spring.yaml", f"planHash={DIGEST[:-1]}b"]) == 1
    assert "another value already" in capsys.readouterr().err


def test_a_kind_without_an_approval_says_so(capsys):
    written("settings.yaml", SETTINGS)
    assert run(["approve", "settings.yaml"]) == 1
    assert "nothing of this kind is approved" in capsys.readouterr().err
