"""The texts below the members of a model, for the schemas that show them.

Read from the source when a schema is made, once for a module.  A process that only checks documents never reads them: to find them
class by class, as pydantic would at each import, takes longer than everything else that makes a class.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise


def member_texts(model: type) -> dict[str, str]:
    """Name of a member to the string that stands below it, for the members that the class itself declares."""
    return _texts_of(model.__module__).get(model.__qualname__, {})


@cache
def _texts_of(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_texts(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member, below in pairwise(node.body):
        match member, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
