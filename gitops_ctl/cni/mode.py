"""Which side serves Services now, and whether a side works (cni-switch.md, sections 9 and 10).

Pure.  `serves` is what stands between a running kube-proxy and its removal: the executor asks it before every machine and before
the removal, and the worker asks it once more before it removes anything.
"""

import enum
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from gitops_ctl.cni.model import Baseline, CiliumSeen, Cluster, Mode, Observed, ProxySeen

RESTART: Final = "kubectl -n kube-system rollout restart daemonset/cilium"

_TRUE = frozenset({"true", "strict"})
_FALSE = frozenset({"false", "disabled", ""})


class Replacement(enum.Enum):
    """What a value of `kube-proxy-replacement` means (section 9.1)."""

    TRUE = "true"
    FALSE = "false"
    MIXED = "mixed"


def replacement_of(value: str | None) -> Replacement:
    """The meaning of a value; a key that is missing counts as false."""
    word = (value or "").strip().lower()
    if word in _TRUE:
        return Replacement.TRUE
    return Replacement.FALSE if word in _FALSE else Replacement.MIXED


def current_mode(cluster: Cluster, observed: Observed | None) -> Mode:
    """What runs now: the live value of Cilium, then what a switch has set, then the spec (section 10)."""
    cilium = observed.cilium if observed is not None else None
    if cilium is not None and cilium.present:
        return Mode.REPLACED if replacement_of(cilium.value) is Replacement.TRUE else Mode.ENABLED
    return cluster.record.mode or cluster.mode


def is_asked(cilium: CiliumSeen | None, target: Mode) -> bool:
    """Whether the live value is the one of the target: true for `replaced`, anything but true for `enabled`."""
    if cilium is None or not cilium.present:
        return False
    found = replacement_of(cilium.value)
    return found is (Replacement.TRUE if target is Mode.REPLACED else Replacement.FALSE)


def serves(observed: Observed | None, target: Mode, baseline: Baseline | None) -> tuple[str, ...]:
    """What is missing until every agent runs the target's mode; empty when section 9.1 holds.  No text holds a counter."""
    cilium = observed.cilium if observed is not None else None
    if cilium is None:
        return ("the state of Cilium cannot be read",)
    return tuple(_missing(cilium, target, baseline))


def _missing(cilium: CiliumSeen, target: Mode, baseline: Baseline | None) -> Iterator[str]:
    if not is_asked(cilium, target):
        yield f"live kube-proxy-replacement is {shown_value(cilium)}"
        return
    if cilium.agents is None:
        yield "there is no DaemonSet kube-system/cilium"
    elif not cilium.agents.is_complete:
        yield "the Cilium agents are rolling out"
    if not restart_proof(cilium, baseline):
        yield (
            "nothing shows that the agents were restarted since cilium-config was changed: "
            f"run `{RESTART}`, or set rollOutCiliumPods: true"
        )
    if cilium.operator is None:
        yield "there is no Deployment kube-system/cilium-operator"
    elif not cilium.operator.is_complete:
        yield "the Cilium operator is rolling out"
    for override in cilium.overrides:
        if replacement_of(override.value) is not replacement_of(cilium.value):
            yield f"CiliumNodeConfig {override.object} sets {override.value} for {', '.join(override.nodes) or 'nodes'}"


def restart_proof(cilium: CiliumSeen, baseline: Baseline | None) -> str:
    """Which of the three proofs of section 9.4 shows that the agents read the present configuration; empty: none does.

    A pod template proves something only when it was written with or after the configuration: an earlier one was rolled out for
    something else, and its pods may have read the old values.  Whole seconds are all that the API server keeps.
    """
    written, start = _second(cilium.written), _second(cilium.oldest_start)
    rolled = _second(cilium.template_written)
    follows = written is not None and rolled is not None and rolled >= written
    if baseline is not None and cilium.checksum and follows and cilium.checksum != baseline.checksum:
        return "checksum"
    if start is not None and written is not None and start > written:
        return "containers"
    rose = baseline is not None and cilium.template_generation > baseline.generation
    return "generation" if cilium.checksum and follows and rose else ""


def _second(moment: datetime | None) -> datetime | None:
    return moment.replace(microsecond=0) if moment is not None else None


def next_baseline(known: Baseline | None, cilium: CiliumSeen | None, target: Mode, *, now: datetime) -> Baseline | None:
    """The template as it was seen last before the value was the target's; the first look counts when it was from the start."""
    if cilium is None or (known is not None and is_asked(cilium, target)):
        return known
    fresh = Baseline(cilium.checksum, cilium.template_generation, now)
    return known if known is not None and replace(fresh, at=known.at) == known else fresh


def proxy_missing(proxy: ProxySeen | None) -> tuple[str, ...]:
    """What is missing until kube-proxy serves (section 9.2); nothing desired is not ready."""
    if proxy is None:
        return ("the objects of kube-proxy cannot be read",)
    if not proxy.present:
        return ("the kube-proxy DaemonSet has not been created yet",)
    found = [f"{name} is missing" for name in proxy.missing]
    if proxy.roll_out is None or not proxy.roll_out.is_complete:
        found.append("the kube-proxy pods are not all updated and ready")
    return tuple(found)


def is_proxy_gone(proxy: ProxySeen | None) -> bool:
    """Whether nothing of kube-proxy is left in the cluster: no object, and no pod that still runs (section 8.2)."""
    return proxy is not None and not proxy.present and not proxy.objects and proxy.pods == 0


def shown_value(cilium: CiliumSeen | None) -> str:
    """The live value as people read it."""
    if cilium is None or not cilium.present:
        return "unknown (there is no ConfigMap cilium-config)"
    return "unset" if cilium.value is None else cilium.value or '""'
