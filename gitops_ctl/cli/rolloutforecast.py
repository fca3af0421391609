"""The forecast of `plan rollout` for people and for programs.  Pure."""

from collections import Counter
from collections.abc import Iterator

from gitops_ctl.cli.output import Result, Table
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.rollout.planforecast import DevicePlace, Place, PlanForecast, is_published
from gitops_ctl.rollout.planned import DEFAULT_CANARY_SOAK_S, DEFAULT_WAVE_SOAK_S
from gitops_ctl.rollout.problem import Problem

_COLUMNS = ("DEVICE", "PLACE", "WAVE", "COHORT", "SOURCE", "RUNS", "WHY")


def forecast_result(rollout: JsonObject, found: PlanForecast) -> Result:
    """One row for each device of the namespace; all of it in JSON."""
    plan = object_at(rollout, "spec", "plan")
    data: dict[str, JsonValue] = {
        "rollout": f"{text_at(rollout, 'metadata', 'namespace')}/{text_at(rollout, 'metadata', 'name')}",
        "targetVersion": text_at(plan, "targetVersion"),
        "strategy": text_at(plan, "strategy"),
        "isBlocked": found.is_blocked,
        "devices": [_device(one) for one in found.devices],
        "problems": [_problem(one) for one in found.problems],
        "warnings": [
            {"reason": one.reason.value, "device": one.device, "message": one.message} for one in found.warnings
        ],
        "budgets": object_at(plan, "budgets"),
        "policy": found.snapshot.to_json(),
        "intentHash": found.intent_hash,
        "unseen": list(found.unseen),
    }
    if found.frozen is not None and is_published(rollout):
        data |= {"planHash": found.frozen.hash, "encodedSizeBytes": found.frozen.size}
    rows = tuple(_row(one) for one in found.devices)
    names = tuple(one.name for one in found.devices if one.place is Place.IN)
    return Result("RolloutPlan", data, Table(_COLUMNS, rows, yields=("COHORT", "RUNS")), names)


def _row(one: DevicePlace) -> tuple[str, ...]:
    wave = "" if one.wave is None else "canary" if one.wave == 0 else str(one.wave)
    why = "; ".join(problem.message for problem in one.problems) or one.why
    return (one.name, one.place.value, wave, one.cohort, one.source, one.running, why)


def _device(one: DevicePlace) -> JsonObject:
    tree: dict[str, JsonValue] = {"name": one.name, "place": one.place.value, "cohort": one.cohort}
    if one.wave is not None:
        tree |= {"wave": one.wave, "source": one.source, "riskGroups": list(one.risk_groups)}
    optional: dict[str, JsonValue] = {
        "maxTransferBytesPerSecond": one.max_bytes_per_s,
        "running": one.running,
        "problems": [_problem(problem) for problem in one.problems],
        "why": one.why,
    }
    return tree | {name: value for name, value in optional.items() if value}


def _problem(one: Problem) -> JsonObject:
    tree = {"reason": one.reason.value, "check": one.check, "device": one.device, "message": one.message}
    return {name: value for name, value in tree.items() if value}


def forecast_text(rollout: JsonObject, found: PlanForecast) -> str:
    """What stands below the table."""
    return "".join(f"{line}\n" for line in _lines(rollout, found))


def _lines(rollout: JsonObject, found: PlanForecast) -> Iterator[str]:
    plan = object_at(rollout, "spec", "plan")
    first = found.first_problem
    if first is not None:
        yield f"Blocked: {first}"
        yield from (f"Blocked: {one}" for one in found.problems if one is not first)
    else:
        yield _order(plan, found)
    yield _budgets(plan)
    yield _fleet(found)
    yield from (f"Warning: {one}" for one in found.warnings)
    if found.unseen:
        yield f"Not looked at: {listed(found.unseen)}."
    if found.intent_hash:
        yield f"Intent hash: {found.intent_hash}"
    if found.frozen is None:
        return
    if is_published(rollout):
        yield f"Plan hash: {found.frozen.hash} ({found.frozen.size} bytes)"
    else:
        yield "Plan hash: told once the rollout exists, since it holds the UID."


def _order(plan: JsonObject, found: PlanForecast) -> str:
    """Who goes when, in words."""
    waves = Counter(one.wave for one in found.devices if one.place is Place.IN)
    total = waves[0] + waves[1]
    rest = f", then {waves[1]} more" if waves[1] else ""
    pause = " after a resume" if rest and plan.get("pauseAfterCanary", True) else ""
    what = f"{text_at(plan, 'targetVersion')} by {text_at(plan, 'strategy')}"
    return f"{_count(total, 'device')} to {what}: {_count(waves[0], 'canary')} first{rest}{pause}."


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _budgets(plan: JsonObject) -> str:
    budgets, health = object_at(plan, "budgets"), object_at(plan, "health")
    transfers, unavailable = (int_at(budgets, name, default=1) for name in ("maxConcurrentTransfers", "maxUnavailable"))
    domains = [
        f"{text_at(item, 'topologyKey')}: "
        + ", ".join(f"{item[name]} {word}" for name, word in _KINDS if isinstance(item.get(name), int))
        for item in objects_at(budgets, "domains")
    ]
    canary = int_at(health, "canarySoakSeconds") or DEFAULT_CANARY_SOAK_S
    wave = int_at(health, "waveSoakSeconds") or DEFAULT_WAVE_SOAK_S
    own = "; ".join([f"{_count(transfers, 'transfer')} and {unavailable} unavailable at once", *domains])
    return f"Budgets: {own}. Soak: {canary} s after a canary, {wave} s after any other."


def _fleet(found: PlanForecast) -> str:
    fleet = found.snapshot
    domains = [
        f"{domain.key}: " + ", ".join(f"{limit} {word}" for limit, word in limits if limit is not None)
        for domain in fleet.domains
        for limits in [((domain.transfers, "transfers"), (domain.unavailable, "unavailable"))]
    ]
    own = "; ".join([f"{_count(fleet.transfers, 'transfer')} and {fleet.unavailable} unavailable", *domains])
    return f"The fleet as a whole allows: {own}."


_KINDS = (("maxConcurrentTransfers", "transfers"), ("maxUnavailable", "unavailable"))
