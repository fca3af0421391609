"""The files of a repository as the search for values sees them: read once, as documents, links and templates apart."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.splice import Found, Inner, OpenText, SpliceRefused

YAML_SUFFIXES: Final = (".yaml", ".yml")
LARGEST_BYTES: Final = 2**20
_MARKS: Final = re.compile(
    rb"cilium|kubeProxyReplacement|configMapGenerator|kube-proxy-replacement|inlineManifests|valuesFrom|patches",
    re.IGNORECASE,
)
_DEFINITIONS: Final = b"kind: CustomResourceDefinition"
_SETS: Final = re.compile(rb"kubeProxyReplacement|kube-proxy-replacement")
_DEPLOYS: Final = re.compile(rb"kind: *[\"']?(?:HelmRelease|Application|ApplicationSet)\b")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; `place` counts from 0 and is that of an edit."""

    file: str
    place: int
    tree: JsonObject

    @property
    def kind(self) -> str:
        return text_at(self.tree, "kind")

    @property
    def name(self) -> str:
        return text_at(self.tree, "metadata", "name")

    @property
    def namespace(self) -> str:
        return text_at(self.tree, "metadata", "namespace")

    @property
    def group(self) -> str:
        """Of the API; empty for kinds of the core and for files that are no objects."""
        head, slash, _ = text_at(self.tree, "apiVersion").partition("/")
        return head if slash else ""


class Repository:
    """Files by path, relative to the root.  Nothing is read from disk here."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._texts: dict[str, OpenText] = {}
        self._read: dict[str, tuple[Document, ...]] = {}
        self.unreadable: dict[str, SpliceRefused] = {}

    def __contains__(self, file: str) -> bool:
        return file in self._files

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self._files))

    def data(self, file: str) -> bytes:
        """The bytes of a file that is there."""
        return self._files[file]

    def text(self, file: str) -> str:
        """For looking, never for editing."""
        return self._files[file].decode("utf-8", errors="replace")

    def documents(self, file: str) -> tuple[Document, ...]:
        """The mappings in a YAML file; none when it cannot be read, `unreadable` then says why."""
        if file not in self._read:
            self._read[file] = self._documents(file)
        return self._read[file]

    def marked(self, *, deploying: bool = False) -> Iterator[Document]:
        """The documents of all YAML files that could have to do with Cilium.

        Args:
            deploying: also of those that deploy any chart, which may be one around Cilium's.
        """
        for file in self.paths:
            if file.endswith(YAML_SUFFIXES) and _is_marked(self._files[file], deploying=deploying):
                yield from self.documents(file)

    def value(self, file: str, document: int, pointer: str, inner: tuple[Inner, ...] = ()) -> Found:
        """The value at a place of a file that is there.

        Raises:
            SpliceRefused: the file cannot be read, or no literal block is on the way.
        """
        return self._text(file).value(document, pointer, inner)

    def is_encrypted(self, file: str) -> bool:
        """Whether SOPS guards the whole file, also values that are not encrypted themselves."""
        return any("mac" in object_at(document.tree, "sops") for document in self.documents(file))

    def line(self, file: str, document: int, pointer: str, inner: tuple[Inner, ...] = ()) -> int:
        """The line, from 1, of the value at a place of a file that is there; 0 when it is not there as such.

        Raises:
            SpliceRefused: the file cannot be read.
        """
        return self._text(file).line(document, pointer, inner)

    def _text(self, file: str) -> OpenText:
        if file not in self._texts:
            self._texts[file] = OpenText(self._files[file])
        return self._texts[file]

    def _documents(self, file: str) -> tuple[Document, ...]:
        try:
            trees = self._text(file).documents()
        except SpliceRefused as refused:
            self.unreadable[file] = refused
            return ()
        return tuple(Document(file, place, tree) for place, tree in enumerate(trees) if isinstance(tree, dict))


def _is_marked(data: bytes, *, deploying: bool) -> bool:
    if _DEFINITIONS in data and not _SETS.search(data):
        # Bundles of definitions are long, and name much that they do not deploy.
        return False
    return bool(_MARKS.search(data) or (deploying and _DEPLOYS.search(data)))


def beside(file: str, path: str) -> str:
    """A path relative to the folder of `file`, from the root; empty when it leaves the repository."""
    return inside(posixpath.dirname(file), path)


def inside(folder: str, path: str) -> str:
    """A path relative to a folder, from the root; empty when it leaves the repository."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined.startswith("..") or joined.startswith("/") or joined == "." else joined


def folder_of(file: str) -> str:
    """The folder of a file; empty for the root."""
    return posixpath.dirname(file)
