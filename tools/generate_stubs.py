"""`python -m tools.generate_stubs`: writes `gitops_ctl/netpb` from the protocol files that Talos and OpenConfig publish.

The files come from the Go modules named below, whose checksums are pinned here; the protocol of the COSI state service is our own file.
Each protocol file moves below the prefix of the package, because modules called `common`, `github` or `inspect` would hide others;
protocol packages stay as they are, so that the names on the wire do.  `SOURCES.json` beside the stubs says what they were made from.
With `--check` nothing is written: the status is 1 when a fresh run gives something else.
"""

import argparse
import hashlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "gitops_ctl" / "netpb"
PREFIX = "gitops_ctl/netpb"


@dataclass(frozen=True)
class Published:
    """Protocol files of one Go module.

    Attributes:
        sum: of the module, as the checksum database of Go has it.
        package: folder of the stubs below the prefix; the licence text goes there too.
        root: folder of the protocol files in the module.
        imported: how one file of the module names another, before its path.
    """

    module: str
    version: str
    sum: str
    package: str
    licence: str
    files: tuple[str, ...]
    root: str = ""
    imported: str = ""


TALOS = Published(
    module="github.com/siderolabs/talos",
    version="v1.14.0",
    sum="h1:A1RIiEj4jObjRsZB5HC/KDmKokhU4pXsvixD+57czKw=",
    package="talos",
    licence="MPL-2.0",
    root="api/",
    files=(
        "common/common.proto",
        "machine/machine.proto",
        "resource/config/config.proto",
        "resource/definitions/enums/enums.proto",
        "resource/definitions/k8s/k8s.proto",
        "resource/definitions/proto/proto.proto",
        "resource/definitions/runtime/runtime.proto",
        "resource/definitions/v1alpha1/v1alpha1.proto",
    ),
)
GNOI = Published(
    module="github.com/openconfig/gnoi",
    # Later releases import the files of five more modules, and say the same on the wire.
    version="v0.5.0",
    sum="h1:r0cbY1biqAcVLCUjsQjF3UZlU1yZAgbmW24dK0R53MI=",
    package="gnoi",
    licence="Apache-2.0",
    imported="github.com/openconfig/gnoi/",
    files=("types/types.proto", "common/common.proto", "os/os.proto", "system/system.proto"),
)
STATUS = "google/rpc/status.proto"
COSI = "cosi/state.proto"
SERVICES = tuple(
    f"{PREFIX}/{name}" for name in ("talos/machine/machine.proto", "gnoi/os/os.proto", "gnoi/system/system.proto", COSI)
)
"""Only these are called; stubs of other services would be dead code."""

_NOTICE = "# Generated from {source} by tools/generate_stubs.py; never edited by hand.\n# SPDX-License-Identifier: {licence}\n"


def module_folder(published: Published = TALOS) -> Path:
    """Where the sources of the module lie, fetched first when they are not in the module cache."""
    # Outside of any module, so that nobody's go.mod is looked at.
    module, version = published.module, published.version
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, cwd="/").stdout)
    if found["Sum"] != published.sum:
        raise SystemExit(f"{module} {version} has the checksum {found['Sum']}, pinned is {published.sum}")
    return Path(found["Dir"])


def descriptor_set() -> bytes:
    """The compiled description of the whole Talos API in its module: an oracle that does not come from us."""
    return (module_folder(TALOS) / "api" / "lock.binpb").read_bytes()


def lay_out(sources: Path) -> Mapping[str, tuple[str, str]]:
    """Put the protocol files below `sources` as they are compiled; gives where each came from, and its licence."""
    origins = {}
    for published in (TALOS, GNOI):
        folder = module_folder(published)
        for name in published.files:
            text = (folder / published.root / name).read_text(encoding="utf-8")
            for other in published.files:
                moved = f'import "{PREFIX}/{published.package}/{other}";'
                text = text.replace(f'import "{published.imported}{other}";', moved)
            _write(sources / PREFIX / published.package / name, text)
            source = f"{published.module} {published.version}, {published.root}{name}"
            origins[f"{PREFIX}/{published.package}/{name}"] = (source, published.licence)
    _write(sources / PREFIX / COSI, (TARGET / COSI).read_text(encoding="utf-8"))
    origins[f"{PREFIX}/{COSI}"] = (f"{PREFIX}/{COSI}", "Apache-2.0")
    # Its name stays: another package may load the same file, and one name must have one content.
    _write(sources / STATUS, files("google.rpc").joinpath("status.proto").read_text(encoding="utf-8"))
    common = importlib.metadata.version("googleapis-common-protos")
    origins[STATUS] = (f"googleapis-common-protos {common}, {STATUS}", "Apache-2.0")
    return origins


def compile_all(sources: Path, origins: Mapping[str, tuple[str, str]]) -> None:
    """Compile each file beside its source, and head every result with where it is from."""
    builtin = files("grpc_tools").joinpath("_proto")
    for name in origins:
        options = [f"--python_out={sources}", f"--pyi_out={sources}"]
        if name in SERVICES:
            options.append(f"--grpc_python_out={sources}")
        if protoc.main(["protoc", f"-I{sources}", f"-I{builtin}", *options, name]) != 0:
            raise SystemExit(f"protoc refused {name}")
    for made in sorted((*sources.rglob("*_pb2*.py"), *sources.rglob("*_pb2.pyi"))):
        origin = str(made.relative_to(sources)).partition("_pb2")[0] + ".proto"
        source, licence = origins[origin]
        text = re.sub(
            r"\bfrom google\.rpc import", f"from {PREFIX.replace('/', '.')}.google.rpc import", made.read_text()
        )
        _write(made, _NOTICE.format(source=source, licence=licence) + text)


def generate(into: Path) -> None:
    """Write the whole package into `into`, except our own protocol file and the docstring of the package."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        origins = lay_out(sources)
        compile_all(sources, origins)
        _write(into / "SOURCES.json", _manifest(sources, origins))
        for made in (*sources.rglob("*_pb2*.py"), *sources.rglob("*_pb2.pyi")):
            place = str(made.relative_to(sources)).removeprefix(f"{PREFIX}/")
            _write(into / place, made.read_text())
    for published in (TALOS, GNOI):
        licence = into / published.package / "LICENSE"
        shutil.copyfile(module_folder(published) / "LICENSE", licence)
        licence.chmod(0o644)
    for package in {made.parent for made in into.rglob("*_pb2.py")}:
        while package != into:
            _write(package / "__init__.py", "")
            package = package.parent  # noqa: PLW2901  every folder up to the package itself


def differences(fresh: Path, committed: Path = TARGET) -> list[str]:
    """Generated files that are not the same in both folders."""
    own = {COSI, "__init__.py"}
    names = {
        str(path.relative_to(folder))
        for folder in (fresh, committed)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return sorted(name for name in names - own if _bytes(fresh / name) != _bytes(committed / name))


def _manifest(sources: Path, origins: Mapping[str, tuple[str, str]]) -> str:
    tools = {name: importlib.metadata.version(name) for name in ("grpcio-tools", "protobuf")}
    listed = [
        {
            "file": name,
            "source": source,
            "licence": licence,
            "sha256": hashlib.sha256((sources / name).read_bytes()).hexdigest(),
        }
        for name, (source, licence) in sorted(origins.items())
    ]
    modules = [{"module": one.module, "version": one.version, "sum": one.sum} for one in (TALOS, GNOI)]
    tree = {"modules": modules, "tools": tools, "files": listed}
    return json.dumps(tree, indent=2) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate_stubs")
    parser.add_argument("--check", action="store_true", help="write nothing; say what a fresh run would change")
    if not parser.parse_args().check:
        generate(TARGET)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        changed = differences(Path(folder))
    print(*(f"stale: {PREFIX}/{name}" for name in changed), sep="\n", end="\n" if changed else "")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
