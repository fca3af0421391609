"""Nothing is written before the admission policies are proven to be in force (rollouts.md, section 18.3).

That the real server refuses the probes with the words of the rules is in tests/cluster/test_rollout_admission.py.
"""

import copy
from typing import Any

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Forbidden
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.admission_proof import (
    Probe,
    binding_problem,
    policy_problem,
    probes,
    prove_policies,
    prove_refusals,
    shipped_policies,
)
from gitops_ctl.topology.worker_rights import role_problem
from tests.support.admission_proof import proven
from tests.support.device_world import NODES, DeviceWorld, in_device_world
from tools.render_install import chart_objects

ON = {"managedTopology": {"enabled": True, "namespaces": ["campus"]}}
NAME = "gitops-ctl-device-nodes"
WANTED: Any = shipped_policies()[NAME]


def rendered(kind: str) -> dict[str, Any]:
    found = {tree["metadata"]["name"]: tree for tree in chart_objects(ON) if tree["kind"] == kind}
    return {name: tree for name, tree in found.items() if name in shipped_policies()}


def test_the_chart_installs_every_policy_and_its_binding_as_they_are_asked_for() -> None:
    policies, bindings = rendered("ValidatingAdmissionPolicy"), rendered("ValidatingAdmissionPolicyBinding")
    assert policies.keys() == bindings.keys() == shipped_policies().keys()
    for name, wanted in shipped_policies().items():
        assert policy_problem(policies[name], wanted) == ""
        assert binding_problem(bindings[name], wanted, namespace="gitops-ctl-system") == ""


def test_the_chart_does_not_switch_managed_topology_on_without_its_policies() -> None:
    with pytest.raises(Exception, match=r"needs admission\.enabled"):
        chart_objects({**ON, "admission": {"enabled": False}})


def changed(tree: Any, *path: str | int, to: Any) -> Any:
    found = copy.deepcopy(tree)
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return found


@pytest.mark.parametrize(
    ("live", "says"),
    [
        (None, "not there"),
        (changed(WANTED, "spec", "failurePolicy", to="Ignore"), "not that of this release"),
        (changed(WANTED, "spec", "validations", 0, "expression", to="true"), "not that of this release"),
        (changed(WANTED, "spec", "validations", to=WANTED["spec"]["validations"][1:]), "not that of this release"),
        ({**changed(WANTED, "metadata", "generation", to=2), "status": {"observedGeneration": 1}}, "not looked at"),
        (
            {**WANTED, "status": {"typeChecking": {"expressionWarnings": [{"fieldRef": "spec.variables[0]"}]}}},
            "warns about spec.variables[0]",
        ),
    ],
    ids=["absent", "ignores", "always-true", "a-rule-less", "older", "warned"],
)
def test_another_policy_than_that_of_the_release_is_no_proof(live: Any, says: str) -> None:
    assert says in policy_problem(live, WANTED)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"validationActions": ["Warn"]}, "does not deny"),
        ({"policyName": "other"}, "does not deny"),
        ({"paramRef": {"namespace": "other", "name": "gitops-ctl-admission"}}, "not in namespace"),
        ({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, "leaves something out"),
        ({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}, "leaves something out"),
    ],
    ids=["warns", "other-policy", "other-parameter", "some-namespaces", "some-objects"],
)
def test_a_binding_that_does_not_deny_everywhere_is_no_proof(change: dict[str, Any], says: str) -> None:
    binding = rendered("ValidatingAdmissionPolicyBinding")[NAME]
    live = {**binding, "spec": {**binding["spec"], **change}}
    assert says in binding_problem(live, WANTED, namespace="gitops-ctl-system")
    assert binding_problem(None, WANTED, namespace="gitops-ctl-system") == "nothing binds it"


NODE_ROLE: Any = {
    "rules": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
}
MORE: Any = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}


@pytest.mark.parametrize(
    ("live", "says"),
    [
        (None, "not there"),
        ({**NODE_ROLE, "aggregationRule": {"clusterRoleSelectors": []}}, "put together"),
        ({"rules": [*NODE_ROLE["rules"], MORE]}, "also gives get secrets, list secrets"),
        ({"rules": NODE_ROLE["rules"][:1]}, "does not give patch nodes/status"),
        (changed(NODE_ROLE, "rules", 0, "verbs", to=["*"]), "also gives * nodes"),
        (changed(NODE_ROLE, "rules", 0, "apiGroups", to=["*"]), "also gives get nodes"),
        ({"rules": [*NODE_ROLE["rules"], {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}, "not those of"),
    ],
    ids=["absent", "aggregated", "more", "less", "any-verb", "any-group", "urls"],
)
def test_a_role_of_a_worker_that_is_not_that_of_the_release_is_no_proof(live: Any, says: str) -> None:
    assert role_problem(NODE_ROLE, "app-hosting-read-write") == ""
    assert says in role_problem(live, "app-hosting-read-write")


class Answering(KubeClient):
    """A server that answers every write with one refusal."""

    def __init__(self, said: str) -> None:
        self.said, self.sent = said, []  # type: ignore[var-annotated]

    async def create(self, path: str, body: Any, **options: Any) -> Any:
        self.sent.append((path, options))
        if self.said:
            raise Forbidden(self.said)
        return body


PROBE = Probe(NAME, "/api/v1/nodes", {"kind": "Node"}, "lacks")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "was let in"),
        ('nodes is forbidden: User "x" cannot create resource', "another answer: nodes is forbidden"),
        (
            f"ValidatingAdmissionPolicy '{NAME}' with binding '{NAME}' denied request: not by x",
            "denied request: not by x",
        ),
        ("ValidatingAdmissionPolicy 'other' with binding 'other' denied request: it lacks", "another answer"),
    ],
    ids=["let-in", "no-right", "another-rule", "another-policy"],
)
async def test_only_the_words_of_the_rule_are_a_proof(said: str, why: str) -> None:
    with pytest.raises(BlockedError) as caught:
        await prove_refusals(Answering(said), [PROBE])
    assert caught.value.code is ErrorCode.ADMISSION_UNPROVEN
    assert why in caught.value.message
    assert NAME in caught.value.subject


async def test_what_is_refused_in_the_words_of_the_rule_is_proven_and_nothing_is_stored() -> None:
    server = Answering(f"ValidatingAdmissionPolicy '{NAME}' with binding '{NAME}' denied request: it lacks a name")
    await prove_refusals(server, [PROBE])
    assert server.sent == [("/api/v1/nodes", {"dry_run": True})]
    assert {probe.policy for probe in probes("a")} <= shipped_policies().keys()


def test_a_room_on_a_server_that_refuses_nothing_writes_nothing_and_says_why() -> None:
    async def story(world: DeviceWorld) -> None:
        world.prove = prove_policies
        await world.policy()
        await world.device()
        room = await world.start()
        await world.clock.sleep(120.0)
        assert [call for call in world.writes if call.verb != "dry-run"] == []
        assert not await world.get(f"{NODES}/access-1")
        assert {entry[1] for entry in world.told} == {ErrorCode.ADMISSION_UNPROVEN.reason}
        with pytest.raises(BlockedError):
            room.require()
        # Somebody installs them: nothing is started anew.
        room.prove = proven
        await world.ready()

    in_device_world(story)
