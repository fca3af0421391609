"""A Proposal that is signed with an OpenPGP key: no two of its commits are the same, so what they hold is compared (forges.md, section 9.6)."""

from pathlib import Path

import pygit2
import pysequoia
import pytest

from gitops_ctl.forge.model import Remembered
from gitops_ctl.git.writing import Signs
from gitops_ctl.trust.signing import load_signer
from tests.support.git_keys import SshKey
from tests.support.proposals import ADD, REPLACE, VALUES, Crash, Desktop, no_point, require_one_of_everything
from tests.unit.forge.test_proposal_crashes import crash_at, points_of


def openpgp() -> Signs:
    return load_signer({"openpgp": bytes(pysequoia.Tsk.generate("gitops-ctl <gitops-ctl@example.net>"))})


@pytest.fixture(scope="module", params=["openpgp", "ecdsa"])
def signer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Signs:
    if request.param == "openpgp":
        return openpgp()
    drawn = SshKey.generate(tmp_path_factory.mktemp("keys"), type="ecdsa", bits=256)
    return load_signer({"identity": drawn.path.read_bytes()})


def made(folder: Path, key: SshKey, signer: Signs) -> Desktop:
    desk = Desktop.make(folder, key=key)
    desk.signer = signer
    return desk


def stop_before_create(call: str, when: str) -> None:
    if (call, when) == ("create", "before"):
        raise Crash("before create")


def test_the_same_payload_gives_two_signatures_that_are_both_known_as_ours(signer: Signs) -> None:
    first, second = signer.sign(b"payload"), signer.sign(b"payload")
    assert first != second
    assert not signer.repeats
    assert signer.made(b"payload", first)
    assert signer.made(b"payload", second)
    assert not signer.made(b"another", first)
    assert not openpgp().made(b"payload", first)


async def test_one_signed_commit_in_one_pull_request_and_then_silence(
    tmp_path: Path, key: SshKey, signer: Signs
) -> None:
    desk = made(tmp_path, key, signer)
    assert (await desk.settle()).decision.reason == "Open"
    (pull,) = desk.forge.open()
    assert pull.head.sha == desk.status.head == desk.remote.head(desk.branch)
    signature, payload = pygit2.Repository(str(desk.remote.path)).get(pull.head.sha).gpg_signature
    assert signer.made(payload, signature)
    desk.remote.commit({"README.md": "# moved on\n"})
    await desk.settle()
    assert len(desk.git.pushes) == 1
    desk.edits = (REPLACE, ADD)
    await desk.settle()
    assert len(desk.git.pushes) == 2
    assert desk.commits_of(desk.branch) == 1


async def test_a_crash_at_every_step_ends_with_one_pull_request_one_commit_and_one_push(
    tmp_path: Path, key: SshKey
) -> None:
    signer = openpgp()
    points = await points_of(made(tmp_path / "dry", key, signer))
    assert {call for call, _ in points} >= {"record", "push", "create"}
    for place in range(len(points)):
        desk = made(tmp_path / str(place), key, signer)
        await crash_at(desk, place)
        where = f"crash at {points[place]}"
        require_one_of_everything(desk, where)
        assert desk.status.number == 1, where


async def test_without_any_memory_our_commit_is_known_by_what_it_holds_and_by_whose_signature_it_has(
    tmp_path: Path, key: SshKey, signer: Signs
) -> None:
    desk = made(tmp_path, key, signer)
    desk.watch(stop_before_create)
    with pytest.raises(Crash):
        await desk.run()
    desk.restart()
    desk.status = Remembered()  # the API server was restored from before the push
    desk.watch(no_point)
    await desk.settle()
    assert len(desk.git.pushes) == 1
    assert desk.remote.branches() == [desk.branch, "main"]
    assert [pull.head.branch for pull in desk.forge.open()] == [desk.branch]


@pytest.mark.parametrize("what", ["signature", "tree", "none"])
async def test_the_same_commit_with_anothers_signature_or_another_tree_is_not_ours(
    tmp_path: Path, key: SshKey, what: str
) -> None:
    desk = made(tmp_path, key, openpgp())
    desk.watch(stop_before_create)
    with pytest.raises(Crash):
        await desk.run()
    theirs = desk.remote.head(desk.branch)
    if what == "signature":
        desk.signer = openpgp()  # the key was changed: the former one's commit is not this one's
    elif what == "tree":
        theirs = desk.remote.commit_on(desk.branch, {VALUES: "kubeProxyReplacement: maybe\n"})
    else:
        text = desk.remote.git("cat-file", "commit", theirs)
        head, _, rest = text.partition("gpgsig ")
        message = rest.partition("-----END PGP SIGNATURE-----")[2].lstrip("\n ")
        unsigned = tmp_path / "unsigned"
        unsigned.write_text(f"{head}\n{message}\n")
        theirs = desk.remote.git("hash-object", "-t", "commit", "-w", str(unsigned))
        desk.remote.git("update-ref", f"refs/heads/{desk.branch}", theirs)
    desk.restart()
    desk.status = Remembered()
    desk.watch(no_point)
    await desk.settle()
    assert desk.remote.head(desk.branch) == theirs
    assert [pull.head.branch for pull in desk.forge.open()] == [f"{desk.branch}-2"]
