"""`python tools/render_install.py [--check]`: schemas/install.yaml, everything that a cluster needs, from the chart's default values.

For a cluster without Helm: namespace, CustomResourceDefinitions, rights, admission policies and the manager, in the order in which they are
applied.  With `--check` nothing is written; the exit code is 1 when the committed file is not fresh.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import helm_python
import yaml

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.generate import to_yaml
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.names import SYSTEM_NAMESPACE

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "gitops-ctl"
TARGET = ROOT / "schemas" / "install.yaml"
_HEADER = "# Generated from charts/gitops-ctl by `python tools/render_install.py`; do not edit.\n"
_ORDER = (
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "Service",
    "Deployment",
)


def chart_objects(
    values: dict[str, Any] | None = None, *, name: str = "gitops-ctl", namespace: str = SYSTEM_NAMESPACE
) -> list[dict[str, Any]]:
    """The objects of the chart with `values` over its defaults, in the order of their application."""
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values=values, name=name, namespace=namespace)
    texts = [text for path, text in sorted(files.items()) if path.endswith(".yaml")]
    objects = [tree for text in texts for tree in yaml.load_all(text, Loader=yaml.CSafeLoader) if tree]
    return sorted(objects, key=lambda tree: (_ORDER.index(tree["kind"]), tree["metadata"]["name"]))


def install_objects() -> list[dict[str, Any]]:
    """Everything, with the namespace and the CustomResourceDefinitions first."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": SYSTEM_NAMESPACE,
            "labels": {
                "app.kubernetes.io/part-of": "gitops-ctl",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    }
    return [
        namespace,
        *(dict(crd_of(model)) for model in ALL_KINDS),
        *(_without_helm(tree) for tree in chart_objects()),
    ]


def _without_helm(tree: dict[str, Any]) -> dict[str, Any]:
    """Helm would take an object with its label for its own."""
    labels = {
        key: value for key, value in tree["metadata"].get("labels", {}).items() if not key.endswith("/managed-by")
    }
    return {**tree, "metadata": {**tree["metadata"], **({"labels": labels} if labels else {})}}


def install_text() -> str:
    """The file's text."""
    return _HEADER + "---\n".join(to_yaml(tree) for tree in install_objects())


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0 done or equal, 1 different."""
    parser = argparse.ArgumentParser(
        prog="tools/render_install.py", description="Render the manifests of an installation."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the committed file is not fresh")
    options = parser.parse_args(arguments)
    if not options.check:
        TARGET.write_text(install_text())
        return 0
    if TARGET.exists() and TARGET.read_text() == install_text():
        return 0
    sys.stderr.write(f"{TARGET}: not fresh; run python tools/render_install.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
