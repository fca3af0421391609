"""From the grant to the first claim: look at the device, repeat its checks, pin the image (rollouts.md, section 13.3, steps 1 and 2).

Nothing here changes the device.  What does not answer is tried again until `installTimeoutSeconds` have passed; what says no ends the leaf.
"""

from typing import Final

from gitops_ctl.core.conditions import Condition
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.core.jsonvalue import JsonValue, object_at, text_at
from gitops_ctl.device.chassis import OtherChassis, UnknownChassis
from gitops_ctl.device.gnoi import Verified
from gitops_ctl.device.gnoianswers import GnoiNotProvisioned, GnoiUnsupported
from gitops_ctl.device.operational import inventory_state
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.preflightchecks import Check
from gitops_ctl.device.spool import Wanted
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.beside import GateClosed, OutOfTime, while_allowed
from gitops_ctl.device.worker.deadlines import install_s, is_over, readiness_deadline
from gitops_ctl.device.worker.leafwork import AGAIN, Work
from gitops_ctl.device.worker.looking import Look, device_checks, standby_problem
from gitops_ctl.device.worker.preinstalled import prepared_leaf, prepared_problem
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.receipt import matches_target

_NO_STRATEGY: Final = ("ISSU",)


async def begin(work: Work) -> float:
    """Take the leaf up."""
    work.leaf = await work.desk.write(work.leaf, leafstatus.begun(work.leaf, now=work.now))
    return AGAIN


async def check(work: Work) -> float:
    """See what runs, and whether the device is fit for the upgrade."""
    try:
        problem = _unsupported(work.leaf) or await _checked(work)
    except (GnoiNotProvisioned, GnoiUnsupported) as error:
        return await _not_fit(work, error.reason, error.message)
    except UnknownChassis as error:
        return await _later(work, error)
    except OtherChassis as error:
        return await _not_fit(work, error.reason, error.message)
    except GitopsError as error:
        return await _later(work, error)
    return AGAIN if problem is None else await _not_fit(work, *problem)


async def _checked(work: Work) -> tuple[str, str] | None:
    """What makes the device unfit; None when what was seen is written."""
    look, checks = await device_checks(work.ports, work.access, image_bytes=None)
    assert look.verified is not None
    if matches_target(look.running, work.leaf.target_version) and not look.unrest:
        await _has_it(work, look)
        return None
    if (problem := _device_problem(look.verified, checks)) is not None:
        return problem
    members = _seen(work, look)
    if work.leaf.is_preinstalled:
        prepared = await prepared_leaf(work)
        if why := prepared_problem(work.leaf, prepared, look):
            return "PreparedReceiptInvalid", why
        members["validatedVersion"] = text_at((prepared.receipt if prepared else None) or {}, "validatedVersion")
    work.leaf = await work.desk.write(work.leaf, members)
    return None


async def pin(work: Work) -> float:
    """Have the image in the spool, with the digest of the plan, and pin digest and size before anything is changed."""
    leaf, wanted = work.leaf, wanted_image(work.leaf)
    try:
        size, checks = await while_allowed(work, _fetched(work), seconds=_readiness_s(work))
    except GateClosed:
        return AGAIN
    except OutOfTime:
        return await _not_fit(work, "InstallTimeout", f"the image was not in the spool within {install_s(leaf)} s")
    except Refused as error:
        return await _not_fit(work, error.reason, error.message)
    except GitopsError as error:
        return await _later(work, error)
    if (bad := next((one for one in checks if one.blocks and one.name == "FlashSpace"), None)) is not None:
        return await _not_fit(work, bad.reason, bad.message)
    pinned = Condition("ImageResolved", "True", "ImagePinned", f"{size} bytes with the SHA-256 of the plan")
    members: dict[str, JsonValue] = {
        "phase": "Staging",
        "sourceDigest": f"sha256:{wanted.sha256}",
        "sourceSize": size,
        "message": "",
    }
    work.leaf = await work.desk.write(leaf, members | leafstatus.conditions(leaf, pinned, now=work.now))
    return AGAIN


async def _fetched(work: Work) -> tuple[int, tuple[Check, ...]]:
    """Size of the image, once it is in the spool, and the checks of the device with it."""
    wanted = wanted_image(work.leaf)
    async with work.ports.spool.image(wanted, work.access.opening, pacer=pacer_of(work)) as image:
        _, checks = await device_checks(work.ports, work.access, image_bytes=image.size)
        return image.size, checks


def _readiness_s(work: Work) -> float:
    """Seconds that are left for getting ready."""
    deadline = readiness_deadline(work.leaf)
    return install_s(work.leaf) if deadline is None else max(0.0, (deadline - work.now).total_seconds())


def wanted_image(leaf: Leaf) -> Wanted:
    """The image of the leaf: with its size once that is pinned."""
    size = leaf.status.get("sourceSize")
    sha256 = text_at(object_at(leaf.spec, "imageSource"), "sha256")
    return Wanted(sha256, size if isinstance(size, int) and size else None)


def pacer_of(work: Work) -> Pacer:
    """A pacer for one attempt with the rate of the leaf."""
    return Pacer(work.leaf.max_bytes_per_s or None, clock=work.ports.clock)


def _unsupported(leaf: Leaf) -> tuple[str, str] | None:
    if leaf.strategy in _NO_STRATEGY:
        return "StrategyUnsupported", f"the strategy {leaf.strategy} is not offered"
    source = object_at(leaf.spec, "imageSource")
    if not leaf.is_preinstalled and not (text_at(source, "url") and text_at(source, "sha256")):
        return "SourceUnsupported", "only an image with a url and a sha256, or a preinstalled one, is installed"
    return None


def _device_problem(verified: Verified, checks: tuple[Check, ...]) -> tuple[str, str] | None:
    bad = next((one for one in checks if one.blocks), None)
    if bad is not None:
        return bad.reason, bad.message
    why = standby_problem(verified.standby) if verified.individual_installs else ""
    return ("StandbyUnavailable", why) if why else None


def _seen(work: Work, look: Look) -> dict[str, JsonValue]:
    assert look.verified is not None
    return {
        "previousVersion": look.running,
        "runningVersion": look.running,
        "individualSupervisorInstall": look.verified.individual_installs,
        "inventoryState": inventory_state(look.install, work.leaf.target_version),
        "message": "",
    }


async def _has_it(work: Work, look: Look) -> None:
    message = f"the device runs {look.running} already"
    members = leafstatus.ended(work.leaf, "Succeeded", now=work.now, message=message)
    committed = {"state": "Committed"}
    members |= {"runningVersion": look.running, "previousVersion": look.running, "installCommit": committed}
    work.leaf = await work.desk.write(work.leaf, members)


async def _not_fit(work: Work, reason: str, message: str) -> float:
    members = leafstatus.ended(work.leaf, "PreflightFailed", now=work.now, reason=reason, message=message)
    work.leaf = await work.desk.write(work.leaf, members)
    return AGAIN


async def _later(work: Work, error: GitopsError) -> float:
    """Try again, until the time for getting ready is over."""
    if is_over(readiness_deadline(work.leaf), work.now):
        return await _not_fit(work, error.reason, error.message)
    told = leafstatus.told(work.leaf, error.reason, error.message, now=work.now)
    work.leaf = await work.desk.write(work.leaf, told)
    return work.ports.poll_s
