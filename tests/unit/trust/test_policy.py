"""Reading a trust policy: what is accepted, and one clear error with its line for everything else (section 4.4)."""

import base64
import contextlib
import json
from pathlib import Path

import pysequoia
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.trust.globs import Glob
from gitops_ctl.trust.keys import Owner, OwnerKind, TrustedKey
from gitops_ctl.trust.openpgp import CertificateRefused, load_certificate
from gitops_ctl.trust.policy import load_policy, policy_digest
from gitops_ctl.trust.rulebook import POLICY_KIND, PolicyRule, RuleIndex
from tests.support.git_keys import GpgHome, GpgKey, SshKey
from tests.support.trust import DEFAULT_RULES, POLICY_PATH, Team, person, policy_text, ssh_line
from tests.support.trust_software import SoftKey

CERTIFICATE = bytes(pysequoia.Cert.from_bytes(bytes(pysequoia.Tsk.generate("bob <bob@example.net>"))))
FINGERPRINT = pysequoia.Cert.from_bytes(CERTIFICATE).fingerprint


def _armored(certificate: bytes) -> str:
    text = base64.b64encode(certificate).decode()
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{text}\n-----END PGP PUBLIC KEY BLOCK-----\n"


def refused(text: str) -> str:
    """The error of the policy, which must be one."""
    with pytest.raises(Refused) as caught:
        load_policy(text.encode())
    assert caught.value.reason == "PolicyInvalid"
    assert caught.value.subject.startswith(POLICY_PATH)
    return caught.value.message


def test_a_sound_policy_has_people_roles_rules_and_digests(team: Team) -> None:
    text = team.policy()
    policy = load_policy(text.encode())
    assert list(policy.people) == ["ann", "bob", "eve", "adm"]
    assert policy.people["ann"].kubernetes_user == "gitops-ctl:ann"
    assert policy.roles["author"] == {"ann"}
    assert policy.digest == policy_digest(text.encode())


def test_the_digest_of_keys_changes_with_keys_roles_and_revocations_and_not_with_layout(team: Team) -> None:
    text = team.policy()
    digest = load_policy(text.encode()).key_set_digest
    assert load_policy(text.replace("\n", "\n\n").encode()).key_set_digest == digest
    others = [
        team.policy({"author": ["ann", "bob"], "approver": ["bob"], "admin": ["adm"]}),
        team.policy(revoked=[{"fingerprint": "SHA256:" + "A" * 43, "from": "2026-01-01T00:00:00Z"}]),
        team.policy(people=[person(name, team[name]) for name in ("ann", "bob", "adm")]),
    ]
    assert len({digest, *(load_policy(other.encode()).key_set_digest for other in others)}) == 4


def _changed(team: Team, **members: object) -> str:
    return json.dumps(json.loads(team.policy()) | members)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        pytest.param({"extra": 1}, "extra", id="unknown member"),
        pytest.param({"people": []}, "people", id="no people"),
        pytest.param({"roles": {"author": ["nobody-known"]}}, "there is no person nobody-known", id="unknown person"),
        pytest.param({"metadata": {"labels": {}}}, "metadata", id="other metadata"),
        pytest.param({"merges": {"reviewerRoles": ["x"]}}, "there is no role x", id="unknown reviewer role"),
        pytest.param(
            {"revoked": [{"fingerprint": "abc", "from": "2026-01-01T00:00:00Z"}]}, "fingerprint", id="short fingerprint"
        ),
        pytest.param({"revoked": [{"fingerprint": "A" * 40}]}, "from", id="revocation without a start"),
        pytest.param(
            {"revoked": [{"fingerprint": "A" * 40, "from": "2026-02-31T00:00:00Z"}]},
            "2026-02-31T00:00:00Z is no moment that exists",
            id="revocation from a day that does not exist",
        ),
    ],
)
def test_a_wrong_member_is_named(team: Team, members: dict[str, object], said: str) -> None:
    assert said in refused(_changed(team, **members))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param({"paths": ["a"], "verbs": ["edit"], "roles": ["x"]}, "there is no role x", id="unknown role"),
        pytest.param(
            {"paths": ["a"], "verbs": ["edit"], "roles": ["author"], "threshold": 2},
            "can never be reached",
            id="threshold",
        ),
        pytest.param({"paths": ["a"], "verbs": ["edit"], "roles": ["nobody"]}, "can never be reached", id="empty role"),
        pytest.param({"paths": ["a/**b"], "verbs": ["edit"], "roles": ["author"]}, "'**' stands alone", id="glob"),
        pytest.param({"paths": ["../a"], "verbs": ["edit"], "roles": ["author"]}, "..", id="parent folder"),
        pytest.param({"paths": ["!a"], "verbs": ["edit"], "roles": ["author"]}, "/rules/", id="negation"),
        pytest.param({"verbs": ["edit"], "roles": ["author"]}, "name paths, kinds or both", id="no scope"),
        pytest.param({"paths": ["a"], "verbs": ["merge"], "roles": ["author"]}, "whole tree", id="merge with paths"),
        pytest.param({"paths": ["a"], "verbs": ["propose"], "roles": ["author"]}, "/rules/", id="propose"),
        pytest.param({"paths": ["a"], "verbs": ["invalidate"], "roles": ["author"]}, "/rules/", id="unknown verb"),
    ],
)
def test_a_wrong_rule_is_named(team: Team, rule: dict[str, object], said: str) -> None:
    assert said in refused(team.policy(rules=(*DEFAULT_RULES, rule)))


def test_every_finding_is_named_with_its_line(team: Team) -> None:
    text = team.policy(rules=(*DEFAULT_RULES, {"paths": ["a"], "verbs": ["edit"], "roles": ["x", "y"]}))
    message = refused(text)
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip(' ",') in ("x", "y")}
    for line in lines:
        assert f"{POLICY_PATH}:{line}:" in message


def test_the_change_of_the_policy_itself_must_be_matched_by_a_rule(team: Team) -> None:
    message = refused(team.policy(rules=[rule for rule in DEFAULT_RULES if "trust" not in rule["verbs"]]))
    assert "nobody could ever change the policy" in message


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds 0 TrustPolicy documents"),
        (b"a: 1\na: 2\n", "appears"),
        (b"\xff\xfe", "UTF-8"),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "ConfigMap"),
        (b"x" * (1024 * 1024 + 1), "at most"),
    ],
    ids=["empty", "duplicate key", "no UTF-8", "another kind", "too large"],
)
def test_a_file_that_is_no_policy_is_one_clear_error(data: bytes, said: str) -> None:
    with pytest.raises(Refused) as caught:
        load_policy(data)
    assert caught.value.reason == "PolicyInvalid"
    assert said in caught.value.message


def test_a_second_policy_in_the_file_is_refused(team: Team) -> None:
    assert "holds 2 TrustPolicy documents" in refused(team.policy() + "---\n" + team.policy())


def _with_people(team: Team, *people: dict[str, object], **members: object) -> str:
    roles = {"author": ["ann"], "approver": ["ann"], "admin": ["ann"]}
    return policy_text([person("ann", team["ann"]), *people], roles=roles, **members)


def test_a_key_belongs_to_one_person_proposer_or_forge(team: Team) -> None:
    line = {"ssh": ssh_line(team["ann"])}
    for text in (
        _with_people(team, person("bob", team["ann"])),
        _with_people(team, merges={"forgeKeys": [line]}),
        _with_people(team, proposers=[{"name": "robot", "keys": [line], "paths": ["**"]}]),
        _with_people(team, person("bob", {"sshCertificateAuthority": {"key": line["ssh"], "principals": ["bob"]}})),
    ):
        assert "already" in refused(text)


def test_one_authority_may_serve_several_people_with_disjoint_principals(team: Team) -> None:
    def authority(*principals: str) -> dict[str, object]:
        return {"sshCertificateAuthority": {"key": ssh_line(team["ca"]), "principals": list(principals)}}

    load_policy(_with_people(team, person("bob", authority("bob")), person("eve", authority("eve"))).encode())
    text = _with_people(team, person("bob", authority("bob", "x")), person("eve", authority("eve", "x")))
    assert "principal x of this authority already stands for bob" in refused(text)


def test_names_are_unique_among_people_and_proposers(team: Team) -> None:
    assert "is used twice" in refused(_with_people(team, person("ann", team["bob"])))
    robot = {"name": "ann", "keys": [{"ssh": ssh_line(team["bob"])}], "paths": ["**"]}
    assert "is used twice" in refused(_with_people(team, proposers=[robot]))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param({"requireUserVerification": True}, "only sk- keys", id="user verification of a plain key"),
        pytest.param(
            {"validFrom": "2026-02-01T00:00:00Z", "validUntil": "2026-01-01T00:00:00Z"}, "not after", id="validity"
        ),
        pytest.param({"validUntil": "2026-13-01T00:00:00Z"}, "/people/1/keys/0/validUntil", id="no moment"),
        pytest.param({"krl": "x"}, "krl", id="a KRL file"),
    ],
)
def test_a_wrong_key_entry_is_named(team: Team, entry: dict[str, object], said: str) -> None:
    assert said in refused(_with_people(team, person("bob", {"ssh": ssh_line(team["bob"]), **entry})))


def test_a_key_line_with_options_or_a_comment_is_refused(team: Team) -> None:
    for line in (f"cert-authority {ssh_line(team['bob'])}", team["bob"].public):
        assert "/people/1/keys/0/ssh" in refused(_with_people(team, person("bob", {"ssh": line})))


def test_weak_and_unknown_ssh_keys_are_refused(team: Team, tmp_path: Path) -> None:
    weak = SshKey.generate(tmp_path, type="rsa", bits=2048)
    assert "at least 3072 bits" in refused(_with_people(team, person("bob", weak)))
    soft = SoftKey.ed25519()
    renamed = soft.line.replace("ssh-ed25519", "ssh-rsa", 1)
    assert "it says ssh-rsa" in refused(_with_people(team, person("bob", {"ssh": renamed})))


def test_a_certificate_must_have_the_fingerprint_that_the_policy_names(team: Team, gpg_home: GpgHome) -> None:
    one, other = (GpgKey.generate(gpg_home, name=name) for name in ("one", "other"))
    entry = {"openpgp": {"fingerprint": one.fingerprint, "certificate": other.public}}
    assert f"its fingerprint is {other.fingerprint}" in refused(_with_people(team, person("bob", entry)))


def test_a_weak_openpgp_key_is_refused(team: Team, gpg_home: GpgHome) -> None:
    weak = GpgKey.generate(gpg_home, kind="rsa2048", name="weak")
    entry = {"openpgp": {"fingerprint": weak.fingerprint, "certificate": weak.public}}
    assert "has 2048 bits; at least 3072" in refused(_with_people(team, person("bob", entry)))


@pytest.mark.property
@given(st.data())
def test_any_broken_certificate_is_one_finding_and_never_another_error(data: st.DataObject) -> None:
    certificate = bytearray(CERTIFICATE)
    for _ in range(data.draw(st.integers(1, 4))):
        certificate[data.draw(st.integers(0, len(certificate) - 1))] = data.draw(st.integers(0, 255))
    trusted = TrustedKey(Owner(OwnerKind.PERSON, "bob"))
    with contextlib.suppress(CertificateRefused):
        loaded = load_certificate(_armored(bytes(certificate)), fingerprint=FINGERPRINT, trusted=trusted)
        assert loaded.fingerprint == FINGERPRINT.lower()


def test_a_certificate_without_a_valid_self_signature_is_refused() -> None:
    key_alone = CERTIFICATE[: 2 + CERTIFICATE[1]]  # its first packet: a tag, a length of one byte, a body
    with pytest.raises(CertificateRefused, match="no valid self-signature"):
        load_certificate(
            _armored(key_alone), fingerprint=FINGERPRINT, trusted=TrustedKey(Owner(OwnerKind.PERSON, "bob"))
        )


# Patterns


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("clusters/**", ["clusters/a", "clusters/a/b/c.yaml"], ["clusters", "other/a", "Clusters/a", "clustersx/a"]),
        ("**", ["a", "a/b"], []),
        ("**/x.yaml", ["x.yaml", "a/b/x.yaml"], ["a/xx.yaml"]),
        ("a/*/c", ["a/b/c"], ["a/c", "a/b/b/c"]),
        ("a/?.yaml", ["a/b.yaml"], ["a/bb.yaml", "a/.yaml"]),
        ("a/**/b", ["a/b", "a/x/y/b"], ["a/x/y/bb"]),
        ("*.yaml", ["x.yaml", ".yaml"], ["a/x.yaml"]),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, matching: list[str], other: list[str]) -> None:
    glob = Glob(pattern)
    assert [path for path in (*matching, *other) if glob.matches(path)] == matching


@pytest.mark.property
@given(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6))
def test_any_path_matches_itself_and_any_depth_below_its_folders(segments: list[str]) -> None:
    path = "/".join(segments)
    assert Glob(path).matches(path)
    assert Glob("**").matches(path)
    assert Glob(f"{segments[0]}/**").matches(f"{path}/more")
    assert not Glob(f"{path}/more").matches(path)


def test_a_rule_by_kind_matches_documents_of_that_kind_only(team: Team) -> None:
    rules = (*DEFAULT_RULES, {"kinds": ["Sync.gitops-ctl.dev"], "verbs": ["edit"], "roles": ["admin"]})
    policy = load_policy(team.policy(rules=rules).encode())
    sync = GroupKind("gitops-ctl.dev", "Sync")
    assert policy.rule_for(path="x.yaml", verb="edit", kind=sync) is not None
    assert policy.rule_for(path="x.yaml", verb="edit", kind=GroupKind("", "ConfigMap")) is None


PATTERNS = st.lists(st.sampled_from(["a", "b", "ab", "*", "a*", "?", "**"]), min_size=1, max_size=4).map("/".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "abc"]), min_size=1, max_size=4).map("/".join)


@pytest.mark.property
@given(st.lists(st.tuples(st.lists(PATTERNS, min_size=1, max_size=3), st.booleans()), max_size=8), PATHS)
def test_the_first_rule_that_matches_is_found_by_folders_as_by_asking_each(
    wanted: list[tuple[list[str], bool]], path: str
) -> None:
    rules = [
        PolicyRule(number, tuple(Glob(each) for each in patterns), None, frozenset({"edit", "delete"}), ("r",))
        if by_path
        else PolicyRule(number, None, frozenset({POLICY_KIND}), frozenset({"edit"}), ("r",))
        for number, (patterns, by_path) in enumerate(wanted, start=1)
    ]
    for verb, kind in (("edit", None), ("edit", POLICY_KIND), ("delete", None), ("merge", None)):
        asked_each = next((rule for rule in rules if rule.matches(path=path, verb=verb, kind=kind)), None)
        assert RuleIndex(rules).first(path=path, verb=verb, kind=kind) is asked_each
