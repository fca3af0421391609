"""Builds the real components once per user, into a folder named by what they are made from.

    CACHE/gitops-ctl/peers/
      NAME-<hash of go.mod, go.sum, flags>-<Go version>/PROGRAM
      lock       held by the one process that builds
      progress   what it does now, for those who wait
      tmp/       its work; emptied by the next builder

Each program is moved into place in one step when it is done, so an interrupted build goes on with the next program, and what
stands in a folder is complete.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.golang import INSTALL_HINT, Go, ask_go, build_program, find_go
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.recipes import Recipe
from gitops_ctl.local.resources import free_memory, require_disk, require_memory

_POLL_S = 0.5


def peers_cache() -> Path:
    """Where built components are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gitops-ctl" / "peers"


class Builder:
    """Gives the programs of recipes, built when they are not in the cache yet."""

    def __init__(self, *, progress: Progress, cache: Path | None = None, clock: Clock | None = None) -> None:
        self._cache = cache or peers_cache()
        self._progress = progress
        self._clock = clock or SystemClock()
        self._shared = self._cache / "progress"

    async def programs(self, recipes: tuple[Recipe, ...]) -> Mapping[str, Path]:
        """Program name to its path, for all programs of all recipes.

        Raises:
            GitopsError: Go, disk or memory is short (TOOL_MISSING, DISK_SHORT, MEMORY_SHORT), or a build failed.
        """
        program = find_go()
        if program is None:
            return self._without_go(recipes)
        go = await ask_go(program, folder=recipes[0].folder)
        folders = {recipe: self._cache / f"{recipe.key()}-{go.version}" for recipe in recipes}
        if _missing(folders):
            self._require_resources(go, folders)
            await self._build_alone(go, folders)
        return _paths(folders)

    def _without_go(self, recipes: tuple[Recipe, ...]) -> Mapping[str, Path]:
        """What any version of Go has built before is as good."""
        paths: dict[str, Path] = {}
        for recipe in recipes:
            found = [
                folder for folder in sorted(self._cache.glob(f"{recipe.key()}-*")) if not _missing({recipe: folder})
            ]
            if not found:
                raise BlockedError(
                    f"{recipe.name} has to be built and Go is not installed",
                    code=ErrorCode.TOOL_MISSING,
                    hint=INSTALL_HINT,
                )
            paths |= _paths({recipe: found[-1]})
        return paths

    def _require_resources(self, go: Go, folders: Mapping[Recipe, Path]) -> None:
        recipes = {recipe for recipe, _ in _missing(folders)}
        _require_compiler(recipes)
        places = (self._cache, go.build_cache, go.module_cache)
        require_disk(places, needed=max(recipe.disk_bytes for recipe in recipes))
        require_memory(free_memory(), needed=max(recipe.memory_bytes for recipe in recipes))

    async def _build_missing(self, go: Go, folders: Mapping[Recipe, Path]) -> None:
        # Read again: whoever held the lock before may have built it.
        missing = _missing(folders)
        temporary = self._cache / "tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        for number, (recipe, program) in enumerate(missing, start=1):
            temporary.mkdir(parents=True, exist_ok=True)
            place = f"building {number} of {len(missing)}, " if len(missing) > 1 else "building "

            def report(text: str, done: int, total: int, place: str = place) -> None:
                self._show(place + text, done, total)

            report(f"{program}: reading its modules", 0, 0)
            output = temporary / program
            await build_program(go, recipe, program=program, output=output, temporary=temporary, report=report)
            folders[recipe].mkdir(parents=True, exist_ok=True)
            output.replace(folders[recipe] / program)
            shutil.rmtree(temporary, ignore_errors=True)

    async def _build_alone(self, go: Go, folders: Mapping[Recipe, Path]) -> None:
        """Build under the lock; while another process has it, show what that one does, until nothing is missing any more."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with (self._cache / "lock").open("ab") as stream:
            while not _try_lock(stream):
                if not _missing(folders):
                    return
                self._show_other()
                await self._clock.sleep(_POLL_S)
            try:
                await self._build_missing(go, folders)
            finally:
                self._shared.unlink(missing_ok=True)

    def _show(self, text: str, done: int, total: int) -> None:
        self._progress.update(text, done=done, total=total)
        fresh = self._shared.with_suffix(".new")
        fresh.write_text(json.dumps([text, done, total]))
        fresh.replace(self._shared)

    def _show_other(self) -> None:
        text, done, total = "starting", 0, 0
        with suppress(OSError, ValueError):
            text, done, total = json.loads(self._shared.read_bytes())
        self._progress.update(f"waiting for another process: {text}", done=done, total=total)


def _require_compiler(recipes: Iterable[Recipe]) -> None:
    """The parts in C need a compiler; Go's own message does not say how to get one."""
    compiler = os.environ.get("CC") or "gcc"
    needing = [recipe.name for recipe in recipes if recipe.needs_c]
    if needing and shutil.which(compiler.split()[0]) is None:
        raise BlockedError(
            f"{', '.join(needing)} has to be built and {compiler} is not installed",
            code=ErrorCode.TOOL_MISSING,
            hint="apt-get install gcc libc6-dev, or dnf install gcc glibc-devel",
        )


def _try_lock(stream: IO[bytes]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _missing(folders: Mapping[Recipe, Path]) -> list[tuple[Recipe, str]]:
    return [
        (recipe, program)
        for recipe, folder in folders.items()
        for program in recipe.programs
        if not (folder / program).is_file()
    ]


def _paths(folders: Mapping[Recipe, Path]) -> dict[str, Path]:
    return {program: folder / program for recipe, folder in folders.items() for program in recipe.programs}
