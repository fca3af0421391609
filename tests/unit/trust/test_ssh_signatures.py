"""SSH signatures and certificates: what is accepted, and the verdict on everything else.

In scope: blobs, algorithms, flags, certificates, limits of the policy.  The comparison with ssh-keygen and git is in
tests/peers/test_signatures.py.
"""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.trust.keys import KeyRing
from gitops_ctl.trust.signature import SignatureRefused
from tests.support.git_keys import SshKey
from tests.support.trust import NOW, Team, person, ring_of, signer, ssh_line, verdict_on
from tests.support.trust_software import PRESENT, VERIFIED, SoftKey, armor, ssh_string

PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nhello\n"


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("ed25519", None), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 3072)],
    ids=str,
)
def test_each_accepted_key_type_verifies(tmp_path, kind: str, bits: int | None) -> None:
    key = SshKey.generate(tmp_path, type=kind, bits=bits)
    found = signer(PAYLOAD, key.sign(PAYLOAD), ring_of(person("ann", key)))
    assert (str(found.key.owner), found.fingerprint) == ("ann", key.fingerprint)


@pytest.mark.parametrize(
    "make", [lambda: SoftKey.ed25519(security_key=True), SoftKey.ecdsa_sk], ids=["ed25519", "ecdsa"]
)
@pytest.mark.parametrize(
    ("flags", "must_verify", "verdict"),
    [
        (PRESENT, False, "Accepted"),
        (PRESENT, True, "BadSignature"),
        (PRESENT | VERIFIED, True, "Accepted"),
        (VERIFIED, False, "BadSignature"),
        (0, False, "BadSignature"),
    ],
)
def test_a_security_key_needs_presence_and_where_asked_verification(make, flags, must_verify, verdict) -> None:
    key = make()
    key.flags = flags
    ring = ring_of(person("ann", {"ssh": key.line, "requireUserVerification": must_verify}))
    assert verdict_on(PAYLOAD, key.sign(PAYLOAD), ring) == verdict


def test_the_application_of_a_security_key_is_part_of_its_identity() -> None:
    key = SoftKey.ed25519(security_key=True)
    other = SoftKey(key.type, key.key_blob.replace(b"ssh:", b"web:"), key.sign_raw, b"web:")
    assert verdict_on(PAYLOAD, other.sign(PAYLOAD), ring_of(person("ann", {"ssh": key.line}))) == "UnknownSigner"


@pytest.fixture(scope="module")
def soft() -> SoftKey:
    return SoftKey.ed25519()


@pytest.fixture(scope="module")
def ring(soft: SoftKey) -> KeyRing:
    return ring_of(person("ann", {"ssh": soft.line}))


@pytest.mark.parametrize("name", [b"sha256", b"sha512"])
def test_both_digests_of_the_format_are_accepted(soft: SoftKey, ring: KeyRing, name: bytes) -> None:
    assert verdict_on(PAYLOAD, soft.sign(PAYLOAD, hash_name=name), ring) == "Accepted"


@pytest.mark.parametrize("name", [b"sha1", b"md5", b"sha384"])
def test_X04_any_other_digest_is_unsupported(soft: SoftKey, ring: KeyRing, name: bytes) -> None:
    assert verdict_on(PAYLOAD, soft.sign(PAYLOAD, hash_name=name), ring) == "UnsupportedFormat"


@pytest.mark.parametrize("namespace", [b"file", b"", b"git\0", b"GIT", b"git "])
def test_another_namespace_is_a_bad_signature(soft: SoftKey, ring: KeyRing, namespace: bytes) -> None:
    assert verdict_on(PAYLOAD, soft.sign(PAYLOAD, namespace=namespace), ring) == "BadSignature"


def test_a_key_whose_namespaces_leave_out_git_signs_no_commit(soft: SoftKey) -> None:
    keys = ring_of(person("ann", {"ssh": soft.line, "namespaces": ["file"]}))
    assert verdict_on(PAYLOAD, soft.sign(PAYLOAD), keys) == "BadSignature"


def test_another_content_is_a_bad_signature(soft: SoftKey, ring: KeyRing) -> None:
    assert verdict_on(PAYLOAD + b"x", soft.sign(PAYLOAD), ring) == "BadSignature"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        pytest.param(lambda blob: blob + b"\0", "BadSignature", id="bytes after the blob"),
        pytest.param(lambda blob: blob[:-1], "BadSignature", id="cut"),
        pytest.param(lambda blob: b"SSHSIG" + b"\0\0\0\2" + blob[10:], "UnsupportedFormat", id="version 2"),
        pytest.param(lambda blob: b"SSHSIX" + blob[6:], "BadSignature", id="magic"),
        pytest.param(lambda blob: blob[:10] + b"\xff\xff\xff\xff" + blob[14:], "BadSignature", id="length"),
    ],
)
def test_a_blob_of_another_form_is_refused(soft: SoftKey, ring: KeyRing, change, verdict: str) -> None:
    assert verdict_on(PAYLOAD, armor(change(soft.signature(PAYLOAD))), ring) == verdict


def test_an_ssh_rsa_signature_with_sha1_is_unsupported(tmp_path) -> None:
    key = SshKey.generate(tmp_path, type="rsa", bits=3072)
    block = key.sign(PAYLOAD)
    blob = base64.b64decode(b"".join(block.splitlines()[1:-1]))
    old = ssh_string(b"rsa-sha2-512")
    cut = blob.rindex(old)
    inner = ssh_string(b"ssh-rsa") + blob[cut + len(old) :]
    changed = blob[: cut - 4] + ssh_string(inner)
    assert verdict_on(PAYLOAD, armor(changed), ring_of(person("ann", key))) == "UnsupportedFormat"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"x", id="X09 no block at all"),
        pytest.param(b"", id="empty"),
        pytest.param(b"-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----\n", id="no base64"),
        pytest.param(b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n", id="nothing inside"),
    ],
)
def test_X09_the_presence_of_a_header_proves_nothing(ring: KeyRing, block: bytes) -> None:
    assert verdict_on(PAYLOAD, block, ring) == "BadSignature"


def test_X10_two_blocks_are_refused_whichever_comes_first(soft: SoftKey, ring: KeyRing) -> None:
    good, other = soft.sign(PAYLOAD), SoftKey.ed25519().sign(PAYLOAD)
    for block in (good + other, other + good, good + b"x\n", good + b"\n \n" + other):
        assert verdict_on(PAYLOAD, block, ring) == "MalformedObject"


def test_x509_is_unsupported_with_a_clear_message(ring: KeyRing) -> None:
    block = b"-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----\n"
    with pytest.raises(SignatureRefused, match="SIGNED MESSAGE are not supported") as caught:
        signer(PAYLOAD, block, ring)
    assert caught.value.reason == "UnsupportedFormat"


@pytest.mark.property
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_a_signature_blob_is_refused(data, soft: SoftKey, ring: KeyRing) -> None:
    blob = bytearray(soft.signature(PAYLOAD))
    place = data.draw(st.integers(0, len(blob) * 8 - 1))
    blob[place // 8] ^= 1 << (place % 8)
    assert verdict_on(PAYLOAD, armor(bytes(blob)), ring) != "Accepted"


@pytest.mark.property
@settings(deadline=None)
@given(data=st.data())
def test_any_flipped_bit_of_an_armored_block_is_refused_or_is_white_space(data, soft: SoftKey, ring: KeyRing) -> None:
    block = bytearray(soft.sign(PAYLOAD))
    place = data.draw(st.integers(0, len(block) * 8 - 1))
    block[place // 8] ^= 1 << (place % 8)
    assert verdict_on(PAYLOAD, bytes(block), ring) != "Accepted"


@pytest.mark.property
@given(st.binary(max_size=400))
def test_any_bytes_give_a_verdict_and_nothing_else(soft: SoftKey, ring: KeyRing, junk: bytes) -> None:
    for block in (junk, armor(junk), armor(b"SSHSIG\0\0\0\1" + junk)):
        with pytest.raises(GitopsError):
            signer(PAYLOAD, block, ring)


# Certificates


def _authority_ring(team: Team, **members: object) -> KeyRing:
    authority = {"key": ssh_line(team["ca"]), "principals": ["ann", "ann@example.net"]}
    return ring_of(person("ann", {"sshCertificateAuthority": authority, **members}))


def _certified(team: Team, **members: str | tuple[str, ...]) -> SshKey:
    return team["certified"].certify(team["ca"], **{"principals": ("ann",), **members})


def test_a_user_certificate_counts_for_the_person_of_its_principal(team: Team) -> None:
    found = signer(PAYLOAD, _certified(team, principals=("x", "ann@example.net")).sign(PAYLOAD), _authority_ring(team))
    assert (str(found.key.owner), found.fingerprint) == ("ann", team["certified"].fingerprint)
    assert set(found.fingerprints) == {team["certified"].fingerprint, team["ca"].fingerprint}


def test_a_certificate_for_somebody_else_is_an_unknown_signer(team: Team) -> None:
    signature = _certified(team, principals=("bob",)).sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, _authority_ring(team)) == "UnknownSigner"


def test_a_principal_is_an_exact_name_and_no_pattern(team: Team) -> None:
    signature = _certified(team, principals=("*",)).sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, _authority_ring(team)) == "UnknownSigner"


def test_a_certificate_by_an_unlisted_authority_is_an_unknown_signer(team: Team) -> None:
    signature = team["certified"].certify(team["other-ca"], principals=("ann",), serial=2).sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, _authority_ring(team)) == "UnknownSigner"


def test_a_certificate_counts_only_inside_its_validity_at_first_sight(team: Team) -> None:
    signature = _certified(team, validity="20260601000000Z:20260701000000Z").sign(PAYLOAD)
    ring = _authority_ring(team)
    moments = {
        datetime(2026, 5, 31, 23, 59, 59, tzinfo=UTC): "UnknownSigner",
        datetime(2026, 6, 1, tzinfo=UTC): "Accepted",
        datetime(2026, 6, 30, 23, 59, 59, tzinfo=UTC): "Accepted",
        datetime(2026, 7, 1, tzinfo=UTC): "UnknownSigner",
    }
    assert {at: verdict_on(PAYLOAD, signature, ring, at=at) for at in moments} == moments


def test_a_certificate_whose_authority_did_not_sign_it_is_refused(team: Team) -> None:
    block = _certified(team).sign(PAYLOAD)
    blob = bytearray(base64.b64decode(b"".join(block.splitlines()[1:-1])))
    place = bytes(blob).index(b"ann")
    blob[place : place + 3] = b"bob"
    assert verdict_on(PAYLOAD, armor(bytes(blob)), _authority_ring(team)) == "BadSignature"


def test_the_key_of_an_authority_is_itself_no_persons_key(team: Team) -> None:
    assert verdict_on(PAYLOAD, team["ca"].sign(PAYLOAD), _authority_ring(team)) == "UnknownSigner"


def test_user_verification_can_be_asked_of_certified_keys(team: Team) -> None:
    ring = _authority_ring(team, requireUserVerification=True)
    assert verdict_on(PAYLOAD, _certified(team).sign(PAYLOAD), ring) == "BadSignature"


def test_the_policys_own_limits_hold_for_certificates_too(team: Team) -> None:
    ring = _authority_ring(team, validUntil="2026-12-01T12:00:00Z")
    signature = _certified(team).sign(PAYLOAD)
    assert verdict_on(PAYLOAD, signature, ring, at=NOW - timedelta(seconds=1)) == "Accepted"
    assert verdict_on(PAYLOAD, signature, ring, at=NOW) == "UnknownSigner"
