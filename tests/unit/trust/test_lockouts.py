"""A policy that nobody could change any more is told before it is signed, and refused by nobody (section 4.4)."""

from datetime import UTC, datetime

import pytest

from gitops_ctl.cli.policycheck import register
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.rules import check_rules
from gitops_ctl.trust.lockout import lockout
from gitops_ctl.trust.policy import load_policy
from tests.support.trust import POLICY_PATH, Team, person

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PAST, FUTURE = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
ROLES = {"admin": ["ann", "bob"], "author": ["eve"]}
ADMIN = {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]}
CONSENTS = ".gitops-ctl/consents/**"


@pytest.fixture
def policy(team: Team):
    """A policy of admins ann and bob; `ends` are the ends of their keys, `revoked` the moments from which these are revoked."""

    def made(*, rules, ends=(), revoked=()):
        people = [person(name, team[name]) for name in ("ann", "bob", "eve")]
        for name, end in dict(ends).items():
            next(one for one in people if one["name"] == name)["keys"][0]["validUntil"] = end
        entries = [{"fingerprint": team[name].fingerprint, "from": at} for name, at in dict(revoked).items()]
        return team.policy(ROLES, rules=rules, people=people, revoked=entries)

    return made


def why(text):
    return lockout(load_policy(text.encode(), path=POLICY_PATH), now=NOW)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"ends": {"ann": PAST}},
        {"ends": {"ann": FUTURE, "bob": FUTURE}},
        {"revoked": {"ann": PAST}},
        {"revoked": {"ann": FUTURE, "bob": FUTURE}},
    ],
    ids=["keys without end", "one expired", "ends to come", "one revoked", "revoked later"],
)
def test_somebody_can_change_it(policy, members):
    assert why(policy(rules=[ADMIN], **members)) == ""


@pytest.mark.parametrize(
    "members",
    [
        {"ends": {"ann": PAST, "bob": PAST}},
        {"revoked": {"ann": PAST, "bob": PAST}},
        {"ends": {"ann": PAST}, "revoked": {"bob": "a" * 40}},
    ],
    ids=["all expired", "all revoked", "one each"],
)
def test_nobody_of_the_rule_has_a_key_that_counts(policy, members):
    found = why(policy(rules=[ADMIN], **members))
    assert "rule 1" in found
    assert "nobody of its people has a key" in found


@pytest.mark.parametrize(
    ("agreeing", "distinct", "is_locked"),
    [
        (["admin"], False, False),
        (["author"], False, True),
        (["admin"], True, True),
        ([], False, True),
    ],
    ids=["both may agree", "neither may agree", "the author does not count", "no rule"],
)
def test_a_second_person_must_be_able_to_agree(policy, agreeing, distinct, is_locked):
    two = {**ADMIN, "threshold": 2, "distinctFromAuthor": distinct}
    consents = [{"paths": [CONSENTS], "verbs": ["consent"], "roles": agreeing}] if agreeing else []
    found = why(policy(rules=[two, *consents]))
    assert ("Consent" in found) is is_locked


@pytest.mark.parametrize(
    ("rule", "is_locked"),
    [
        ({"paths": [".gitops-ctl/consents/trust-*.yaml"]}, False),
        ({"paths": ["**"]}, False),
        ({"kinds": ["Consent.gitops-ctl.dev"]}, False),
        ({"paths": ["clusters/**"]}, True),
        ({"kinds": ["ConfigMap"]}, True),
    ],
    ids=["some names", "everywhere", "by kind", "elsewhere", "another kind"],
)
def test_a_rule_about_some_consents_suffices(policy, rule, is_locked):
    consents = {**rule, "verbs": ["consent"], "roles": ["admin"]}
    assert bool(why(policy(rules=[{**ADMIN, "threshold": 2}, consents]))) is is_locked


def test_two_people_are_needed_and_one_has_a_key(policy):
    consents = {"paths": [CONSENTS], "verbs": ["consent"], "roles": ["admin"]}
    found = why(policy(rules=[{**ADMIN, "threshold": 2}, consents], ends={"bob": PAST}))
    assert "asks for 2, and only ann" in found


def test_check_warns_and_refuses_nothing(policy):
    register()
    text = policy(rules=[ADMIN], revoked={"ann": PAST, "bob": PAST})
    (document,) = load(text.encode(), file=POLICY_PATH).documents
    (problem,) = check_rules(document)
    assert (problem.severity, problem.is_error) == ("warning", False)
    assert "nobody could change the policy any more" in problem.message
    assert "new root" in problem.advice
    (document,) = load(policy(rules=[ADMIN]).encode(), file=POLICY_PATH).documents
    assert check_rules(document) == []
