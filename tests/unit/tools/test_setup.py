"""`make` on a machine where something is missing says what, and the command that installs it."""

import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "tools" / "setup.sh"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with only the plainest tools."""
    for name in ("sh", "dirname", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    return tmp_path


def setup(programs: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(programs), "PYTHON": "python3"}
    return subprocess.run([SETUP], env=environment, capture_output=True, text=True, check=False)


def add_python(programs: Path, version: str) -> None:
    script = programs / "python3"
    new = "0" if version >= "3.11" else "1"
    script.write_text(f'#!/bin/sh\ncase "$1" in -V) echo "Python {version}";; *) exit {new};; esac\n')
    script.chmod(0o755)


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "apt-get install --no-install-recommends python3-venv git gnupg openssh-client"),
        ("dnf", "dnf install python3 git gnupg2 openssh-clients"),
        ("apk", "apk add python3 git gnupg openssh-keygen"),
        ("brew", "brew install python3 git gnupg openssh"),
        ("", "by their names in Debian: python3-venv git gnupg openssh-client"),
    ],
)
def test_missing_tools_are_named_together_with_one_command_of_this_system(
    programs: Path, manager: str, command: str
) -> None:
    if manager:
        (programs / manager).symlink_to("/usr/bin/true")
    done = setup(programs)
    assert done.returncode == 1
    assert "missing: python3 git gpg ssh-keygen" in done.stderr
    assert command in done.stderr


def test_a_python_that_is_too_old_is_named_with_its_version(programs: Path) -> None:
    for name in ("git", "gpg", "ssh-keygen", "sshd"):
        (programs / name).symlink_to("/usr/bin/true")
    add_python(programs, "3.10.4")
    done = setup(programs)
    assert done.returncode == 1
    assert "python3 is Python 3.10.4; 3.11 or newer is needed" in done.stderr
