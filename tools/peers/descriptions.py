"""Published descriptions of interfaces that tests hold us to, pinned by their hash and kept in the user's cache.

They come from the npm registry through its own client; the archive is checked before anything is taken out of it.
"""

import asyncio
import base64
import hashlib
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError, Unavailable
from gitops_ctl.local.build import peers_cache


@dataclass(frozen=True, slots=True)
class Description:
    """Files of one npm package; `integrity` is the SHA-512 of its archive, in base64, as lock files have it."""

    package: str
    version: str
    integrity: str
    members: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return peers_cache() / f"description-{self.package.strip('@').replace('/', '-')}-{self.version}"


GITHUB = Description(
    package="@octokit/openapi",
    version="23.0.2",
    integrity="pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
    members=("package/generated/api.github.com.json", "package/generated/ghes-3.19.json", "package/LICENSE"),
)
"""GitHub's own OpenAPI description: of github.com, and of the newest Enterprise Server in it."""


async def described(description: Description) -> Path:
    """The folder with the files, fetched first when they are not there.

    Raises:
        GitopsError: npm is missing (TOOL_MISSING), the registry does not answer, or the archive is another one.
    """
    folder = description.folder
    if not await asyncio.to_thread(folder.is_dir):
        npm = shutil.which("npm")
        if npm is None:
            what = f"{description.package} comes from the npm registry and npm is not installed"
            raise BlockedError(what, code=ErrorCode.TOOL_MISSING, hint="apt-get install npm, or dnf install npm")
        with tempfile.TemporaryDirectory() as temporary:
            archive = await _packed(Path(npm), description, Path(temporary))
            await asyncio.to_thread(_unpack, archive, description)
    return folder


async def _packed(npm: Path, description: Description, temporary: Path) -> Path:
    process = await asyncio.create_subprocess_exec(
        *(str(npm), "pack", "--silent", f"{description.package}@{description.version}"),
        cwd=temporary,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    archives = await asyncio.to_thread(lambda: list(temporary.glob("*.tgz")))
    if process.returncode or not archives:
        said = output.decode("utf-8", "replace").strip()[-500:]
        what = f"npm pack {description.package}@{description.version} failed: {said}"
        raise Unavailable(what, code=ErrorCode.LOCAL_SYSTEM, hint="check the network and run the command again")
    return archives[0]


def _unpack(archive: Path, description: Description) -> None:
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != description.integrity:
        what = f"the archive of {description.package}@{description.version} has another hash than the pinned one"
        raise TerminalError(what, code=ErrorCode.LOCAL_SYSTEM, subject=found)
    folder = description.folder
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    with tarfile.open(archive) as stream:
        for member in description.members:
            content = stream.extractfile(member)
            assert content is not None
            (fresh / Path(member).name).write_bytes(content.read())
    try:
        fresh.rename(folder)
    except OSError:
        # Another process was faster; its files are the same.
        shutil.rmtree(fresh)
