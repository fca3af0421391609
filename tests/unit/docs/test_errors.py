"""The registry of codes holds exactly what can happen, under the contracts' names, each with a page that is still true."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "errors"
REASON = re.compile(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
CODES = pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.label)

VERDICTS = {  # gitops.md, section 4.5, without Accepted, which is no error
    *("Unsigned", "BadSignature", "UnknownSigner", "RevokedSigner", "CommitterMismatch", "PathNotAuthorised"),
    *("NeedsForgeReviews", "MalformedObject", "UnsupportedFormat", "ObjectTooLarge", "PolicyInvalid"),
    *("SignatureInFuture", "HistoryRewritten", "VerificationInProgress", "HistoryUnavailable"),
}
HELD = {  # section 5.2
    *("DocumentInvalid", "ConsentMissing", "IdentityMismatch", "HistoricRollout", "NotFromGit", "OwnedElsewhere"),
    *("FieldConflict", "RecreateRequired", "ApplyRefused", "DependencyNotReady"),
}
HELD_BY_RULES_OF_DOMAINS = {"NotFromGit"}
"""Of kinds that are not there yet: no code of ours raises them."""

READY = {  # section 22.2, without Succeeded
    *("ObjectsHeld", "PruneBlocked", "PruneFailed", "HealthCheckFailed", "DependencyNotReady", "SourceNotFound"),
    *("SourceNotTrusted", "SourceNotAccepted", "ClusterUnreachable", "Suspended"),
}
OURS = {
    *("Unavailable", "Blocked", "Forbidden", "NotFound", "Conflict", "LeadershipLost", "CrdOutdated"),
    *("Fighting", "HiddenInGit", "SwitchInProgress", "KueueVersionUnsupported"),
    *("PhysicalIdentityInvalid", "FleetPolicyInvalid", "LedgerInvalid", "LedgerIdentityInvalid"),
    *("UrlRefused", "AuthenticationFailed", "HostKeyRefused", "CertificateRefused", "FetchTimeout", "FetchTooLarge"),
    *("FetchFailed", "RefNotFound", "CredentialsMissing", "RepositoryDamaged"),
    *("TokenRejected", "ForbiddenOrMissing", "RepositoryUnavailable", "RedirectRefused", "AnswerRefused"),
    *("ForgeUnavailable", "ForgeRateLimited", "ForgeRefused", "PullRequestExists", "NoDifference"),
    *("HeadMissing", "BaseMissing", "NotOffered"),
    "CheckEnded",
    *(
        "MachineUnreachable",
        "MachineCertificateRefused",
        "MachineNotAuthorised",
        "WrongMachine",
        "MachineAnswerUnusable",
    ),
    *("MachineConfigRefused", "MachineConfigUnreadable", "MachineReplyLost", "TalosconfigInvalid", "ProxyImageUnknown"),
    *("CredentialNotMounted", "ReferenceManagerActive", "ObjectOccupied", "AdmissionUnproven"),
    *("WorkloadPolicyUnsupported", "SourceKindUnsupported", "DeviceLocked", "ControlRevisionStale"),
    *("ApprovalHashMismatch", "WrongRolloutState"),
    *("GnoiUnavailable", "NotProvisioned", "GnoiMaterialInvalid"),
    *("SourceUnreachable", "SourceDigestMismatch", "SpoolFull"),
    *("NetconfUnavailable", "HostKeysInvalid", "DeviceHostKeyRefused", "DeviceCredentialRefused", "NetconfReplyLost"),
    *("NetconfRefused", "NetconfAnswerUnusable", "DeviceCredentialInvalid", "PhysicalIdentityMismatch"),
    *("JournalUnavailable", "ClaimHistoryLost"),
    "WorkerWithoutPod",
    *("SpliceRefused", "ValuesRefused"),
    *(
        "PushRefused",
        "LeaseLost",
        "RefspecRefused",
        "SigningKeyInvalid",
        "PushFailed",
        "ProposerMissing",
        "ChangeInvalid",
    ),
    *("InternalError", "Usage", "ToolMissing", "DiskShort", "MemoryShort", "LocalSystem", "LocalBusy"),
}

SAID_BY_THE_SERVER = {
    *(ErrorCode.FORGE_REFUSED, ErrorCode.PULL_REQUEST_EXISTS, ErrorCode.NO_DIFFERENCE),
    *(ErrorCode.RATE_LIMITED, ErrorCode.BLOCKED, ErrorCode.FORBIDDEN, ErrorCode.CONFLICT, ErrorCode.REFUSED),
    *(ErrorCode.UNAUTHENTICATED, ErrorCode.GONE, ErrorCode.PRUNE_FAILED, ErrorCode.INTERNAL),
}
"""Codes whose text comes from outside: their pages have no words of ours to compare."""


@cache
def words_of_the_code() -> tuple[str, ...]:
    """Every longer piece of text in the code, also pieces of f-strings, without the registry's own."""
    found = set()
    for path in (ROOT / "gitops_ctl").rglob("*.py"):
        if path.name == "codes.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 8 <= len(node.value.strip()) < 200:
                found.add(" ".join(node.value.split()))
    return tuple(found - {code.reason for code in ErrorCode} - {code.slug for code in ErrorCode})


@cache
def codes_of_the_code() -> frozenset[str]:
    """Names of codes that the code says, without the registry."""
    paths = [path for path in (ROOT / "gitops_ctl").rglob("*.py") if path.name != "codes.py"]
    return frozenset(name for path in paths for name in re.findall(r"\bErrorCode\.(\w+)", path.read_text()))


@cache
def names_in_tests() -> frozenset[str]:
    """Every word of the tests, every group of words that hyphens hold together, and every part of such a group."""
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        if path != Path(__file__):
            found.update(re.findall(r"\w+(?:-\w+)*", path.read_text()))
    compound = [name.split("-") for name in found if "-" in name]
    parts = ("-".join(name[i:j]) for name in compound for i in range(len(name)) for j in range(i + 1, len(name) + 1))
    return frozenset(found.union(parts))


@cache
def examples() -> tuple[str, ...]:
    return tuple(example_of(page.read_text()) for page in PAGES.iterdir())


def example_of(page: str) -> str:
    return " ".join(page.partition("\n## Example\n")[2].partition("\n## Fix\n")[0].split())


def test_numbers_and_slugs_are_unique():
    assert [n for n, count in Counter(code.value.number for code in ErrorCode).items() if count > 1] == []
    assert [slug for slug, count in Counter(code.slug for code in ErrorCode).items() if count > 1] == []


@CODES
def test_a_code_has_four_digits_a_slug_a_reason_and_a_fix(code):
    assert re.fullmatch(r"GC(1[01]|2[01]|30|4[01]|90)\d\d", code.label)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code.slug)
    assert REASON.fullmatch(code.reason)
    assert code.fix
    assert not code.fix.endswith(".")


def test_the_reasons_are_those_of_the_contracts_and_ours():
    assert {code.reason for code in ErrorCode} == (VERDICTS | HELD | READY | OURS) - HELD_BY_RULES_OF_DOMAINS
    assert OURS.isdisjoint(VERDICTS | HELD | READY)


def test_verdicts_are_the_codes_of_history():
    assert {code.reason for code in ErrorCode if 1100 <= code.value.number < 1200} == VERDICTS


@CODES
def test_a_code_can_happen(code):
    assert code.name in codes_of_the_code()


@CODES
def test_a_code_is_named_by_a_test(code):
    shared = sum(other.reason == code.reason for other in ErrorCode) > 1
    own = (code.name, code.label, code.slug) if shared else (code.name, code.label, code.slug, code.reason)
    assert not names_in_tests().isdisjoint(own)


def test_each_code_has_a_page_and_each_page_a_code():
    assert {path.name for path in PAGES.iterdir()} == {f"{code.label}.md" for code in ErrorCode}


@CODES
def test_a_page_says_meaning_example_and_fix(code):
    page = (PAGES / f"{code.label}.md").read_text()
    headings = re.findall(r"^#.*$", page, re.MULTILINE)
    assert headings == [f"# {code.label} {code.slug}", "## Example", "## Fix"]
    assert all(part.strip() for part in re.split(r"^#.*$", page, flags=re.MULTILINE)[1:])
    assert len(page.split()) < 200


@CODES
def test_the_index_leads_to_the_page(code):
    index = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert f"| [{code.label}](../errors/{code.label}.md) | {code.slug} | `{code.reason}` |" in index


@pytest.mark.parametrize(
    "code",
    [code for code in ErrorCode if code.value.number > 1100 and code not in SAID_BY_THE_SERVER],
    ids=lambda code: code.label,
)
def test_the_example_quotes_a_message_of_the_code(code):
    example = example_of((PAGES / f"{code.label}.md").read_text())
    quoted = [words for words in words_of_the_code() if words in example]
    assert any(sum(words in other for other in examples()) <= 4 for words in quoted), "no words of its own"
