"""The checks before an upgrade that gNOI, the image source and the spool answer (rollouts.md, section 9.4).

Pure functions over what an attempt ended with.  The reason is the contract's word; the errors of this room carry it.
"""

from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.preflightchecks import Check, Status

_LONGEST: Final = 256


def gnoi(error: GitopsError | None, *, running: str = "", absent: str = "") -> Check:
    """Whether OS.Verify answers and the device is provisioned; `error` is why not, `running` the version that it named.

    Args:
        absent: a call of the upgrade that this version is known not to have; empty: none is known.
    """
    if error is None and absent:
        return Check("Gnoi", Status.FAIL, "GnoiUnavailable", absent[:_LONGEST])
    if error is None:
        return Check("Gnoi", Status.PASS, message=running)
    is_unprovisioned = error.code is ErrorCode.GNOI_NOT_PROVISIONED
    reason = "NotProvisioned" if is_unprovisioned else "GnoiUnavailable"
    return Check("Gnoi", Status.FAIL, reason, error.message[:_LONGEST])


def source_and_spool(error: GitopsError | None, *, size: int | None) -> tuple[Check, Check]:
    """The checks `Source` and `Spool` of one attempt to have the image in the spool.

    Args:
        error: why it is not there; None: it is there and has its digest.
        size: of the image, in bytes, when it is known.
    """
    shown = "" if size is None else f"{size} bytes"
    if error is None:
        return Check("Source", Status.PASS, message=shown), Check("Spool", Status.PASS, message=shown)
    message = error.message[:_LONGEST]
    if error.code is ErrorCode.SPOOL_FULL:
        waits = "nothing is fetched while the spool is full"
        return Check("Source", Status.UNKNOWN, "SourceUnreachable", waits), Check(
            "Spool", Status.FAIL, "SpoolFull", message
        )
    is_other = error.code is ErrorCode.IMAGE_DIGEST_MISMATCH
    source = Check("Source", Status.FAIL, "SourceDigestMismatch" if is_other else "SourceUnreachable", message)
    return source, Check("Spool", Status.UNKNOWN, "SpoolFull", "the image did not come, so its room is not known")
