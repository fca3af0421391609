"""Random histories under random policies: documents with and without verbs of their own, written in every way YAML has.

Everything comes from one `Random`, so that a failing example can be made again.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.git_repos import START, RepoBuilder, tree_bytes
from tests.support.trust import POLICY_PATH, person, policy_text
from tests.support.trust_software import SoftKey

PATHS = ("a.yaml", "b.yaml", "c.json", "free.yaml", "notes.txt", "x.yml")
KINDS = (
    ("v1", "ConfigMap"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("example.net/v1", "Widget"),
    ("gitops-ctl.dev/v1alpha1", "Sync"),
    ("gitops-ctl.dev/v1alpha1", "Consent"),
    ("gitops-ctl.dev/v1alpha1", "TrustPolicy"),
    ("ichor.maesh.dev/v1", "TalosCluster"),
    ("cisco.vk/v1", "CiscoDevice"),
    ("ops.cisco.vk/v1", "IOSXESoftwareRollout"),
    ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
)
ANNOTATIONS = (
    "gitops-ctl.dev/recreate",
    "gitops-ctl.dev/allow-prune",
    "gitops-ctl.dev/allow-drain",
    "ichor.maesh.dev/confirm-kube-proxy-switch",
    "topology.cisco.vk/managed-policy",
    "example.net/note",
)
BROAD: tuple[dict[str, object], ...] = (
    {"paths": ["**"], "verbs": ["edit", "delete"], "roles": ["author"]},
    {"paths": ["**"], "verbs": ["edit"], "roles": ["author"]},
    {"paths": ["**"], "verbs": ["edit", "delete", "consent", "topology", "control", "plan"], "roles": ["author"]},
)
RULES: tuple[dict[str, object], ...] = (
    {"paths": ["free.yaml"], "verbs": ["edit"], "roles": ["author", "other"]},
    {"paths": ["a.yaml"], "verbs": ["delete"], "roles": ["other"]},
    {"paths": ["b.*"], "verbs": ["edit", "delete"], "roles": ["author", "other"], "threshold": 2},
    {"paths": ["c.json"], "verbs": ["edit", "delete"], "roles": ["author"], "distinctFromAuthor": True},
    {"kinds": ["Service"], "verbs": ["edit"], "roles": ["other"]},
    {"kinds": ["Widget.example.net", "Deployment.apps"], "verbs": ["edit", "delete"], "roles": ["other"]},
    {"kinds": ["ConfigMap"], "paths": ["x.yml"], "verbs": ["edit"], "roles": ["other"]},
    {"kinds": ["TalosCluster.ichor.maesh.dev"], "verbs": ["control", "consent"], "roles": ["author"]},
    {"paths": ["**"], "verbs": ["policy"], "roles": ["other"]},
)
_TRUST = {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["author"]}


@dataclass
class History:
    """A repository that grows by random commits, each a child of the one before.

    Attributes:
        root: holds the policy.
        files: path to (documents, their text) at the newest commit.
    """

    repo: RepoBuilder
    draw: random.Random
    keys: Sequence[SoftKey]
    root: str = ""
    policy: str = ""
    files: dict[str, tuple[list[dict[str, object]], bytes]] = field(default_factory=dict)
    _commits: int = 0

    def begin(self) -> None:
        """The root: a random policy, and a few files."""
        rules = self.draw.sample(RULES, self.draw.randint(0, 4))
        rules.insert(self.draw.randint(0, len(rules)), self.draw.choice((BROAD[0], *BROAD)))
        people = [person(name, {"ssh": key.line}) for name, key in zip(("ann", "bob"), self.keys, strict=True)]
        self.policy = policy_text(people, roles={"author": ["ann"], "other": ["bob"]}, rules=[_TRUST, *rules])
        for path in self.draw.sample(PATHS, 4):
            self._write(path, [_document(self.draw) for _ in range(self.draw.choice((1, 1, 2)))])
        self.root = self._commit("")

    def grow(self, parent: str) -> str:
        """One commit that changes, adds, rewrites, moves or deletes in up to three files."""
        for path in self.draw.sample(PATHS, self.draw.choice((1, 1, 2, 3))):
            self._change(path)
        return self._commit(parent)

    def _change(self, path: str) -> None:
        draw, held = self.draw, self.files.get(path)
        how = draw.choice(("value", "value", "again", "again", "new", "fewer", "delete", "move", "annotate"))
        documents = list(held[0]) if held else []
        if how == "new" or not documents:
            documents.append(_document(draw))
        elif how == "value":
            documents[0] = {**documents[0], "data": {"key": str(draw.randint(1, 9))}}
        elif how == "fewer":
            documents.pop()
        elif how == "annotate":
            documents[-1] = {**documents[-1], "metadata": _metadata(draw, name="n1")}
        elif how == "move":
            other = draw.choice([each for each in PATHS if each != path])
            theirs = self.files.get(other)
            self._write(other, [*(theirs[0] if theirs else []), documents.pop()])
        if how == "delete":
            self.files.pop(path, None)
        else:
            self._write(path, documents)

    def _write(self, path: str, documents: list[dict[str, object]]) -> None:
        self.files[path] = (documents, _text(self.draw, path, documents))

    def _commit(self, parent: str) -> str:
        write = self.repo.write_object
        self._commits += 1
        trust = write("tree", tree_bytes((0o100644, b"trust.yaml", write("blob", self.policy.encode()))))
        mode = {path: self.draw.choice((0o100644,) * 9 + (0o100755,)) for path in self.files}
        entries = [(mode[path], path.encode(), write("blob", self.files[path][1])) for path in sorted(self.files)]
        tree = write("tree", tree_bytes((0o40000, b".gitops-ctl", trust), *entries))
        stamp = f"ann <ann@example.net> {int(START.timestamp()) + self._commits} +0000"
        parents = f"parent {parent}\n" if parent else ""
        payload = f"tree {tree}\n{parents}author {stamp}\ncommitter {stamp}\n\n{self._commits}\n"
        key = self.keys[0 if self.draw.random() < 0.9 else 1]
        return self.repo.signed_object(payload.encode(), key)


def _document(draw: random.Random) -> dict[str, object]:
    version, kind = draw.choice(KINDS)
    name = draw.choice(("n1", "n2", "n3", "a-topology-policy"))
    data = {"policy.json": "{}"} if draw.random() < 0.2 else {"key": str(draw.randint(1, 9))}
    spec = {"cni": {"operation": {"resume": str(draw.randint(1, 3))}}} if kind == "TalosCluster" else {"size": "1"}
    return {"apiVersion": version, "kind": kind, "metadata": _metadata(draw, name=name), "data": data, "spec": spec}


def _metadata(draw: random.Random, *, name: str) -> dict[str, object]:
    named = {
        annotation: str(draw.randint(1, 2)) for annotation in draw.sample(ANNOTATIONS, draw.choice((0, 0, 0, 1, 2)))
    }
    return {"name": name, "namespace": "demo", **({"annotations": named} if named else {})}


def _text(draw: random.Random, path: str, documents: Sequence[dict[str, object]]) -> bytes:
    if draw.random() < 0.03:
        return draw.choice((b"", b"# nothing\n", b"a: [", b"kind: {{ .Values.kind }}\n", b"\xff\xfe"))
    if path.endswith(".json"):
        tree = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        text = json.dumps(tree, indent=draw.choice((None, 1, 2)))
        if draw.random() < 0.1:
            letter = draw.choice("CTnr")
            text = text.replace(letter, f"\\u{ord(letter):04x}", 1) if f'"{letter}' not in text else text
        return text.encode(draw.choice(("utf-8",) * 9 + ("utf-16-le",)))
    separator = draw.choice(("---\n", "---\n# next\n", "...\n---\n"))
    text = separator.join(_yaml(draw, document) for document in documents)
    return text.encode(draw.choice(("utf-8",) * 12 + ("utf-8-sig", "utf-16", "utf-16-le")))


def _yaml(draw: random.Random, document: dict[str, object]) -> str:
    """One document; now and then with what it holds behind an anchor, an alias or a merge key."""
    fancy = draw.random() < 0.25  # most files are plain
    style = _fancy if fancy else _simple
    trick = draw.choice(("", "", "kind", "merge")) if fancy else ""
    lines = list(_lines(draw, document, style=style, depth=0))
    if trick == "kind":
        lines = [f"first: &kind {document['kind']}", *(line for line in lines if not line.startswith("kind:"))]
        lines.append("kind: *kind")
    elif trick == "merge" and isinstance(metadata := document["metadata"], dict):
        inner = ", ".join(f'"{name}": "x{draw.randint(1, 2)}"' for name in draw.sample(ANNOTATIONS, 2))
        lines.insert(0, f"base: &base {{annotations: {{{inner}}}}}")
        own = {name: value for name, value in metadata.items() if name != "annotations"}
        rest = _lines(draw, {key: value for key, value in document.items() if key != "metadata"}, style=style, depth=0)
        lines = [lines[0], "metadata:", "  <<: *base", *_lines(draw, own, style=style, depth=1), *rest]
    if draw.random() < 0.2:
        lines.insert(0, draw.choice(("# a comment", "", "# kind: Widget")))
    return "\n".join(lines) + "\n"


def _lines(draw: random.Random, tree: dict[str, object], *, style: object, depth: int) -> Iterator[str]:
    assert callable(style)
    for key, value in tree.items():
        name = f"{'  ' * depth}{style(draw, key, depth=depth)}:"
        if isinstance(value, dict) and value:
            yield name
            yield from _lines(draw, value, style=style, depth=depth + 1)
        else:
            yield f"{name} {'{}' if value == {} else style(draw, str(value), depth=depth, is_value=True)}"


def _simple(draw: random.Random, text: str, *, depth: int, is_value: bool = False) -> str:
    del draw, depth
    return f'"{text}"' if is_value and not text[:1].isalpha() else text


def _fancy(draw: random.Random, text: str, *, depth: int, is_value: bool = False) -> str:
    place = draw.randrange(len(text)) if text else 0
    ways = [f'"{text}"', f"'{text}'", f"!!str {text}" if text[:1].isalpha() else f'!!str "{text}"']
    if text:
        ways.append(f'"{text[:place]}\\x{ord(text[place]):02x}{text[place + 1 :]}"')
        ways.append(f'"{text[:place]}\\u{ord(text[place]):04x}{text[place + 1 :]}"')
    if is_value and text[:1].isalpha():
        indent = "  " * (depth + 1)
        ways += [
            text,
            f'"{text[:place]}\\\n{indent}{text[place:]}"',
            f"|-\n{indent}{text}",
            f">-\n{indent}{text}",
            f"&a {text}",
        ]
    return draw.choice(ways)
