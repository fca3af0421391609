"""The page of `report`: whole, readable, loading nothing, with nothing foreign in its markup."""

import json
import re
from html.parser import HTMLParser

from gitops_ctl.cli.report import page_of
from gitops_ctl.core.jsonvalue import JsonObject

EVIL = "<script>alert(1)</script>\"'&</script><img src=https://example.net/x>"
STATE: JsonObject = {
    "apiVersion": "cli.gitops-ctl.dev/v1",
    "kind": "Report",
    "generated": "2026-11-30T08:00:00Z",
    "namespace": "team-network",
    "sources": [
        {
            "kind": "GitSource",
            "namespace": "team-network",
            "name": "lab",
            "ready": "False",
            "reason": "PathNotAuthorised",
            "message": EVIL,
            "url": "https://git.example.net/lab",
            "ref": "main",
            "root": "a" * 40,
            "accepted": {"revision": "b" * 40, "policyDigest": "sha256:" + "1" * 64, "at": "2026-11-30T07:59:00Z"},
            "rejected": {"commit": "c" * 40, "path": EVIL, "rule": "rule 3", "hint": "let platform sign it"},
            "conditions": [{"type": "Verified", "status": "False", "reason": "PathNotAuthorised", "message": EVIL}],
        }
    ],
    "syncs": [
        {
            "kind": "Sync",
            "namespace": "team-network",
            "name": "lab",
            "ready": "True",
            "reason": "Succeeded",
            "revision": "b" * 40,
            "suspend": True,
            "counts": {"objects": 3, "held": 1},
            "heldCount": 1,
            "held": [{"object": "ConfigMap/network/a", "reason": "FieldConflict", "message": EVIL, "file": "a.yaml"}],
            "driftCount": 1,
            "drift": [{"object": "ConfigMap/network/b", "change": "Changed", "pointers": ["/data/x", "/data/y"]}],
        }
    ],
    "events": [
        {"time": "2026-11-30T07:00:00Z", "reason": "First", "object": "Sync/x", "note": "one", "count": 1},
        {"time": "2026-11-30T07:01:00Z", "reason": "Second", "object": "Sync/x", "note": EVIL, "count": 2},
    ],
}


class Page(HTMLParser):
    """Tags, attributes and text, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "style")]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"] and not self.data:
            self.data = data
        else:
            self.words.append(data)


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = Page(page_of(STATE))
    assert page.links == []
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "default-src 'none'" in page_of(STATE)
    assert not re.search(r"url\(|@import", page_of(STATE))


def test_foreign_text_is_shown_as_it_is() -> None:
    words = Page(page_of(STATE)).words
    assert words.count(EVIL) == 5


def test_the_data_is_embedded_unchanged() -> None:
    assert json.loads(Page(page_of(STATE)).data) == STATE


def test_it_says_what_was_accepted_refused_held_and_drifted() -> None:
    words = " ".join(Page(page_of(STATE)).words)
    assert "1 of 2 ready, 1 with a refused commit, 1 held, 1 drifted" in words
    for part in ("b" * 40, "c" * 40, "rule 3", "let platform sign it", "ConfigMap/network/a", "/data/x, /data/y"):
        assert part in words
    assert "suspended" in words
    assert words.index("Second") < words.index("First")


def test_an_empty_cluster_gives_a_page_too() -> None:
    words = " ".join(Page(page_of({"generated": "now"})).words)
    assert "0 of 0 ready" in words
    assert words.count("There is none.") == 3
    assert "all namespaces" in words
