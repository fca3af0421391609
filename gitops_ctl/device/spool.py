"""Images on their way to devices: one file for each SHA-256 in a directory of the worker (rollouts.md, section 13.8).

Devices that need the same image share one download.  A file gets its name only when its content has its digest, and is hashed again when it
is opened, because the directory outlives the process.  Files that nobody needs go when room is wanted, the one that was used longest ago first.
A limit that is reached and a disk that is full are the same to callers: they wait and try again.
"""

import asyncio
import errno
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused, Unavailable
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.pacing import Pacer

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Download]]
"""Begins one attempt to download."""

DEFAULT_LIMIT: Final = 16 * 2**30
_BLOCK: Final = 2**20
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class SpoolFull(BlockedError):
    """There is no room for the image now."""

    code = ErrorCode.SPOOL_FULL


@dataclass(frozen=True, slots=True)
class Wanted:
    """The image of a plan.

    Attributes:
        sha256: 64 lower hexadecimal digits.
        size: that must be met, in bytes; None when it is not known yet.
    """

    sha256: str
    size: int | None = None

    def __post_init__(self) -> None:
        # It becomes the name of a file.
        if not _DIGEST.fullmatch(self.sha256):
            raise Refused(
                "the SHA-256 of an image is 64 lower hexadecimal digits", code=ErrorCode.IMAGE_DIGEST_MISMATCH
            )


class Image:
    """An image that lies in the spool and has its digest."""

    def __init__(self, sha256: str, size: int, file: BinaryIO) -> None:
        self.sha256 = sha256
        self.size = size
        self._file = file

    async def chunks(self, size: int) -> AsyncIterator[bytes]:
        """All bytes in their order, from the first on; one chunk is in memory."""
        for offset in range(0, self.size, size):
            chunk = await asyncio.to_thread(os.pread, self._file.fileno(), min(size, self.size - offset), offset)
            if not chunk:
                raise OSError(errno.EIO, "the file became shorter")
            yield chunk


class Spool:
    """One directory; one object in one process.

    Args:
        folder: is made when it is missing; what lies there and is no image is removed.
        limit_bytes: of all files together.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._kept: frozenset[str] = frozenset()
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}
        self._coming: dict[str, int] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in folder.iterdir():
            if not _DIGEST.fullmatch(path.name) or path.is_symlink() or not path.is_file():
                _remove(path)

    def keep(self, digests: Iterable[str]) -> None:
        """Images that open upgrades need, instead of those named before: they are not removed to make room."""
        self._kept = frozenset(digests)

    def holds(self, sha256: str) -> bool:
        """Whether a file of this name is there; `image` checks its content."""
        return (self._folder / sha256).is_file()

    def require_room(self, wanted: Wanted) -> None:
        """Raises SpoolFull when the image would not fit, also after others went that nobody needs."""
        if wanted.size is not None and not self.holds(wanted.sha256):
            free = self._limit - self._bound(besides=wanted.sha256)
            if wanted.size > free:
                raise self._full(wanted.size, free)

    @asynccontextmanager
    async def image(self, wanted: Wanted, opening: Opening | None, *, pacer: Pacer) -> AsyncIterator[Image]:
        """The image, downloaded when it is not there; it stays as long as the block lasts.

        Args:
            wanted: which image.
            opening: begins a download; None: the image must be there.
            pacer: holds back a download; another one that comes meanwhile waits for it and is not held back itself.

        Raises:
            SpoolFull: there is no room; nothing was kept.
            Refused: IMAGE_DIGEST_MISMATCH: size or digest is another one; trying again changes nothing.
            Unavailable: the download broke, or the image is not there and may not be downloaded.
            BlockedError: the source refuses.
        """
        self._users[wanted.sha256] = self._users.get(wanted.sha256, 0) + 1
        try:
            async with self._turns.setdefault(wanted.sha256, asyncio.Lock()):
                file = await self._opened(wanted)
                if file is None:
                    if opening is None:
                        raise Unavailable("the image is not in the spool", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE)
                    await self._download(wanted, opening, pacer=pacer)
                    file = await self._opened(wanted)
                if file is None:
                    raise Unavailable("the image went from the spool", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE)
            with file:
                yield Image(wanted.sha256, os.fstat(file.fileno()).st_size, file)
        finally:
            self._users[wanted.sha256] -= 1
            if not self._users[wanted.sha256]:
                del self._users[wanted.sha256], self._turns[wanted.sha256]

    async def _opened(self, wanted: Wanted) -> BinaryIO | None:
        """The file, when it is there and its content is right; one that is wrong is removed."""
        path = self._folder / wanted.sha256
        try:
            file = await asyncio.to_thread(_open, path)
        except OSError:
            return None
        try:
            found = await asyncio.to_thread(_digest_of, file)
            size = os.fstat(file.fileno()).st_size
        except OSError:
            # What cannot be read any more is fetched again.
            found, size = "", 0
        except BaseException:
            file.close()
            raise
        if found != wanted.sha256:
            file.close()
            _remove(path)
            return None
        if wanted.size not in (None, size):
            file.close()
            raise _mismatch(f"the image has {size} bytes, {wanted.size} are expected")
        with suppress(OSError):
            os.utime(path)
        return file

    async def _download(self, wanted: Wanted, opening: Opening, *, pacer: Pacer) -> None:
        path = self._folder / f"{wanted.sha256}.{secrets.token_hex(4)}.part"
        try:
            async with opening() as download:
                await self._receive(wanted, download, path=path, pacer=pacer)
        except OSError as error:
            raise self._disk_failed(wanted, error) from error
        finally:
            self._coming.pop(wanted.sha256, None)
            _remove(path)

    async def _receive(self, wanted: Wanted, download: Download, *, path: Path, pacer: Pacer) -> None:
        expected = wanted.size if wanted.size is not None else download.size
        if download.size not in (None, expected):
            raise _mismatch(f"the server has {download.size} bytes, {expected} are expected")
        self._make_room(wanted.sha256, expected or 0)
        digest, size = hashlib.sha256(), 0
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb", 0) as file:
            async for chunk in download.chunks:
                size += len(chunk)
                if expected is not None and size > expected:
                    raise _mismatch(f"the server sends more than {expected} bytes")
                if expected is None:
                    self._make_room(wanted.sha256, size)
                await pacer.release(len(chunk))
                await asyncio.to_thread(_write, file, chunk, digest)
            if expected is not None and size != expected:
                raise Unavailable("the download ended early", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE)
            if (found := digest.hexdigest()) != wanted.sha256:
                raise _mismatch(f"the image has the SHA-256 {found}, the plan says {wanted.sha256}")
            await asyncio.to_thread(_finish, file, path, self._folder / wanted.sha256)

    def _make_room(self, sha256: str, size: int) -> None:
        """Room for `size` bytes of this image, by removing what nobody needs."""
        self._coming[sha256] = size
        missing = sum(self._sizes().values()) + sum(self._coming.values()) - self._limit
        if missing <= 0:
            return
        removable = [name for name in self._sizes() if not self._is_needed(name)]
        free = self._limit - self._bound(besides=sha256)
        if size > free:
            raise self._full(size, free)
        for name in sorted(removable, key=lambda name: (self._folder / name).stat().st_mtime_ns):
            missing -= (self._folder / name).stat().st_size
            _remove(self._folder / name)
            if missing <= 0:
                return

    def _bound(self, *, besides: str) -> int:
        """Bytes that are needed or coming."""
        kept = sum(size for name, size in self._sizes().items() if self._is_needed(name) and name != besides)
        return kept + sum(size for name, size in self._coming.items() if name != besides)

    def _is_needed(self, name: str) -> bool:
        return name in self._kept or name in self._users

    def _sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self._folder.iterdir() if _DIGEST.fullmatch(path.name)}

    def _full(self, size: int, free: int) -> SpoolFull:
        room = f"the spool has room for {max(0, free)} of its limit of {self._limit}"
        return SpoolFull(f"the image needs {size} bytes and {room}")

    def _disk_failed(self, wanted: Wanted, error: OSError) -> SpoolFull:
        """A disk that takes nothing has no room, whatever it says; callers wait and try again."""
        if error.errno not in _FULL:
            return SpoolFull(f"the spool has room for 0 bytes, because it cannot be used: {error.strerror or error}")
        free = os.statvfs(self._folder)
        needs = f"{wanted.size} bytes" if wanted.size is not None else "more"
        left = free.f_bavail * free.f_frsize
        return SpoolFull(f"the image needs {needs} and the disk has {left} left: {os.strerror(error.errno or 0)}")


def _open(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _write(file: FileIO, chunk: bytes, digest: "hashlib._Hash") -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
    digest.update(chunk)


def _finish(file: FileIO, path: Path, name: Path) -> None:
    os.fsync(file.fileno())
    path.rename(name)


def _digest_of(file: BinaryIO) -> str:
    digest, offset = hashlib.sha256(), 0
    while block := os.pread(file.fileno(), _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _mismatch(message: str) -> Refused:
    return Refused(message, code=ErrorCode.IMAGE_DIGEST_MISMATCH)
