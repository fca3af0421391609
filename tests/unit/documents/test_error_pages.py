"""Every code for documents has a page, and the example on the page raises it.

The pages are read by people who search for a code; an example that no longer fails would mislead them.
"""

import re
from pathlib import Path

import pytest

from gitops_ctl.cli.policycheck import register
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.documents.check import check_set
from gitops_ctl.documents.collection import load_directory
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.schema import SchemaCatalog

PAGES = Path(__file__).parents[3] / "docs/errors"
CODES = [code for code in ErrorCode if 1001 <= code.value.number < 1100]
register()
NO_EXAMPLE = (ErrorCode.DOCUMENT_TOO_LARGE, ErrorCode.CHECK_ENDED)
"""What no document of a page can show: it would have to be as large as the limit."""

EXAMPLE = re.compile(r'^```yaml title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.label)
def test_a_page_says_meaning_example_and_fix(code):
    text = (PAGES / f"{code.label}.md").read_text()
    assert text.startswith(f"# {code.label} {code.slug}\n")
    assert "\n## Example\n" in text
    assert "\n## Fix\n" in text


@pytest.mark.parametrize("code", [code for code in CODES if code not in NO_EXAMPLE], ids=lambda code: code.label)
def test_the_example_of_a_page_raises_its_code(code, tmp_path):
    examples = EXAMPLE.findall((PAGES / f"{code.label}.md").read_text())
    assert examples
    for path, text in examples:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = check_set(load_directory(tmp_path), catalog=SchemaCatalog(), own_source=NamespacedName("site-a", "network"))
    assert code in {problem.code for problem in found}
    others = {problem.code for problem in found if problem.is_error} - {code}
    assert others == set()


def test_a_document_of_5_mib_is_too_large():
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + b"".join(
        b"  k%d: %s\n" % (n, b"x" * 1000) for n in range(5200)
    )
    assert [problem.code for problem in load(text, file="a.yaml").problems] == [ErrorCode.DOCUMENT_TOO_LARGE]
