"""What became of a call that changes a device (devices.md, section 2; rollouts.md, section 13.4).

There are three answers and no fourth: the device said yes, it said no, or nobody knows.  Whatever is not proven by an answer of the
device is `Unknown`: then the device is looked at, and the call is never sent again.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Accepted:
    """The device said yes.

    Attributes:
        version: the exact version that an install made available; empty for other calls.
        sent_bytes: content that was sent; 0 when the device had the package already.
    """

    version: str = ""
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """The device said no.

    Attributes:
        kind: the word of the service for it (`TOO_LARGE`, `NON_EXISTENT_VERSION`), or the name of a gRPC status.
        message: for people.
        sent_bytes: content that was sent before.
    """

    kind: str
    message: str
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened.

    Attributes:
        message: what ended the call, for people.
        sent_bytes: content that was sent.
        completed: all content and the end of the transfer were sent; only the verdict is missing.
    """

    message: str
    sent_bytes: int = 0
    completed: bool = False


Outcome: TypeAlias = Accepted | Refused | Unknown
