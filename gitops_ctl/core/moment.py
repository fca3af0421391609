"""Moments as Kubernetes writes them.  Pure: who needs the present moment asks a clock."""

from datetime import UTC, datetime


def to_rfc3339(moment: datetime) -> str:
    """The form that Kubernetes stores: UTC, whole seconds, `Z`."""
    # Not strftime: it leaves out the zeros of early years, such as the server's zero time 0001-01-01T00:00:00Z.
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def from_rfc3339(text: str) -> datetime:
    """An aware UTC moment.

    Raises:
        ValueError: not RFC 3339, or without an offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no offset in {text!r}")
    return moment.astimezone(UTC)
