"""`python -m tools.check_rooms`: no file outgrows its room, and no room is called after nothing in particular.

Limits: 500 lines for a file of code, 40 for a function without its signature and docstring.  A function that is better whole says why in a comment
`# whole: reason` inside it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("gitops_ctl", "tests", "tools")
GENERATED = "gitops_ctl/netpb"
FILE_LINES = 500
FUNCTION_LINES = 40
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def complaints(path: Path, text: str) -> Iterator[str]:
    """What is wrong with one file, a line each."""
    lines = text.splitlines()
    if len(lines) > FILE_LINES:
        yield f"{path}:{FILE_LINES}: {len(lines)} lines, {FILE_LINES} are allowed: split it by topic"
    if path.stem in EMPTY_NAMES:
        yield f"{path}:1: the name says nothing: name the module after what it is about"
    if path.parts[0] == "tests":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = _body_lines(node)
            whole = any("# whole: " in line for line in lines[node.lineno - 1 : node.end_lineno])
            if size > FUNCTION_LINES and not whole:
                yield f"{path}:{node.lineno}: {node.name} has {size} lines, {FUNCTION_LINES} are allowed"


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return 0
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def main() -> int:
    """The program."""
    found = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    files = [path for path in found if not path.is_relative_to(ROOT / GENERATED)]
    said = [line for path in files for line in complaints(path.relative_to(ROOT), path.read_text())]
    print(*said, f"rooms: {len(files)} files, {len(said)} outgrow theirs", sep="\n")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
