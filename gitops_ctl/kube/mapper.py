"""From a kind to its path, by discovery: two aggregated requests, however many kinds there are (H06).

Discovery can fail in part.  A group whose own server does not answer is announced as stale: its kinds are not missing, they
cannot be seen, and nothing may be concluded from that (H19).
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from gitops_ctl.core.errors import TransientError, Unavailable
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, list_at, objects_at, text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.transport import KubeClient

AGGREGATED: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
MISS_INTERVAL_S: Final = 1.0
"""A kind that is missing causes a new discovery at most this often."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the server serves it."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    verbs: frozenset[str] = field(default=frozenset(), compare=False)

    def path(self, namespace: str = "", name: str = "") -> str:
        """Path of the collection, or of one object; `namespace` is ignored for cluster-scoped kinds."""
        group, version = self.gvk.group, self.gvk.version
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        scope = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        # A name is one segment, whatever it holds: never another object, never a query.
        return f"{root}{scope}/{self.plural}/{quote(name, safe=':')}" if name else f"{root}{scope}/{self.plural}"


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything that the server serves at one moment.

    Attributes:
        resources: by kind and version.
        preferred: the version that the server names first, by kind.
        unavailable: (group, version) pairs that are announced but whose server did not answer.
    """

    resources: dict[GroupVersionKind, Resource] = field(default_factory=dict)
    preferred: dict[GroupKind, Resource] = field(default_factory=dict)
    unavailable: frozenset[tuple[str, str]] = frozenset()


def discovery_of(resources: Iterable[Resource], *, unavailable: Iterable[tuple[str, str]] = ()) -> Discovery:
    """A table of `resources`; of several versions of a kind the first is preferred."""
    found = Discovery(unavailable=frozenset(unavailable))
    for resource in resources:
        found.resources.setdefault(resource.gvk, resource)
        found.preferred.setdefault(resource.gvk.group_kind, resource)
    return found


def parse_aggregated(tree: JsonObject) -> tuple[list[Resource], list[tuple[str, str]]]:
    """Resources in the server's order, and the stale (group, version) pairs, of one APIGroupDiscoveryList."""
    resources: list[Resource] = []
    stale: list[tuple[str, str]] = []
    for group in objects_at(tree, "items"):
        name = text_at(group, "metadata", "name")
        for version in objects_at(group, "versions"):
            number = text_at(version, "version")
            if text_at(version, "freshness") == "Stale":
                stale.append((name, number))
            resources.extend(_aggregated_resources(version, group=name, version_name=number))
    return resources, stale


def _aggregated_resources(version: JsonObject, *, group: str, version_name: str) -> Iterator[Resource]:
    for item in objects_at(version, "resources"):
        if kind := text_at(item, "responseKind", "kind"):
            yield Resource(
                GroupVersionKind(group, version_name, kind),
                text_at(item, "resource"),
                namespaced=text_at(item, "scope") == "Namespaced",
                verbs=_verbs(item),
            )


def parse_legacy(tree: JsonObject) -> Iterator[Resource]:
    """The resources of one APIResourceList; subresources are left out."""
    group, _, version = text_at(tree, "groupVersion").rpartition("/")
    for item in objects_at(tree, "resources"):
        if "/" not in text_at(item, "name"):
            gvk = GroupVersionKind(group, version, text_at(item, "kind"))
            yield Resource(gvk, text_at(item, "name"), namespaced=item.get("namespaced") is True, verbs=_verbs(item))


def _verbs(item: JsonObject) -> frozenset[str]:
    return frozenset(verb for verb in list_at(item, "verbs") if isinstance(verb, str))


class Mapper:
    """Answers from a cached discovery; a miss reads it again, one reader at a time."""

    def __init__(self, client: KubeClient, *, miss_interval_s: float = MISS_INTERVAL_S) -> None:
        self._client = client
        self._miss_interval_s = miss_interval_s
        self._known = Discovery()
        self._read_s: float | None = None
        self._reads = 0
        self._reading = asyncio.Lock()
        self._missing_now = asyncio.Lock()

    @property
    def unavailable_groups(self) -> frozenset[str]:
        """Groups with a version that could not be seen at the last discovery: nothing of them may be judged missing."""
        return frozenset(group for group, _ in self._known.unavailable)

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """How `gvk` is served.

        Raises:
            KindNotServed: the server has no such kind.
            Unavailable: its group is announced, but its server does not answer.
        """
        if (found := self._known.resources.get(gvk)) is None:
            await self._read_after_a_miss()
            found = self._known.resources.get(gvk)
        if found is None:
            raise self._missing(gvk.group, str(gvk), versions={gvk.version})
        return found

    async def group_kind(self, kind: GroupKind) -> Resource:
        """The preferred version of `kind`.  Raises as `resource` does."""
        if (found := self._known.preferred.get(kind)) is None:
            await self._read_after_a_miss()
            found = self._known.preferred.get(kind)
        if found is None:
            raise self._missing(kind.group, str(kind), versions=None)
        return found

    async def all(self) -> Discovery:
        """Everything that is served, from the cache when there is one."""
        if self._read_s is None:
            await self.refresh()
        return self._known

    async def refresh(self) -> None:
        """Read discovery now.  Call it after a CustomResourceDefinition was applied or removed."""
        too_early = self._reads + (1 if self._reading.locked() else 0)
        async with self._reading:
            if self._reads > too_early:
                return  # a reader that began after this call has just ended
            read_s = self._client.clock.boot_s()
            self._known = await _discover(self._client)
            self._read_s = read_s
            self._reads += 1

    async def _read_after_a_miss(self) -> None:
        async with self._missing_now:  # whoever misses while another looks gets its result
            if self._read_s is None or self._client.clock.boot_s() - self._read_s >= self._miss_interval_s:
                await self.refresh()

    def _missing(self, group: str, text: str, *, versions: set[str] | None) -> KindNotServed | Unavailable:
        blind = {version for name, version in self._known.unavailable if name == group}
        if blind and (versions is None or versions & blind):
            return Unavailable(f"{text} cannot be seen: the server of the API group {group} does not answer")
        return KindNotServed(f"the server does not serve {text}", subject=text)


async def _discover(client: KubeClient) -> Discovery:
    resources: list[Resource] = []
    unavailable: list[tuple[str, str]] = []
    for root in ("/api", "/apis"):
        tree = await client.get(root, accept=AGGREGATED)
        if text_at(tree, "kind") == "APIGroupDiscoveryList":
            some, stale = parse_aggregated(tree)
        else:
            some, stale = await _discover_legacy(client, tree)
        resources += some
        unavailable += stale
    return discovery_of(resources, unavailable=unavailable)


async def _discover_legacy(client: KubeClient, tree: JsonObject) -> tuple[list[Resource], list[tuple[str, str]]]:
    """One request per version, for servers without the aggregated form."""
    if text_at(tree, "kind") == "APIVersions":
        names = [("", version) for version in list_at(tree, "versions") if isinstance(version, str)]
    else:
        names = [
            (text_at(group, "name"), text_at(version, "version"))
            for group in objects_at(tree, "groups")
            for version in objects_at(group, "versions")
        ]
    resources: list[Resource] = []
    unavailable: list[tuple[str, str]] = []
    for group, version in names:
        try:
            answer = await client.get(f"/apis/{group}/{version}" if group else f"/api/{version}")
        except (TransientError, KindNotServed):
            unavailable.append((group, version))
        else:
            resources += parse_legacy(answer)
    return resources, unavailable
