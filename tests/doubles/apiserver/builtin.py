"""What the server fills in for built-in kinds, and the few rules that the double knows of them."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from tests.doubles.apiserver import structure
from tests.doubles.apiserver.answers import Cause, Tree, bad_request, forbidden_field, invalid_value, required
from tests.doubles.apiserver.resources import Resource
from tests.doubles.apiserver.shapes import Shape
from tests.doubles.apiserver.structure import copied

Rule: TypeAlias = Callable[[Tree, Tree | None], Iterator[Cause]]

CONFIG_KEY = "[-._a-zA-Z0-9]+"
WITH_GENERATION = frozenset(
    [
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "ReplicaSet",
        "Job",
        "CronJob",
        "NetworkPolicy",
        "Ingress",
        "PodDisruptionBudget",
        "Pod",
        "CustomResourceDefinition",
    ]
)
CONDITIONAL_UPDATE = frozenset({"Lease", "CustomResourceDefinition"})
RETURNED_WHEN_DELETED = frozenset(["Pod", "Service", "ServiceAccount", "PersistentVolumeClaim", "ResourceQuota"])
CREATE_ON_UPDATE = frozenset(["Lease", "Event", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Service"])


def normal(shape: Shape, value: Any, path: str = "") -> tuple[Any, list[str]]:
    """`value` as a typed server stores it: no unknown members, no nulls, no empty lists and maps; and what was unknown.

    Raises:
        ApiError: 400, a value of the wrong type.
    """
    if shape.is_open:
        return _without_nulls(value), []
    shape = shape.resolved(value)
    if shape.kind == "map":
        return _normal_map(shape, value, path)
    if shape.kind == "list":
        if not isinstance(value, list):
            raise _cannot_unmarshal(value, path, "[]")
        unknown: list[str] = []
        items = []
        for number, item in enumerate(value):
            kept, lost = normal(shape.item, item, f"{path}[{number}]")
            items.append(kept)
            unknown += lost
        return items, unknown
    if not structure.scalar_fits(shape.scalar, value):
        raise _cannot_unmarshal(value, path, shape.scalar)
    return value, []


def _without_nulls(value: Any) -> Any:
    """`value` without members that are null: all that is normal about one that may be anything."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _normal_map(shape: Shape, value: Any, path: str) -> tuple[Any, list[str]]:
    if not isinstance(value, Mapping):
        raise _cannot_unmarshal(value, path, "map")
    unknown: list[str] = []
    result: Tree = {}
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        child = shape.child(name)
        if child is None:
            unknown.append(where)
        elif item is not None:
            kept, lost = normal(child, item, where)
            unknown += lost
            if name in shape.schema.get("required", ()) or not _is_omitted(child, kept):
                result[name] = kept
    return result, unknown


def _is_omitted(shape: Shape, value: Any) -> bool:
    return value in ([], {}) and (shape.kind == "list" or "additionalProperties" in shape.schema)


def _cannot_unmarshal(value: Any, path: str, wanted: str) -> Exception:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return bad_request(
        f"json: cannot unmarshal {names.get(type(value), 'null')} into Go struct field {path} of type {wanted}"
    )


def materialised(shape: Shape, value: Any) -> Any:
    """`value` with the structs that a typed server always has, so that they never count as added."""
    shape = shape.resolved(value)
    if isinstance(value, list):
        return value if shape.atomic else [materialised(shape.item, item) for item in value]
    if not isinstance(value, Mapping) or shape.atomic:
        return value
    result = dict(value)
    for name in shape.fields:
        child = shape.child(name)
        if child is None or child.kind != "map":
            continue
        if name not in result and child.default == {} and child.fields:
            result[name] = {}
    for name in shape.schema.get("required", ()):
        child = shape.child(name)
        if name not in result and child is not None and child.kind == "list":
            result[name] = None
    for name, item in result.items():
        child = shape.child(name)
        if child is not None:
            result[name] = materialised(child, item)
    return result


def _fill(tree: Tree, **values: Any) -> None:
    for name, value in values.items():
        if name not in tree:
            tree[name] = copied(value)


def _pod(spec: Tree) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for name, twin in (("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")):
        if name in spec:
            spec[twin] = spec[name]
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        image = container.get("image", "")
        latest = image.rpartition("/")[2].partition(":")[2] in ("", "latest") and "@" not in image
        _fill(
            container,
            resources={},
            terminationMessagePath="/dev/termination-log",
            terminationMessagePolicy="File",
            imagePullPolicy="Always" if latest else "IfNotPresent",
        )
        for port in container.get("ports", ()):
            _fill(port, protocol="TCP")
        for name in ("livenessProbe", "readinessProbe", "startupProbe"):
            if name in container:
                _fill(container[name], timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
                if "httpGet" in container[name]:
                    _fill(container[name]["httpGet"], path="/", scheme="HTTP")
        for entry in container.get("env", ()):
            if "fieldRef" in entry.get("valueFrom", {}):
                _fill(entry["valueFrom"]["fieldRef"], apiVersion="v1")
    for volume in spec.get("volumes", ()):
        for name in ("configMap", "secret", "projected", "downwardAPI"):
            if name in volume:
                _fill(volume[name], defaultMode=420)


def _pod_defaults(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    _pod(spec)
    _fill(spec, enableServiceLinks=True)


def _template(tree: Tree) -> None:
    template = tree["spec"].setdefault("template", {})
    _pod(template.setdefault("spec", {}))


def _deployment(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={})
    _fill(spec["strategy"], type="RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _fill(spec["strategy"], rollingUpdate={})
        _fill(spec["strategy"]["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    _template(tree)


def _daemon_set(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    _fill(spec, revisionHistoryLimit=10, updateStrategy={})
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"], rollingUpdate={})
        _fill(spec["updateStrategy"]["rollingUpdate"], maxUnavailable=1, maxSurge=0)
    _template(tree)


def _service(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["type"] != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster")
    for port in spec.get("ports", ()):
        _fill(port, protocol="TCP")
        _fill(port, targetPort=port.get("port"))


def follow_address(spec: Tree, before: Tree) -> None:
    """What was allocated stays when it is left out; a new `clusterIP` is the first of `clusterIPs`, when only it was changed."""
    if spec.get("type") == before.get("type"):
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if name in before:
                spec.setdefault(name, copied(before[name]))
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [spec.get("clusterIP", "")]


def _event(tree: Tree) -> None:
    _fill(tree, deprecatedSource={})


def _secret(tree: Tree) -> None:
    _fill(tree, type="Opaque")
    for name, value in tree.pop("stringData", {}).items():
        tree.setdefault("data", {})[name] = base64.b64encode(value.encode()).decode()


def _namespace(tree: Tree) -> None:
    name = tree.get("metadata", {}).get("name")
    if name:
        tree["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _network_policy(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    _fill(spec, podSelector={}, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            _fill(port, protocol="TCP")


def _role(tree: Tree) -> None:
    _fill(tree, rules=None)


def _binding(tree: Tree) -> None:
    _fill(tree.setdefault("roleRef", {}), apiGroup="rbac.authorization.k8s.io")
    for subject in tree.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _definition(tree: Tree) -> None:
    spec = tree.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    _fill(spec, conversion={"strategy": "None"})


_DEFAULTS: Mapping[str, Callable[[Tree], None]] = {
    "Pod": _pod_defaults,
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "Service": _service,
    "Secret": _secret,
    "Namespace": _namespace,
    "NetworkPolicy": _network_policy,
    "Role": _role,
    "ClusterRole": _role,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "CustomResourceDefinition": _definition,
    "Event": _event,
}


def defaulted(resource: Resource, tree: Tree) -> Tree:
    """`tree` with the defaults of its kind, as far as the double knows them."""
    result: Tree = copied(tree)
    fill = _DEFAULTS.get(resource.kind)
    if fill is not None:
        fill(result)
    return result


def _config_keys(new: Tree, *parts: str) -> Iterator[Cause]:
    for part in parts:
        for key in new.get(part) or {}:
            if re.fullmatch(CONFIG_KEY, key) is None:
                text = (
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
                    f"'KEY_NAME',  or 'key-name', regex used for validation is '{CONFIG_KEY}')"
                )
                yield invalid_value(f"{part}[{key}]", json.dumps(key), text)


def _config_map(new: Tree, old: Tree | None) -> Iterator[Cause]:
    yield from _config_keys(new, "data", "binaryData")
    if old is not None and old.get("immutable"):
        yield from _frozen(new, old, "immutable", "data", "binaryData")
    size = sum(len(value) for part in ("data", "binaryData") for value in (new.get(part) or {}).values())
    if size > 1_048_576:
        yield Cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes")


def _frozen(new: Tree, old: Tree, flag: str, *parts: str) -> Iterator[Cause]:
    if not new.get(flag):
        yield forbidden_field(flag, "field is immutable when `immutable` is set")
    for part in parts:
        if not structure.same(new.get(part), old.get(part)):
            yield forbidden_field(part, "field is immutable when `immutable` is set")


def _secret_rule(new: Tree, old: Tree | None) -> Iterator[Cause]:
    yield from _config_keys(new, "data")
    if old is None:
        return
    if new.get("type") != old.get("type"):
        yield invalid_value("type", json.dumps(new.get("type")), "field is immutable")
    if old.get("immutable"):
        yield from _frozen(new, old, "immutable", "data")


def _service_rule(new: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = new.get("spec", {})
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    if len(spec.get("ports", ())) > 1:
        for number, port in enumerate(spec["ports"]):
            name = port.get("name")
            if not name:
                yield required(f"spec.ports[{number}].name")
            elif name in [other.get("name") for other in spec["ports"][:number]]:
                yield Cause("FieldValueDuplicate", f"Duplicate value: {json.dumps(name)}", f"spec.ports[{number}].name")
    if old is None:
        return
    before, now = old["spec"].get("clusterIPs"), spec.get("clusterIPs")
    if before and now != before:
        shown = json.dumps(now, separators=(",", ":"))
        yield invalid_value("spec.clusterIPs[0]", shown, "may not change once set")


def _deployment_rule(new: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = new.get("spec", {})
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        shown = json.dumps(labels, separators=(",", ":"))
        yield invalid_value("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")
    containers = spec.get("template", {}).get("spec", {}).get("containers") or ()
    if not containers:
        yield required("spec.template.spec.containers")
    for number, container in enumerate(containers):
        if not container.get("image"):
            yield required(f"spec.template.spec.containers[{number}].image")
    if old is not None and not structure.same(selector, old["spec"].get("selector")):
        yield invalid_value("spec.selector", json.dumps(selector, separators=(",", ":")), "field is immutable")


def _binding_rule(new: Tree, old: Tree | None) -> Iterator[Cause]:
    if old is not None and not structure.same(new.get("roleRef"), old.get("roleRef")):
        names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
        shown = json.dumps({names[key]: new["roleRef"][key] for key in sorted(names)}, separators=(",", ":"))
        yield invalid_value("roleRef", shown, "cannot change roleRef")


_RULES: Mapping[str, Rule] = {
    "ConfigMap": _config_map,
    "Secret": _secret_rule,
    "Service": _service_rule,
    "Deployment": _deployment_rule,
    "RoleBinding": _binding_rule,
    "ClusterRoleBinding": _binding_rule,
}


def problems(resource: Resource, new: Tree, old: Tree | None) -> Iterator[Cause]:
    """What the kind itself refuses, as far as the double knows it."""
    rule = _RULES.get(resource.kind)
    if rule is not None:
        yield from rule(new, old)
