"""The two planes of a namespace as the caches show them (rollouts.md, section 17.2)."""

from collections.abc import Collection, Iterable

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.revision import secrets_of
from gitops_ctl.topology.ports import Ports
from gitops_ctl.topology.revision_plan import Workplace
from gitops_ctl.topology.workers_plan import Plane, Tenant, desired_digest, selected, username


def tenant_of(
    policy: FleetPolicy, namespace: str, devices: Iterable[JsonObject], *, more: Collection[str] = ()
) -> Tenant:
    """What the workers of a namespace are made from; `more` has Secrets that no device names."""
    return Tenant(
        namespace=namespace,
        accounts={Plane.NODE: policy.app_hosting_account, Plane.NETWORK: policy.network_management_account},
        secrets=frozenset(
            {*more, *(name for device in devices for name in secrets_of(object_at(device, "spec")) if name)}
        ),
        lease_namespace=policy.config_lease_namespace or namespace,
    )


def workplaces_of(ports: Ports, policy: FleetPolicy, namespace: str) -> tuple[Workplace, Workplace]:
    """The node plane and the network plane; Secrets are no part of what they run."""
    tenant = tenant_of(policy, namespace, ())

    def one(plane: Plane) -> Workplace:
        account = tenant.accounts[plane]
        return Workplace(
            plane=plane,
            account=account,
            username=username(namespace, account),
            digest=desired_digest(tenant, plane, ports.options),
            deployment=ports.caches.deployments.cache.get(NamespacedName(namespace, account)),
            pods=ports.caches.pods_of(namespace, selected(account, plane)),
        )

    return one(Plane.NODE), one(Plane.NETWORK)
