"""A disk that is full or cannot be written in the middle of something: it is told, nothing is lost, and work goes on later."""

import errno
import os
from pathlib import Path

import pygit2
import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.git.fetching import FetchRequest, Ref
from gitops_ctl.git.layout import REDIRECTS, UNFINISHED_FILE, exclusive, prepare_repository
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.git.url import parse_url

URL = parse_url("https://git.example.net/net/work")


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_copy_that_cannot_be_made_is_told_with_the_words_of_the_system_and_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CloneCache(tmp_path / "cache")
    with monkeypatch.context() as patched:
        patched.setattr("gitops_ctl.git.layout.pygit2.init_repository", full)
        with pytest.raises(TransientError, match="No space left on device") as told:
            cache.path_for(URL, tenant="team-a")
        assert told.value.code is ErrorCode.FETCH_FAILED
        assert "cache folder" in told.value.hint
    assert pygit2.Repository(str(cache.path_for(URL, tenant="team-a"))).is_bare


def test_a_cache_folder_that_became_a_file_is_told_too(tmp_path: Path) -> None:
    cache = CloneCache(tmp_path / "cache")
    cache.root.rmdir()
    cache.root.write_text("a file in the place of the folder")
    with pytest.raises(TransientError, match="Not a directory"):
        cache.path_for(URL, tenant="team-a")


def test_a_copy_whose_making_was_cut_off_follows_no_redirects_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "generation-1"
    with monkeypatch.context() as patched:
        patched.setattr("pygit2.config.Config.__setitem__", full)
        with exclusive(path), pytest.raises(OSError, match="No space"):
            prepare_repository(path)
    assert (path / "HEAD").exists(), "everything but the setting was written"
    with exclusive(path):
        prepare_repository(path)
    assert pygit2.Repository(str(path)).config.get_bool(REDIRECTS) is False


def test_a_full_disk_during_the_repair_of_a_copy_does_not_make_it_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "generation-1"
    with exclusive(path):
        prepare_repository(path)
    (path / UNFINISHED_FILE).touch()
    with monkeypatch.context() as patched:
        patched.setattr("gitops_ctl.git.layout._write_shallow_edges", full)
        with exclusive(path), pytest.raises(OSError, match="No space"):
            prepare_repository(path)
    assert (path / UNFINISHED_FILE).exists(), "it is repaired the next time"
    with exclusive(path):
        prepare_repository(path)
    assert not (path / UNFINISHED_FILE).exists()


def test_a_damaged_copy_that_cannot_be_discarded_stays_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CloneCache(tmp_path / "cache")
    path = cache.path_for(URL, tenant="team-a")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", full)
        cache.discard(path)
    assert cache.path_for(URL, tenant="team-a") == path
    cache.discard(path)
    assert cache.path_for(URL, tenant="team-a") != path


async def test_a_fetch_for_which_no_process_can_be_made_is_waited_for(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.write_text("a file in the place of the folder")
    request = FetchRequest(url=URL, repository=tmp_path / "copy", ref=Ref("branch", "main"))
    with pytest.raises(TransientError, match="Not a directory") as told:
        await ChildTransport(scratch=scratch).resolve(request)
    assert told.value.code is ErrorCode.FETCH_FAILED
