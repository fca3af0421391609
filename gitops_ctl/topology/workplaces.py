"""The two planes of a namespace as the caches show them (rollouts.md, section 17.2)."""

from collections.abc import Collection

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.revision_plan import Workplace
from gitops_ctl.topology.workers_plan import Plane, Tenant, desired_digest, selected, username


def tenant_of(policy: FleetPolicy, namespace: str, *, secrets: Collection[str] = ()) -> Tenant:
    """What the workers of a namespace are made from; `secrets` are those that devices and image sources name."""
    return Tenant(
        namespace=namespace,
        accounts={Plane.NODE: policy.app_hosting_account, Plane.NETWORK: policy.network_management_account},
        secrets=frozenset(secrets),
        lease_namespace=policy.config_lease_namespace or namespace,
        freshness_s=policy.health_freshness_s,
    )


class Workplaces:
    """The planes of each namespace, looked at again only after something of them changed."""

    def __init__(self, caches: Caches, options: Options) -> None:
        self._caches, self._options = caches, options
        self._known: dict[str, tuple[FleetPolicy, tuple[Workplace, Workplace]]] = {}

    def of(self, policy: FleetPolicy, namespace: str) -> tuple[Workplace, Workplace]:
        """The node plane and the network plane; Secrets are no part of what they run."""
        known = self._known.get(namespace)
        if known is not None and known[0] is policy:
            return known[1]
        tenant = tenant_of(policy, namespace)
        planes = (self._one(tenant, Plane.NODE), self._one(tenant, Plane.NETWORK))
        self._known[namespace] = (policy, planes)
        return planes

    def forget(self, namespace: str) -> None:
        """A Deployment or a Pod of the namespace changed."""
        self._known.pop(namespace, None)

    def _one(self, tenant: Tenant, plane: Plane) -> Workplace:
        namespace, account = tenant.namespace, tenant.accounts[plane]
        return Workplace(
            plane=plane,
            account=account,
            username=username(namespace, account),
            digest=desired_digest(tenant, plane, self._options),
            deployment=self._caches.deployments.cache.get(NamespacedName(namespace, account)),
            pods=self._caches.pods_of(namespace, selected(account, plane)),
        )
