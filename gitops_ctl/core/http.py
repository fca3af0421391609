"""The port for plain HTTP to forges; the implementation is `forge/http.py`.

An exchange that got an answer returns it, whatever its status below 500; what the status means is the caller's matter.  An exchange
without a usable answer raises, and the type of the error says whether the request may have been carried out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

MAX_ANSWER_BYTES: Final = 10 * 1024 * 1024
EXCHANGE_DEADLINE_S: Final = 60.0

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said.

    Attributes:
        headers: names in lower case; of a repeated header the values are joined by comma and space.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Terms:
    """What one exchange is held to.

    Attributes:
        ca: PEM of the authorities that replace those of the system; None keeps the system's.
        gap_s: least time since the last exchange with the same host that also asked for a gap.
        most_bytes: an answer that is longer fails.
        deadline_s: for everything: waiting for the gap is not counted, repeats are.
    """

    ca: bytes | None = None
    gap_s: float = 0.0
    most_bytes: int = MAX_ANSWER_BYTES
    deadline_s: float = EXCHANGE_DEADLINE_S


USUAL_TERMS: Final = Terms()


class HttpClient(Protocol):
    """Sends requests; one object serves every forge of a process."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NONE,
        body: bytes = b"",
        idempotent: bool | None = None,
        terms: Terms = USUAL_TERMS,
    ) -> HttpAnswer:
        """One exchange.

        Args:
            method: upper case.
            url: absolute, without user info.
            headers: credentials belong here and nowhere else.
            body: sent as it is.
            idempotent: whether it may be sent again by itself; None says so for GET and HEAD only.
            terms: limits and trust.

        Raises:
            Unavailable: never sent, or a repeatable one whose last try failed or was answered 5xx.
            ReplyLost: sent and not answered, or answered 5xx, and not repeatable: look before sending it again.
            RateLimited: the server asks for a pause; `retry_after_s` is at most an hour.
            BlockedError: a redirect to another place (REDIRECT_REFUSED), a certificate that is not trusted (CERTIFICATE_REFUSED).
            TerminalError: the answer is too long (ANSWER_REFUSED).
        """
        ...
