"""Objects of which a client wants the metadata only."""

from collections.abc import Mapping

from tests.doubles.apiserver.answers import Tree

VERSION = "meta.k8s.io/v1"
KIND = "PartialObjectMetadata"


def wants_metadata(headers: Mapping[str, str]) -> bool:
    """Whether the client asks for nothing more."""
    return f"as={KIND}" in headers.get("accept", "").replace(" ", "")


def metadata_of(tree: Tree) -> Tree:
    """One object, as it is shown then."""
    return {"kind": KIND, "apiVersion": VERSION, "metadata": tree["metadata"]}


def metadata_list(tree: Tree) -> Tree:
    """A whole list."""
    items = [metadata_of(item) for item in tree["items"]]
    return {"kind": f"{KIND}List", "apiVersion": VERSION, "metadata": tree["metadata"], "items": items}
