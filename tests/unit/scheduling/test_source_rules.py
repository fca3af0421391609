"""Validation of a TopologySource (topology-scheduling.md, section 3.2; cases 1 to 19 of section 15)."""

import copy

import pytest

from gitops_ctl.core.goduration import nanoseconds
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.source_rules import source_problems, source_warnings

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
BASE = {"nodeSelector": {}, "levels": [REGION, ZONE], "nodeLabels": {}}
CONFIG_MAP = {
    "configMapRef": {"namespace": "gpustack-system", "name": "hall-7"},
    "key": "snapshot.yaml",
    "maxStaleness": "1m",
}
WEBHOOK = {
    "url": "https://inventory.example.net/halls/7?view=full",
    "pollInterval": "1m",
    "timeout": "1s",
    "maxStaleness": "1m",
    "bearerTokenSecretRef": {"namespace": "gpustack-system", "name": "inventory"},
}
BOTH = pytest.mark.parametrize("options", [Options(), Options.reference()], ids=["ours", "reference-defaults"])


def spec(**changes):
    """The base with members replaced; None takes one away."""
    tree = {**BASE, **changes}
    return {name: value for name, value in tree.items() if value is not None}


def config_map(**changes):
    return spec(nodeLabels=None, configMap={**CONFIG_MAP, **changes})


def webhook(**changes):
    arm = {**WEBHOOK, **changes}
    return spec(nodeLabels=None, webhook={name: value for name, value in arm.items() if value is not None})


def paths(tree, options=None):
    return [problem.path for problem in source_problems({"spec": tree}, options=options or Options())]


@BOTH
@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(spec(), id="case 1: base"),
        pytest.param({**config_map(), "additionalWritePrefix": "datacenter.example/"}, id="case 2: prefix"),
        pytest.param(config_map(), id="case 3: configMap arm"),
        pytest.param(webhook(), id="case 4: webhook arm"),
        pytest.param(spec(levels=[f"example.net/l{n}" for n in range(16)]), id="case 9: 16 levels"),
    ],
)
def test_good_sources_are_accepted(tree, options):
    """Cases 1 to 4 and 9."""
    assert source_problems({"spec": tree}, options=options) == ()


@BOTH
@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(spec(nodeLabels=None), ["spec"], id="case 5: no arm"),
        pytest.param(spec(configMap=CONFIG_MAP), ["spec"], id="case 6: two arms"),
        pytest.param(spec(levels=["kubernetes.io/hostname"]), ["spec.levels[0]"], id="case 7: hostname"),
        pytest.param(spec(levels=[f"l{n}" for n in range(17)]), ["spec.levels"], id="case 8: 17 levels"),
        pytest.param(spec(levels=[]), ["spec.levels"], id="case 10: no levels"),
        pytest.param(
            spec(additionalWritePrefix="example.net/"), ["spec.additionalWritePrefix"], id="case 11: read-only arm"
        ),
        pytest.param(
            {**config_map(), "additionalWritePrefix": "fabric.topograph.run/"},
            ["spec.additionalWritePrefix"],
            id="case 12: reserved prefix",
        ),
        pytest.param(
            {**config_map(), "additionalWritePrefix": "private.kubernetes.io/"},
            ["spec.additionalWritePrefix"],
            id="case 13: sub-domain of one",
        ),
        pytest.param(webhook(url="https://user:word@example.net/x"), ["spec.webhook.url"], id="case 14: user info"),
        pytest.param(webhook(url="http://example.net/x"), ["spec.webhook.url"], id="case 15: http"),
        pytest.param(webhook(url="ftp://example.net/x"), ["spec.webhook.url"], id="case 16: ftp"),
        pytest.param(webhook(url="https://example.net/x#top"), ["spec.webhook.url"], id="case 17: fragment"),
        pytest.param(
            webhook(tlsClientCertificateSecretRef={"namespace": "gpustack-system", "name": "client"}),
            ["spec.webhook"],
            id="case 18: both credentials",
        ),
        pytest.param(
            config_map(configMapRef={"namespace": "default", "name": "hall-7"}),
            ["spec.configMap.configMapRef.namespace"],
            id="case 19: another namespace",
        ),
    ],
)
def test_bad_sources_are_refused_at_the_field(tree, expected, options):
    """Cases 5 to 8 and 10 to 19."""
    assert [problem.path for problem in source_problems({"spec": tree}, options=options)] == expected


def test_all_problems_are_named_at_once():
    tree = {
        "nodeSelector": {"matchExpressions": [{"key": "a b", "operator": "Like", "values": ["x"]}]},
        "levels": ["a/b/c", "kubernetes.io/hostname", ZONE, ZONE, "topology.gpustack.ai/profile", 7],
        "additionalWritePrefix": "example.net",
        "webhook": {"url": 7, "pollInterval": 60, "timeout": "0s", "maxStaleness": "1d"},
        "configMap": {"key": " \x1c"},
    }
    assert paths(tree) == [
        "spec.nodeSelector.matchExpressions[0].key",
        "spec.nodeSelector.matchExpressions[0].operator",
        "spec.levels[0]",
        "spec.levels[1]",
        "spec.levels[3]",
        "spec.levels[4]",
        "spec.levels[5]",
        "spec.additionalWritePrefix",
        "spec",
        "spec.configMap.configMapRef",
        "spec.configMap.key",
        "spec.configMap.maxStaleness",
        "spec.webhook.url",
        "spec.webhook.pollInterval",
        "spec.webhook.timeout",
        "spec.webhook.maxStaleness",
        "spec.webhook",
    ]


def test_an_empty_arm_is_present_and_an_empty_selector_chooses_all():
    assert paths(spec(nodeSelector=None)) == ["spec.nodeSelector"]
    assert paths(spec(nodeLabels="yes")) == ["spec.nodeLabels"]
    assert source_problems({}, options=Options())[0].path == "spec"


@pytest.mark.parametrize(
    ("selector", "where"),
    [
        ({"matchLabels": {"a": "b" * 64}}, "spec.nodeSelector.matchLabels[a]"),
        ({"matchLabels": {"-a": "b"}}, "spec.nodeSelector.matchLabels[-a]"),
        ({"matchLabels": []}, "spec.nodeSelector.matchLabels"),
        ({"matchExpressions": {}}, "spec.nodeSelector.matchExpressions"),
        ({"matchExpressions": [1]}, "spec.nodeSelector.matchExpressions[0]"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.nodeSelector.matchExpressions[0].values"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "spec.nodeSelector.matchExpressions[0].values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["ok", "b c"]}]},
            "spec.nodeSelector.matchExpressions[0].values[1]",
        ),
        ([], "spec.nodeSelector"),
    ],
)
def test_a_selector_that_cannot_be_converted_is_refused(selector, where):
    assert paths(spec(nodeSelector=selector)) == [where]


@pytest.mark.parametrize(
    "prefix", ["Example.net/", "example.net//", "/", "a b/", "x/y/", "kubernetes.io/", "k8s.io/", 7, "example.net/\n"]
)
def test_a_prefix_has_one_slash_at_its_end_and_a_domain_that_may_be_given(prefix):
    assert paths({**config_map(), "additionalWritePrefix": prefix}) == ["spec.additionalWritePrefix"]


@pytest.mark.parametrize("prefix", ["", "nvidia.com/", "gpustack.ai/", "worker.gpustack.ai/", "notkubernetes.io/"])
def test_vendor_prefixes_may_be_given(prefix):
    assert paths({**config_map(), "additionalWritePrefix": prefix}) == []


@pytest.mark.parametrize(
    "url",
    [
        "https://:443/x",
        "https:///x",
        "https://@example.net/",
        "https://example.net/a b",
        "https://example.net/\x00",
        "https://example.net:http/",
        "https://example.net:99999/",
        "https://example.net/%zz",
        "https://exa[mple.net/",
        "https://example.net\n",
        "example.net/x",
        "https:example.net",
        "",
        None,
    ],
)
def test_a_url_needs_a_host_and_nothing_odd(url):
    assert paths(webhook(url=url)) == ["spec.webhook.url"]


@pytest.mark.parametrize(
    "url", ["https://192.0.2.1:8443/", "https://[2001:db8::1]:8443/x?a=b@c", "HTTPS://example.net"]
)
def test_a_url_may_have_a_port_a_query_and_an_address(url):
    assert paths(webhook(url=url)) == []


def test_the_timeout_may_be_as_long_as_the_poll_and_no_longer():
    assert paths(webhook(timeout="60s")) == []
    assert paths(webhook(timeout="61s")) == ["spec.webhook.timeout"]


def test_every_reference_needs_the_worker_namespace_and_a_name():
    there = Options(worker_namespace="inventories")
    for name in ("bearerTokenSecretRef", "caBundleConfigMapRef"):
        tree = webhook(**{name: {"namespace": "gpustack-system", "name": "UPPER"}})
        assert paths(tree) == [f"spec.webhook.{name}.name"]
        assert f"spec.webhook.{name}.namespace" in paths(tree, there)


def test_no_credential_is_refused_too():
    assert paths(webhook(bearerTokenSecretRef=None)) == ["spec.webhook"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("+3us", 3_000),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("-2ms", -2_000_000),
        ("1s1s", 2_000_000_000),
    ],
)
def test_durations_are_read_as_go_reads_them(text, expected):
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1", "1d", "s", ".s", "1 s", "1s ", "1s\n", "--1s", "1_0s", "\u0661s", "3000000h"]
)
def test_what_go_refuses_is_no_duration(text):
    with pytest.raises(ValueError, match=r"must be a duration|is too long"):
        nanoseconds(text)


@pytest.mark.parametrize("text", ["0s", "-1s", "0", "0.1ns"])
def test_a_staleness_is_longer_than_zero(text):
    assert paths(config_map(maxStaleness=text)) == ["spec.configMap.maxStaleness"]


def test_a_staleness_below_the_poll_interval_warns_and_is_refused_on_request():
    """B7; case 57 has such a source and keeps it."""
    tree = {"spec": webhook(pollInterval="10m")}
    assert source_problems(tree, options=Options()) == ()
    assert [warning.path for warning in source_warnings(tree, options=Options())] == ["spec.webhook.maxStaleness"]
    assert source_warnings(tree, options=Options.reference()) == ()
    refusing = Options(short_staleness="refuse")
    assert paths(tree["spec"], refusing) == ["spec.webhook.maxStaleness"]
    assert source_warnings(tree, options=refusing) == ()


def test_a_level_that_no_workload_can_request_warns():
    """B6."""
    long = f"a.{'b' * 60}.example.net/rack"
    tree = {"spec": spec(levels=[ZONE, long])}
    assert source_problems(tree, options=Options()) == ()
    assert [warning.path for warning in source_warnings(tree, options=Options())] == ["spec.levels[1]"]


def test_the_rules_change_nothing():
    tree = {"spec": webhook()}
    before = copy.deepcopy(tree)
    source_problems(tree, options=Options())
    assert tree == before
