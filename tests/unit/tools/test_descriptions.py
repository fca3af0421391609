"""Published descriptions come through npm, are pinned by their hash, and a missing npm is named with its cure."""

import base64
import hashlib
import io
import tarfile

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from tools.peers.descriptions import Description, described


def archive(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}.json")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A client that packs what stands in `archive`, and writes down what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "npm"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ -e {tmp_path}/archive ] || {{ echo "no answer"; exit 1; }}\n'
        f"cp {tmp_path}/archive found.tgz\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def pinned(content: bytes) -> Description:
    integrity = base64.b64encode(hashlib.sha512(content).digest()).decode()
    return Description("@example/openapi", "1.2.3", integrity, ("package/api.json",))


async def test_a_description_is_fetched_once_and_only_its_members_are_kept(npm):
    content = archive(api=b"{}", other=b"[]")
    (npm / "archive").write_bytes(content)
    folder = await described(pinned(content))
    assert [path.name for path in folder.iterdir()] == ["api.json"]
    assert await described(pinned(content)) == folder
    assert (npm / "asked").read_text() == "pack --silent @example/openapi@1.2.3\n"


async def test_an_archive_with_another_hash_is_refused(npm):
    (npm / "archive").write_bytes(archive(api=b"[]"))
    with pytest.raises(GitopsError, match="another hash"):
        await described(pinned(archive(api=b"{}")))
    assert not pinned(archive(api=b"{}")).folder.exists()


async def test_a_registry_that_does_not_answer_is_told(npm):
    with pytest.raises(GitopsError, match="no answer"):
        await described(pinned(b""))


async def test_a_missing_npm_is_named_with_the_command_that_installs_it(npm, monkeypatch):
    monkeypatch.setenv("PATH", str(npm))
    with pytest.raises(GitopsError, match="npm is not installed") as caught:
        await described(pinned(b""))
    assert caught.value.code is ErrorCode.TOOL_MISSING
    assert "apt-get install npm" in caught.value.hint
