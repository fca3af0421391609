"""One file for each digest, shared, bounded, and never believed without its digest (rollouts.md, section 13.8)."""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused, Unavailable
from gitops_ctl.device import spool as spool_module
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.spool import Image, Spool, SpoolFull, Wanted
from tests.support.kube_clock import JumpingClock


def content_of(name: str, size: int = 1000) -> bytes:
    return (name.encode() * size)[:size]


def wanted(content: bytes, *, size: int | None = None) -> Wanted:
    return Wanted(hashlib.sha256(content).hexdigest(), len(content) if size is None else size)


class Server:
    """Gives content in pieces, and counts how often it was asked."""

    def __init__(self, content: bytes, *, size: int | None = None, says_size: bool = True) -> None:
        self.content = content
        self.asked = 0
        self.gate: asyncio.Event | None = None
        self.error: Exception | None = None
        self._size = len(content) if size is None else size
        self._says_size = says_size

    def __call__(self) -> AbstractAsyncContextManager[Download]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Download]:
        self.asked += 1
        yield Download(self._size if self._says_size else None, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        for begin in range(0, len(self.content), 300):
            if begin and self.gate is not None:
                await self.gate.wait()
            if begin and self.error is not None:
                raise self.error
            yield self.content[begin : begin + 300]


def free_pace() -> Pacer:
    return Pacer(None, clock=JumpingClock())


async def read(image: Image, size: int = 256) -> bytes:
    return b"".join([chunk async for chunk in image.chunks(size)])


async def fetch(spool: Spool, server: Server, which: Wanted | None = None) -> bytes:
    async with spool.image(which or wanted(server.content), server, pacer=free_pace()) as image:
        return await read(image)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_an_image_is_fetched_once_and_read_from_its_file(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path / "spool"), Server(content_of("a"))
    assert await fetch(spool, server) == server.content
    assert await fetch(spool, server) == server.content
    assert server.asked == 1
    assert files(tmp_path / "spool") == [wanted(server.content).sha256]
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "spool" / wanted(server.content).sha256).stat().st_mode & 0o777 == 0o600


async def test_two_devices_share_one_download(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"))
    server.gate = asyncio.Event()
    both = [asyncio.create_task(fetch(spool, server)) for _ in range(2)]
    await asyncio.sleep(0)
    server.gate.set()
    assert await asyncio.gather(*both) == [server.content] * 2
    assert server.asked == 1


async def test_when_the_first_device_goes_away_the_second_fetches_for_itself(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"))
    server.gate = asyncio.Event()
    first = asyncio.create_task(fetch(spool, server))
    while not server.asked:
        await asyncio.sleep(0)
    second = asyncio.create_task(fetch(spool, server))
    await asyncio.sleep(0)
    first.cancel()
    server.gate.set()
    assert await second == server.content
    assert server.asked == 2
    assert files(tmp_path) == [wanted(server.content).sha256]


async def test_a_new_process_finds_the_file_and_hashes_it_again(tmp_path: Path) -> None:
    server = Server(content_of("a"))
    await fetch(Spool(tmp_path), server)
    await fetch(Spool(tmp_path), server)
    assert server.asked == 1
    (tmp_path / wanted(server.content).sha256).write_bytes(content_of("b"))
    assert await fetch(Spool(tmp_path), server) == server.content
    assert server.asked == 2


async def test_what_a_dead_process_left_half_done_goes(tmp_path: Path) -> None:
    digest = wanted(content_of("a")).sha256
    (tmp_path / f"{digest}.0123abcd.part").write_bytes(b"half")
    (tmp_path / "something").write_bytes(b"else")
    (tmp_path / digest).symlink_to("/etc/passwd")
    Spool(tmp_path)
    assert files(tmp_path) == []


async def test_another_digest_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"))
    with pytest.raises(Refused) as caught:
        await fetch(spool, server, wanted(content_of("b")))
    assert caught.value.code is ErrorCode.IMAGE_DIGEST_MISMATCH
    assert files(tmp_path) == []


@pytest.mark.parametrize("says_size", [True, False])
async def test_another_size_is_refused(says_size: bool, tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"), says_size=says_size)
    for size in (900, 1100):
        with pytest.raises((Refused, Unavailable)) as caught:
            await fetch(spool, server, wanted(server.content, size=size))
        if says_size or size == 900:
            assert caught.value.code is ErrorCode.IMAGE_DIGEST_MISMATCH
    await fetch(spool, server)
    with pytest.raises(Refused) as caught:
        await fetch(spool, server, wanted(server.content, size=900))
    assert caught.value.code is ErrorCode.IMAGE_DIGEST_MISMATCH


async def test_a_size_that_nobody_knows_is_learnt(tmp_path: Path) -> None:
    server = Server(content_of("a"), says_size=False)
    async with Spool(tmp_path).image(Wanted(wanted(server.content).sha256), server, pacer=free_pace()) as image:
        assert image.size == 1000


async def test_a_download_that_breaks_leaves_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"))
    server.error = Unavailable("the image server does not answer", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE)
    with pytest.raises(Unavailable):
        await fetch(spool, server)
    assert files(tmp_path) == []
    server.error = None
    assert await fetch(spool, server) == server.content


async def test_an_answer_that_ends_early_is_no_image(tmp_path: Path) -> None:
    server = Server(content_of("a"), size=1200)
    with pytest.raises(Unavailable, match="ended early"):
        await fetch(Spool(tmp_path), server, Wanted(wanted(server.content).sha256, 1200))
    assert files(tmp_path) == []


async def test_without_a_source_the_image_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="not in the spool"):
        async with Spool(tmp_path).image(wanted(content_of("a")), None, pacer=free_pace()):
            pass


async def test_the_limit_is_told_with_both_numbers_and_nothing_is_fetched(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path, limit_bytes=1500), Server(content_of("b"))
    first = Server(content_of("a"))
    await fetch(spool, first)
    spool.keep([wanted(first.content).sha256])
    with pytest.raises(
        SpoolFull, match="needs 1000 bytes and the spool has room for 500 of its limit of 1500"
    ) as caught:
        await fetch(spool, server)
    assert caught.value.code is ErrorCode.SPOOL_FULL
    with pytest.raises(SpoolFull):
        spool.require_room(wanted(server.content))
    spool.require_room(wanted(first.content))
    assert files(tmp_path) == [wanted(first.content).sha256]


async def test_images_that_nobody_needs_go_the_oldest_use_first(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit_bytes=3000)
    servers = [Server(content_of(name)) for name in "abc"]
    for age, server in enumerate(servers):
        await fetch(spool, server)
        os.utime(tmp_path / wanted(server.content).sha256, (age, age))
    await fetch(spool, servers[0])
    spool.keep([wanted(servers[1].content).sha256])
    fresh = Server(content_of("d"))
    await fetch(spool, fresh)
    assert files(tmp_path) == sorted(wanted(each.content).sha256 for each in (servers[0], servers[1], fresh))


async def test_an_image_in_use_is_not_removed(tmp_path: Path) -> None:
    spool, first, second = Spool(tmp_path, limit_bytes=1500), Server(content_of("a")), Server(content_of("b"))
    async with spool.image(wanted(first.content), first, pacer=free_pace()) as image:
        with pytest.raises(SpoolFull):
            await fetch(spool, second)
        assert await read(image) == first.content
    await fetch(spool, second)
    assert not spool.holds(wanted(first.content).sha256)


async def test_a_download_under_way_has_its_room(tmp_path: Path) -> None:
    spool, first, second = Spool(tmp_path, limit_bytes=1500), Server(content_of("a")), Server(content_of("b"))
    first.gate = asyncio.Event()
    running = asyncio.create_task(fetch(spool, first))
    while not first.asked:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    with pytest.raises(SpoolFull):
        await fetch(spool, second)
    first.gate.set()
    await running


async def test_a_size_that_grows_beyond_the_limit_is_stopped(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path, limit_bytes=500), Server(content_of("a"), says_size=False)
    with pytest.raises(SpoolFull):
        await fetch(spool, server, Wanted(wanted(server.content).sha256))
    assert files(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_is_told_like_the_limit(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(spool_module, "_write", write)
    with pytest.raises(SpoolFull, match="needs 1000 bytes and the disk has"):
        await fetch(Spool(tmp_path), Server(content_of("a")))
    assert files(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("place", ["_write", "_finish"])
async def test_a_disk_that_fails_is_told_and_tried_again(
    number: int, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    server, spool = Server(content_of("a")), Spool(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spool_module, place, fails)
        with pytest.raises(SpoolFull, match=os.strerror(number)):
            await fetch(spool, server)
    assert files(tmp_path) == []
    assert await fetch(spool, server) == server.content


async def test_a_file_that_cannot_be_read_any_more_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, spool, real, failed = Server(content_of("a")), Spool(tmp_path), spool_module._digest_of, list[int]()
    await fetch(spool, server)

    def fails_once(file: BinaryIO) -> str:
        if not failed:
            failed.append(errno.EIO)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(file)

    monkeypatch.setattr(spool_module, "_digest_of", fails_once)
    assert await fetch(spool, server) == server.content
    assert (server.asked, failed) == (2, [errno.EIO])


async def test_a_download_is_held_back_to_its_rate(tmp_path: Path) -> None:
    clock, server = JumpingClock(), Server(content_of("a"))
    async with Spool(tmp_path).image(wanted(server.content), server, pacer=Pacer(100, clock=clock)):
        assert sum(clock.slept) == pytest.approx(10.0)
        assert clock.slept[0] == pytest.approx(3.0)


@pytest.mark.parametrize("digest", ["", "A" * 64, "../../etc/passwd", "a" * 63, "a" * 65])
def test_a_digest_that_is_none_never_becomes_a_name(digest: str) -> None:
    with pytest.raises(Refused):
        Wanted(digest)


async def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server(content_of("a"))
    async with spool.image(wanted(server.content), server, pacer=free_pace()) as image:
        os.truncate(tmp_path / image.sha256, 100)
        with pytest.raises(OSError, match="shorter"):
            await read(image, 300)
