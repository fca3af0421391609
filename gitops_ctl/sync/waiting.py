"""Health of a unit: which objects are not healthy yet, which will not be, and when to look again (gitops.md, section 10).

Nothing here blocks: a pass judges what there is and ends, informers wake the unit, and so a newer revision never waits for
an old one (H01).  Objects with an expression, and objects of others, are read by name, once per version.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.api.sync import Sync
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.sync.converge import Pass
from gitops_ctl.sync.health import health_of
from gitops_ctl.sync.healthchecks import Check, Checks, compile_checks
from gitops_ctl.sync.model import Health, HealthStatus, Mode, Unseen

POLL_S: Final = 2.0
"""How often an object that no informer shows is read while it is waited for."""


@dataclass(slots=True)
class Waiting:
    """What stands between a unit and its health."""

    checked: bool = False
    waiting: dict[ObjectId, str] = field(default_factory=dict)
    failed: dict[ObjectId, str] = field(default_factory=dict)
    again_s: float | None = None

    def sooner(self, seconds: float) -> None:
        self.again_s = seconds if self.again_s is None else min(self.again_s, seconds)


async def judge_health(run: Pass, sync: Sync, *, made_from: tuple[object, ...]) -> Waiting:
    """Judge what `wait` and `healthChecks` ask for; what is not healthy within the time limit has failed.

    Raises:
        Refused: an expression is no CEL.
    """
    result = Waiting(checked=sync.spec.wait or bool(sync.spec.health_checks))
    if not result.checked:
        return result
    checks = compile_checks(sync.spec.health_checks, namespace=sync.spec.target_namespace or sync.metadata.namespace)
    memory = run.memory
    if memory.wait_key != made_from:
        memory.wait_key, memory.wait_since_s = made_from, run.now_s
    now_s = run.target.clock.wall().timestamp()
    for item in _asked_for(run, sync, checks):
        health = await _health(run, item, checks.of(item), result)
        status = health.at(now_s)
        if status is HealthStatus.FAILED:
            result.failed[item] = health.message
        elif status is not HealthStatus.CURRENT:
            result.waiting[item] = health.message or status.value
            if health.turns is not None:
                result.sooner(max(0.0, health.turns[1] - now_s))
    _limit(result, left_s=memory.wait_since_s + to_seconds(sync.spec.timeout) - run.now_s)
    return result


def _asked_for(run: Pass, sync: Sync, checks: Checks) -> Iterable[ObjectId]:
    every = (
        [item for item, found in run.state.objects.items() if found.mode is not Mode.IGNORE] if sync.spec.wait else []
    )
    kinds = {kind for kind, check in checks.by_kind.items() if check.current is not None}
    by_kind = [item for item in run.state.objects if item.group_kind in kinds]
    return sorted({*every, *by_kind, *checks.named} - set(run.held))


def _limit(result: Waiting, *, left_s: float) -> None:
    if result.waiting and left_s <= 0:
        late = {item: f"not healthy in time: {text}" for item, text in result.waiting.items()}
        result.failed.update(late)
        result.waiting = {}
    elif result.waiting:
        result.sooner(left_s)


async def _health(run: Pass, item: ObjectId, check: Check | None, result: Waiting) -> Health:
    desired = run.state.objects.get(item)
    seen = run.see(item, desired.gvk) if desired is not None else None
    has_expressions = check is not None and check.current is not None
    if desired is not None and not has_expressions and not isinstance(seen, Unseen):
        return seen.health if seen is not None else Health(HealthStatus.NOT_FOUND, "is not there")
    version = seen.version if seen is not None and not isinstance(seen, Unseen) else ""
    known = run.memory.judged.get(item)
    if known is not None and version and known[0] == version:
        return known[1]
    health, found = await _read(run, item, check)
    if found:
        run.memory.judged[item] = (found, health)
    if not version and health.status is not HealthStatus.CURRENT:
        result.sooner(POLL_S)
    return health


async def _read(run: Pass, item: ObjectId, check: Check | None) -> tuple[Health, str]:
    """The health of an object that is read by name, and the version that was read."""
    mapper = run.cluster.mapper
    desired = run.state.objects.get(item)
    try:
        resource = await (mapper.resource(desired.gvk) if desired is not None else mapper.group_kind(item.group_kind))
        tree = await run.target.client.find(resource.path(item.namespace, item.name), account=run.target.account)
    except KindNotServed as error:
        return Health(HealthStatus.NOT_FOUND, error.message), ""
    except GitopsError as error:
        return Health(HealthStatus.UNKNOWN, error.message), ""
    if tree is None:
        return Health(HealthStatus.NOT_FOUND, "is not there"), ""
    if check is None:
        return health_of(tree), text_at(tree, "metadata", "resourceVersion")
    health = await asyncio.to_thread(check.judge, tree, guard=run.conditions)
    return health, text_at(tree, "metadata", "resourceVersion")
