"""OpenPGP signatures: what is accepted, and the verdict on everything else (faults H16, X02, X04, X10).

Keys and signatures are made by gpg.  The comparison with what gpg and git say is in tests/peers/test_signatures.py.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pysequoia
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.trust.keys import KeyRing
from gitops_ctl.trust.signature import SignatureRefused
from tests.support.git_keys import GpgHome, GpgKey
from tests.support.trust import Story, config_map, person, policy_text, ring_of, signer, verdict_on

PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nhello\n"


def certificate(key: GpgKey) -> dict[str, object]:
    return {"openpgp": {"fingerprint": key.fingerprint, "certificate": key.public}}


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def gpg_moment(moment: datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%S")


@pytest.fixture(scope="module")
def key(gpg_home: GpgHome) -> GpgKey:
    return GpgKey.generate(gpg_home, name="plain")


@pytest.fixture(scope="module")
def ring(key: GpgKey) -> KeyRing:
    return ring_of(person("ann", certificate(key)))


@pytest.mark.parametrize("kind", ["ed25519", "rsa3072", "nistp256", "nistp384", "nistp521"])
def test_each_accepted_algorithm_verifies(gpg_home: GpgHome, kind: str) -> None:
    key = GpgKey.generate(gpg_home, kind=kind, name=kind)
    found = signer(PAYLOAD, key.sign(PAYLOAD, digest="SHA512"), ring_of(person("ann", certificate(key))), at=now())
    assert (str(found.key.owner), found.fingerprint) == ("ann", key.fingerprint)


def test_X02_a_signature_by_a_signing_sub_key_counts_for_its_primary_key(gpg_home: GpgHome) -> None:
    key = GpgKey.generate(gpg_home, name="sub", signing_subkey=True)
    found = signer(PAYLOAD, key.sign(PAYLOAD), ring_of(person("ann", certificate(key))), at=now())
    assert found.fingerprint == key.fingerprint
    assert found.fingerprints == (key.fingerprint.lower(), key.signing_key.lower())


def test_another_content_is_a_bad_signature(key: GpgKey, ring: KeyRing) -> None:
    assert verdict_on(PAYLOAD + b"x", key.sign(PAYLOAD), ring, at=now()) == "BadSignature"


def test_an_unlisted_key_is_an_unknown_signer_and_named(gpg_home: GpgHome, ring: KeyRing) -> None:
    other = GpgKey.generate(gpg_home, name="other")
    with pytest.raises(SignatureRefused) as caught:
        signer(PAYLOAD, other.sign(PAYLOAD), ring, at=now())
    assert caught.value.reason == "UnknownSigner"
    assert other.fingerprint in caught.value.message


@pytest.mark.parametrize("digest", ["SHA1", "RIPEMD160", "SHA224"])
def test_X04_another_digest_than_sha2_of_256_bits_and_more_is_unsupported(gpg_home, key, ring, digest) -> None:
    rsa = GpgKey.generate(gpg_home, kind="rsa3072", name=f"rsa-{digest}")
    signature = rsa.sign(PAYLOAD, digest=digest)
    assert verdict_on(PAYLOAD, signature, ring_of(person("ann", certificate(rsa))), at=now()) == "UnsupportedFormat"


def test_X04_a_dsa_signature_is_unsupported(gpg_home: GpgHome, ring: KeyRing) -> None:
    dsa = GpgKey.generate(gpg_home, kind="dsa2048", name="dsa")
    assert verdict_on(PAYLOAD, dsa.sign(PAYLOAD), ring, at=now()) == "UnsupportedFormat"


def test_X04_ed448_and_version_6_signatures_are_unsupported(ring: KeyRing) -> None:
    for options in (
        {"cipher_suite": pysequoia.CipherSuite.Cv448},
        {"profile": pysequoia.Profile.RFC9580},
    ):
        made = pysequoia.Tsk.generate("odd <odd@example.net>", **options)
        block = pysequoia.sign(made.signer(), PAYLOAD, mode=pysequoia.SignatureMode.DETACHED)
        assert verdict_on(PAYLOAD, bytes(block), ring, at=now()) == "UnsupportedFormat"


def test_a_text_signature_is_refused(key: GpgKey, ring: KeyRing) -> None:
    block = key.home.run("--armor", "--detach-sign", "--textmode", "--local-user", key.fingerprint, data=PAYLOAD)
    assert verdict_on(PAYLOAD, block, ring, at=now()) == "BadSignature"


def test_X10_two_blocks_and_two_packets_in_one_block_are_refused(gpg_home: GpgHome, key: GpgKey, ring: KeyRing) -> None:
    other = GpgKey.generate(gpg_home, name="second")
    good, bad = key.sign(PAYLOAD), other.sign(PAYLOAD)
    both = gpg_home.run(
        "--armor", "--detach-sign", "--local-user", key.fingerprint, "--local-user", other.fingerprint, data=PAYLOAD
    )
    for block in (good + bad, bad + good, good + b"x\n", both):
        assert verdict_on(PAYLOAD, block, ring, at=now()) == "MalformedObject"


def test_a_key_that_expired_before_first_sight_is_an_unknown_signer_although_its_signature_is_older(
    gpg_home: GpgHome,
) -> None:
    made = now() - timedelta(days=10)
    key = GpgKey.generate(gpg_home, name="expired", expires="2d", created=gpg_moment(made))
    ring = ring_of(person("ann", certificate(key)))
    signature = key.sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, ring, at=made + timedelta(days=1), now=now()) == "Accepted"
    assert verdict_on(PAYLOAD, signature, ring, at=made + timedelta(days=3), now=now()) == "UnknownSigner"


def test_an_expired_signing_sub_key_is_judged_at_first_sight_too(gpg_home: GpgHome) -> None:
    made = now() - timedelta(days=10)
    key = GpgKey.generate(gpg_home, name="sub-exp", signing_subkey=True, created=gpg_moment(made))
    gpg_home.run("--quick-set-expire", key.fingerprint, "2d", key.signing_key, moment=gpg_moment(made))
    ring = ring_of(person("ann", certificate(key)))
    signature = replace(key, moment=gpg_moment(made + timedelta(hours=1))).sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, ring, at=made + timedelta(days=1), now=now()) == "Accepted"
    assert verdict_on(PAYLOAD, signature, ring, at=made + timedelta(days=3), now=now()) == "UnknownSigner"


def test_a_certificate_that_revokes_itself_refuses_older_signatures_too(gpg_home: GpgHome) -> None:
    key = GpgKey.generate(gpg_home, name="revoked")
    signature = key.sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, ring_of(person("ann", certificate(key))), at=now()) == "Accepted"
    key.revoke()
    assert verdict_on(PAYLOAD, signature, ring_of(person("ann", certificate(key))), at=now()) == "RevokedSigner"


def test_a_soft_revocation_counts_like_any_other(gpg_home: GpgHome) -> None:
    key = GpgKey.generate(gpg_home, name="retired")
    signature = key.sign(PAYLOAD)
    answers = b"y\n3\n\ny\n"  # 3: key is no longer used
    revocation = gpg_home.run("--command-fd=0", "--no-batch", "--armor", "--gen-revoke", key.fingerprint, data=answers)
    gpg_home.run("--import", data=revocation)
    assert verdict_on(PAYLOAD, signature, ring_of(person("ann", certificate(key))), at=now()) == "RevokedSigner"


def _commit_ahead(story: Story, key: GpgKey, ahead: timedelta) -> None:
    later = replace(key, moment=gpg_moment(now() + ahead))
    story.repo.commit({"clusters/a.yaml": config_map("a", x=str(ahead))}, signer=later)


def test_H16_five_minutes_ahead_is_tolerated_fifteen_are_pending_and_clear_by_themselves(
    tmp_path, gpg_home: GpgHome
) -> None:
    key = GpgKey.generate(gpg_home, name="ahead", created=gpg_moment(now() - timedelta(days=1)))
    roles = {"author": ["ann"], "approver": ["ann"], "admin": ["ann"]}
    story = Story.begin(tmp_path / "repo", policy_text([person("ann", certificate(key))], roles=roles))
    story.now = now()
    _commit_ahead(story, key, timedelta(minutes=5))
    good = story.judge()
    assert good.verdict == "Accepted"
    _commit_ahead(story, key, timedelta(minutes=15))
    early = story.judge()
    assert (early.verdict, early.pending, early.accepted) == ("SignatureInFuture", True, good.accepted)
    story.now = now() + timedelta(minutes=6)
    assert story.judge().verdict == "Accepted"


@pytest.mark.property
@settings(deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_the_payload_is_refused(data, key: GpgKey, ring: KeyRing) -> None:
    signature = _signature_of(key)
    changed = bytearray(PAYLOAD)
    place = data.draw(st.integers(0, len(changed) * 8 - 1))
    changed[place // 8] ^= 1 << (place % 8)
    assert verdict_on(bytes(changed), signature, ring, at=now()) == "BadSignature"


@pytest.mark.property
@settings(deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_the_block_never_names_another_signer(data, key: GpgKey, ring: KeyRing) -> None:
    block = bytearray(_signature_of(key))
    place = data.draw(st.integers(0, len(block) * 8 - 1))
    block[place // 8] ^= 1 << (place % 8)
    assert verdict_on(PAYLOAD, bytes(block), ring, at=now()) != "Accepted"


@pytest.mark.property
@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_verdict_and_nothing_else(ring: KeyRing, junk: bytes) -> None:
    import base64

    body = base64.b64encode(b"\x88" + bytes([len(junk) % 256]) + junk)
    armored = b"-----BEGIN PGP SIGNATURE-----\n\n" + body + b"\n-----END PGP SIGNATURE-----\n"
    for block in (junk, b"-----BEGIN PGP SIGNATURE-----\n" + junk, armored):
        with pytest.raises(GitopsError):
            signer(PAYLOAD, block, ring, at=now())


_MADE: dict[str, bytes] = {}


def _signature_of(key: GpgKey) -> bytes:
    if key.fingerprint not in _MADE:
        _MADE[key.fingerprint] = key.sign(PAYLOAD)
    return _MADE[key.fingerprint]
