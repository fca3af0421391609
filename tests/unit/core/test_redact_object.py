"""Structures: a Secret shows its keys, sensitive members show a mark, everything else is as it was."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.redact import REDACTED, redact_object
from gitops_ctl.core.secretnames import is_secret_name

VALUES = st.text(string.ascii_lowercase + string.digits + "'\"\\{}:=\n ", min_size=6).map(lambda text: f"§{text}§")
SENSITIVE = st.sampled_from(("password", "apiToken", "client_secret", "privateKey", "PSK", "passphrase", "community"))
PLAIN = st.sampled_from(("name", "data", "spec", "secretRef", "items", "template", "tokenFile"))


def nested(leaf):
    """A tree in which a sensitive member holds `leaf` somewhere."""
    member = st.builds(lambda name, value: {name: value}, SENSITIVE, st.one_of(leaf, st.lists(leaf, min_size=1)))
    return st.recursive(
        member,
        lambda inner: st.one_of(st.builds(lambda k, v: {k: v}, PLAIN, inner), st.builds(lambda v: {"l": [v]}, inner)),
    )


@pytest.mark.property
@given(value=VALUES, data=st.data())
def test_H22_no_value_of_a_sensitive_member_survives_at_any_depth(value, data):
    tree = data.draw(nested(st.just(value)))
    assert "§" not in json.dumps(redact_object(tree), ensure_ascii=False)


@pytest.mark.property
@given(values=st.dictionaries(st.sampled_from(("a", "tls.crt", "note")), VALUES, min_size=1))
def test_H22_no_value_of_a_secret_survives(values):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "radius"},
        "data": values,
        "stringData": values,
    }
    for tree in (
        secret,
        {"kind": "List", "items": [secret]},
        {"kind": "SecretList", "items": [{"metadata": {"name": "a"}, "data": values}]},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(secret)}}},
    ):
        assert "§" not in json.dumps(redact_object(tree), ensure_ascii=False)


def test_a_secret_shows_its_keys_and_its_name():
    shown = redact_object({"kind": "Secret", "metadata": {"name": "radius"}, "data": {"key": "YQ=="}, "type": "Opaque"})
    assert shown == {"kind": "Secret", "metadata": {"name": "radius"}, "data": {"key": REDACTED}, "type": "Opaque"}


@pytest.mark.parametrize(
    ("tree", "shown"),
    [
        ({"password": 12345678}, {"password": REDACTED}),
        ({"env": [{"name": "DB_PASSWORD", "value": "x"}]}, {"env": [{"name": "DB_PASSWORD", "value": REDACTED}]}),
        ({"password": {"value": "x", "policy": "y"}}, {"password": {"value": REDACTED, "policy": "y"}}),
        ({"tokens": ["a", {"value": "b"}]}, {"tokens": [REDACTED, {"value": REDACTED}]}),
        (
            {"args": ["login", "--password", "x", "--user", "y"]},
            {"args": ["login", "--password", REDACTED, "--user", "y"]},
        ),
        ({"data": {"a": "x"}, "type": "kubernetes.io/tls"}, {"data": {"a": REDACTED}, "type": "kubernetes.io/tls"}),
        ({"stringData": {"a": "x"}}, {"stringData": {"a": REDACTED}}),
        ({"note": "https://a:b@git.example.net/"}, {"note": "https://git.example.net/"}),
    ],
)
def test_other_places_of_values_are_known(tree, shown):
    assert redact_object(tree) == shown


@pytest.mark.parametrize(
    "tree",
    [
        {"automountServiceAccountToken": True, "token": None},
        {"env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]},
        {"volumes": [{"secret": {"secretName": "tls", "items": [{"key": "tls.key", "path": "key.pem"}]}}]},
        {"kind": "ConfigMap", "data": {"uplink": "ge-0/0/1", "vlan": "100"}},
        {"kind": "Role", "rules": [{"resources": ["secrets"], "resourceNames": ["git-token"], "verbs": ["get"]}]},
        {"spec": {"replicas": 2, "ratio": 0.5, "credentialsSecretRef": {"name": "git"}}},
    ],
)
def test_harmless_structure_stays(tree):
    assert redact_object(tree) == tree


def test_the_argument_is_not_changed():
    tree = {"kind": "Secret", "data": {"a": "b"}, "list": [{"password": "c"}]}
    redact_object(tree)
    assert tree == {"kind": "Secret", "data": {"a": "b"}, "list": [{"password": "c"}]}


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "DB_PASSWORD",
        "dbPassword2",
        "userpassword",
        "token",
        "X-Gitlab-Token",
        "secretAccessKey",
        "API_KEY",
        "api-key",
        "credentials",
        "DB_PASS",
        "passwordBase64",
        "Proxy-Authorization",
        "pre-shared-key",
        "spec.snmp.community",
    ],
)
def test_this_name_holds_a_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-",
        "secretRef",
        "secretName",
        "tokenFile",
        "passwordPath",
        "pass",
        "key",
        "publicKey",
        "signingKey",
        "bypass",
        "tokenRequests",
        "secretNamespace",
        "keySetDigest",
        "authorization.k8s.io",
        "communities",
        "accessKeyId",
    ],
)
def test_this_name_holds_none(name):
    assert not is_secret_name(name)
