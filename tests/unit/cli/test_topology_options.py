"""Options of topology-aware scheduling as flags: names, defaults, and what `--reference-defaults` changes (topology-scheduling.md, 12, D34)."""

from dataclasses import fields

import click
import pytest
from click.testing import CliRunner

from gitops_ctl.cli.topologyoptions import asked_options, check_options, topology_options
from gitops_ctl.scheduling.options import Options


def taken(*flags, decorate=topology_options):
    """The options that a command gets."""
    found: list[Options] = []

    @click.command()
    @decorate
    def probe(*, options):
        found.append(options)

    result = CliRunner().invoke(probe, list(flags))
    assert result.exit_code == 0, result.output
    return found[0]


def refused(*flags):
    @click.command()
    @topology_options
    def probe(*, options):
        raise AssertionError(options)

    result = CliRunner().invoke(probe, list(flags))
    assert result.exit_code == 2
    return result.output


def beside(arguments, *flags):
    """The options of a command that asks a cluster whose manager has these arguments."""
    found = []

    @click.command()
    @asked_options
    def probe(*, asked):
        found.append(asked.over(arguments))

    result = CliRunner().invoke(probe, list(flags))
    assert result.exit_code == 0, result.output
    return found[0]


def test_what_the_manager_has_counts_and_what_is_given_goes_before():
    manager = [
        "manager",
        "--namespace=$(POD_NAMESPACE)",
        "--worker-namespace=topology",
        "--no-mixed-on-node",
        "--drain-warn-after=1h",
        "--admission-checks=b",
        "--admission-checks=a",
        "--log-level=info",
    ]
    found = beside(manager)
    assert found == Options(
        worker_namespace="topology", mixed_on_node=False, drain_warn_after_s=3600, admission_checks=("b", "a")
    )
    given = beside(manager, "--worker-namespace=here", "--mixed-on-node", "--admission-checks=c")
    assert (given.worker_namespace, given.mixed_on_node, given.admission_checks) == ("here", True, ("c",))
    assert given.drain_warn_after_s == 3600
    assert beside([]) == Options()
    assert beside(["manager", "--reference-defaults"]) == Options.reference()
    assert beside(["manager", "--reference-defaults"], "--no-reference-defaults") == Options()


def test_without_flags_the_defaults_are_those_of_the_controller():
    assert taken() == taken(decorate=check_options) == Options()


def test_reference_defaults_turn_off_what_differs_from_the_reference():
    assert taken("--reference-defaults") == taken("--reference-defaults", decorate=check_options) == Options.reference()
    assert taken("--no-reference-defaults") == Options()


def test_an_option_that_is_given_by_name_keeps_its_value_under_reference_defaults():
    found = taken("--reference-defaults", "--keep-profile-while-stale", "--snapshot-drop-percent=30")
    assert (found.keep_profile_while_stale, found.snapshot_drop_percent) == (True, 30)
    assert (found.require_nodes, found.short_staleness) == (False, "off")


def test_every_option_can_be_given():
    found = taken(
        "--worker-namespace=topology",
        "--no-keep-profile-while-stale",
        "--snapshot-drop-percent=10",
        "--snapshot-drop-nodes=7",
        "--no-require-nodes",
        "--tolerate-unknown-nodes",
        "--short-staleness=refuse",
        "--sort-fabric-tiers",
        "--hold-before-drop",
        "--require-drain-approval",
        "--drain-warn-after=1h",
        "--no-mixed-on-node",
        "--admission-checks=b",
        "--admission-checks=a",
        "--no-drain-when-no-flavors",
        "--write-rate=20",
    )
    assert found == Options(
        worker_namespace="topology",
        keep_profile_while_stale=False,
        snapshot_drop_percent=10,
        snapshot_drop_nodes=7,
        require_nodes=False,
        tolerate_unknown_nodes=True,
        short_staleness="refuse",
        sort_fabric_tiers=True,
        hold_before_drop=True,
        require_drain_approval=True,
        drain_warn_after_s=3600,
        mixed_on_node=False,
        admission_checks=("b", "a"),
        drain_when_no_flavors=False,
        write_rate=20,
    )
    default = Options()
    assert all(getattr(found, field.name) != getattr(default, field.name) for field in fields(Options))


@pytest.mark.parametrize(
    "flag",
    [
        "--snapshot-drop-percent=101",
        "--snapshot-drop-nodes=-1",
        "--write-rate=-1",
        "--short-staleness=loud",
        "--drain-warn-after=soon",
        "--worker-namespace=Two Words",
        "--worker-namespace=",
    ],
)
def test_a_value_that_means_nothing_is_refused_with_its_flag(flag):
    assert flag.partition("=")[0] in refused(flag)
