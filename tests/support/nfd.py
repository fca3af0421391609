"""nfd-master for tests, and the objects that it reads."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.local.nfd import find_nfd
from gitops_ctl.local.progress import stderr_progress


@pytest.fixture(scope="session")
def nfd() -> Path:
    """The program, built when it is missing."""
    return asyncio.run(find_nfd(progress=stderr_progress()))


def node_feature(name: str, node: str, labels: dict[str, str]) -> dict[str, Any]:
    """A NodeFeature that asks for labels on a Node."""
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {"name": name, "labels": {"nfd.node.kubernetes.io/node-name": node}},
        "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": labels},
    }
