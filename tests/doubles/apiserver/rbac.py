"""Authorisation of impersonated users by the Roles and bindings in the store.  The caller itself may do everything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.apiserver.request import Request, Target
from tests.doubles.apiserver.store import Store

GROUP = "rbac.authorization.k8s.io"
ADMIN_RULES = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},)


@dataclass(frozen=True, slots=True)
class Subject:
    """Who asks."""

    user: str
    groups: frozenset[str]


def subject_of(request: Request) -> Subject:
    """The impersonated user with the groups that a server adds."""
    groups = set(request.groups) | {"system:authenticated"}
    if request.user.startswith("system:serviceaccount:"):
        namespace = request.user.split(":")[2]
        groups |= {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"}
    return Subject(request.user, frozenset(groups))


def allowed(store: Store, *, subject: Subject, target: Target, verb: str) -> bool:
    """Whether a rule of a binding of `subject` covers the call."""
    if "system:masters" in subject.groups:
        return True
    resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    return any(_covers(rule, target, resource, verb) for rule in _rules(store, subject, target.namespace))


def _rules(store: Store, subject: Subject, namespace: str) -> Iterator[Mapping[str, Any]]:
    for _, binding in store.all((GROUP, "clusterrolebindings")):
        if _binds(binding, subject):
            yield from _role(store, binding["roleRef"], "")
    for key, binding in store.all((GROUP, "rolebindings"), namespace) if namespace else ():
        if _binds(binding, subject):
            yield from _role(store, binding["roleRef"], key[0])


def _role(store: Store, reference: Mapping[str, Any], namespace: str) -> Iterator[Mapping[str, Any]]:
    if reference["kind"] == "ClusterRole":
        role = store.get((GROUP, "clusterroles"), ("", reference["name"]))
        if role is None and reference["name"] == "cluster-admin":
            yield from ADMIN_RULES
    else:
        role = store.get((GROUP, "roles"), (namespace, reference["name"]))
    yield from (role or {}).get("rules") or ()


def _binds(binding: Mapping[str, Any], subject: Subject) -> bool:
    own_namespace = binding["metadata"].get("namespace", "")
    for entry in binding.get("subjects", ()):
        if entry["kind"] == "ServiceAccount":
            namespace = entry.get("namespace", own_namespace)
            if subject.user == f"system:serviceaccount:{namespace}:{entry['name']}":
                return True
        elif (entry["kind"] == "User" and entry["name"] == subject.user) or (
            entry["kind"] == "Group" and entry["name"] in subject.groups
        ):
            return True
    return False


def _covers(rule: Mapping[str, Any], target: Target, resource: str, verb: str) -> bool:
    def has(part: str, value: str) -> bool:
        return "*" in rule.get(part, ()) or value in rule.get(part, ())

    names = rule.get("resourceNames")
    return (
        has("verbs", verb)
        and has("apiGroups", target.group)
        and has("resources", resource)
        and (not names or target.name in names)
    )
