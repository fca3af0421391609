"""Every rule of our kinds: one object that passes and one that fails.

One table for three judges: the models, the JSON Schema, and a real API server.
"""

from typing import Any

from tests.support.api import (
    COMMIT,
    DIGEST,
    a_source,
    a_sync,
    an_entry,
    an_inventory,
)
from tests.support.api_case import SHOULD_MATCH, Case
from tests.support.api_leaf_rules import LEAF_CASES
from tests.support.api_proposals import PROPOSAL_CASES
from tests.support.api_rollout_rules import ROLLOUT_CASES
from tests.support.api_status_rules import STATUS_CASES
from tests.support.api_talos_rules import TALOS_CASES
from tests.support.api_topology import TOPOLOGY_CASES


def _source(
    name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *more: dict[str, Any], cel: bool = False
) -> Case:
    return Case(
        f"GitSource {name}", a_source(**good), a_source(**bad), told, cel, tuple(a_source(**item) for item in more)
    )


def _sync(
    name: str, good: dict[str, Any], bad: dict[str, Any], told: str, *more: dict[str, Any], cel: bool = False
) -> Case:
    return Case(f"Sync {name}", a_sync(**good), a_sync(**bad), told, cel, tuple(a_sync(**item) for item in more))


def _entry(name: str, good: dict[str, Any], bad: dict[str, Any], told: str) -> Case:
    return Case(
        f"Inventory entry {name}",
        an_inventory(entries=[an_entry(**good)]),
        an_inventory(entries=[an_entry(**bad)]),
        told,
    )


def _trust(**members: Any) -> dict[str, Any]:
    return {"trust": {"root": {"commit": COMMIT, "policyDigest": DIGEST}, **members}}


def _forge(**members: Any) -> dict[str, Any]:
    return {"forge": {"provider": "gitlab", "baseURL": "https://git.example.net", "project": "net/fabric", **members}}


def _proposer(**members: Any) -> dict[str, Any]:
    least = {"name": "gitops-ctl", "email": "gitops-ctl@example.net", "signingKeySecretRef": {"name": "key"}}
    return {"proposer": {**least, **members}}


SSH = {"url": "ssh://git@git.example.net/net.git"}
HOSTS = {"knownHostsConfigMapRef": {"name": "hosts"}}

SOURCE_CASES = (
    _source(
        "url scheme",
        {"url": "https://a.example.net/b"},
        {"url": "http://a.example.net/b"},
        "must start with https://",
        cel=True,
    ),
    _source(
        "url holds no credentials",
        {"url": "https://a.example.net/b@c"},
        {"url": "https://u:p@a.example.net/b"},
        "must not hold credentials",
        {"url": "https://u@a.example.net"},
        cel=True,
    ),
    _source(
        "url holds no password",
        {"url": "ssh://git@[2001:db8::1]:2222/b", **HOSTS},
        {"url": "ssh://git:word@git.example.net/b", **HOSTS},
        "must not hold a password",
        {"url": "ssh://:word@git.example.net/b", **HOSTS},
        cel=True,
    ),
    _source(
        "url is printable",
        {"url": "https://a.example.net/b"},
        {"url": "https://a.example.net/b c"},
        SHOULD_MATCH,
        {"url": "https://a.example.net/b\n"},
    ),
    _source("url shortest", {"url": "file:///a"}, {"url": "ssh://"}, "at least 8"),
    _source("url longest", {"url": "https://" + "a" * 2040}, {"url": "https://" + "a" * 2041}, "Too long"),
    _source("ssh needs known hosts", {**SSH, **HOSTS}, SSH, "needs knownHostsConfigMapRef", cel=True),
    _source(
        "ref has one",
        {"ref": {"tag": "v1.2"}},
        {"ref": {}},
        "exactly one of branch and tag",
        {"ref": {"branch": "a", "tag": "b"}},
        cel=True,
    ),
    _source(
        "ref name",
        {"ref": {"branch": "team/net-1.2_x"}},
        {"ref": {"branch": "v*"}},
        SHOULD_MATCH,
        *(
            {"ref": {"branch": name}}
            for name in (
                "a..b",
                "/a",
                "a/",
                "a//b",
                ".a",
                "a.",
                "a b",
                "a~1",
                "a^",
                "a:b",
                "@{1}",
                "a\\b",
                "a[b",
                "a?b",
            )
        ),
    ),
    _source(
        "ref is short",
        {"ref": {"branch": "references"}},
        {"ref": {"branch": "refs/heads/main"}},
        "without refs/",
        cel=True,
    ),
    _source(
        "ref has no dash", {"ref": {"branch": "a-"}}, {"ref": {"branch": "-a"}}, "must not start with a dash", cel=True
    ),
    _source(
        "ref longest",
        {"ref": {"branch": "a" * 244}},
        {"ref": {"branch": "a" * 245}},
        "Too long",
        {"ref": {"branch": ""}},
    ),
    _source(
        "interval",
        {"interval": "5s"},
        {"interval": "4.9s"},
        "between 5s and 24h",
        {"interval": "24h1s"},
        {"interval": "0s"},
        cel=True,
    ),
    _source(
        "interval form",
        {"interval": "1m30s"},
        {"interval": "PT1M"},
        SHOULD_MATCH,
        {"interval": "60"},
        {"interval": "-5s"},
    ),
    _source("interval is a text", {"interval": "60s"}, {"interval": 60}, "must be of type string"),
    _source("age", {"maxTipAge": "1h"}, {"maxTipAge": "59m"}, "between 1h and 8784h", {"maxTipAge": "9000h"}, cel=True),
    _source("timeout", {"timeout": "1h"}, {"timeout": "61m"}, "between 1s and 1h", {"timeout": "500ms"}, cel=True),
    _source(
        "secret name",
        {"credentialsSecretRef": {"name": "git.creds"}},
        {"credentialsSecretRef": {"name": "Git"}},
        SHOULD_MATCH,
        {"credentialsSecretRef": {}},
    ),
    _source("ca name", {"caConfigMapRef": {"name": "ca"}}, {"caConfigMapRef": {"name": "a" * 254}}, "Too long"),
    _source("known hosts name", HOSTS, {"knownHostsConfigMapRef": {"name": ""}}, "at least 1"),
    _source("trust root", _trust(), {"trust": {}}, "Required", {"trust": {"root": {"commit": COMMIT}}}),
    _source(
        "trust commit",
        _trust(),
        _trust(root={"commit": "5F2B" * 10, "policyDigest": DIGEST}),
        SHOULD_MATCH,
        _trust(root={"commit": "5f2b", "policyDigest": DIGEST}),
    ),
    _source(
        "trust digest", _trust(), _trust(root={"commit": COMMIT, "policyDigest": "sha512:" + "0a" * 32}), SHOULD_MATCH
    ),
    _source(
        "policy path",
        _trust(policyPath="a/.b/..c/trust.yaml"),
        _trust(policyPath="a/../trust.yaml"),
        SHOULD_MATCH,
        *(_trust(policyPath=path) for path in ("/a", "a/", "a//b", "./a", "..", "a\nb")),
    ),
    _source(
        "objects",
        {"limits": {"objects": 1}},
        {"limits": {"objects": 0}},
        "greater than or equal to 1",
        {"limits": {"objects": 10_000_001}},
    ),
    _source(
        "bytes",
        {"limits": {"bytes": 1024}},
        {"limits": {"bytes": 1023}},
        "greater than or equal to 1024",
        {"limits": {"bytes": 2**34 + 1}},
    ),
    _source(
        "entries",
        {"limits": {"entries": 1_000_000}},
        {"limits": {"entries": 1_000_001}},
        "less than or equal to 1000000",
        {"limits": {"entries": 0}},
    ),
    _source(
        "depth",
        {"limits": {"depth": 256}},
        {"limits": {"depth": 257}},
        "less than or equal to 256",
        {"limits": {"depth": 0}},
    ),
    _source(
        "commits per pass",
        {"limits": {"commitsPerPass": 100_000}},
        {"limits": {"commitsPerPass": 100_001}},
        "less than or equal to 100000",
        {"limits": {"commitsPerPass": 0}},
        {"limits": {"commitsPerPass": 1.5}},
    ),
    _source("provider", _forge(), _forge(provider="sourceforge"), "supported values"),
    _source("forge address", _forge(), _forge(baseURL="http://git.example.net"), SHOULD_MATCH),
    _source("forge project", _forge(), _forge(project=""), "at least 1"),
    _source(
        "forge secrets",
        _forge(credentialsSecretRef={"name": "a"}, webhookSecretRef={"name": "b"}),
        _forge(webhookSecretRef={}),
        "Required",
    ),
    _source("proposer name", _proposer(), _proposer(name="Gitops"), SHOULD_MATCH, _proposer(name="a" * 64)),
    _source("proposer address", _proposer(), _proposer(email="nobody"), SHOULD_MATCH),
    _source("proposer key", _proposer(), _proposer(signingKeySecretRef={}), "Required"),
    _source("proposer refresh", _proposer(refresh="Never"), _proposer(refresh="never"), "Unsupported value"),
    _source("suspend", {"suspend": True}, {"suspend": "yes"}, "must be of type boolean"),
)

SYNC_CASES = (
    _sync("source", {"sourceRef": {"name": "a"}}, {"sourceRef": {}}, "Required", {"sourceRef": {"name": "A"}}),
    _sync(
        "path",
        {"path": "clusters/.a/...b"},
        {"path": "/clusters"},
        SHOULD_MATCH,
        {"path": "a/./b"},
        {"path": "a/"},
        {"path": "a/.."},
    ),
    _sync("path longest", {"path": "a" * 1024}, {"path": "a" * 1025}, "Too long"),
    _sync(
        "target namespace",
        {"targetNamespace": "net"},
        {"targetNamespace": "a.b"},
        SHOULD_MATCH,
        {"targetNamespace": ""},
    ),
    _sync("account", {"serviceAccountName": "net.applier"}, {"serviceAccountName": "a:b"}, SHOULD_MATCH),
    _sync(
        "kubeconfig",
        {"kubeConfigSecretRef": {"name": "far", "key": "value.yaml"}},
        {"kubeConfigSecretRef": {"name": "far", "key": "a/b"}},
        SHOULD_MATCH,
        {"kubeConfigSecretRef": {"key": "a"}},
    ),
    _sync("interval", {"interval": "30s"}, {"interval": "29s"}, "between 30s and 24h", {"interval": "25h"}, cel=True),
    _sync("timeout", {"timeout": "1s"}, {"timeout": "0.5s"}, "between 1s and 1h", {"timeout": "2h"}, cel=True),
    _sync(
        "percentage",
        {"prune": {"maxPercent": 100}},
        {"prune": {"maxPercent": 101}},
        "less than or equal to 100",
        {"prune": {"maxPercent": -1}},
    ),
    _sync(
        "prune words",
        {"prune": {"enabled": True, "allowEmpty": True}},
        {"prune": {"enabled": "true"}},
        "must be of type boolean",
    ),
    _sync("deletion", {"deletionPolicy": "Delete"}, {"deletionPolicy": "Keep"}, "supported values"),
    _sync("drift", {"drift": "Report"}, {"drift": "Ignore"}, "supported values"),
    _sync("document error", {"onDocumentError": "HoldUnit"}, {"onDocumentError": "Fail"}, "supported values"),
    _sync("dry run", {"dryRun": True}, {"dryRun": 1}, "must be of type boolean"),
    _sync("dependencies", {"dependsOn": ["a", "b.c"]}, {"dependsOn": ["A"]}, SHOULD_MATCH),
    _sync("dependencies differ", {"dependsOn": ["a", "b"]}, {"dependsOn": ["a", "a"]}, "Duplicate value"),
    _sync(
        "dependencies most",
        {"dependsOn": [f"a{n}" for n in range(32)]},
        {"dependsOn": [f"a{n}" for n in range(33)]},
        "at most 32",
    ),
    _sync(
        "depends on others", {"dependsOn": ["other"]}, {"dependsOn": ["fabric"]}, "must not depend on itself", cel=True
    ),
    _sync(
        "health says something",
        {"healthChecks": [{"kind": "Job", "name": "a"}]},
        {"healthChecks": [{"kind": "Job"}]},
        "give a name",
        cel=True,
    ),
    _sync(
        "health is complete",
        {"healthChecks": [{"kind": "Job", "current": "true", "failed": "false"}]},
        {"healthChecks": [{"kind": "Job", "name": "a", "failed": "true"}]},
        "need the expression current",
        cel=True,
    ),
    _sync(
        "health kind",
        {"healthChecks": [{"group": "apps", "kind": "Deployment", "namespace": "a", "name": "b"}]},
        {"healthChecks": [{"kind": "job", "name": "a"}]},
        SHOULD_MATCH,
        {"healthChecks": [{"group": "Apps", "kind": "Job", "name": "a"}]},
    ),
    _sync(
        "health expression",
        {"healthChecks": [{"kind": "Job", "current": "x" * 1024}]},
        {"healthChecks": [{"kind": "Job", "current": "x" * 1025}]},
        "Too long",
    ),
    _sync(
        "health most",
        {"healthChecks": [{"kind": "Job", "name": f"a{n}"} for n in range(64)]},
        {"healthChecks": [{"kind": "Job", "name": f"a{n}"} for n in range(65)]},
        "at most 64",
    ),
    _sync("wait", {"wait": True}, {"wait": "no"}, "must be of type boolean"),
    _sync("suspend", {"suspend": True}, {"suspend": "no"}, "must be of type boolean"),
)

INVENTORY_CASES = (
    Case("Inventory owner", an_inventory(), an_inventory(owner={"sync": "fabric", "uid": "7f1c"}), "Required"),
    Case(
        "Inventory owner uid",
        an_inventory(),
        an_inventory(owner={"sync": "fabric", "uid": "a b", "id": "c"}),
        SHOULD_MATCH,
    ),
    Case(
        "Inventory shard",
        an_inventory(shard=9999),
        an_inventory(shard=10_000),
        "less than or equal to 9999",
        extra_bad=(an_inventory(shard=-1),),
    ),
    Case(
        "Inventory most entries",
        an_inventory(entries=[an_entry()] * 2000),
        an_inventory(entries=[an_entry()] * 2001),
        "at most 2000",
    ),
    _entry("group", {"group": "apps"}, {"group": "Apps"}, SHOULD_MATCH),
    _entry("version", {"version": "v1beta1"}, {"version": "V1"}, SHOULD_MATCH),
    _entry("kind", {"kind": "Deployment"}, {"kind": "deploy"}, SHOULD_MATCH),
    _entry("namespace", {"namespace": ""}, {"namespace": "A"}, SHOULD_MATCH),
    _entry("name", {"name": "system:basic-user"}, {"name": ""}, "at least 1"),
    _entry("uid", {"uid": ""}, {"uid": "a b"}, SHOULD_MATCH),
    _entry("declared digest", {"declaredDigest": DIGEST}, {"declaredDigest": "md5:00"}, SHOULD_MATCH),
    _entry("applied digest", {"appliedDigest": ""}, {"appliedDigest": "sha256:xy"}, SHOULD_MATCH),
    _entry("place", {"file": "a.yaml", "line": 3}, {"file": "a.yaml", "line": -1}, "greater than or equal to 0"),
)

CASES = (
    *SOURCE_CASES,
    *SYNC_CASES,
    *INVENTORY_CASES,
    *PROPOSAL_CASES,
    *STATUS_CASES,
    *TALOS_CASES,
    *TOPOLOGY_CASES,
    *ROLLOUT_CASES,
    *LEAF_CASES,
)
