"""Running text: no credential survives, and nothing else is lost."""

import base64
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.redact import REDACTED, redact_text

SECRET = "hunTer2xq"
SECRETS = st.text(string.ascii_letters + string.digits, min_size=8, max_size=24).filter(
    lambda text: not text.isalpha() and not text.isdecimal()
)
NAMES = st.sampled_from(
    (
        "password",
        "DB_PASSWORD",
        "dbPassword",
        "passphrase",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "client-secret",
        "token",
        "aws_secret_access_key",
        "privateKey",
        "PRIVATE-TOKEN",
        "accessToken",
        "spec.auth.password",
        "psk",
        "passwordBase64",
    )
)
LINES = st.text(string.ascii_lowercase + " ./+_-", max_size=60)

FORMS = {
    "user info": "clone https://bot:VALUE@git.example.net/net.git failed",
    "user info with @": "https://bot:a@VALUE@git.example.net/net.git",
    "user info with /": "https://bot:a/VALUE@git.example.net/net.git",
    "user info without a password": "HTTPS://VALUE@git.example.net/net.git",
    "user info with a quote": "https://bot:a'VALUE@git.example.net/net.git",
    "user info without a scheme": "found at //bot:VALUE@git.example.net/net.git",
    "user info over ssh": "ssh://bot:VALUE@git.example.net:22/net.git",
    "query": "GET https://git.example.net/hook?access_token=VALUE&page=2",
    "signed query": "GET https://store.example.net/pack?sig=VALUE",
    "bearer": "sent Bearer VALUE to the server",
    "bearer in another case": "sent bEARER VALUE to the server",
    "basic": "sent basic VALUE= to the server",
    "authorization": "Authorization: token VALUE",
    "authorization in lower case": "> authorization: Digest user, response VALUE",
    "authorization in a mapping": "{'Authorization': 'Bearer VALUE', 'Accept': '*/*'}",
    "cookie": "Set-Cookie: session=1; id=VALUE; Path=/",
    "private token": "PRIVATE-TOKEN: VALUE",
    "yaml": "password: VALUE",
    "yaml with words": "  password: correct horse VALUE",
    "yaml on the next line": "password:\n  VALUE\nuser: bot",
    "yaml block": "password: |-\n  first\n\n  VALUE\nuser: bot",
    "yaml in single quotes": "password: 'it''s VALUE'",
    "yaml list": "passwords: [a, VALUE]",
    "json": '{"user": "bot", "password": "VALUE"}',
    "json with quotes": '{"password":"a\\"b VALUE","user":"bot"}',
    "json inside json": '{\\"password\\":\\"VALUE\\",\\"user\\":\\"bot\\"}',
    "json that was cut": '{"password": "abc VALUE',
    "environment": 'env: {"name":"DB_PASSWORD","value":"VALUE"}',
    "environment in yaml": "- name: DB_PASSWORD\n  value: VALUE",
    "field of an answer": 'Port "a" is invalid: spec.password: Invalid value: "VALUE": must be longer',
    "pointer of an answer": '/spec/password: Invalid value: "VALUE"',
    "flag": "ran helm --password=VALUE and failed",
    "assignment": 'config["password"] = "VALUE"',
    "go": "password:=VALUE",
    "form": "grant=1&client_secret%3DVALUE",
    "quoted in prose": "the password 'VALUE' is too short",
    "enable secret of a device": "enable secret 5 VALUE",
    "password of a device": "username admin password 7 VALUE",
    "community of a device": "snmp-server community VALUE RO",
    "registry": '{"auths":{"registry.example.net":{"auth":"VALUE"}}}',
    "field of a Secret": 'Secret "a" is invalid: data[tls.key]: Invalid value: "VALUE": must be base64',
    "forge token": "used ghp_VALUE0123456789abcdef",
    "crypt hash": 'encrypted-password "$6$salt$VALUE"',
    "kubectl fragment": 'Secret in version "v1" is no Secret: error found in #10 byte of ...|":"VALUE"|..., bigger context ...|"a":"VALUE"|...',
    "data of a Secret": '{"apiVersion":"v1","data":{"tls.crt":"VALUE"},"kind":"Secret"}',
    "data of a cut Secret": 'Secret: {"stringData":{"a":"}","b":"VALUE',
    "yaml of a Secret": "kind: Secret\nstringData:\n  a: VALUE\n  b: |\n    VALUE\nmetadata: {}",
    "go map of a Secret": "Secret{ObjectMeta{}, Data:map[string][]uint8{a:{}}",
    "patch of a Secret": r"cannot patch Secret: {\"data\":{\"a\":\"VALUE\"}}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_H22_a_credential_does_not_survive_in_this_form(form):
    text = redact_text(form.replace("VALUE", SECRET))
    assert SECRET not in text
    assert redact_text(text) == text


@pytest.mark.property
@given(name=NAMES, value=SECRETS, before=LINES, after=LINES, form=st.sampled_from(tuple(FORMS.values())))
def test_H22_no_generated_secret_survives(name, value, before, after, form):
    texts = (
        f"{before}\n{name}: {value}\n{after}",
        f"{before} {name}={value} {after}",
        json.dumps({"before": before, name: value, "after": after}),
        json.dumps({"inner": json.dumps({name: value})}),
        f"{before}\n{form.replace('VALUE', value)}\n{after}",
    )
    for text in texts:
        shown = redact_text(text)
        assert value not in shown
        assert redact_text(shown) == shown


@pytest.mark.property
@given(value=st.text(min_size=1, max_size=40), before=LINES, after=LINES)
def test_H22_a_known_value_does_not_survive_in_any_encoding(value, before, after):
    value = f"\u00a7{value}"  # never part of the words around it
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    shown = redact_text(f"{before} {value} {json.dumps(value)} {encoded} {after}", known=(value,))
    assert value not in shown
    assert json.dumps(value)[1:-1] not in shown
    assert encoded not in shown


def test_a_known_value_inside_the_mark_does_not_garble_it():
    assert redact_text("the word is opensesame", known=("opensesame", "red")) == f"the word is {REDACTED}"


PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nhunTer2xq\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\r\n"),
        PEM.replace("\n", "\\n"),
        PEM.replace("\n", " "),
        PEM.replace("OPENSSH ", ""),
        PEM.replace("OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
        PEM.partition("-----END")[0],
        PEM.partition("-----\n")[2],
        f"key: {base64.b64encode(PEM.encode()).decode()}",
        f"key: {base64.b64encode(PEM.encode()).decode()[:28]}",
    ],
)
def test_H22_a_private_key_does_not_survive_whole_cut_or_encoded(text):
    shown = redact_text(f"cannot read {text}")
    assert "hunTer2xq" not in shown
    assert "LS0tLS1" not in shown
    assert REDACTED in shown


HARMLESS = (
    "secretRef: name",
    "credentialsSecretRef: {name: git}",
    "passwordFile: ./password",
    "tokenExpirationSeconds: 3600",
    "no token in the answer",
    "the bearer token has expired; basic authentication is refused",
    "Secret/team-network/git-token: the key identity is missing",
    'secrets "git" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API group ""',
    "commit 94abec149d57f91a7de2fe6c2847c497456e6113 is refused: rule 5 (verbs delete, edit; roles platform)",
    f"policyDigest: sha256:{'0f' * 32}",
    f"image registry.example.net/lab/agent:1.2@sha256:{'0f' * 32}",
    "https://git.example.net:8443/network.git/@tags/v1 answers with the HTTP status 502",
    "git@git.example.net:network.git is no https address",
    "automountServiceAccountToken: false",
    "token: null",
    "a password has 8 characters or more",
    "the community of the router is set",
    "imagePullSecrets: [{name: pull}]",
    "secrets:\n  - name: radius",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    f"caBundle: {base64.b64encode(b'-----BEGIN CERTIFICATE-----' + b'x' * 40).decode()}",
    "key SHA256:uNiVztksCsDhcc0u9e8BrrC8sz6gEgmjEMBC0pWlHxM is listed for nobody in the trust policy",
    "ConfigMap/network/site-a: data:\n  uplink: ge-0/0/1",
    "to take it back: git checkout main && git reset --hard 94abec149d57 && git push --force-with-lease",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays(text):
    assert redact_text(text) == text


def test_what_stands_beside_a_secret_stays():
    assert redact_text("login of bot with password=abc123, host git.example.net") == (
        f"login of bot with password={REDACTED}, host git.example.net"
    )
    assert redact_text('spec.password: Invalid value: "abc": must be longer') == (
        f"spec.password: Invalid value: {REDACTED}: must be longer"
    )


@pytest.mark.parametrize(
    "unit", ["a.", "a://", "x://a:b", '{"password":', "password=", "-----BEGIN PRIVATE KEY-----", "eyJ"]
)
def test_long_foreign_text_costs_linear_time(unit):
    assert isinstance(redact_text(unit * 20_000), str)
