"""A talosconfig is read whole or refused with a reason, and never shown (cni-switch.md, 14.3)."""

import base64
from pathlib import Path

import pytest
import yaml

from gitops_ctl.talos.errors import TalosconfigInvalid
from gitops_ctl.talos.talosconfig import parse_talosconfig
from tests.support.talos_pki import TalosPki


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> TalosPki:
    return TalosPki(tmp_path_factory.mktemp("pki"))


def changed(text: bytes, **members: object) -> bytes:
    tree = yaml.safe_load(text)
    for name, value in members.items():
        if value is None:
            del tree["contexts"]["north"][name]
        else:
            tree["contexts"]["north"][name] = value
    return yaml.safe_dump(tree).encode()


def test_it_gives_authority_certificate_key_and_roles(pki):
    found = parse_talosconfig(pki.talosconfig(roles=("os:admin", "os:reader")))
    assert (found.context, found.endpoints, found.roles) == ("north", ("127.0.0.1",), ("os:admin", "os:reader"))
    assert found.ca == pki.ca


def test_the_key_label_of_talos_becomes_the_common_one(pki):
    text = pki.talosconfig()
    assert b"ED25519 PRIVATE KEY" in base64.b64decode(yaml.safe_load(text)["contexts"]["north"]["key"])
    assert parse_talosconfig(text).key.startswith(b"-----BEGIN PRIVATE KEY-----")


def test_keys_of_another_kind_are_fine(tmp_path: Path):
    assert parse_talosconfig(TalosPki(tmp_path, elliptic=True).talosconfig()).roles == ("os:admin",)


def test_another_context_can_be_chosen(pki):
    tree = yaml.safe_load(pki.talosconfig())
    tree["contexts"]["south"] = tree["contexts"]["north"]
    assert parse_talosconfig(yaml.safe_dump(tree).encode(), context="south").context == "south"


def test_nothing_secret_is_shown(pki):
    found = parse_talosconfig(pki.talosconfig())
    assert "PRIVATE" not in repr(found)
    assert "CERTIFICATE" not in repr(found)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"crt": None}, "has no crt"),
        ({"key": ""}, "has no key"),
        ({"ca": "!!!"}, "ca of the talosconfig is not base64"),
        ({"crt": base64.b64encode(b"no certificate").decode()}, "crt of the talosconfig is not a certificate"),
        ({"ca": base64.b64encode(b"no certificate").decode()}, "ca of the talosconfig is not a certificate"),
        ({"key": base64.b64encode(b"no key").decode()}, "not an unencrypted private key"),
    ],
)
def test_what_is_missing_or_damaged_is_named(pki, members, message):
    with pytest.raises(TalosconfigInvalid, match=message):
        parse_talosconfig(changed(pki.talosconfig(), **members))


def test_a_foreign_key_is_refused(pki):
    other = yaml.safe_load(pki.talosconfig())["contexts"]["north"]["key"]
    with pytest.raises(TalosconfigInvalid, match="do not belong together"):
        parse_talosconfig(changed(pki.talosconfig(), key=other))


def test_a_certificate_without_a_purpose_is_refused(pki):
    with pytest.raises(TalosconfigInvalid, match="not a client certificate"):
        parse_talosconfig(pki.talosconfig(usages=()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"context: north\ncontexts: {}\n", "has no context 'north'"),
        (b"contexts: {}\n", "names no context"),
        (b"", "names no context"),
        (b"- a list\n", "names no context"),
        (b"key: [very-private\n", "cannot be read: yaml-syntax in line"),
    ],
)
def test_a_file_that_is_none_is_refused_without_its_text(text, message):
    with pytest.raises(TalosconfigInvalid, match=message) as caught:
        parse_talosconfig(text)
    assert "private" not in str(caught.value)
