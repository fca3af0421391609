"""Writes gitops_ctl/documents/builtin/kubernetes.json.gz from what a real API server publishes.

    python tools/generate_builtin_schemas.py --kubectl PATH --kubeconfig FILE

For every kind that the server serves and that can be applied: its schema, its scope, and the definitions that it needs,
without texts.  Lists keep their type and their keys.  The file is the same for the same server version.
"""

import argparse
import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

from gitops_ctl.documents.openapi import json_schema

TARGET = Path(__file__).parent.parent / "gitops_ctl/documents/builtin/kubernetes.json.gz"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
FREE_FORM = {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
ZERO = ("", 0, False, {}, [])


class Server:
    def __init__(self, kubectl: str, kubeconfig: str) -> None:
        self._command = [kubectl, "--kubeconfig", kubeconfig, "get", "--raw"]

    def get(self, path: str) -> dict[str, Any]:
        found = subprocess.run([*self._command, path], check=True, capture_output=True)
        return json.loads(found.stdout)


def resources(server: Server, group_version: str) -> dict[str, dict[str, Any]]:
    """Kinds that can be created and patched, with their plural and whether they are namespaced."""
    listed = server.get(f"/{group_version}")["resources"]
    return {
        item["kind"]: {"namespaced": item["namespaced"], "plural": item["name"]}
        for item in listed
        if "/" not in item["name"] and {"create", "patch"} <= set(item["verbs"])
    }


def closure(name: str, definitions: dict[str, Any], found: dict[str, Any]) -> None:
    if name in found:
        return
    found[name] = {} if name in FREE_FORM else json_schema(without_zero_defaults(definitions[name]))
    for reference in references(found[name]):
        closure(reference, definitions, found)


def without_zero_defaults(node: Any) -> Any:
    """The generator of the server writes the zero value of a Go type as a default; it replaces nothing that is missing."""
    if isinstance(node, dict):
        return {
            key: without_zero_defaults(value) for key, value in node.items() if key != "default" or value not in ZERO
        }
    return [without_zero_defaults(value) for value in node] if isinstance(node, list) else node


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].removeprefix("#/$defs/")] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in references(value)]
    if isinstance(node, list):
        return [name for value in node for name in references(value)]
    return []


def is_builtin(parts: list[str]) -> bool:
    """Whether a path is one of Kubernetes' own groups: definitions of others may come and go meanwhile."""
    if parts[0] == "api":
        return len(parts) == 2
    return parts[0] == "apis" and len(parts) == 3 and ("." not in parts[1] or parts[1].endswith(".k8s.io"))


def generate(server: Server) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for path in sorted(server.get("/openapi/v3")["paths"]):
        parts = path.split("/")
        if not is_builtin(parts):
            continue
        scopes = resources(server, path)
        definitions = server.get(f"/openapi/v3/{path}")["components"]["schemas"]
        for name, definition in sorted(definitions.items()):
            for kind in definition.get("x-kubernetes-group-version-kind", []):
                here = f"{kind['group']}/{kind['version']}".lstrip("/")
                if here == "/".join(parts[1:]) and kind["kind"] in scopes:
                    kinds[f"{here}/{kind['kind']}"] = {"definition": name} | scopes[kind["kind"]]
                    closure(name, definitions, found)
    # The status is never applied, and what it requires must not be asked of a document.
    for kind in kinds.values():
        found[kind["definition"]].get("properties", {}).pop("status", None)
    version = server.get("/version")
    return {
        "version": version["gitVersion"],
        "meta": META,
        "kinds": kinds,
        "definitions": without_orphans(kinds, found),
    }


def without_orphans(kinds: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    wanted = [kind["definition"] for kind in kinds.values()] + [META]
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = found[name]
            wanted.extend(references(found[name]))
    return dict(sorted(kept.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--kubeconfig", required=True)
    arguments = parser.parse_args()
    data = json.dumps(generate(Server(arguments.kubectl, arguments.kubeconfig)), sort_keys=True, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(data.encode(), 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {len(data)} unpacked")


if __name__ == "__main__":
    main()
