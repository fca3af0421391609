"""Names of the branches that proposals live on (forges.md, section 3; fault P14).

`gitops-ctl/<kind>-<name>-<hash>`: readable, bounded, the same for a subject for ever, and never a text that somebody else chose as
it is: kind and name keep letters, digits and hyphens, and what tells two subjects apart is a hash.
"""

import hashlib
import re
from typing import Final

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.ids import ObjectId

PREFIX: Final = "gitops-ctl/"
MOST_SUFFIX: Final = 9
"""A subject whose first nine names are taken needs a person."""

_READABLE: Final = 40
_HASH: Final = 16
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_SUFFIX: Final = re.compile(r"-([2-9])")


def branch_name(subject: ObjectId, *, purpose: str) -> str:
    """The first choice for a subject and a purpose."""
    readable = _OTHERS.sub("-", f"{subject.kind}-{subject.name}".lower()).strip("-")[:_READABLE].strip("-") or "x"
    reference = {
        "group": subject.group,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
    }
    key = hashlib.sha256(canonical_json({"purpose": purpose, "subject": reference})).hexdigest()[:_HASH]
    return f"{PREFIX}{readable}-{key}"


def with_suffix(first: str, number: int) -> str:
    """The `number`-th choice; 1 is the first itself."""
    return first if number == 1 else f"{first}-{number}"


def number_of(branch: str, *, first: str) -> int:
    """Which choice of the subject with the first choice `first` a branch is; 0 for none of them."""
    if branch == first:
        return 1
    found = _SUFFIX.fullmatch(branch.removeprefix(first)) if branch.startswith(first) else None
    return int(found[1]) if found else 0
