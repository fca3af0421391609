"""Which of the evidence of a pass the accepted history rests on: only that is kept (gitops.md, section 4.5, "Review evidence")."""

from collections.abc import Mapping

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.history import is_ancestor
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, VerdictCache
from gitops_ctl.trust.lines import Lines
from gitops_ctl.trust.policies import Policies
from gitops_ctl.trust.reviews import Review, counted


def evidence_used(
    store: ObjectStore, accepted: str, *, request: RangeRequest, caches: VerdictCache
) -> Mapping[str, tuple[tuple[str, Review], ...]]:
    """Merge to (person, review) of the reviews that counted, by either of the policies that judged it.

    Args:
        store: the objects.
        accepted: the newest accepted commit.
        request: with all the evidence; what was stored before is `request.stored_reviews` and is not looked at again.
        caches: of the source.
    """
    found: dict[str, tuple[tuple[str, Review], ...]] = {}
    policies = Policies(store, path=request.policy_path, cache=caches.policies)
    lines: Lines | None = None
    for merge, evidence in request.reviews.items():
        if merge in request.stored_reviews or not _is_within(store, merge, accepted):
            continue
        lines = lines or Lines(store, root=request.root.commit, tip=accepted)
        line = lines.line_of(merge)
        parents = store.links(merge).parents
        asked = dict.fromkeys((line.first_parent, parents[0] if parents[0] in line.rooted else line.first_parent))
        reviews: dict[str, tuple[str, Review]] = {}
        for commit in asked:
            for person, review in counted(evidence, policy=policies.at(commit), head=parents[1]):
                reviews.setdefault(review.account, (person, review))
        found[merge] = tuple(sorted(reviews.values(), key=lambda each: each[1].at))
    return found


def _is_within(store: ObjectStore, commit: str, tip: str) -> bool:
    try:
        return store.contains(commit) and is_ancestor(store, commit, tip)
    except GitopsError:
        return False
