"""What a poll and a verdict make of the facts of a source.  Pure: the durable record moves here and nowhere else."""

from dataclasses import replace
from datetime import datetime

from gitops_ctl.api.gitops import GitSource
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.git.fetching import RemoteTip
from gitops_ctl.source.durable import EVIDENCE_KEPT, evidence_of, evidence_tree
from gitops_ctl.source.forge_reviews import Reading
from gitops_ctl.source.judging import Judged
from gitops_ctl.source.model import Acceptance, Facts, Observed, Refusal
from gitops_ctl.source.summarise import ACCEPTED
from gitops_ctl.trust.chain import VERIFIER_VERSION, RangeRequest, RangeVerdict, Root


def observe(facts: Facts, *, commit: str, now: datetime) -> Facts:
    """The facts after a poll that found `commit`: when it is new, this moment is when it was first seen.

    Args:
        facts: of the pass.
        commit: what the ref names at the server, or leads to.
        now: wall clock; kept in whole seconds, as it is stored.
    """
    seen = facts.observed if facts.observed is not None and facts.observed.revision == commit else None
    observed = seen or Observed(commit, now.replace(microsecond=0))
    return replace(facts, observed=observed, first_seen=facts.first_seen.observed(commit, at=observed.at))


def range_request(source: GitSource, *, facts: Facts, tip: RemoteTip, url: str, now: datetime) -> RangeRequest:
    """What to judge: from what is accepted, under what it was accepted, to the tip.

    Args:
        source: has `spec.trust`.
        facts: of the pass, with the tip observed.
        tip: of this poll.
        url: for messages, without user info.
        now: wall clock.
    """
    trust, accepted = source.spec.trust, facts.accepted
    assert trust is not None
    assert tip.commit is not None
    ref = source.spec.ref
    stored = evidence_of(accepted.reviews) if accepted else {}
    return RangeRequest(
        url=url,
        ref=f"refs/heads/{ref.branch}" if ref.branch else f"refs/tags/{ref.tag}",
        root=Root(trust.root.commit, trust.root.policy_digest),
        accepted=accepted.revision if accepted else None,
        tip=tip.commit,
        first_seen=facts.first_seen,
        now=now,
        tag=tip.tag,
        policy_path=trust.policy_path,
        limit=source.spec.limits.commits_per_pass,
        accepted_root=accepted.root if accepted else None,
        accepted_key_set_digest=accepted.key_set_digest if accepted else None,
        accepted_verifier_version=accepted.verifier_version if accepted else None,
        accepted_tag=accepted.tag or None if accepted else None,
        reviews=stored,
        stored_reviews=frozenset(stored),
    )


def judged_facts(facts: Facts, *, judged: Judged, request: RangeRequest, readings: tuple[Reading, ...] = ()) -> Facts:
    """The facts after the verdict; `readings` is what the forge said in this pass."""
    verdict = judged.verdict
    message = verdict.message
    if verdict.verdict == ACCEPTED:
        message = f"{verdict.accepted} is accepted; judged: {verdict.objects_judged}"
    evidence = _evidence(facts.accepted, judged=judged, readings=readings)
    return replace(
        facts,
        accepted=_acceptance(facts.accepted, judged=judged, request=request, reviews=evidence),
        verdict=verdict.verdict,
        message=message,
        pending=verdict.pending,
        effects_allowed=verdict.effects_allowed,
        refusal=_refusal(verdict),
        signer=verdict.signer or _known_signer(facts, verdict),
    )


def _known_signer(facts: Facts, verdict: RangeVerdict) -> str:
    """Who stands behind the accepted revision, when it was accepted in an earlier pass of this process."""
    return facts.signer if facts.accepted is not None and facts.accepted.revision == verdict.accepted else ""


def _evidence(before: Acceptance | None, *, judged: Judged, readings: tuple[Reading, ...]) -> tuple[JsonObject, ...]:
    """The evidence that the accepted history rests on: what was stored, then what this pass read for what it accepted."""
    kept = before.reviews if before else ()
    new = tuple(
        evidence_tree(each, counted=judged.counted[each.evidence.merge])
        for each in readings
        if each.evidence.merge in judged.counted
    )
    return (*kept, *new)[-EVIDENCE_KEPT:]


def _refusal(verdict: RangeVerdict) -> Refusal | None:
    refused = verdict.refused
    if refused is None:
        return None
    return Refusal(
        commit=refused.commit,
        reason=refused.reason,
        message=refused.message,
        path=refused.path,
        verb=refused.verb,
        rule=refused.rule,
        hint=refused.hint,
    )


def _acceptance(
    before: Acceptance | None, *, judged: Judged, request: RangeRequest, reviews: tuple[JsonObject, ...]
) -> Acceptance | None:
    """The record to store; the old one, with its time, when nothing in it changed.

    A verdict without digests came before anything was read at the accepted revision (a rewritten ref): it establishes
    nothing, neither a root nor a version of the rules.  While effects are not allowed the revision moves all the same, so
    that a revocation which was seen once cannot be taken back by a force push; what it was accepted under lags behind, and
    that is how the next process knows that the range has to be judged again (fault X01).
    """
    verdict = judged.verdict
    if verdict.accepted is None or not judged.tree or not verdict.key_set_digest or not verdict.policy_digest:
        return before
    root, version = request.root.commit, VERIFIER_VERSION
    if before is not None and not verdict.effects_allowed:
        root, version = before.root, before.verifier_version
    found = Acceptance(
        revision=verdict.accepted,
        tag=_tag(before, judged=judged, request=request),
        policy_digest=verdict.policy_digest,
        key_set_digest=verdict.key_set_digest,
        root=root,
        verifier_version=version,
        at=request.now.replace(microsecond=0),
        reviews=reviews,
    )
    return before if before is not None and replace(found, at=before.at) == before else found


def _tag(before: Acceptance | None, *, judged: Judged, request: RangeRequest) -> str:
    """The accepted tag object: this one only when it was accepted itself (fault X08)."""
    if judged.verdict.verdict == ACCEPTED:
        return request.tag or ""
    return before.tag if before is not None and before.revision == judged.verdict.accepted else ""
