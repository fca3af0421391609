"""What a credential Secret has to hold (rollouts.md, section 5.1)."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.device.login import endpoint_of, key_of
from tests.unit.device.test_hostkey import KEYS

PRIVATE = {
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
    "ecdsa": ec.generate_private_key(ec.SECP384R1()),
    "rsa": rsa.generate_private_key(65537, 2048),
}
FORMS = {
    "openssh": serialization.PrivateFormat.OpenSSH,
    "pkcs8": serialization.PrivateFormat.PKCS8,
}


def private(name: str, form: str, *, passphrase: str = "") -> bytes:
    hidden = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    return PRIVATE[name].private_bytes(serialization.Encoding.PEM, FORMS[form], hidden)


def endpoint(*, user: str = "", **data: bytes):
    texts = {"known_hosts": f"192.0.2.17 {KEYS['rsa']}\n".encode(), **data}
    return endpoint_of(texts, name="switch-17", address="192.0.2.17", port=830, username=user)


def test_a_password_with_its_user():
    found = endpoint(username=b"automation", password=b"s3cret\n")
    assert (found.login.username, found.login.password) == ("automation", "s3cret")
    assert [key.type for key in found.host_keys] == ["ssh-rsa"]


def test_the_user_of_the_device_wins():
    assert endpoint(user="netops", username=b"automation", password=b"x").login.username == "netops"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_key_of_each_type_and_form_can_sign(name, form):
    found = endpoint(user="netops", privateKey=private(name, form))
    assert key_of(found.login, name="switch-17").sign_ssh_data(b"data") is not None


def test_a_private_key_with_its_passphrase():
    key = private("ed25519", "openssh", passphrase="words")
    assert endpoint(user="netops", privateKey=key, passphrase=b"words\n").login.private_key


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"password": b"x"}, "no username"),
        ({"username": b"a"}, "one of password and privateKey"),
        ({"username": b"a", "password": b"x", "privateKey": private("ed25519", "openssh")}, "one of password"),
        ({"username": b"a", "privateKey": b"not a key"}, "cannot be used"),
        ({"username": b"a", "privateKey": private("rsa", "openssh", passphrase="words")}, "cannot be used"),
        ({"username": b"a", "privateKey": private("rsa", "pkcs8"), "passphrase": b"x"}, "cannot be used"),
        ({"username": b"a", "password": b"\xff"}, "password .* is not UTF-8"),
    ],
)
def test_what_cannot_be_used_is_told_without_any_value(data, why):
    with pytest.raises(TerminalError, match=why) as raised:
        endpoint(**data)
    assert raised.value.code is ErrorCode.DEVICE_CREDENTIAL_INVALID
    assert raised.value.subject == "switch-17"


def test_a_key_type_that_ssh_left_behind_is_refused():
    old = dsa.generate_private_key(1024).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    with pytest.raises(TerminalError, match="no RSA, ECDSA or Ed25519 key"):
        endpoint(user="netops", privateKey=old)


def test_both_spellings_of_known_hosts_count_and_none_opens_nothing():
    text = f"192.0.2.17 {KEYS['rsa']}".encode()
    found = endpoint_of(
        {"password": b"x", "knownHosts": text}, name="s", address="192.0.2.17", port=830, username="netops"
    )
    assert found.host_keys
    with pytest.raises(TerminalError) as raised:
        endpoint_of({"password": b"x"}, name="s", address="192.0.2.17", port=830, username="netops")
    assert raised.value.code is ErrorCode.HOST_KEYS_INVALID


def test_no_secret_stands_in_the_text_of_an_endpoint():
    text = repr(endpoint(username=b"automation", password=b"s3cret"))
    assert "s3cret" not in text
