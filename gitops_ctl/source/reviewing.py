"""Judging with reviews: a forge's merge whose reviews are unknown stops the judge, they are read, and it judges again.

A bounded number of merges is read in one pass; the next pass goes on.  Reviews that cannot be read make the verdict
`NeedsForgeReviews`, which is no refusal and is tried again with a backoff (gitops.md, section 4.6, "Evidence").
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.core.errors import GitopsError, InternalError
from gitops_ctl.source.forge_reviews import Reading, ReadReviews
from gitops_ctl.source.judging import Judged
from gitops_ctl.source.summarise import error_text
from gitops_ctl.trust.chain import RangeRequest

MERGES_PER_PASS: Final = 10
NOTHING: Final[Mapping[str, Reading]] = {}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The verdict, the request with all the evidence, what was read for it, and why reading failed."""

    judged: Judged
    request: RangeRequest
    readings: tuple[Reading, ...] = ()
    failure: GitopsError | None = None


async def judge_reviewed(
    request: RangeRequest,
    *,
    judge: Callable[[RangeRequest], Awaitable[Judged]],
    read: ReadReviews,
    known: Mapping[str, Reading] = NOTHING,
) -> Reviewed:
    """Judge, reading the reviews that the judge asks for.

    Args:
        request: with the evidence that is stored already.
        judge: one pass of the judge.
        read: asks the forge about one merge.
        known: what it said in the last pass; it still stands while the forge cannot be asked again.
    """
    readings: list[Reading] = []
    while True:
        judged = await judge(request)
        refused = judged.verdict.refused
        merge = refused.merge if refused is not None else ""
        if not merge or merge in request.reviews or len(readings) >= MERGES_PER_PASS:
            return Reviewed(judged, request, tuple(readings))
        try:
            reading = await read(merge)
        except InternalError:
            raise
        except GitopsError as error:
            if merge not in known:
                return Reviewed(_explained(judged, error), request, tuple(readings), error)
            reading = known[merge]
        readings.append(reading)
        request = replace(request, reviews={**request.reviews, merge: reading.evidence})


def _explained(judged: Judged, error: GitopsError) -> Judged:
    """The same verdict, with what the forge answered."""
    verdict = judged.verdict
    assert verdict.refused is not None
    message = f"{verdict.message}; the forge was asked: {error_text(error)}"
    told = replace(verdict, message=message, refused=replace(verdict.refused, message=message))
    return replace(judged, verdict=told)
