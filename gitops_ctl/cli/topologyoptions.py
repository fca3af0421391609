"""The options of topology-aware scheduling as flags, by the names of the contract (topology-scheduling.md, section 12, D34).

`--reference-defaults` changes defaults only: an option that is also given by name keeps its value.  Commands that ask a cluster take what
its manager was started with, and what they are given themselves goes before.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import click

from gitops_ctl.api.patterns import LABEL, MEANING
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.scheduling.names import WORKER_NAMESPACE
from gitops_ctl.scheduling.options import Options

R = TypeVar("R")


class _Duration(click.ParamType[Any]):
    """Seconds, from text such as 15m."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(to_seconds(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Namespace(click.ParamType[Any]):
    """The name of a namespace."""

    name = "namespace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if len(text) > 63 or re.fullmatch(LABEL, text) is None or text.endswith("\n"):
            self.fail(f"{text!r} {MEANING[LABEL]}", param, ctx)
        return text


def _switch(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}/--no-{name}", default=None, help=text)


_FLAGS: Final = (
    click.option(
        "--worker-namespace",
        type=_Namespace(),
        default=None,
        metavar="NAME",
        help=f"Where snapshots, credentials and NodeFeatures of TopologySources are.  [default: {WORKER_NAMESPACE}]",
    ),
    _switch("keep-profile-while-stale", "A stale source still counts for the profiles of its Nodes.  [default: yes]"),
    click.option(
        "--snapshot-drop-percent",
        type=click.IntRange(0, 100),
        default=None,
        help="Refuse a revision that removes a larger share of a source's NodeFeatures; 100 never does.  [default: 50]",
    ),
    click.option(
        "--snapshot-drop-nodes",
        type=click.IntRange(min=0),
        default=None,
        help="... if it removes at least so many.  [default: 5]",
    ),
    _switch("require-nodes", "A snapshot without nodes is refused; `nodes: {}` clears.  [default: yes]"),
    _switch(
        "tolerate-unknown-nodes", "Nodes of a snapshot that the cluster does not have are only reported.  [default: no]"
    ),
    click.option(
        "--short-staleness",
        type=click.Choice(("off", "warn", "refuse")),
        default=None,
        help="What a maxStaleness below the pollInterval is met with.  [default: warn]",
    ),
    _switch("sort-fabric-tiers", "Sort fabric tiers by number instead of reversing their runs.  [default: no]"),
    _switch("hold-before-drop", "Drop an idle flavor only under a short hold.  [default: no]"),
    click.option(
        "--write-rate",
        type=click.IntRange(min=0),
        default=None,
        help="Writes of one source in a second; 0 is no limit.  [default: 0]",
    ),
    _switch("require-drain-approval", "A drain that evicts needs a consent or a window from Git.  [default: no]"),
    click.option(
        "--drain-warn-after",
        type=_Duration(),
        default=None,
        help="Age at which a drain is called stuck.  [default: 15m]",
    ),
    _switch("mixed-on-node", "Nodes with accelerators feed CPU flavors too.  [default: yes]"),
    click.option(
        "--admission-checks",
        multiple=True,
        metavar="NAME",
        help="AdmissionCheck of every queue; may be repeated, the order counts.  [default: none]",
    ),
    _switch("drain-when-no-flavors", "A queue whose flavors are all gone is drained.  [default: yes]"),
)

_REFERENCE: Final = click.option(
    "--reference-defaults/--no-reference-defaults",
    default=None,
    help="Defaults of the reference: profiles change while a source is stale, and neither large removals, missing nodes nor a "
    "short maxStaleness are looked at.  [default: no]",
)


def topology_options(function: Callable[..., R]) -> Callable[..., R]:
    """All flags; the command gets them as the keyword argument `options`."""
    return _with(function, (*_FLAGS, _REFERENCE), _taken)


@dataclass(frozen=True, slots=True)
class Asked:
    """The flags that a command was given, before it is known what the manager has."""

    given: Mapping[str, Any]

    def over(self, arguments: Sequence[str] = ()) -> Options:
        """The options of a manager with these arguments, with what was given in their place."""
        manager = _parsed(arguments)
        return _options({name: manager[name] if value in (None, ()) else value for name, value in self.given.items()})


def asked_options(function: Callable[..., R]) -> Callable[..., R]:
    """All flags, for a command that asks a cluster; it gets them as the keyword argument `asked`."""
    return _with(function, (*_FLAGS, _REFERENCE), _asked)


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the command, with one `asked` in place of the flags."""
    rest = {name: value for name, value in given.items() if name not in _FLAG_NAMES}
    return {**rest, "asked": Asked({name: given[name] for name in _FLAG_NAMES if name in given})}


def _parsed(arguments: Sequence[str]) -> Mapping[str, Any]:
    """What the arguments of a manager say about scheduling; those about anything else are passed over."""

    def nothing() -> None:
        return

    for flag in (*_FLAGS, _REFERENCE):
        flag(nothing)
    lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
    command = click.command(context_settings=lenient, add_help_option=False)(nothing)
    return command.make_context("manager", list(arguments)).params


def check_options(function: Callable[..., R]) -> Callable[..., R]:
    """The two flags that documents are judged by; the command gets `options`."""
    return _with(function, (_FLAGS[0], _REFERENCE), _taken)


def _with(
    function: Callable[..., R],
    flags: tuple[Callable[[Any], Any], ...],
    taken: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[..., R]:
    @functools.wraps(function)
    def command(*args: Any, **given: Any) -> R:
        return function(*args, **taken(given))

    for flag in reversed(flags):
        command = flag(command)
    return command


def _taken(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the command, with one `options` in place of the flags."""
    rest = {name: value for name, value in given.items() if name not in _FLAG_NAMES}
    return {**rest, "options": _options(given)}


def _options(given: Mapping[str, Any]) -> Options:
    base = Options.reference() if given.get("reference_defaults") else Options()
    chosen = {name: value for name in _NAMES if (value := given.get(name)) is not None}
    seconds: int | None = given.get("drain_warn_after")
    if seconds is not None:
        chosen["drain_warn_after_s"] = seconds
    if checks := given.get("admission_checks"):
        chosen["admission_checks"] = checks
    return replace(base, **chosen)


_NAMES: Final = (
    "worker_namespace",
    "keep_profile_while_stale",
    "snapshot_drop_percent",
    "snapshot_drop_nodes",
    "require_nodes",
    "tolerate_unknown_nodes",
    "short_staleness",
    "sort_fabric_tiers",
    "hold_before_drop",
    "write_rate",
    "require_drain_approval",
    "mixed_on_node",
    "drain_when_no_flavors",
)
_FLAG_NAMES: Final = frozenset({*_NAMES, "reference_defaults", "drain_warn_after", "admission_checks"})
