"""One word for one thing: the glossary has it, and nobody writes another one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"

OTHER_WORDS = {
    "checkpoint": "root",
    "trust anchor": "root",
    "git repository object": "source",
    "changeset": "change",
    "sync set": "Sync",
    "reconciliation": "pass",
    "co-sign": "consent",
    "signoff": "consent",
    "waiver": "consent",
    "attestation": "consent",
    "quarantined": "held",
    "skipped object": "held",
    "divergence": "drift",
    "configuration deviation": "drift",
    "garbage-collect": "prune",
    "resource inventory": "Inventory",
    "allowlist": "list",
    "whitelist": "list",
    "blacklist": "list",
    "denylist": "list",
    "signatory": "signer",
}
"""What is not written, and what is written instead."""


def texts():
    """Pages and code that people read; generated schemas are not ours."""
    for folder, pattern in (("docs", "*.md"), ("gitops_ctl", "*.py"), ("charts", "*.md"), ("policies", "*.yaml")):
        yield from sorted((ROOT / folder).rglob(pattern))
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_nobody_writes_this_word(word):
    # A part of a longer name, like that of an account of the server, is not the word.
    pattern = re.compile(rf"(?i)(?<![\w-]){re.escape(word)}")
    found = [
        f"{path.relative_to(ROOT)}:{number}: write {OTHER_WORDS[word]!r}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def test_the_glossary_is_in_order_and_has_each_word_once():
    words = re.findall(r"^\| (?!word |-)([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE)
    first = [word.split(",")[0].lower() for word in words]
    assert len(first) > 20
    assert first == sorted(set(first))


def test_what_is_written_instead_is_an_everyday_word_or_in_the_glossary():
    text = GLOSSARY.read_text().lower()
    assert {word for word in OTHER_WORDS.values() if f"| {word.lower()}" not in text} == {"change", "list", "signer"}


def test_every_kind_and_verb_of_the_documents_is_in_the_glossary():
    text = GLOSSARY.read_text()
    for word in ("GitSource", "Sync", "Inventory", "Consent", "`edit`", "`delete`", "`consent`", "`trust`", "`merge`"):
        assert word in text
