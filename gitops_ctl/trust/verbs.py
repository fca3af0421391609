"""What a change of a document means, as verbs, computed from its old and its new version (gitops.md, section 4.4, Verbs).

A kind teaches its own verbs through `register_verbs`: a pure function of both versions that names the fields which changed
and the verb that each of them needs.  Whatever else changed is `edit`.  Consent annotations are the same for every kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from gitops_ctl.api.names import ANNOTATION_ALLOW_PRUNE, ANNOTATION_RECREATE, CONSENT_ANNOTATIONS, GROUP
from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.documents.pointer import pointer_of, steps_of

Fields: TypeAlias = Mapping[str, tuple[str, ...]]
"""Verb to JSON pointers of the fields that need it; the empty pointer is the whole document."""

VerbsOf: TypeAlias = Callable[[JsonObject | None, JsonObject | None], Fields]
"""Old and new version to the verbs beyond `edit`.  None: the document is not there.

For a document that goes, the answer is complete; an empty one means `delete`.
"""

WHOLE = ""
CONSENT_KIND = GroupKind(GROUP, "Consent")
_POLICY_KIND = GroupKind(GROUP, "TrustPolicy")
_SYNC_KIND = GroupKind(GROUP, "Sync")


@dataclass(frozen=True, slots=True)
class KindVerbs:
    """What one kind taught.

    Attributes:
        authorises: verb to the fields that it speaks about; their introducers are the authors of `distinctFromAuthor`.
            A verb that is not named here has the signer of the change as its author.
        fields: pointers of the kind's authorising fields, for provenance.
        marks: see `marks`.
    """

    verbs_of: VerbsOf
    authorises: Fields = field(default_factory=dict)
    fields: tuple[tuple[str, str], ...] = ()
    marks: tuple[str, ...] = ()


_REGISTRY: dict[GroupKind, KindVerbs] = {}


def register_verbs(
    group_kind: GroupKind,
    verbs_of: VerbsOf,
    *,
    authorises: Fields = MappingProxyType({}),
    fields: tuple[tuple[str, str], ...] = (),
    marks: tuple[str, ...] = (),
) -> None:
    """Teach the verbs of a kind.

    Args:
        group_kind: the kind, at every version.
        verbs_of: the function of both versions.
        authorises: see `KindVerbs`.
        fields: (verb, pointer) of each authorising field.
        marks: see `marks`; by default the name of the kind.

    Raises:
        RuntimeError: the kind was taught already.
    """
    if group_kind in _REGISTRY:
        raise RuntimeError(f"the verbs of {group_kind} are registered twice")
    _REGISTRY[group_kind] = KindVerbs(verbs_of, authorises, fields, marks or (group_kind.kind,))


def registered_kinds() -> frozenset[GroupKind]:
    """Kinds with verbs of their own."""
    return frozenset(_REGISTRY)


def marks() -> frozenset[str]:
    """Texts one of which stands, as a whole value or key, in a document whose change has other verbs than `edit` and `delete`.

    In its old version or in its new one.
    """
    annotations = (ANNOTATION_RECREATE, ANNOTATION_ALLOW_PRUNE)
    return frozenset((*annotations, *(mark for taught in _REGISTRY.values() for mark in taught.marks)))


def verbs_between(old: JsonObject | None, new: JsonObject | None) -> Fields:
    """Verbs of one document's change, with the fields; empty when the versions are equal."""
    if same(old, new):
        return {}
    named = _named(old, new)
    if new is None:
        return named or {"delete": (WHOLE,)}
    covered = {pointer for pointers in named.values() for pointer in pointers}
    if WHOLE not in covered and not same(_without(old, covered), _without(new, covered)):
        named.setdefault("edit", ())
        named["edit"] += (WHOLE,)
    return named


def authorised_fields(kind: GroupKind | None, verb: str) -> tuple[str, ...] | None:
    """Fields whose introducers are the authors for the verb; None: the signer of the change is its author."""
    taught = _REGISTRY.get(kind) if kind is not None else None
    found = taught.authorises.get(verb) if taught is not None else None
    return ("/spec",) if found is None and verb == "consent" else found


def verb_of_field(kind: GroupKind, pointer: str) -> str:
    """The verb that a change of the field at exactly this pointer has; `edit` where the kind names none."""
    taught = _REGISTRY.get(kind)
    named = (*_consent_pointers(kind), *(taught.fields if taught else ()))
    return next((verb for verb, place in named if place == pointer), "edit")


def consented_fields(kind: GroupKind, pointer: str) -> tuple[str, ...]:
    """Fields that the consent at a pointer speaks about; those of every kind are about the whole spec."""
    everywhere = any(pointer == each for _, each in _consent_pointers(kind))
    return ("/spec",) if everywhere else authorised_fields(kind, "consent") or ()


def authorising_fields(tree: JsonObject, *, kind: GroupKind | None = None) -> tuple[tuple[str, str], ...]:
    """(verb, pointer) of the authorising fields that this document can have and has; `kind` spares reading it."""
    kind = kind or GroupVersionKind.of(tree).group_kind
    taught = _REGISTRY.get(kind)
    own = taught.fields if taught is not None else ()
    if CONSENT_ANNOTATIONS.isdisjoint(object_at(tree, "metadata", "annotations")):
        wanted = own
    else:
        wanted = (*_consent_pointers(kind), *own)
    return tuple([(verb, pointer) for verb, pointer in wanted if value_at(tree, pointer) is not None])


def followed_fields(tree: JsonObject, *, kind: GroupKind | None = None) -> tuple[tuple[str, str], ...]:
    """(verb, pointer) of the authorising fields that the document has, and of what they speak about where the kind says it."""
    kind = kind or GroupVersionKind.of(tree).group_kind
    own = authorising_fields(tree, kind=kind)
    taught = _REGISTRY.get(kind)
    if taught is None or not taught.authorises:
        return own
    known = {pointer for _, pointer in own}
    spoken = {pointer for pointers in taught.authorises.values() for pointer in pointers}
    others = sorted(pointer for pointer in spoken - known if value_at(tree, pointer) is not None)
    return (*own, *(("edit", pointer) for pointer in others))


def same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON; unlike in Python, `1` is not `true`."""
    return one == other and canonical_json(one) == canonical_json(other)


def value_at(tree: JsonObject | None, pointer: str) -> JsonValue:
    """The value at a pointer, None where nothing is; lists are not entered."""
    value: JsonValue = tree
    for step in steps_of(pointer):
        if not isinstance(value, dict | Mapping):  # a dict is told apart faster
            return None
        value = value.get(step)
    return value


def _named(old: JsonObject | None, new: JsonObject | None) -> dict[str, tuple[str, ...]]:
    present = new if new is not None else old
    assert present is not None
    kind = GroupVersionKind.of(present).group_kind
    taught = _REGISTRY.get(kind)
    named = dict(taught.verbs_of(old, new)) if taught else {}
    if new is not None:
        for verb, pointer in _consent_pointers(kind):
            value = value_at(new, pointer)
            if value is not None and not same(value, value_at(old, pointer)):
                named[verb] = (*named.get(verb, ()), pointer)
    return named


@lru_cache(maxsize=1024)
def _consent_pointers(kind: GroupKind) -> tuple[tuple[str, str], ...]:
    """(verb, pointer) of consent annotations: `recreate` on any document, `allow-prune` on a Sync (section 22.4)."""
    names = [ANNOTATION_RECREATE, ANNOTATION_ALLOW_PRUNE] if kind == _SYNC_KIND else [ANNOTATION_RECREATE]
    return tuple(("consent", pointer_of(("metadata", "annotations", name))) for name in names)


def _without(tree: JsonObject | None, pointers: set[str]) -> JsonValue:
    """A copy without the fields, and without the mappings that became empty with them."""
    value: JsonValue = tree
    for pointer in pointers:
        value = _dropped(value, steps_of(pointer))
    return value


def _dropped(value: JsonValue, steps: tuple[str, ...]) -> JsonValue:
    if not isinstance(value, Mapping) or not steps or steps[0] not in value:
        return value
    inner = _dropped(value[steps[0]], steps[1:]) if len(steps) > 1 else None
    keep = inner is not None and inner != {}
    return {key: inner if key == steps[0] else member for key, member in value.items() if key != steps[0] or keep}


def _trust_policy(_old: JsonObject | None, _new: JsonObject | None) -> Fields:
    return {"trust": (WHOLE,)}


def _consent(_old: JsonObject | None, new: JsonObject | None) -> Fields:
    """Removing a consent, spent or not, is an ordinary edit."""
    return {"edit": (WHOLE,)} if new is None else {"consent": (WHOLE,)}


register_verbs(_POLICY_KIND, _trust_policy)
register_verbs(CONSENT_KIND, _consent, authorises={"consent": ()})
