"""Which host keys a known_hosts text pins for an address (devices.md, sections 2 and 6)."""

import base64
import hmac

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.device.hostkey import HostKey, known_hosts_line, negotiated, pinned_keys

HOST, PORT = "192.0.2.17", 830


def public(private) -> str:
    """`type base64`."""
    return (
        private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    )


KEYS = {
    "ed25519": public(ed25519.Ed25519PrivateKey.generate()),
    "ecdsa": public(ec.generate_private_key(ec.SECP256R1())),
    "rsa": public(rsa.generate_private_key(65537, 2048)),
    "other": public(ed25519.Ed25519PrivateKey.generate()),
}


def blob(name: str) -> bytes:
    return base64.b64decode(KEYS[name].split()[1])


def pinned(text: str, *, host: str = HOST, port: int = PORT) -> tuple[bytes, ...]:
    return tuple(key.blob for key in pinned_keys(text, host=host, port=port))


@pytest.mark.parametrize("name", ["ed25519", "ecdsa", "rsa"])
def test_a_key_of_each_type_is_pinned_as_a_whole(name):
    (key,) = pinned_keys(f"[{HOST}]:{PORT} {KEYS[name]} comment\n", host=HOST, port=PORT)
    assert key == HostKey(KEYS[name].split()[0], blob(name))
    assert known_hosts_line(key, host=HOST, port=PORT) == f"[{HOST}]:{PORT} {KEYS[name]}"


def test_rsa_keys_are_never_proven_with_sha1():
    keys = pinned_keys(f"{HOST} {KEYS['rsa']}\n{HOST} {KEYS['ed25519']}\n", host=HOST, port=PORT)
    assert negotiated(keys) == ("rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519")


def test_entries_with_the_port_win_over_entries_for_the_address_alone():
    text = f"{HOST} {KEYS['ed25519']}\n[{HOST}]:{PORT} {KEYS['rsa']}\n"
    assert pinned(text) == (blob("rsa"),)
    assert pinned(text, port=22) == (blob("ed25519"),)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (HOST, True),
        (f"switch-17.example.net,{HOST}", True),
        ("192.0.2.*", True),
        ("192.0.2.?7", True),
        (f"192.0.2.*,!{HOST}", False),
        ("192.0.2.18", False),
        (f"[{HOST}]:830", True),
        ("[192.0.2.*]:830", True),
        (f"[{HOST}]:831", False),
        ("*", True),
    ],
)
def test_names_are_patterns_and_an_exclamation_mark_takes_one_out(names, found):
    text = f"{names} {KEYS['ed25519']}\n"
    if found:
        assert pinned(text) == (blob("ed25519"),)
    else:
        with pytest.raises(TerminalError, match="has no entry"):
            pinned(text)


@pytest.mark.parametrize("name", [HOST, f"[{HOST}]:{PORT}"])
def test_hashed_names_are_found(name):
    salt = b"0123456789abcdefghij"
    digest = hmac.digest(salt, name.encode(), "sha1")
    hashed = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    assert pinned(f"{hashed} {KEYS['ed25519']}\n") == (blob("ed25519"),)
    with pytest.raises(TerminalError):
        pinned(f"{hashed} {KEYS['ed25519']}\n", host="192.0.2.18")


def test_host_names_are_compared_without_case():
    assert pinned(f"Switch-17.Example.NET {KEYS['ed25519']}", host="switch-17.example.net") == (blob("ed25519"),)


def test_a_revoked_key_is_not_accepted_even_where_it_is_listed():
    listed = f"{HOST} {KEYS['ed25519']}\n"
    with pytest.raises(TerminalError, match="only revoked keys"):
        pinned(f"{listed}@revoked * {KEYS['ed25519']}\n")
    assert pinned(f"{listed}{HOST} {KEYS['other']}\n@revoked * {KEYS['ed25519']}\n") == (blob("other"),)


def test_comments_and_empty_lines_say_nothing():
    assert pinned(f"# keys of the lab\n\n   \n{HOST} {KEYS['ed25519']}\n") == (blob("ed25519"),)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("192.0.2.17 ssh-ed25519", "line 2 .* is not `names type key`"),
        ("192.0.2.17 ssh-ed25519 not-base64!", "line 2 .* not base64"),
        (f"@trusted * {KEYS['ed25519']}", "line 2 .* @trusted is not supported"),
        ("@revoked * ssh-ed25519 AAAA", "line 2 .* is not of type ssh-ed25519"),
        (f"192.0.2.17 ssh-rsa {KEYS['ed25519'].split()[1]}", "line 2 .* is not of type ssh-rsa"),
        ("192.0.2.17 ssh-ed25519 AAAA", "line 2 .* is not of type ssh-ed25519"),
    ],
    ids=["no key", "not base64", "unknown mark", "short revoked", "another type", "short"],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_pinned(line, why):
    with pytest.raises(TerminalError, match=why) as raised:
        pinned(f"{HOST} {KEYS['ed25519']}\n{line}\n")
    assert raised.value.code is ErrorCode.HOST_KEYS_INVALID
    assert raised.value.subject == HOST


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (f"{HOST} ssh-dss AAAAB3NzaC1kc3M=", "ssh-dss"),
        (f"{HOST} sk-ssh-ed25519@openssh.com AAAA", "sk-ssh-ed25519@openssh.com"),
        (f"@cert-authority * {KEYS['ed25519']}", "@cert-authority"),
    ],
    ids=["dss", "sk", "authority"],
)
def test_what_cannot_be_pinned_pins_nothing_and_is_named_when_nothing_else_is_there(line, named):
    assert pinned(f"{line}\n{HOST} {KEYS['rsa']}\n") == (blob("rsa"),)
    with pytest.raises(TerminalError, match=f"has only {named}, which cannot be pinned"):
        pinned(f"{line}\n")


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_a_text_without_the_address_opens_nothing(text):
    with pytest.raises(TerminalError, match=r"has no entry for \[192.0.2.17\]:830"):
        pinned(text)


def test_a_huge_text_is_refused():
    with pytest.raises(TerminalError, match="longer than"):
        pinned("#" * 300_000)


@pytest.mark.property
@given(st.text(max_size=300))
def test_any_text_gives_keys_or_the_one_error(text):
    outcome: object
    try:
        outcome = pinned_keys(text, host=HOST, port=PORT)
    except TerminalError as error:
        outcome = error.code
    assert outcome is ErrorCode.HOST_KEYS_INVALID or (isinstance(outcome, tuple) and len(outcome) > 0)


def test_a_fingerprint_is_that_of_openssh():
    assert pinned_keys(f"{HOST} {KEYS['ed25519']}", host=HOST, port=PORT)[0].fingerprint.startswith("SHA256:")
    assert len(pinned_keys(f"{HOST} {KEYS['ed25519']}", host=HOST, port=PORT)[0].fingerprint) == len("SHA256:") + 43
