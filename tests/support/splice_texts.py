"""YAML as people write it: texts with comments, odd layout and every style of value, for tests by property."""

from dataclasses import dataclass

import hypothesis.strategies as st

KEYS = (
    "alpha",
    "beta",
    "gamma",
    "kubeProxyReplacement",
    "k8sServiceHost",
    "on the way",
    "a/b",
    "x~y",
    "1.5",
    "\N{ROCKET}",
)
SCALARS = (
    "text",
    "7445",
    "'quoted'",
    '"double \\" quoted"',
    "true",
    "null",
    "~",
    "",
    "two words",
    "a#b",
    "0x1F",
    "\N{SATELLITE}",
)
COMMENTS = ("# plain", "#tight", "# alpha: 1", "# tab\there", "#", "# \N{ROCKET}")


@dataclass(frozen=True, slots=True)
class Style:
    """How deep, and whether lists are indented."""

    indent: int
    list_indent: int


@st.composite
def yaml_texts(draw) -> str:
    """One file of one to three documents."""
    style = Style(draw(st.sampled_from((2, 2, 4, 3))), draw(st.sampled_from((0, 2))))
    documents = [_mapping(draw, style, column=0, depth=0) for _ in range(draw(st.integers(1, 3)))]
    lines = [*(["---"] if draw(st.booleans()) else []), *_joined(draw, documents)]
    text = "\n".join(lines) + draw(st.sampled_from(("\n", "\n\n", "")))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(("", "\ufeff"))) + text


def _joined(draw, documents) -> list[str]:
    lines = list(documents[0])
    for document in documents[1:]:
        lines += [*(["..."] if draw(st.booleans()) else []), "---", *document]
    return lines


def _mapping(draw, style: Style, *, column: int, depth: int) -> list[str]:
    lines: list[str] = []
    for key in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)):
        lines += _noise(draw, column)
        written = draw(st.sampled_from((key, f'"{key}"', f"'{key}'")))
        lines += _member(draw, " " * column + written + ":", style, column=column, depth=depth)
    return lines


def _member(draw, head: str, style: Style, *, column: int, depth: int) -> list[str]:
    kinds = [
        "scalar",
        "scalar",
        "flow",
        "literal",
        "folded",
        "wide",
        *(["mapping", "list", "inner"] if depth < 3 else []),
    ]
    tail = draw(st.sampled_from(("", "", "  # trailing", "\t# tab")))
    below, pad = column + style.indent, " " * (column + style.indent)
    kind = draw(st.sampled_from(kinds))
    if kind == "mapping":
        return [head + tail, *_mapping(draw, style, column=below, depth=depth + 1)]
    if kind == "list":
        return [head + tail, *_list(draw, style, column=column + style.list_indent, depth=depth + 1)]
    if kind == "inner":
        return [f"{head} |", *(f"{pad}{line}" for line in _mapping(draw, style, column=0, depth=2))]
    return _leaf(draw, head, kind, pad=pad, tail=tail)


def _leaf(draw, head: str, kind: str, *, pad: str, tail: str) -> list[str]:
    match kind:
        case "scalar":
            return [f"{head} {draw(st.sampled_from(SCALARS))}".rstrip() + tail]
        case "flow":
            return [f"{head} {draw(st.sampled_from(('{}', '[]', '{a: 1, b: [2, c]}', '[1, {d: 2}]')))}{tail}"]
        case "wide":
            return [f"{head} [1,", f"{pad}2, # inside", f"{pad}{{e: f}}]{tail}"]
        case "literal":
            return [f"{head} {draw(st.sampled_from(('|', '|-', '|+')))}", f"{pad}first", "", f"{pad}  # not a comment"]
        case _:
            return [f"{head} >-", f"{pad}first", f"{pad}second"]


def _list(draw, style: Style, *, column: int, depth: int) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += _noise(draw, column)
        gap = draw(st.sampled_from((2, 2, 4)))
        if draw(st.booleans()):
            item = [line for line in _mapping(draw, style, column=column + gap, depth=depth) if line.strip(" ")]
            first = next(place for place, line in enumerate(item) if not line.strip().startswith("#"))
            dash = " " * column + "-" + " " * (gap - 1) + item[first].lstrip(" ")
            lines += [dash, *item[first + 1 :]]
        else:
            lines.append(" " * column + "-" + " " * (gap - 1) + draw(st.sampled_from(SCALARS[:5])))
    return lines


def _noise(draw, column: int) -> list[str]:
    if draw(st.integers(0, 3)):
        return []
    return [draw(st.sampled_from(("", " " * column + draw(st.sampled_from(COMMENTS)))))]
