"""Proof that the admission policies are in force, before anything is admitted or a worker is made (rollouts.md, section 18.3).

A version says nothing, and neither does a policy that is stored: so the manager sends writes that a policy has to refuse even to the manager,
as dry runs, and takes for a proof only the words of the rule.  Each policy and its binding also have to be those of this release, and so do the
cluster roles that the workers get.  Without the policies a worker, or anybody with a right on a Node, could write what decides about devices.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from gitops_ctl.api.manifests import manifest
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Forbidden, Refused
from gitops_ctl.core.jsonvalue import JsonObject, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.documents.loader import load
from gitops_ctl.fleet import names
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.merge import covers
from gitops_ctl.topology.worker_rights import WORKER_RIGHTS, role_problem
from gitops_ctl.topology.workers_plan import ROLE_PREFIX

_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_POLICY: Final = "ValidatingAdmissionPolicy"
_PREFIXES: Final = ("device-", "rollout-")
_NAME: Final = "gitops-ctl-admission-probe"
_IN_NAMESPACES: Final = frozenset({"gitops-ctl-device-accounts", "gitops-ctl-device-workloads"})
"""Policies about kinds of everybody: in force only in the namespaces that are named for workers."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A write that has to be refused.

    Attributes:
        path: where it is sent.
        says: words of the rule that refuses it; another refusal proves nothing.
    """

    policy: str
    path: str
    tree: JsonObject
    says: str


def probes(namespace: str) -> Iterator[Probe]:
    """One for each kind that the manager itself creates; `namespace` is the manager's, and nothing is stored there."""
    yield Probe(
        "gitops-ctl-rollout-leaves",
        f"/apis/{names.OPERATIONS_GROUP}/v1alpha1/namespaces/{namespace}/iosxesoftwareupgrades",
        {
            "apiVersion": f"{names.OPERATIONS_GROUP}/v1alpha1",
            "kind": names.LEAF_KIND,
            "metadata": {"name": _NAME, "namespace": namespace},
            "spec": {
                "deviceRef": {"name": _NAME},
                "imageSource": {"url": "https://images.example.net/none.bin", "sha256": "0" * 64},
                "targetVersion": "0.0",
            },
        },
        "the binding of a leaf lacks",
    )
    yield Probe(
        "gitops-ctl-device-nodes",
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": _NAME,
                "labels": {names.PROVIDER: names.PROVIDER_APPHOSTING},
                "annotations": {names.MANAGED: "true"},
            },
        },
        "the binding of a Node lacks",
    )
    yield Probe(
        "gitops-ctl-device-leases",
        f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": _NAME, "namespace": namespace, "labels": {names.LEASE_DEVICE: _NAME}},
            "spec": {},
        },
        "says what it is for",
    )


async def prove_policies(client: KubeClient, namespace: str) -> None:
    """Everything below, once.

    Args:
        namespace: of the manager, where the parameter of the policies is.

    Raises:
        BlockedError: a policy is not in force, or it or a role is not that of this release; nothing may be admitted.
        TransientError: nobody knows yet.
    """
    await prove_refusals(client, probes(namespace))
    for name, wanted in (await asyncio.to_thread(shipped_policies)).items():
        policy = await client.find(f"{_GROUP}/validatingadmissionpolicies/{name}")
        binding = await client.find(f"{_GROUP}/validatingadmissionpolicybindings/{name}")
        if name in _IN_NAMESPACES and policy is None and binding is None:
            continue  # no namespace is named for workers, so none is made
        if why := policy_problem(policy, wanted) or binding_problem(binding, wanted, namespace=namespace):
            raise _unproven(name, why)
    for name in WORKER_RIGHTS:
        role = await client.find(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ROLE_PREFIX}{name}")
        if why := role_problem(role, name):
            raise _unproven(f"{ROLE_PREFIX}{name}", why, kind="ClusterRole")


async def prove_refusals(client: KubeClient, found: Iterable[Probe]) -> None:
    """Have every probe refused.

    Raises:
        BlockedError: one was not refused, or not by its policy.
    """
    for probe in found:
        said = await _refusal(client, probe)
        if f"{_POLICY} '{probe.policy}" not in said or probe.says not in said:
            kind = text_at(probe.tree, "kind")
            raise _unproven(
                probe.policy,
                f"a {kind} that has to be refused {f'got another answer: {said}' if said else 'was let in'}",
            )


async def _refusal(client: KubeClient, probe: Probe) -> str:
    """What the server says to the write; empty when it would take it."""
    try:
        await client.create(probe.path, probe.tree, dry_run=True)
    except (Forbidden, Refused) as error:
        return error.message
    except BlockedError as error:  # no such namespace, or a kind that is not served
        raise _unproven(probe.policy, error.message) from error
    return ""


def policy_problem(live: JsonObject | None, wanted: JsonObject) -> str:
    """Why a policy is not the one of this release; empty when it is."""
    if live is None:
        return "it is not there"
    if not covers(object_at(live, "spec"), object_at(wanted, "spec")):
        return "it is not that of this release"
    if int_at(live, "status", "observedGeneration") not in (0, int_at(live, "metadata", "generation")):
        return "the server has not looked at its present text yet"
    warned = [text_at(one, "fieldRef") for one in objects_at(live, "status", "typeChecking", "expressionWarnings")]
    return f"the server warns about {', '.join(warned)}" if warned else ""


def binding_problem(live: JsonObject | None, wanted: JsonObject, *, namespace: str) -> str:
    """Why the binding of a policy does not put it in force everywhere that it judges; empty when it does."""
    name = text_at(wanted, "metadata", "name")
    if live is None:
        return "nothing binds it"
    spec = object_at(live, "spec")
    if text_at(spec, "policyName") != name or "Deny" not in list_at(spec, "validationActions"):
        return "its binding does not deny"
    if object_at(wanted, "spec", "paramKind") and text_at(spec, "paramRef", "namespace") != namespace:
        return f"its parameter is not in namespace {namespace}"
    resources = object_at(spec, "matchResources")
    narrowed = [
        member
        for member in ("namespaceSelector", "objectSelector", "resourceRules", "excludeResourceRules")
        if resources.get(member) and not (member == "namespaceSelector" and name in _IN_NAMESPACES)
    ]
    return f"its binding leaves something out: {', '.join(narrowed)}" if narrowed else ""


@cache
def shipped_policies() -> Mapping[str, JsonObject]:
    """The policies of devices and rollouts of this release, by name.  Reads files."""
    folder = manifest("policies")
    found = [path for prefix in _PREFIXES for path in sorted(folder.glob(f"{prefix}*.yaml"))]
    documents = [one for path in found for one in load(path.read_bytes(), file=path.name).documents]
    return {one.id.name: one.tree for one in documents}


def _unproven(name: str, why: str, *, kind: str = _POLICY) -> BlockedError:
    return BlockedError(why, code=ErrorCode.ADMISSION_UNPROVEN, subject=f"{kind}/{name}")
