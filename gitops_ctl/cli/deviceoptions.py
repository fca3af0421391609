"""The options of managed topology as flags of the manager (rollouts.md, sections 2.1, 11.8, 13.8 and 17.1).

It is off unless `--managed-topology` is given: it changes who may write Nodes.
"""

import functools
import ipaddress
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from gitops_ctl.topology.options import Access, Options

R = TypeVar("R")
_DEFAULTS: Final = Options()


class Network(click.ParamType[Any]):
    """An address range such as 10.0.0.0/8."""

    name = "cidr"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(ipaddress.ip_network(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _access(plane: str, what: str) -> Callable[[Any], Any]:
    words = [access.value for access in Access]
    return click.option(
        f"--{plane}-access",
        type=click.Choice(words),
        default=Access.READ_WRITE.value,
        show_default=True,
        help=f"What the account for {what} may do, in every namespace with devices.",
    )


_FLAGS: Final = (
    click.option("--managed-topology", is_flag=True, help="Make Nodes of CiscoDevices and run software rollouts."),
    click.option(
        "--fleet-policy", default=_DEFAULTS.policy, show_default=True, help="ConfigMap with the fleet policy."
    ),
    _access("app-hosting", "the status of Nodes"),
    _access("network", "device sessions"),
    click.option("--worker-image", default="", help="Image of the device workers; no worker is made without one."),
    click.option(
        "--image-source-allow",
        type=Network(),
        multiple=True,
        help="Network that image servers may be in although it is not public; can be given up to 16 times.",
    ),
    click.option(
        "--unsaved-configuration",
        type=click.Choice(["block", "warn"]),
        default="block",
        show_default=True,
        help="What a running configuration that is not saved does to an upgrade of the device.",
    ),
    click.option(
        "--topology-resync",
        type=click.FloatRange(min=0.1),
        default=_DEFAULTS.resync_s,
        show_default=True,
        help="Seconds until a device that is not ready is looked at again, at the latest.",
    ),
    click.option(
        "--worker-poll",
        type=click.FloatRange(min=0.1),
        default=_DEFAULTS.worker_poll_s,
        show_default=True,
        help="Seconds until a device worker looks again at what it waits for, at the latest.",
    ),
)


def device_options(function: Callable[..., R]) -> Callable[..., R]:
    """Flags whose values reach the function as `devices: Options | None`.

    Its own `namespace` is where the policy is; its own `preflight_interval` holds for the workers too.
    """

    @functools.wraps(function)
    def wrapped(*arguments: Any, **given: Any) -> R:
        names = ("fleet_policy", "app_hosting_access", "network_access", "worker_image", "image_source_allow")
        policy, app, network, image, allowed = (given.pop(name) for name in names)
        resync_s, unsaved = given.pop("topology_resync"), given.pop("unsaved_configuration")
        if len(allowed) > _MOST_NETWORKS:
            raise click.UsageError(f"--image-source-allow is given {len(allowed)} times, {_MOST_NETWORKS} are allowed")
        options = Options(
            namespace=given["namespace"],
            policy=policy,
            app_hosting=Access(app),
            network=Access(network),
            worker_image=image,
            image_source_allow=tuple(allowed),
            unsaved_blocks=unsaved == "block",
            resync_s=resync_s,
            worker_poll_s=given.pop("worker_poll"),
            preflight_s=given["preflight_interval"],
        )
        return function(*arguments, devices=options if given.pop("managed_topology") else None, **given)

    for flag in reversed(_FLAGS):
        wrapped = flag(wrapped)
    return wrapped


_MOST_NETWORKS: Final = 16
"""As many as a worker's report holds."""
