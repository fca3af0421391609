"""Transport and port follow from the spec alone; TLS material is read strictly and never shown (rollouts.md, section 5.1)."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.device.gnoitarget import GnoiTarget, TlsMaterial, port_of, tls_material, transport_of
from gitops_ctl.device.login import Login
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_pki import GnoiPki

__all__ = ["pki"]


@pytest.mark.parametrize(
    ("security", "tls", "credentials", "expected"),
    [
        ("auto", False, False, "plaintext"),
        ("auto", True, False, "tls"),
        ("auto", False, True, "tls"),
        ("", False, True, "tls"),
        ("tls", False, False, "tls"),
        ("plaintext", True, True, "plaintext"),
    ],
)
def test_transport_is_resolved_from_the_spec(security: str, tls: bool, credentials: bool, expected: str) -> None:
    assert transport_of(security, has_tls_member=tls, has_credentials=credentials) == expected


def test_an_omitted_port_is_that_of_the_transport() -> None:
    assert [port_of(0, transport="tls"), port_of(0, transport="plaintext"), port_of(1234, transport="tls")] == [
        9339,
        50052,
        1234,
    ]


def test_material_is_read_with_and_without_a_client_certificate(pki: GnoiPki) -> None:
    certificate, key = pki.pair("gitops-ctl")
    assert tls_material({"ca.crt": pki.ca}) == TlsMaterial(pki.ca)
    found = tls_material({"ca.crt": pki.ca, "tls.crt": certificate, "tls.key": key})
    assert found == TlsMaterial(pki.ca, certificate, key)
    assert found.expires_at is not None
    assert key.decode() not in repr(found)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ca.crt": b""}, "ca.crt holds no certificate"),
        ({"ca.crt": b"not PEM"}, "ca.crt cannot be read"),
        ({"tls.key": b""}, "together or not at all"),
        ({"tls.crt": b""}, "together or not at all"),
        ({"tls.crt": b"not PEM"}, "tls.crt cannot be read"),
        ({"tls.key": b"not PEM"}, "tls.key is no private key"),
    ],
)
def test_material_that_cannot_be_used_is_refused_by_name(changes: dict[str, bytes], words: str, pki: GnoiPki) -> None:
    certificate, key = pki.pair("gitops-ctl")
    with pytest.raises(Refused, match=words) as caught:
        tls_material({"ca.crt": pki.ca, "tls.crt": certificate, "tls.key": key, **changes})
    assert caught.value.code is ErrorCode.GNOI_MATERIAL_INVALID


def test_a_key_of_another_certificate_or_kind_or_with_a_passphrase_is_refused(pki: GnoiPki) -> None:
    certificate, _ = pki.pair("gitops-ctl")
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    elliptic = ec.generate_private_key(ec.SECP256R1())
    keys = {
        "does not belong": elliptic.private_bytes(*form, serialization.NoEncryption()),
        "neither an RSA": ed25519.Ed25519PrivateKey.generate().private_bytes(*form, serialization.NoEncryption()),
        "without a passphrase": elliptic.private_bytes(*form, serialization.BestAvailableEncryption(b"word")),
    }
    for words, key in keys.items():
        with pytest.raises(Refused, match=words):
            tls_material({"ca.crt": pki.ca, "tls.crt": certificate, "tls.key": key})


@pytest.mark.parametrize("address", ["unix:/tmp/socket", "dns:///other", "a b", "", "[::1]", "a/b", "x:1"])
def test_what_is_no_address_never_reaches_grpc(address: str) -> None:
    with pytest.raises(Refused):
        GnoiTarget(address, 9339)


def test_a_target_names_itself_and_hides_its_login(pki: GnoiPki) -> None:
    login = Login("network-author", "hunter-2")
    target = GnoiTarget("2001:db8::1", 9339, tls=TlsMaterial(pki.ca), login=login)
    assert (str(target), target.name) == ("[2001:db8::1]:9339", "2001:db8::1")
    assert GnoiTarget("192.0.2.1", 1, server_name="switch.example.net").name == "switch.example.net"
    assert "hunter-2" not in repr(target)
    assert target.metadata == (("username", "network-author"), ("password", "hunter-2"))


def test_no_login_goes_without_tls_or_without_a_password(pki: GnoiPki) -> None:
    assert GnoiTarget("192.0.2.1", 1, login=Login("network-author", "word")).metadata == ()
    by_key = Login("network-author", private_key="…")
    assert GnoiTarget("192.0.2.1", 1, tls=TlsMaterial(pki.ca), login=by_key).metadata == ()


@pytest.mark.parametrize("value", ["pässword", "two\nlines", " blank", "blank ", "nul\x00"], ids=ascii)
def test_a_login_that_metadata_cannot_carry_is_refused_without_being_shown(value: str, pki: GnoiPki) -> None:
    for login in (Login("network-author", value), Login(value, "word")):
        with pytest.raises(Refused, match="username or password") as caught:
            GnoiTarget("192.0.2.1", 1, tls=TlsMaterial(pki.ca), login=login)
        assert value.strip() not in str(caught.value).replace("blanks", "")
    assert GnoiTarget("192.0.2.1", 1, tls=TlsMaterial(pki.ca), login=Login("a", "b c~!")).metadata
