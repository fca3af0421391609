"""Manifests that other projects publish, taken from their Go modules and kept in the user's cache.

go.sum beside each go.mod pins the content, so these are always the same files.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.local.build import peers_cache
from gitops_ctl.local.golang import INSTALL_HINT, find_go
from gitops_ctl.local.recipes import GO_ENVIRONMENT

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Published:
    """Files of one module: patterns relative to its root."""

    folder: str
    module: str
    version: str
    patterns: tuple[str, ...]


KUEUE = Published("kueue", "sigs.k8s.io/kueue", "v0.17.0", ("config/components/crd/bases/*.yaml",))
NFD = Published(
    "nfd",
    "sigs.k8s.io/node-feature-discovery",
    "v0.19.0",
    ("deployment/base/nfd-crds/nfd-api-crds.yaml", "deployment/base/rbac/*.yaml"),
)
KWOK_STAGES = Published(
    "kwok",
    "sigs.k8s.io/kwok",
    "v0.8.0",
    (
        "kustomize/stage/node/fast/*.yaml",
        "kustomize/stage/node/heartbeat-with-lease/*.yaml",
        "kustomize/stage/pod/fast/*.yaml",
    ),
)


async def manifests(published: Published) -> Mapping[str, Path]:
    """Path inside the module to the file on this machine, in the order of the paths.

    Raises:
        RuntimeError: Go is missing, or the module could not be fetched.
    """
    target = peers_cache() / f"manifests-{published.folder}-{published.version}"
    if not target.is_dir():
        root = await _module_root(published)
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        for pattern in published.patterns:
            for source in root.glob(pattern):
                copy = fresh / source.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
        try:
            fresh.rename(target)
        except OSError:
            # Another process was faster; its files are the same.
            shutil.rmtree(fresh)
    files = sorted(path for path in target.rglob("*.yaml") if path.name != "kustomization.yaml")
    return {str(path.relative_to(target)): path for path in files}


async def _module_root(published: Published) -> Path:
    go = find_go()
    if go is None:
        raise RuntimeError(f"the manifests of {published.module} need Go; {INSTALL_HINT}")
    folder = _HERE / published.folder
    if not folder.is_dir():
        folder = Path(__file__).parents[2] / "gitops_ctl" / "local" / "modules" / published.folder
    await _go(str(go), "mod", "download", published.module, folder=folder)
    return Path((await _go(str(go), "list", "-m", "-f", "{{.Dir}}", published.module, folder=folder)).strip())


async def _go(*command: str, folder: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **GO_ENVIRONMENT},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:4])}: {errors.decode()[-500:]}")
    return output.decode()
