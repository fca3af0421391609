"""`python -m gitops_ctl.api.generate [--check] [--into FOLDER]`: the committed CRDs and JSON Schemas, from the models.

With `--check` nothing is written; the exit code is 1 when a committed file differs from a fresh one, or is not generated.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from gitops_ctl.api.crd import crd_of, kind_of
from gitops_ctl.api.editor import editor_schema
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.model import Model
from gitops_ctl.api.trust_policy import ConsentDocument, TrustPolicyDocument
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
_HEADER = "# Generated from gitops_ctl/api by `python -m gitops_ctl.api.generate`; do not edit.\n"


class _Dumper(yaml.CSafeDumper):
    """Without anchors: a shared part is written out, as the API server would return it."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def to_yaml(tree: JsonValue) -> str:
    """`tree` as block YAML in its own order."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def generated() -> Mapping[str, str]:
    """Every generated file: its path below the folder of schemas, and its text."""
    files: dict[str, str] = {}
    for model in ALL_KINDS:
        files[f"crds/{kind_of(model).group}_{kind_of(model).plural}.yaml"] = _HEADER + to_yaml(crd_of(model))
    documents: tuple[type[Model], ...] = (*ALL_KINDS, TrustPolicyDocument, ConsentDocument)
    for document in documents:
        schema = editor_schema(document)
        files[f"json/{text_at(schema, 'title').lower()}.json"] = _to_json(schema)
    return files


def _to_json(schema: JsonObject) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def differences(folder: Path) -> tuple[str, ...]:
    """Paths that are missing, differ, or are no longer generated; sorted."""
    fresh = generated()
    there = {str(path.relative_to(folder)) for kind in ("crds", "json") for path in folder.glob(f"{kind}/*")}
    stale = {path for path, text in fresh.items() if path not in there or (folder / path).read_text() != text}
    return tuple(sorted(stale | (there - set(fresh))))


def write(folder: Path) -> None:
    """Write every generated file below `folder`, and remove what is no longer generated."""
    fresh = generated()
    for path in differences(folder):
        target = folder / path
        if path not in fresh:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(fresh[path])


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0 done or equal, 1 different."""
    parser = argparse.ArgumentParser(
        prog="python -m gitops_ctl.api.generate", description="Generate CRDs and JSON Schemas."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a committed file is not fresh")
    parser.add_argument("--into", type=Path, default=SCHEMAS, help="folder of the schemas")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.into)
        return 0
    stale = differences(options.into)
    for path in stale:
        sys.stderr.write(f"{options.into / path}: not fresh; run python -m gitops_ctl.api.generate\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
