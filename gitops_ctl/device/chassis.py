"""Which chassis answers at an address (rollouts.md, section 5.4).

A Node tells the identity of some time ago; a session that changes a device, or says what became of a change, asks for it itself.
"""

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, Refused
from gitops_ctl.device.operational import Seen
from gitops_ctl.fleet.identity import canonical_identity


class OtherChassis(BlockedError):
    """Not the declared device, or nobody can tell."""

    code = ErrorCode.DEVICE_CHASSIS_DIFFERS


class UnknownChassis(OtherChassis):
    """The device does not say now; it may do so later."""


def require_chassis(serial: Seen[str], *, expected: str, subject: str) -> None:
    """Nothing, when the serial number that the device shows is the declared identity.

    Args:
        expected: in canonical form.
        subject: how messages call the device.

    Raises:
        OtherChassis: it is another one.
        UnknownChassis: it is not known.
    """
    if not serial.value:
        raise UnknownChassis(
            f"the device does not say which chassis it is: {serial.why or 'no serial number'}", subject=subject
        )
    try:
        found = canonical_identity(serial.value)
    except Refused as error:
        raise OtherChassis(
            f"the serial number of the chassis cannot be used: {error.message}", subject=subject
        ) from error
    if found != expected:
        told = f"the device says that its chassis is {found}, and {expected or 'none'} is declared"
        raise OtherChassis(f"{told}; nothing is changed on it", subject=subject)
