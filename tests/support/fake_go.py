"""A Go tool for tests of the build: a script that answers `env`, `list` and `build`, and can be told to fail or to wait.

It writes what it was asked to `calls` in its folder.  A file `hold`, or `hold-PROGRAM`, there makes `build` wait until it is gone; a file `fail` makes
it print that file and end with status 1.
"""

import sys
from pathlib import Path

_SCRIPT = """#!{python}
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
command, arguments = sys.argv[1], sys.argv[2:]
if command == "env":
    print(json.dumps({{"GOVERSION": "go1.99", "GOCACHE": str(here / "gocache"), "GOMODCACHE": str(here / "modcache")}}))
elif command == "list" and "-m" in arguments:
    print({module!r})
elif command == "list":
    print("go: downloading example.net/module v1.2.3", file=sys.stderr)
    print("example.net/a\\nexample.net/b\\nexample.net/main")
elif command == "build":
    output = pathlib.Path(arguments[arguments.index("-o") + 1])
    with (here / "calls").open("a") as calls:
        calls.write(output.name + "\\n")
    print("example.net/a\\nexample.net/b", flush=True)
    while (here / "hold").exists() or (here / f"hold-{{output.name}}").exists():
        time.sleep(0.02)
    if (here / "fail").exists():
        print((here / "fail").read_text())
        sys.exit(1)
    print("example.net/main")
    output.write_text("program " + output.name)
"""


class FakeGo:
    """The tool in `folder`, and what it was asked."""

    def __init__(self, folder: Path, *, module: Path | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.program = folder / "go"
        self.program.write_text(_SCRIPT.format(python=sys.executable, module=str(module)))
        self.program.chmod(0o755)
        self.hold = folder / "hold"

    @property
    def built(self) -> list[str]:
        """Programs whose build began, in order."""
        calls = self.folder / "calls"
        return calls.read_text().split() if calls.exists() else []

    def fail(self, said: str) -> None:
        (self.folder / "fail").write_text(said)

    def succeed(self) -> None:
        (self.folder / "fail").unlink()
