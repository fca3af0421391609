"""Which Node feeds which flavor, kept up to date with every change of a Node (topology-scheduling.md, 7.2 and 7.3)."""

from collections.abc import Mapping

from gitops_ctl.scheduling.flavor import Flavor, flavors_of
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.topology import profile_in_flavor_name


class Contributions:
    """Flavors by their contributors.  A Node in deletion still counts."""

    def __init__(self, *, options: Options) -> None:
        self._options = options
        self._labels: dict[str, Labels] = {}
        self._fed: dict[str, frozenset[str]] = {}
        self._feeding: dict[str, set[str]] = {}
        self._lost: dict[str, frozenset[str]] = {}

    def change(self, node: str, labels: Labels | None) -> frozenset[str]:
        """Take a Node as it is now, None when it is gone; the flavors that it fed before or feeds now."""
        fed = fed_by(labels, options=self._options).flavors if labels is not None else ()
        before, now = self._fed.pop(node, frozenset()), frozenset(identity.name for identity in fed)
        self._labels.pop(node, None)
        for name in before - now:
            self._feeding[name].discard(node)
            if not self._feeding[name]:
                del self._feeding[name]
        for name in now:
            self._feeding.setdefault(name, set()).add(node)
        if labels is not None and now:
            self._labels[node], self._fed[node] = labels, now
        if labels is None or now:
            self._lost.pop(node, None)
        elif before:
            self._lost[node] = before
        return before | now

    def is_missed(self, name: str) -> bool:
        """Whether a Node that is still there fed this flavor last, and feeds nothing now."""
        return any(name in fed for fed in self._lost.values())

    @property
    def names(self) -> frozenset[str]:
        """Every flavor with a contributor."""
        return frozenset(self._feeding)

    def flavor(self, name: str) -> Flavor | None:
        """A flavor as it should be; None when no Node feeds it."""
        nodes: Mapping[str, Labels] = {node: self._labels[node] for node in self._feeding.get(name, ())}
        return flavors_of(nodes, options=self._options).get(name) if nodes else None

    def replacements(self, name: str) -> frozenset[str]:
        """Flavors of the same hardware that have contributors."""
        base = name.removesuffix(profile_in_flavor_name(name))
        return frozenset(
            other for other in self._feeding if other == f"{base}{profile_in_flavor_name(other)}" and other != name
        )
