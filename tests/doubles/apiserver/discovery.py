"""Discovery documents, in the aggregated form and in the older one of one request a group version."""

from collections.abc import Iterable

from tests.doubles.apiserver.answers import Tree
from tests.doubles.apiserver.resources import Resource

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
STATUS_VERBS = ["get", "patch", "update"]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    return "as=APIGroupDiscoveryList" in accept.replace(" ", "")


def _versions(resources: Iterable[Resource]) -> dict[str, dict[str, list[Resource]]]:
    """Resources by group and version, in the order in which they were served."""
    found: dict[str, dict[str, list[Resource]]] = {}
    for item in resources:
        found.setdefault(item.group, {}).setdefault(item.version, []).append(item)
    return found


def aggregated(resources: Iterable[Resource], *, core: bool, stale: frozenset[str]) -> Tree:
    """`/api` or `/apis` in the aggregated form; groups in `stale` have lost their server."""
    items = []
    for group, versions in _versions(resources).items():
        if (group == "") is not core:
            continue
        entries = []
        for version, found in versions.items():
            entry: Tree = {"version": version, "freshness": "Stale" if group in stale else "Current"}
            if group not in stale:
                entry["resources"] = [_aggregated_resource(item) for item in found]
            entries.append(entry)
        items.append({"metadata": {"name": group} if group else {}, "versions": entries})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _verbs(item: Resource) -> list[str]:
    """All verbs; namespaces are only deleted one by one."""
    return [verb for verb in VERBS if verb != "deletecollection"] if item.collection == ("", "namespaces") else VERBS


def _aggregated_resource(item: Resource) -> Tree:
    # Built-in kinds leave group and version to the entry that they stand in.
    kind = {
        "group": item.group if item.custom else "",
        "version": item.version if item.custom else "",
        "kind": item.kind,
    }
    tree: Tree = {
        "resource": item.plural,
        "responseKind": kind,
        "scope": "Namespaced" if item.namespaced else "Cluster",
        "singularResource": item.singular,
        "verbs": _verbs(item),
    }
    if item.short_names:
        tree["shortNames"] = list(item.short_names)
    if item.categories:
        tree["categories"] = list(item.categories)
    if item.has_status:
        tree["subresources"] = [{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]
    return tree


def group_list(resources: Iterable[Resource]) -> Tree:
    """`/apis` in the older form."""
    groups = [group_document(group, list(versions)) for group, versions in _versions(resources).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_document(group: str, versions: list[str]) -> Tree:
    """What is known of one group."""
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def core_versions(address: str) -> Tree:
    """`/api` in the older form."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def resource_list(resources: Iterable[Resource], *, group: str, version: str) -> Tree:
    """`/api/v1` or `/apis/GROUP/VERSION`."""
    entries: list[Tree] = []
    for item in resources:
        if (item.group, item.version) != (group, version):
            continue
        entry: Tree = {
            "name": item.plural,
            "singularName": item.singular,
            "namespaced": item.namespaced,
            "kind": item.kind,
            "verbs": _verbs(item),
        }
        if item.short_names:
            entry["shortNames"] = list(item.short_names)
        if item.categories:
            entry["categories"] = list(item.categories)
        entries.append(entry)
        if item.has_status:
            status = {"name": f"{item.plural}/status", "singularName": "", "namespaced": item.namespaced}
            entries.append({**status, "kind": item.kind, "verbs": STATUS_VERBS})
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}
