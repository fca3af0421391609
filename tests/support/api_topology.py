"""Documents of the kind TopologySource: valid ones, one with every member, and its rules as cases."""

from typing import Any

from tests.support.api import MOMENT, a_condition, with_status
from tests.support.api_case import SHOULD_MATCH, Case

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
WORKER_NAMESPACE = "gpustack-system"


def a_topology_source(*, name: str = "hall-7", version: str = "v1alpha1", **spec: Any) -> dict[str, Any]:
    """A TopologySource that reads labels; members given as None are left out."""
    least: dict[str, Any] = {"nodeSelector": {}, "levels": [REGION, ZONE], "nodeLabels": {}}
    return {
        "apiVersion": f"worker.gpustack.ai/{version}",
        "kind": "TopologySource",
        "metadata": {"name": name},
        "spec": {key: value for key, value in {**least, **spec}.items() if value is not None},
    }


def in_config_map(*, more: dict[str, Any] | None = None, **arm: Any) -> dict[str, Any]:
    """A TopologySource whose snapshot is in a ConfigMap of the worker namespace."""
    least = {"configMapRef": a_reference("hall-7"), "key": "snapshot.yaml", "maxStaleness": "1m"}
    return a_topology_source(nodeLabels=None, configMap={**least, **arm}, **(more or {}))


def on_webhook(*, more: dict[str, Any] | None = None, **arm: Any) -> dict[str, Any]:
    """A TopologySource whose snapshot comes over HTTPS; members given as None are left out."""
    least: dict[str, Any] = {
        "url": "https://inventory.example.net/v1/topology",
        "pollInterval": "1m",
        "timeout": "1s",
        "maxStaleness": "1m",
        "bearerTokenSecretRef": a_reference("token"),
    }
    kept = {key: value for key, value in {**least, **arm}.items() if value is not None}
    return a_topology_source(nodeLabels=None, webhook=kept, **(more or {}))


def a_reference(name: str, namespace: str = WORKER_NAMESPACE) -> dict[str, str]:
    """A reference to an object."""
    return {"namespace": namespace, "name": name}


def a_full_topology_source() -> dict[str, Any]:
    """Every member that one object can have; the arms exclude each other, and so do the credentials."""
    selector = {
        "matchLabels": {"hall": "7"},
        "matchExpressions": [{"key": "example.net/pool", "operator": "In", "values": ["gpu"]}],
    }
    tree = on_webhook(
        caBundleConfigMapRef=a_reference("ca"),
        more={"nodeSelector": selector, "additionalWritePrefix": "datacenter.example/"},
    )
    return with_status(
        tree,
        observedGeneration=1,
        sourceKind="Webhook",
        lastSuccessfulRevision="hall-7/1",
        lastSuccessfulRefreshTime=MOMENT,
        selectedNodes=3,
        mutatedNodes=2,
        conflictedNodes=1,
        conditions=[a_condition()],
    )


def _case(name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *more: Any, cel: bool = False) -> Case:
    return Case(f"TopologySource {name}", good, bad, told, cel, more)


def _arm(member: str, good: Any, bad: Any, told: str, *more: Any, cel: bool = False) -> Case:
    return _case(
        f"webhook {member} {good}",
        on_webhook(**{member: good}),
        on_webhook(**{member: bad}),
        told,
        *(on_webhook(**{member: item}) for item in more),
        cel=cel,
    )


def _selects(**selector: Any) -> dict[str, Any]:
    return a_topology_source(nodeSelector=selector)


def _expression(operator: str, *values: str) -> dict[str, Any]:
    return _selects(matchExpressions=[{"key": "pool", "operator": operator, "values": list(values)}])


_BARE = a_topology_source(nodeLabels=None)
_BOTH = a_topology_source(configMap=in_config_map()["spec"]["configMap"])
_MANY = [f"example.net/level-{number}" for number in range(17)]
_KEPT = "keys of this domain cannot be given"

TOPOLOGY_CASES = (
    _case("selector is required", a_topology_source(), a_topology_source(nodeSelector=None), "Required"),
    _case("selector label", _selects(matchLabels={"a": "b"}), _selects(matchLabels={"a": "b c"}), SHOULD_MATCH),
    _case("selector operator", _expression("Exists"), _expression("Equals", "a"), "Unsupported value"),
    _case(
        "selector values",
        _expression("NotIn", "a"),
        _expression("In"),
        "In and NotIn need values",
        _expression("Exists", "a"),
        cel=True,
    ),
    _case(
        "selector labels most",
        _selects(matchLabels={f"a{number}": "b" for number in range(100)}),
        _selects(matchLabels={f"a{number}": "b" for number in range(101)}),
        "at most 100",
    ),
    _case("levels are required", a_topology_source(), a_topology_source(levels=None), "Required"),
    _case("levels least", a_topology_source(levels=[REGION]), a_topology_source(levels=[]), "at least 1"),
    _case("levels most", a_topology_source(levels=_MANY[:16]), a_topology_source(levels=_MANY), "at most 16"),
    _case(
        "levels differ",
        a_topology_source(levels=[ZONE, REGION]),
        a_topology_source(levels=[ZONE, REGION, ZONE]),
        "must not name the same key twice",
        cel=True,
    ),
    _case(
        "level is a label key",
        a_topology_source(levels=["rack", "example.net/" + "a" * 63]),
        a_topology_source(levels=["example.net/" + "a" * 64]),
        SHOULD_MATCH,
        *(a_topology_source(levels=[key]) for key in ("not a label", "/rack", "a/b/c", "Example.net/a", "a/", "-a")),
    ),
    _case(
        "level is not the host name",
        a_topology_source(levels=["example.net/hostname"]),
        a_topology_source(levels=["kubernetes.io/hostname"]),
        "is always the last level",
        cel=True,
    ),
    _case(
        "level is not the profile",
        a_topology_source(levels=["topology.gpustack.ai/rack"]),
        a_topology_source(levels=["topology.gpustack.ai/profile"]),
        "is made from the levels",
        cel=True,
    ),
    _case(
        "prefix form",
        in_config_map(more={"additionalWritePrefix": "datacenter.example/"}),
        in_config_map(more={"additionalWritePrefix": "datacenter.example"}),
        SHOULD_MATCH,
        *(in_config_map(more={"additionalWritePrefix": text}) for text in ("/", "a/b/", "A.example/", "a_b/")),
    ),
    _case(
        "prefix is not kept",
        in_config_map(more={"additionalWritePrefix": "notkubernetes.io/"}),
        in_config_map(more={"additionalWritePrefix": "fabric.topograph.run/"}),
        _KEPT,
        *(
            in_config_map(more={"additionalWritePrefix": f"{text}/"})
            for text in ("private.kubernetes.io", "k8s.io", "a.b.topology.gpustack.ai", "feature.gpustack.ai")
        ),
        in_config_map(more={"additionalWritePrefix": "accelerator.topograph.run/"}),
        cel=True,
    ),
    _case(
        "prefix needs a writing arm",
        a_topology_source(additionalWritePrefix=""),
        a_topology_source(additionalWritePrefix="datacenter.example/"),
        "nodeLabels writes nothing",
        cel=True,
    ),
    _case(
        "has an arm", a_topology_source(), _BARE, "exactly one of nodeLabels, configMap and webhook", _BOTH, cel=True
    ),
    _case("ConfigMap key", in_config_map(key=" a"), in_config_map(key=" \t"), SHOULD_MATCH, in_config_map(key="")),
    _case(
        "ConfigMap reference",
        in_config_map(configMapRef=a_reference("Any Name", "any")),
        in_config_map(configMapRef={"name": "a"}),
        "Required",
        in_config_map(configMapRef=a_reference("")),
        in_config_map(configMapRef=a_reference("a", "")),
        in_config_map(configMapRef={"namespace": "a"}),
    ),
    _case(
        "ConfigMap staleness",
        in_config_map(maxStaleness="1.5h"),
        in_config_map(maxStaleness="1d"),
        SHOULD_MATCH,
        *(in_config_map(maxStaleness=text) for text in ("-1m", "60", "1m ", "", ".s")),
    ),
    _case("ConfigMap staleness is a text", in_config_map(), in_config_map(maxStaleness=60), "must be of type string"),
    _arm("maxStaleness", "+1h30m", "0h0.0s", "must be longer than zero", "0", "0s", "+0", cel=True),
    _arm("timeout", "100\u00b5s", "1m1", SHOULD_MATCH, "PT1S", "1M"),
    _arm("pollInterval", ".5m", None, "Required"),
    _case(
        "webhook timeout within the poll",
        on_webhook(timeout="60s", pollInterval="1m"),
        on_webhook(timeout="61s", pollInterval="1m"),
        "timeout must not be longer than pollInterval",
        on_webhook(timeout="1.5m", pollInterval="1m29.999s"),
        on_webhook(timeout="9000000h", pollInterval="9000001h"),
        cel=True,
    ),
    _arm("url", "https://inventory.example.net?hall=7", "http://a.example.net", "must begin with https://", cel=True),
    _arm("url", "HTTPS://inventory.example.net:8443/a", "ftp://a.example.net", "must begin with https://", cel=True),
    _arm("url", "https://[2001:db8::1]/a@b", "https://user@a.example.net/", "must hold no user info", cel=True),
    _arm("url", "https://a.example.net/", "https://a.example.net/#hall", "must hold no fragment", cel=True),
    _arm("url", "https://a/", "https://:443/x", "must name a host", "https:///x", "https://?a", cel=True),
    _arm("url", "https://a.example.net/%20", "https://a.example.net/ b", SHOULD_MATCH, "https://a.example.net/\x7f"),
    _arm("url", "https://" + "a" * 2040, "https://" + "a" * 2041, "Too long"),
    _case(
        "webhook has one credential",
        on_webhook(bearerTokenSecretRef=None, tlsClientCertificateSecretRef=a_reference("pair")),
        on_webhook(tlsClientCertificateSecretRef=a_reference("pair")),
        "exactly one of bearerTokenSecretRef and tlsClientCertificateSecretRef",
        on_webhook(bearerTokenSecretRef=None),
        cel=True,
    ),
    _arm("caBundleConfigMapRef", a_reference("ca"), {"name": "ca"}, "Required"),
    _case("second version", a_topology_source(version="v1"), a_topology_source(version="v1", levels=[]), "at least 1"),
    _case(
        "status kind",
        with_status(a_topology_source(), sourceKind=""),
        with_status(a_topology_source(), sourceKind="File"),
        "Unsupported value",
    ),
    _case(
        "status counter",
        with_status(a_topology_source(), selectedNodes=2**31 - 1),
        with_status(a_topology_source(), selectedNodes=2**31),
        "less than or equal to 2147483647",
        with_status(a_topology_source(), mutatedNodes=-1),
    ),
)
