"""A Proposal under the shipped rights and policies: asked for, pushed as a branch, and taken back."""

from base64 import b64encode
from typing import Any

from gitops_ctl.api.names import API_VERSION, SYSTEM_NAMESPACE
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.wanted import WantedProposal, proposal_tree
from tests.support.manager_process import Managed
from tests.support.product import SOURCE
from tests.support.sync_cluster import until

NAME, SECRET = "settings", "proposer"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles"
_PARAMETERS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/gitops-ctl-admission"


async def propose_and_withdraw(managed: Managed) -> None:
    """The manager pushes a signed branch for a value of `site/base.yaml`, and lets the object go when it is deleted."""
    admin, namespace = managed.admin, managed.tenant.namespace
    await _let_the_manager_sign(managed)
    await _let_us_write_records(managed)
    edit = ("site/base.yaml", Edit(0, "/data/value", "replace", "1", "2"))
    subject = {"apiVersion": API_VERSION, "kind": "Sync", "namespace": namespace, "name": "site"}
    wanted = WantedProposal(namespace, NAME, SOURCE, subject, "settings/base", "base waits for 2", (edit,))
    place = f"/apis/{API_VERSION}/namespaces/{namespace}/proposals"

    async def asked() -> bool:
        try:
            await admin.create(place, proposal_tree(wanted))
        except GitopsError:
            return False  # the parameters of the policy are read again in a moment
        return True

    await until(asked, what="the Proposal is taken")

    async def is_open() -> Any:
        tree: Any = await admin.get(f"{place}/{NAME}")
        return tree if tree.get("status", {}).get("phase") == "Open" else None

    tree = await until(is_open, what="the branch is pushed", timeout_s=60)
    branch = tree["status"]["branch"]
    assert managed.tenant.repo.head(branch) == tree["status"]["headCommit"]
    await admin.delete(f"{place}/{NAME}")

    async def gone() -> bool:
        return await admin.find(f"{place}/{NAME}") is None

    await until(gone, what="the Proposal goes", timeout_s=60)


async def _let_the_manager_sign(managed: Managed) -> None:
    admin, namespace = managed.admin, managed.tenant.namespace
    key = next(iter(managed.tenant.keys.values())).path.read_bytes()
    secret = {"metadata": {"name": SECRET}, "data": {"identity": b64encode(key).decode()}}
    await admin.create(f"/api/v1/namespaces/{namespace}/secrets", secret)
    roles: Any = (await admin.list_all(_ROLES.format(namespace))).items
    for role in roles:
        if not any(rule["resources"] == ["secrets"] for rule in role["rules"] or ()):
            continue
        rules = [
            {**rule, "resourceNames": [*rule["resourceNames"], SECRET]} if rule["resources"] == ["secrets"] else rule
            for rule in role["rules"]
        ]
        await admin.patch_merge(f"{_ROLES.format(namespace)}/{role['metadata']['name']}", {"rules": rules})
    proposer = {
        "name": "gitops-ctl",
        "email": "gitops-ctl@example.net",
        "signingKeySecretRef": {"name": SECRET},
    }
    await admin.patch_merge(managed.tenant.source_path, {"spec": {"proposer": proposer}})


async def _let_us_write_records(managed: Managed) -> None:
    """Be listed beside the manager, as whoever restores a backup is: otherwise only controllers write a Proposal."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer: Any = await managed.admin.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    me = answer["status"]["userInfo"]["username"]
    parameters: Any = await managed.admin.get(_PARAMETERS)
    writers = f"{parameters['data']['writers'].rstrip()}\n{me}\n"
    await managed.admin.patch_merge(_PARAMETERS, {"data": {"writers": writers}})
