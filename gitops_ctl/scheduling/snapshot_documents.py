"""Snapshots in Git: ConfigMap documents, judged offline, with errors at the lines of the file (topology-scheduling.md, 4.6)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.pointer import pointer_of, steps_of
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.yamltree import TreeLimits, compose
from gitops_ctl.scheduling.names import SOURCE_KIND, WORKER_GROUP
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.snapshot import Place, SnapshotProblem, decode
from gitops_ctl.scheduling.snapshot_rules import Reach, content_problems, publish_problems
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_rules import source_problems

SOURCE: Final = GroupKind(WORKER_GROUP, SOURCE_KIND)
CONFIG_MAP: Final = GroupKind("", "ConfigMap")
_LITERAL: Final = "|"


class _Use(NamedTuple):
    """A source that takes its snapshot from the key of a ConfigMap."""

    namespace: str
    name: str
    key: str
    source: TopologySource


def snapshot_problems(
    documents: Iterable[Document],
    *,
    options: Options,
    default_namespace: str = "",
    nodes: Mapping[str, Labels] | None = None,
) -> tuple[Problem, ...]:
    """Everything wrong with the snapshots of a document set; each problem holds its ConfigMap.

    A ConfigMap is a snapshot when a sound TopologySource of the same set refers to it; of several sources, for each.
    `default_namespace` is that of ConfigMaps that name none.  With the labels of all Nodes, rules 8 and 14 are asked too.
    """
    known = tuple(documents)
    uses = tuple(_uses(known, options))
    return in_reading_order(
        problem
        for document in known
        if document.id.group_kind == CONFIG_MAP
        for use in uses
        if (document.id.namespace or default_namespace, document.id.name) == (use.namespace, use.name)
        for problem in _judged(document, use, _Judge(options, nodes))
    )


def _uses(documents: tuple[Document, ...], options: Options) -> Iterator[_Use]:
    for document in documents:
        if document.id.group_kind != SOURCE or source_problems(document.tree, options=options):
            continue
        arm = object_at(document.tree, "spec", "configMap")
        reference = object_at(arm, "configMapRef")
        if arm:
            yield _Use(
                text_at(reference, "namespace"),
                text_at(reference, "name"),
                text_at(arm, "key"),
                TopologySource.of(document.tree),
            )


class _Judge(NamedTuple):
    """What snapshots are judged by; `nodes` are labels by name, None when no cluster is asked."""

    options: Options
    nodes: Mapping[str, Labels] | None

    def problems(self, text: str, source: TopologySource) -> tuple[SnapshotProblem, ...]:
        """Those of the decode stage alone, if there are any."""
        decoded = decode(text)
        if decoded.snapshot is None:
            return decoded.problems
        nodes = self.nodes
        selected = None if nodes is None else {name: nodes[name] for name in nodes if source.chooses(nodes[name])}
        reach = Reach(source.levels, source.write_prefix, selected, frozenset(nodes or ()))
        content = content_problems(decoded.snapshot, reach, options=self.options)
        return (*content, *publish_problems(decoded.snapshot, reach))


def _judged(document: Document, use: _Use, judge: _Judge) -> Iterator[Problem]:
    if use.key in object_at(document.tree, "binaryData"):
        message = f"source {use.source.name} reads its snapshot from data, never from binaryData"
        yield _problem(document, message, document.where(pointer_of(("binaryData", use.key))), "binaryData", use.key)
    text = _text(document.tree, use.key)
    if text is None:
        return
    block = _Block.of(document, pointer_of(("data", use.key)))
    if block is None:
        message = "a snapshot must be a literal block scalar (|), so that its lines are lines of the file"
        yield _problem(document, message, document.where(pointer_of(("data", use.key))), "data", use.key)
        return
    for problem in judge.problems(text, use.source):
        message = f"snapshot of source {use.source.name}, rule {problem.rule}: {block.said(problem)}"
        yield _problem(document, message, block.place(problem.place), "data", use.key)


def _text(tree: JsonObject, key: str) -> str | None:
    value = object_at(tree, "data").get(key)
    return value if isinstance(value, str) else None


def _problem(document: Document, message: str, place: tuple[int, int], *path: str) -> Problem:
    return Problem(
        code=ErrorCode.RULE,
        message=message,
        file=document.file,
        line=place[0],
        column=place[1],
        document=document.index,
        pointer=pointer_of(path),
        object=document.id,
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """Where the lines of a text stand in its file.

    Attributes:
        line: of the first line of the text, from 1; of the whole text in a JSON file.
        indentation: columns before each line.
        is_mapped: whether each line of the text is a line of the file.
    """

    line: int
    indentation: int
    is_mapped: bool = True

    @classmethod
    def of(cls, document: Document, pointer: str) -> "_Block | None":
        """Of the text at `pointer`; None for a YAML scalar of another style than literal."""
        if document.file.endswith(".json"):
            line, column = document.where(pointer)
            return cls(line, column - 1, is_mapped=False)
        node = _node(document, document.base + pointer)
        if not isinstance(node, yaml.ScalarNode) or node.style != _LITERAL:
            return None
        # The content begins in the line behind the mark, whatever follows the mark in its own line.
        first = node.start_mark.line + 1
        lines = document.text.decode(errors="replace").split("\n")[first:]
        pairs = zip(node.value.split("\n"), lines, strict=False)
        indentation = next((len(line.rstrip("\r")) - len(text) for text, line in pairs if text.strip()), 0)
        return cls(first + 1 + document.offset, indentation)

    def place(self, inside: Place) -> tuple[int, int]:
        """Line and column in the file."""
        if not self.is_mapped:
            return self.line, self.indentation + 1
        return self.line + inside.line - 1, inside.column + self.indentation

    def said(self, problem: SnapshotProblem) -> str:
        """The message; in a JSON file with the line inside the text."""
        return problem.message if self.is_mapped else f"{problem.message} (line {problem.place.line} of the text)"


def _node(document: Document, pointer: str) -> yaml.Node | None:
    node = compose(document.text, limits=TreeLimits())
    for step in steps_of(pointer):
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(step)]
        elif isinstance(node, yaml.MappingNode):
            node = next((member for key, member in reversed(node.value) if key.value == step), None)
    return node
