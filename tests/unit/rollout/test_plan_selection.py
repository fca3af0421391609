"""Which devices a plan takes, which go first, and from where each takes its image."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet.device import device_of
from gitops_ctl.rollout.planned import plan_of
from gitops_ctl.rollout.problem import Problem, Reason
from gitops_ctl.rollout.selection import select, target_cap
from gitops_ctl.rollout.sources import endpoint_of, freeze_sources
from tests.support.rollout_planning import COHORT, SECRET, SHA256, SITE, ZONE, device, labels_of, rollout, source

REQUIRED = frozenset({SITE, ZONE})


def planned(**changed):
    return plan_of(rollout(**changed)["spec"]["plan"])


def selected(devices, plan, *, cap=100):
    return select(tuple(map(device_of, devices)), plan=plan, namespace="prod", policy_cap=cap)


def said(problems):
    return [(problem.reason, problem.device, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("plan", "policy", "cap"),
    [(100, 100, 100), (7, 100, 7), (100, 3, 3), (0, 0, 100), (100, 0, 100), (5, 9, 5)],
)
def test_the_cap_is_the_smaller_one_and_never_above_a_hundred(plan, policy, cap):
    assert target_cap(replace(planned(), max_targets=plan), policy) == cap


@pytest.mark.parametrize(("count", "cap", "ok"), [(3, 3, True), (4, 3, False), (0, 3, False)])
def test_none_and_too_many_are_refused_with_the_numbers(count, cap, ok):
    found = selected([device(f"edge-{n}") for n in range(1, count + 1)], planned(), cap=cap)
    assert (found.problems == ()) is ok
    if count > cap:
        assert said(found.problems) == [
            (Reason.TOO_MANY_TARGETS, "", "the selector takes 4 devices, 3 are allowed"),
        ]


@pytest.mark.parametrize(
    ("selector", "allow_all", "ok"),
    [({}, True, True), ({}, False, False), ({"matchLabels": {ZONE: "a"}}, True, False)],
    ids=["all on purpose", "empty by mistake", "both"],
)
def test_an_empty_selector_and_allow_all_belong_together(selector, allow_all, ok):
    plan = planned(targets={"selector": selector, "allowAll": allow_all, "maxTargets": 100})
    found = selected([device("edge-1")], plan)
    assert (Reason.SELECTOR_INVALID not in [problem.reason for problem in found.problems]) is ok


CANARIES = [
    pytest.param([("c9300", ["edge-1"])], [], id="one canary of the only cohort"),
    pytest.param([], ["a plan needs at least one canary"], id="none"),
    pytest.param([("c9300", ["edge-9"])], ["canary c9300 names it, and the selector does not take it"], id="no target"),
    pytest.param([("c9300", ["edge-1", "edge-1"])], ["it is named as a canary twice"], id="twice in one canary"),
    pytest.param([("c9300", ["edge-1"]), ("c9300", ["edge-2"])], ["canary c9300 stands twice"], id="a cohort twice"),
    pytest.param(
        [("c9500", ["edge-1"])],
        ["canary c9500 names it, and its cohort is c9300", "no canary for cohort c9300"],
        id="another cohort",
    ),
]


@pytest.mark.parametrize(("canaries", "messages"), CANARIES)
def test_canaries_cover_every_cohort_exactly(canaries, messages):
    plan = planned(canaries=[{"name": name, "devices": devices} for name, devices in canaries])
    found = selected([device("edge-1"), device("edge-2")], plan)
    assert [problem.message for problem in found.problems] == messages
    assert {problem.reason for problem in found.problems} <= {Reason.CANARIES_INVALID}


def test_a_target_without_a_cohort_and_an_uncovered_cohort_are_named():
    bare = {key: value for key, value in labels_of("edge-2").items() if key != COHORT}
    found = selected([device("edge-1"), device("edge-2", labels=bare), device("edge-3", cohort="c9500")], planned())
    assert said(found.problems) == [
        (Reason.CANARIES_INVALID, "prod/edge-2", "it carries no qualification cohort"),
        (Reason.CANARIES_INVALID, "", "no canary for cohort c9500"),
    ]


names = st.lists(st.integers(0, 40), unique=True, min_size=1, max_size=20)


@settings(max_examples=50, deadline=None)
@pytest.mark.property
@given(names, st.data())
def test_a_selection_without_problems_covers_every_cohort_and_keeps_its_caps(numbers, data):
    cohorts = data.draw(st.lists(st.sampled_from("abc"), min_size=len(numbers), max_size=len(numbers)))
    devices = [device(f"edge-{n}", cohort=cohort) for n, cohort in zip(numbers, cohorts, strict=True)]
    first = {cohort: f"edge-{n}" for n, cohort in zip(numbers, cohorts, strict=True)}
    chosen = data.draw(st.lists(st.sampled_from(sorted(first)), unique=True))
    cap = data.draw(st.integers(1, 20))
    plan = planned(canaries=[{"name": cohort, "devices": [first[cohort]]} for cohort in chosen])
    found = selected(data.draw(st.permutations(devices)), plan, cap=cap)
    assert [one.name for one in found.devices] == sorted(f"edge-{n}" for n in numbers)
    sound = len(numbers) <= cap and set(chosen) == set(first)
    assert (found.problems == ()) is sound
    if sound:
        waves = {one.name: found.wave_of(one) for one in found.devices}
        assert {name for name, wave in waves.items() if wave == 0} == set(first.values())
        assert set(waves.values()) <= {0, 1}


def sources_of(*sources, secrets=(), required=REQUIRED):
    plan = planned(sources=list(sources))
    known = {secret.name: secret for secret in secrets}
    return freeze_sources(plan, required_keys=required, secrets=known, namespace="prod")


def scoped(name, zone, priority=10, **more):
    return source(name, selector={"matchLabels": {ZONE: zone}}, priority=priority, **more)


def test_the_lowest_priority_of_the_matching_sources_wins_and_the_rest_take_the_one_without_a_scope():
    found = sources_of(source("world", priority=0), scoped("a-far", "a", 20), scoped("a-near", "a", 5))
    assert found.problems == ()
    assert [found.choose({ZONE: zone}).name for zone in ("a", "b")] == ["a-near", "world"]
    assert found.choose({ZONE: "a"}).to_json() == {
        "name": "a-near",
        "priority": 5,
        "url": "https://images.example.net/cat9k.bin",
        "sha256": SHA256,
    }


def test_two_matches_of_one_priority_are_refused_even_where_another_one_wins():
    found = sources_of(source("world"), scoped("a1", "a", 20), scoped("a2", "a", 20), scoped("a-near", "a", 5))
    ambiguous = found.choose({ZONE: "a"})
    assert isinstance(ambiguous, Problem)
    assert ambiguous.reason is Reason.SOURCE_AMBIGUOUS
    assert found.choose({ZONE: "b"}).name == "world"


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        pytest.param([scoped("a", "a")], "exactly one source must be without a selector; every one has", id="none"),
        pytest.param([source("x"), source("y", selector={})], "2 have none: x, y", id="two"),
        pytest.param([source("x"), scoped("x", "a")], "source x stands twice", id="a name twice"),
        pytest.param(
            [source("x"), source("y", selector={"matchLabels": {"topology.cisco.vk/rack": "7"}})],
            "selects by topology.cisco.vk/rack, which the policy does not require",
            id="a key that the policy does not require",
        ),
        pytest.param([source("x", url="https://u@images.example.net/a")], "no https or sftp address", id="user"),
        pytest.param([source("x", url="sftp://images.example.net/a")], "needs urlSecretRef", id="sftp without Secret"),
        pytest.param([source("x", secret="images")], "takes no urlSecretRef", id="https with Secret"),
    ],
)
def test_wrong_sources_are_refused_also_when_no_device_uses_them(sources, message):
    found = sources_of(*sources, secrets=(SECRET,))
    assert found.problems[0].reason is Reason.SOURCES_INVALID
    assert message in found.problems[0].message


SFTP = source("store", url="sftp://Images.Example.net/cat9k.bin", secret="images")


def test_the_secret_of_an_sftp_source_is_frozen_by_its_uid():
    found = sources_of(SFTP, secrets=(SECRET,))
    assert found.problems == ()
    chosen = found.choose({})
    assert (chosen.secret_name, chosen.secret_uid) == ("images", "secret-uid")
    assert list(chosen.to_json())[-2:] == ["secretName", "secretUID"]


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        pytest.param(None, "Secret prod/images of source store is not there", id="missing"),
        pytest.param(replace(SECRET, labels={}), "lacks the label cisco.vk/purpose", id="another purpose"),
        pytest.param(replace(SECRET, allowed_port="2222"), "images.example.net:22: allowedPort", id="another port"),
        pytest.param(replace(SECRET, allowed_host="evil.example.net"), ": allowedHost", id="another host"),
        pytest.param(
            replace(SECRET, allowed_scheme="", allowed_host="", allowed_port=""),
            "allowedScheme, allowedHost, allowedPort",
            id="nothing is allowed",
        ),
    ],
)
def test_a_secret_that_does_not_allow_the_endpoint_is_refused_without_its_values(secret, message):
    found = sources_of(SFTP, secrets=() if secret is None else (secret,))
    assert [problem.reason for problem in found.problems] == [Reason.SOURCE_SECRET_INVALID]
    assert message in found.problems[0].message
    assert "evil" not in found.problems[0].message


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("sftp://h.example.net/a", ("sftp", "h.example.net", 22)),
        ("sftp://H.example.net.:2222/a", ("sftp", "h.example.net", 2222)),
        ("https://[2001:DB8::1]/a", ("https", "2001:db8::1", 443)),
        ("http://h/a", None),
        ("https:///a", None),
        ("https://h:99999/a", None),
        ("https://[::1/a", None),
        ("sftp://user@h/a", None),
        ("", None),
    ],
)
def test_the_endpoint_of_an_address_has_one_form(url, endpoint):
    assert endpoint_of(url) == endpoint
