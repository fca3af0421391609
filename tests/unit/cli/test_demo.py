"""The demo's own world: two of them never meet.

Out of scope: the story itself (tests/e2e/test_readme.py).
"""

from pathlib import Path

import pytest

from gitops_ctl.cli.demoworld import demo_world
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.state import SystemFolder, locked, state_home


async def test_a_second_demo_is_told_and_the_first_one_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = SystemFolder(state_home() / "demo")
    first.create()
    with locked(state_home() / "demo.lock", busy=BlockedError("not expected here")):
        with pytest.raises(BlockedError) as caught:
            async with demo_world(say=print):
                pass
        assert first.path.is_dir()
    assert caught.value.code is ErrorCode.LOCAL_BUSY
    assert "Ctrl-C" in caught.value.hint
