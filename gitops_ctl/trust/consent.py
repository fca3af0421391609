"""Consents: who agreed beforehand to exactly this change (gitops.md, section 4.4, "Consent documents").

A `Consent` counts when verb, path and resulting blob are equal, it is not too late, it stands in the tree of the changing
commit's first parent, and the path has not had that blob since the consent was introduced: it is spent once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.api.trust_policy import ConsentDocument, parse_consent
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.git.history import commits_between
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import TreeLimits, entry_at, walk_tree
from gitops_ctl.trust.changes import NO_BLOB, BlobDocuments, Change
from gitops_ctl.trust.verbs import CONSENT_KIND

CONSENT_FOLDER = ".gitops-ctl/consents"
_LIMITS = TreeLimits(entries=2_000, depth=8, bytes=16 * 2**20)


@dataclass(frozen=True, slots=True)
class Moment:
    """The changing commit, as a consent sees it.

    Attributes:
        first_parent: in whose tree the consent must stand.
        trusted: the commit of the first-parent line before the one that brings the change in; the same as `first_parent` for
            a change on that line.  A consent that was used there is spent on every branch.
        first_seen: of the changing commit; the consent's `notAfter` must be later.
    """

    first_parent: str
    trusted: str
    first_seen: datetime


@dataclass(frozen=True, slots=True)
class Introduction:
    """The commit that gave a file its present content, and the person who stands behind it; empty for nobody."""

    commit: str
    person: str


IntroducerOf = Callable[[str, str], Introduction | None]
"""(path, commit in whose tree it stands) to who introduced its present content; None when it stood in the root's tree."""


def consenting(
    store: ObjectStore, *, change: Change, moment: Moment, documents: BlobDocuments, introducer_of: IntroducerOf
) -> frozenset[str]:
    """People whose consents match the change and are not spent.

    Raises:
        NotFound: history that decides about a consent is missing.
    """
    people: set[str] = set()
    for path, consent in _standing(store, commit=moment.first_parent, documents=documents):
        if not _is_about(consent, change=change, moment=moment):
            continue
        introduced = introducer_of(path, moment.first_parent)
        if introduced is None or _is_spent(store, change=change, since=introduced.commit, moment=moment):
            continue
        people.add(introduced.person)
    return frozenset(people - {""})


def _standing(store: ObjectStore, *, commit: str, documents: BlobDocuments) -> Iterator[tuple[str, ConsentDocument]]:
    """Well-formed consents of a commit's tree, with their paths; a malformed one counts for nothing."""
    for file in walk_tree(store, store.links(commit).tree, path=CONSENT_FOLDER, limits=_LIMITS):
        entry = entry_at(store, store.links(commit).tree, file.path)
        found = documents.of(file.path, entry)
        if len(found) != 1 or found[0].gvk.group_kind != CONSENT_KIND:
            continue
        try:
            yield file.path, parse_consent(found[0].tree)
        except GitopsError:
            continue


def _is_about(consent: ConsentDocument, *, change: Change, moment: Moment) -> bool:
    return (
        consent.verb == change.verb
        and consent.path == change.path
        and consent.blob == change.blob
        and from_rfc3339(consent.not_after) > moment.first_seen
    )


def _is_spent(store: ObjectStore, *, change: Change, since: str, moment: Moment) -> bool:
    """Whether the path had the resulting blob in any commit from the introduction of the consent on."""
    later = dict.fromkeys((since, *commits_between(store, since, moment.first_parent)))
    if moment.trusted != moment.first_parent:
        later |= dict.fromkeys(commits_between(store, since, moment.trusted))
    for commit in later:
        entry = entry_at(store, store.links(commit).tree, change.path)
        if (entry.id if entry else NO_BLOB) == change.blob:
            return True
    return False
