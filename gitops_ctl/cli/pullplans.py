"""How the plans of rollouts are foreseen for whoever opens a pull request: `gitops-ctl plan rollout --offline` on the documents of its merge."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gitops_ctl.cli.rolloutforecast import forecast_text
from gitops_ctl.cli.rolloutplan import foreseen
from gitops_ctl.cli.rolloutworld import world_of_documents
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.names import DEVICE_KIND, GROUP, OPERATIONS_GROUP, ROLLOUT_KIND
from gitops_ctl.rollout.planforecast import DevicePlace, Place
from gitops_ctl.source.pullplans import Foreseen, register_plan

ROLLOUT: Final = GroupKind(OPERATIONS_GROUP, ROLLOUT_KIND)


def register() -> None:
    """Let plans of rollouts be foreseen in this process."""
    register_plan(ROLLOUT, rollout_foreseen)


def rollout_foreseen(rollout: JsonObject, documents: tuple[JsonObject, ...], now: datetime) -> Foreseen:
    """The devices of a rollout and what its plan would be, as far as documents tell.

    Raises:
        Refused: there is no fleet policy, or several, or something breaks its schema.
    """
    namespace = text_at(rollout, "metadata", "namespace")
    found = foreseen(rollout, world_of_documents(documents, namespace=namespace), now=now)
    inside = tuple(one for one in found.forecast.devices if one.place is not Place.OUT)
    lines = forecast_text(found.rollout, found.forecast).splitlines()
    return Foreseen(
        devices=tuple(ObjectId(GROUP, DEVICE_KIND, namespace, one.name) for one in inside),
        lines=(*(line.strip() for line in lines if line.strip()), *_waves(inside)),
    )


def _waves(devices: tuple[DevicePlace, ...]) -> Iterator[str]:
    waves: dict[int, list[str]] = {}
    for one in devices:
        waves.setdefault(one.wave or 0, []).append(one.name)
    for wave, names in sorted(waves.items()):
        yield f"{f'Wave {wave}' if wave else 'Canaries'}: {listed(names)}"
