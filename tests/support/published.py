"""Manifests that nobody here wrote: published with Kueue and Node Feature Discovery, taken from their Go modules."""

import json
import shutil
import subprocess
from pathlib import Path

KUEUE = "sigs.k8s.io/kueue@v0.17.0"
NFD = "sigs.k8s.io/node-feature-discovery@v0.19.0"

KUEUE_CRDS = "config/components/crd/bases"
NFD_CRDS = "deployment/base/nfd-crds"
NFD_RBAC = "deployment/base/rbac"


def module_folder(module: str) -> Path:
    """Where the sources of a Go module lie, fetched first when they are not in the module cache."""
    # Outside of any module, so that nobody's go.mod is looked at.
    done = subprocess.run(["go", "mod", "download", "-json", module], check=True, capture_output=True, cwd="/")
    return Path(json.loads(done.stdout)["Dir"])


def copy_published(module: str, folder: str, *, into: Path) -> list[Path]:
    """Copy the YAML files of one folder of a module; what has to be rendered first is left out."""
    into.mkdir(parents=True, exist_ok=True)
    copied = []
    for file in sorted((module_folder(module) / folder).glob("*.yaml")):
        if file.name != "kustomization.yaml":
            copied.append(into / file.name)
            shutil.copyfile(file, copied[-1])
    return copied


def published_manifests(into: Path) -> list[Path]:
    """All of them, in one folder for each project."""
    return [
        *copy_published(KUEUE, KUEUE_CRDS, into=into / "kueue"),
        *copy_published(NFD, NFD_CRDS, into=into / "nfd"),
        *copy_published(NFD, NFD_RBAC, into=into / "nfd"),
    ]
