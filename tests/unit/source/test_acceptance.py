"""How the durable record of a source moves with a verdict (the record itself is read back in test_summarise)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.api.gitops import parse_git_source
from gitops_ctl.git.fetching import RemoteTip
from gitops_ctl.source.acceptance import judged_facts, range_request
from gitops_ctl.source.judging import Judged
from gitops_ctl.source.model import Acceptance, Facts
from gitops_ctl.trust.chain import VERIFIER_VERSION, RangeRequest, RangeVerdict, Root
from gitops_ctl.trust.firstseen import FirstSeen

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
ROOT, OLD, NEW = "0" * 40, "a" * 40, "b" * 40
BEFORE = Acceptance(OLD, "", "sha256:p1", "sha256:k1", ROOT, VERIFIER_VERSION, NOW - timedelta(days=1))
REQUEST = RangeRequest(
    url="https://git.example.net/network.git",
    ref="refs/heads/main",
    root=Root(ROOT, "sha256:p0"),
    accepted=OLD,
    tip=NEW,
    first_seen=FirstSeen(),
    now=NOW,
)
VERDICT = RangeVerdict(
    accepted=NEW,
    verdict="Accepted",
    refused=None,
    pending=False,
    judged=1,
    remaining=0,
    policy_digest="sha256:p2",
    key_set_digest="sha256:k2",
    objects_judged="commits",
)


def record(before: Acceptance | None, verdict: RangeVerdict, request: RangeRequest = REQUEST) -> Acceptance | None:
    facts = Facts(trusted=True, accepted=before)
    return judged_facts(facts, judged=Judged(verdict, tree="c" * 40), request=request).accepted


def test_an_accepted_tip_becomes_the_record_with_our_own_time() -> None:
    found = Acceptance(NEW, "", "sha256:p2", "sha256:k2", ROOT, VERIFIER_VERSION, NOW)
    assert record(BEFORE, VERDICT) == found


def test_whoever_signed_what_is_accepted_is_remembered_while_it_stays() -> None:
    signed = judged_facts(
        Facts(trusted=True), judged=Judged(replace(VERDICT, signer="ann"), tree="c" * 40), request=REQUEST
    )
    again = judged_facts(signed, judged=Judged(VERDICT, tree="c" * 40), request=REQUEST)
    moved = judged_facts(signed, judged=Judged(replace(VERDICT, accepted=OLD), tree="c" * 40), request=REQUEST)
    assert (signed.signer, again.signer, moved.signer) == ("ann", "ann", "")


def test_an_unchanged_record_keeps_its_time() -> None:
    same = replace(VERDICT, accepted=OLD, policy_digest="sha256:p1", key_set_digest="sha256:k1")
    assert record(BEFORE, same) is BEFORE


@pytest.mark.parametrize("members", [{"accepted": None}, {"key_set_digest": ""}, {"policy_digest": ""}])
def test_a_verdict_that_established_nothing_changes_no_record(members: dict[str, str | None]) -> None:
    assert record(BEFORE, replace(VERDICT, **members)) is BEFORE


def test_X01_a_revocation_that_was_seen_is_recorded_with_what_still_has_to_be_judged_again() -> None:
    refused = replace(VERDICT, verdict="RevokedSigner", effects_allowed=False, key_set_digest="sha256:k1")
    found = record(BEFORE, refused)
    assert found is not None
    assert (found.revision, found.policy_digest, found.key_set_digest) == (NEW, "sha256:p2", "sha256:k1")


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        (BEFORE, replace(REQUEST, root=Root("d" * 40, "sha256:p0"))),
        (replace(BEFORE, verifier_version="0"), REQUEST),
    ],
    ids=["a new root", "a new version of the rules"],
)
def test_X01_what_the_range_was_not_judged_under_yet_is_not_recorded(
    before: Acceptance, request_: RangeRequest
) -> None:
    found = record(before, replace(VERDICT, effects_allowed=False), request_)
    assert found is not None
    assert (found.root, found.verifier_version) == (before.root, before.verifier_version)


def test_what_is_asked_names_everything_that_the_record_was_accepted_under() -> None:
    source = parse_git_source(
        {
            "apiVersion": "gitops-ctl.dev/v1alpha1",
            "kind": "GitSource",
            "metadata": {"name": "network", "namespace": "tenant"},
            "spec": {
                "url": REQUEST.url,
                "ref": {"tag": "v1"},
                "trust": {"root": {"commit": ROOT, "policyDigest": "sha256:" + "0" * 64}},
            },
        }
    )
    facts = Facts(trusted=True, accepted=replace(BEFORE, tag="7" * 40))
    asked = range_request(source, facts=facts, tip=RemoteTip(NEW, "8" * 40), url=REQUEST.url, now=NOW)
    assert (asked.ref, asked.tip, asked.tag) == ("refs/tags/v1", NEW, "8" * 40)
    assert (asked.accepted, asked.accepted_tag) == (OLD, "7" * 40)
    assert (asked.accepted_root, asked.accepted_key_set_digest) == (ROOT, "sha256:k1")
    assert asked.accepted_verifier_version == VERIFIER_VERSION
