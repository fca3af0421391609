"""Hostile and odd objects inside a range: each is a verdict on one commit, never a failed pass (rule A9, faults X04 to X10)."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.trust import signature
from gitops_ctl.trust.keys import KeyRing
from tests.support.git_keys import GpgHome, GpgKey, SshKey
from tests.support.git_repos import tree_bytes
from tests.support.trust import NOW, Story, Team, config_map
from tests.support.trust_software import SoftKey

A = "clusters/a.yaml"


def _payload(story: Story, *, extra: str = "", parent: str = "") -> bytes:
    return (
        f"tree {story.repo.tree()}\nparent {parent or story.root.commit}\n"
        f"author ann <a@example.net> 1767225600 +0000\ncommitter ann <a@example.net> 1767225600 +0000\n{extra}\nodd\n"
    ).encode()


def _with_header(payload: bytes, block: bytes, name: bytes = b"gpgsig") -> bytes:
    head, _, body = payload.partition(b"\n\n")
    return head + b"\n" + name + b" " + block.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n\n" + body


def _raw(story: Story, data: bytes) -> str:
    return story.repo.write_object("commit", data)


def test_X09_a_commit_with_a_gpgsig_header_that_is_no_signature_is_refused(story: Story) -> None:
    odd = _raw(story, _with_header(_payload(story), b"x"))
    assert story.judge(odd).verdict in ("MalformedObject", "BadSignature")
    assert story.accepted == story.root.commit


HEADERS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "two trees": lambda payload, block: _with_header(
        payload.replace(b"tree ", b"tree " + b"4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntree ", 1), block
    ),
    "the same parent twice": lambda payload, block: _with_header(
        payload.replace(b"\nauthor", b"\n" + payload.split(b"\n")[1] + b"\nauthor", 1), block
    ),
    "a parent after the committer": lambda payload, block: _with_header(
        payload.replace(b"\n\nodd", b"\nparent " + b"1" * 40 + b"\n\nodd", 1), block
    ),
    "two signatures in two headers": lambda payload, block: _with_header(_with_header(payload, block), block),
    "a signature of another hash beside it": lambda payload, block: _with_header(
        _with_header(payload, block, b"gpgsig-sha256"), block
    ),
    "the signature before the tree": lambda payload, block: (
        b"gpgsig " + block.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n" + payload
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_X06_duplicate_and_misplaced_headers_are_refused_although_the_signature_is_genuine(
    story: Story, team: Team, name: str
) -> None:
    payload = _payload(story)
    for signed in (payload, HEADERS[name](payload, b"").replace(b"gpgsig \n", b"")):
        odd = _raw(story, HEADERS[name](payload, team["ann"].sign(signed)))
        verdict = story.judge(odd)
        assert (verdict.verdict, verdict.accepted) == ("MalformedObject", story.root.commit)


def test_X10_a_commit_with_two_signatures_in_one_block_is_refused(story: Story, team: Team) -> None:
    payload = _payload(story)
    good, other = team["ann"].sign(payload), team["stranger"].sign(payload)
    for block in (good + other, other + good):
        assert story.judge(_raw(story, _with_header(payload, block))).verdict == "MalformedObject"


def test_X10_a_block_with_two_openpgp_signatures_is_refused(story: Story, gpg_home: GpgHome) -> None:
    keys = [GpgKey.generate(gpg_home, name=name) for name in ("x10-a", "x10-b")]
    users = [part for key in keys for part in ("--local-user", key.fingerprint)]
    payload = _payload(story)
    block = gpg_home.run("--armor", "--detach-sign", *users, data=payload)
    assert story.judge(_raw(story, _with_header(payload, block))).verdict == "MalformedObject"


def test_a_commit_object_above_64_KiB_is_refused(story: Story, team: Team) -> None:
    large = story.repo.commit({A: config_map("a")}, signer=team["ann"], message="x" * 70_000)
    verdict = story.judge(large)
    assert (verdict.verdict, verdict.accepted) == ("ObjectTooLarge", story.root.commit)


def test_a_tree_that_describes_a_billion_files_is_refused_and_not_walked(story: Story, team: Team) -> None:
    inner = story.repo.write_object("blob", b"x")
    mode = 0o100644
    for _ in range(9):
        inner = story.repo.write_object("tree", tree_bytes(*((mode, b"%d" % name, inner) for name in range(10))))
        mode = 0o40000
    payload = _payload(story).replace(story.repo.tree().encode(), inner.encode())
    verdict = story.judge(story.repo.signed_object(payload, team["ann"]))
    assert (verdict.verdict, verdict.accepted) == ("ObjectTooLarge", story.root.commit)


def test_x509_signatures_are_unsupported(story: Story) -> None:
    block = b"-----BEGIN SIGNED MESSAGE-----\nMIIB\n-----END SIGNED MESSAGE-----\n"
    assert story.judge(_raw(story, _with_header(_payload(story), block))).verdict == "UnsupportedFormat"


def _odd_blocks(tmp_path: Path, home: GpgHome, payload: bytes) -> dict[str, bytes]:
    dsa = GpgKey.generate(home, kind="dsa2048", name="x04-dsa")
    weak = SshKey.generate(tmp_path, type="rsa", bits=1024)
    soft = SoftKey.ed25519()
    unknown = SoftKey("ssh-ed448", b"\0\0\0\tssh-ed448\0\0\0\1x", soft.sign_raw)
    return {
        "DSA": dsa.sign(payload),
        "RSA with 1024 bits": weak.sign(payload),
        "unknown key type": unknown.sign(payload),
        "unknown digest": soft.sign(payload, hash_name=b"sha384"),
    }


def test_X04_an_odd_signature_is_a_verdict_on_its_commit_and_later_passes_go_on(
    tmp_path: Path, story: Story, team: Team, gpg_home: GpgHome
) -> None:
    payload = _payload(story)
    for block in _odd_blocks(tmp_path, gpg_home, payload).values():
        verdict = story.judge(_raw(story, _with_header(payload, block)))
        assert verdict.refused is not None
        assert verdict.verdict in ("UnsupportedFormat", "UnknownSigner")
        assert verdict.accepted == story.root.commit
    good = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge(good).accepted == good


class _Broken:
    """A verifier with a bug; stands for a library that panics over one signature."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def verify(self, payload: bytes, **_: object) -> signature.Signer:
        raise self._error


@pytest.mark.parametrize(
    "error", [ValueError("foreign text"), type("PanicException", (BaseException,), {})("panic")], ids=["error", "panic"]
)
def test_X04_an_exception_in_a_verifier_is_a_verdict_without_the_foreign_text(error: BaseException) -> None:
    with pytest.raises(Refused) as caught:
        signature.verify_signature(
            b"x",
            signature=b"-----BEGIN SSH SIGNATURE-----\n",
            keys=KeyRing(),
            at=NOW,
            now=NOW,
            verifiers={signature.SignatureFormat.SSH: _Broken(error)},
        )
    assert caught.value.code is ErrorCode.BAD_SIGNATURE
    assert "foreign" not in caught.value.message


def test_an_interrupt_is_no_verdict() -> None:
    with pytest.raises(KeyboardInterrupt):
        signature.verify_signature(
            b"x",
            signature=b"-----BEGIN SSH SIGNATURE-----\n",
            keys=KeyRing(),
            at=NOW,
            now=NOW,
            verifiers={signature.SignatureFormat.SSH: _Broken(KeyboardInterrupt())},
        )


def test_a_signature_for_another_commit_does_not_count_for_this_one(story: Story, team: Team) -> None:
    payload = _payload(story)
    other = team["ann"].sign(payload.replace(b"odd", b"ode"))
    assert story.judge(_raw(story, _with_header(payload, other))).verdict == "BadSignature"


def test_a_signature_block_that_ends_with_an_empty_line_as_some_forges_write_it_is_accepted(
    story: Story, team: Team
) -> None:
    payload = _payload(story)
    head, _, body = payload.partition(b"\n\n")
    block = team["ann"].sign(payload).rstrip(b"\n").replace(b"\n", b"\n ")
    odd = _raw(story, head + b"\ngpgsig " + block + b"\n \n\n" + body)
    assert story.judge(odd).accepted == odd


def test_an_armor_checksum_that_is_wrong_is_refused(story: Story, gpg_home: GpgHome) -> None:
    key = GpgKey.generate(gpg_home, name="checksum")
    lines = key.sign(b"x").split(b"\n")
    place = next(number for number, line in enumerate(lines) if line.startswith(b"="))
    lines[place] = b"=" + base64.b64encode(b"abc")
    with pytest.raises(Refused, match="checksum"):
        signature.dearmor(b"\n".join(lines), kind="PGP SIGNATURE")
