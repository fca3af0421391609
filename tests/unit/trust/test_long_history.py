"""A long history: bounded passes end with everything judged, and what is kept between them is bounded."""

from datetime import UTC, datetime
from pathlib import Path

from tests.support.trust_history import signed_history


def test_a_long_history_is_accepted_in_passes_with_bounded_memory(tmp_path: Path) -> None:
    story = signed_history(tmp_path / "long", commits=300)
    story.now = datetime.now(UTC)
    verdict = story.judge(limit=100)
    judged = [verdict.judged]
    while verdict.pending:
        verdict = story.judge(limit=100)
        judged.append(verdict.judged)
    assert (verdict.verdict, verdict.accepted, judged) == ("Accepted", story.repo.head("main"), [100, 100, 100])
    assert len(story.cache.policies) == 1
    assert story.cache.done_below("any", "merge") == set()
