"""Manifests that other projects publish, taken from their pinned Go modules and kept in the user's cache.

go.sum beside each go.mod pins the content, so these are always the same files.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.build import peers_cache
from gitops_ctl.local.golang import INSTALL_HINT, find_go, go_output


@dataclass(frozen=True, slots=True)
class Published:
    """Files of one module: `patterns` are relative to its root, `folder` holds the go.mod and go.sum that pin it."""

    folder: Path
    module: str
    version: str
    patterns: tuple[str, ...]

    @property
    def selection(self) -> str:
        """Names what the patterns choose, so that another choice of the same module has a folder of its own."""
        return hashlib.sha256("\0".join(self.patterns).encode()).hexdigest()[:8]


async def published_files(published: Published) -> Mapping[str, Path]:
    """Path inside the module to the file on this machine, in the order of the paths.

    Raises:
        GitopsError: Go is missing (TOOL_MISSING), or the module cannot be fetched.
    """
    target = await published_folder(published)
    files = await asyncio.to_thread(lambda: sorted(target.rglob("*.yaml")))
    return {str(path.relative_to(target)): path for path in files}


async def published_folder(published: Published) -> Path:
    """The folder with all of them, whatever they are.

    Raises:
        GitopsError: Go is missing (TOOL_MISSING), or the module cannot be fetched.
    """
    target = peers_cache() / f"manifests-{published.folder.name}-{published.version}-{published.selection}"
    if not await asyncio.to_thread(target.is_dir):
        root = await _module_root(published)
        await asyncio.to_thread(_copy, published.patterns, root, target)
    return target


async def _module_root(published: Published) -> Path:
    go = find_go()
    if go is None:
        raise BlockedError(
            f"the manifests of {published.module} come from its Go module and Go is not installed",
            code=ErrorCode.TOOL_MISSING,
            hint=INSTALL_HINT,
        )
    await go_output(go, "mod", "download", published.module, folder=published.folder)
    root = await go_output(go, "list", "-m", "-f", "{{.Dir}}", published.module, folder=published.folder)
    return Path(root.strip())


def _copy(patterns: tuple[str, ...], root: Path, target: Path) -> None:
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    for pattern in patterns:
        for source in root.glob(pattern):
            if source.name != "kustomization.yaml" and source.is_file():
                copy = fresh / source.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
    try:
        fresh.rename(target)
    except OSError:
        # Another process was faster; its files are the same.
        shutil.rmtree(fresh)
