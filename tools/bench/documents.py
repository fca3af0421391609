"""The documents that benchmarks apply and check: plain objects of everyday size."""

from collections.abc import Iterator

from gitops_ctl.core.jsonvalue import JsonObject


def config_map(number: int, *, value: str = "1") -> str:
    """A ConfigMap with the settings of one site: about 400 bytes."""
    name = f"site-{number:05d}"
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
        f"  name: {name}\n  labels: {{site: {name}, region: north}}\n"
        f'data:\n  hostname: "{name}.example.net"\n  loopback: "192.0.2.{number % 250 + 1}"\n'
        f'  vlan: "{number % 4000 + 1}"\n  revision: "{value}"\n'
        "  settings.yaml: |\n    uplinks: [eth0, eth1]\n    mtu: 9100\n    ntp: 192.0.2.123\n    syslog: 192.0.2.124\n"
    )


def config_maps(count: int) -> Iterator[tuple[str, str]]:
    """Path and text of each, one object a file, 200 files a folder."""
    for number in range(count):
        yield f"sites/{number // 200:03d}/site-{number:05d}.yaml", config_map(number)


def application(number: int) -> str:
    """A Deployment with no replicas, its ServiceAccount, Service and Ingress, in one file."""
    name = f"app-{number:05d}"
    labels = f"labels: {{app.kubernetes.io/name: {name}, app.kubernetes.io/part-of: bench}}"
    return (
        f"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  {labels}\n---\n"
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  {labels}\nspec:\n  replicas: 0\n"
        f"  selector:\n    matchLabels: {{app.kubernetes.io/name: {name}}}\n"
        f"  template:\n    metadata:\n      labels: {{app.kubernetes.io/name: {name}}}\n    spec:\n"
        f"      serviceAccountName: {name}\n      containers:\n        - name: web\n          image: example.net/web:1\n"
        "          ports: [{name: http, containerPort: 8080, protocol: TCP}]\n"
        "          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 32Mi}}\n"
        '          env: [{name: LEVEL, value: "info"}, {name: REGION, value: north}]\n---\n'
        f"apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  {labels}\nspec:\n"
        f"  selector: {{app.kubernetes.io/name: {name}}}\n  ports: [{{name: http, port: 80, targetPort: http, protocol: TCP}}]\n---\n"
        f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  {labels}\nspec:\n  rules:\n"
        f"    - host: {name}.example.net\n      http:\n        paths:\n          - path: /\n            pathType: Prefix\n"
        f"            backend: {{service: {{name: {name}, port: {{name: http}}}}}}\n"
    )


def applications(count: int) -> Iterator[tuple[str, str]]:
    """Path and text of each; four objects a file."""
    for number in range(count):
        yield f"apps/{number // 200:03d}/app-{number:05d}.yaml", application(number)


PATHS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
}
"""Collections by kind, in the order in which they are applied."""


def path_of(tree: JsonObject, *, namespace: str) -> str:
    """The API path of one of these objects."""
    metadata = tree["metadata"]
    assert isinstance(metadata, dict)
    return f"{PATHS[str(tree['kind'])].format(namespace)}/{metadata['name']}"
