"""Managed topology is off until it is asked for, and its flags become the options of its room (rollouts.md, section 2.1)."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from gitops_ctl.cli.deviceoptions import device_options
from gitops_ctl.cli.rolloutoptions import rollout_options
from gitops_ctl.rollout.controller import Intervals
from gitops_ctl.topology.options import Access, Options


def given(*arguments: str) -> tuple[Any, str]:
    """The options that a command gets, and what it printed."""
    found: list[Any] = []

    @click.command()
    @click.option("--namespace", default="gitops-ctl-system")
    @device_options
    @rollout_options
    def command(*, namespace: str, devices: Options | None, rollouts: Intervals) -> None:
        assert devices is None or devices.preflight_s == rollouts.preflight_s
        found.append((namespace, devices))

    result = CliRunner().invoke(command, list(arguments))
    assert (result.exit_code == 0) is bool(found)
    return (found[0][1] if found else None), result.output


def test_without_the_switch_there_is_no_managed_topology() -> None:
    assert given()[0] is None
    assert given("--worker-image", "gitops-ctl:1")[0] is None


def test_the_defaults_are_those_of_the_room() -> None:
    assert given("--managed-topology")[0] == Options()


def test_every_flag_becomes_an_option() -> None:
    found, _ = given(
        "--managed-topology",
        "--namespace=fleet",
        "--fleet-policy=campus-policy",
        "--app-hosting-access=readOnly",
        "--network-access=disabled",
        "--worker-image=gitops-ctl:1",
        "--image-source-allow=127.0.0.0/8",
        "--image-source-allow=::1",
        "--topology-resync=0.5",
        "--unsaved-configuration=warn",
        "--worker-poll=2",
        "--preflight-interval=600",
    )
    assert found == Options(
        namespace="fleet",
        policy="campus-policy",
        app_hosting=Access.READ_ONLY,
        network=Access.DISABLED,
        worker_image="gitops-ctl:1",
        image_source_allow=("127.0.0.0/8", "::1/128"),
        resync_s=0.5,
        unsaved_blocks=False,
        worker_poll_s=2.0,
        preflight_s=600.0,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--image-source-allow=192.0.2.1/24",),
        ("--image-source-allow=example.net",),
        ("--app-hosting-access=all",),
        ("--topology-resync=0",),
        tuple(f"--image-source-allow=192.0.2.{number}" for number in range(17)),
    ],
    ids=["host-bits", "name", "word", "zero", "too-many"],
)
def test_a_bad_value_is_refused(arguments: tuple[str, ...]) -> None:
    found, said = given("--managed-topology", *arguments)
    assert found is None
    assert "Error" in said
