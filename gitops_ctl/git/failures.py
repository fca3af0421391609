"""From what a server or libgit2 says to our errors.

Rules (gitops.md, section 2.1; faults G04 and G20): one wrong answer is never terminal, so authentication, host keys and
certificates are transient errors with a code that says who has to act; `Retry-After` goes along.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Final

import pygit2

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, RateLimited, Refused, TransientError, Unavailable
from gitops_ctl.core.redact import redact_text

MAX_RETRY_AFTER_S: Final = 86_400.0
MAX_FOREIGN_CHARACTERS: Final = 300

_STATUS: Final = re.compile(r"(?i)http status(?: code)?:? ?(\d{3})")
_LIMITS: Final = re.compile(r"(?i)(out of memory|failed to allocate|cannot allocate|file too large|no space left|mmap)")
_AUTHENTICATION: Final = re.compile(
    r"(?i)(authenticat|credential|username does not match|callback returned unsupported|publickey|private key|keypair)"
)


def from_status(status: int, headers: Mapping[str, str], *, url: str, has_credentials: bool) -> GitopsError:
    """The error behind an HTTP answer other than 200.  Header names are lower case."""
    wait = retry_after_s(headers)
    if status == 429:
        return RateLimited(
            f"{url} asks for fewer requests", code=ErrorCode.FETCH_FAILED, subject=url, retry_after_s=wait
        )
    if status >= 500:
        what = f"{url} answers with the HTTP status {status}"
        return Unavailable(what, code=ErrorCode.FETCH_FAILED, subject=url, retry_after_s=wait)
    if status in (401, 403, 407):
        said = "refuses the credentials" if has_credentials else "asks for credentials, and the source names none"
        return TransientError(f"{url} {said}", code=ErrorCode.AUTHENTICATION_FAILED, subject=url)
    if 300 <= status < 400:
        place = printable(headers.get("location", "another place"))
        return Refused(
            f"{url} redirects to {place}; redirects are not followed",
            code=ErrorCode.URL_REFUSED,
            subject=url,
            hint="write the address that answers by itself",
        )
    if status in (404, 410):
        what = f"{url} is no repository, or the credentials may not see it"
        return TransientError(
            what, code=ErrorCode.FETCH_FAILED, subject=url, hint="correct spec.url or the credentials"
        )
    return TransientError(f"{url} answers with the HTTP status {status}", code=ErrorCode.FETCH_FAILED, subject=url)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of `Retry-After`, a day at most; a date in it is counted from the answer's own `Date`."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        wait = (parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER_S)


def from_library(
    text: str,
    *,
    url: str,
    has_credentials: bool,
    certificate_refused: bool,
    secure_shell: bool,
    task: str = "fetch from",
) -> GitopsError:
    """The error behind a message of libgit2.

    Args:
        text: what it said.
        url: for display.
        has_credentials: the source has a Secret.
        certificate_refused: our callback saw a host that did not pass.
        secure_shell: the transport is ssh.
        task: for the message.
    """
    if certificate_refused:
        return host_refused(url, secure_shell=secure_shell)
    if "redirect" in text:
        return from_status(302, {}, url=url, has_credentials=has_credentials)
    if found := _STATUS.search(text):
        return from_status(int(found[1]), {}, url=url, has_credentials=has_credentials)
    if _LIMITS.search(text):
        what = f"the {task} {url} went over its limits of memory or disk: {printable(text)}"
        return TransientError(what, code=ErrorCode.FETCH_TOO_LARGE, subject=url)
    if _AUTHENTICATION.search(text):
        return TransientError(f"{url} refuses the credentials", code=ErrorCode.AUTHENTICATION_FAILED, subject=url)
    code = ErrorCode.FETCH_FAILED if task == "fetch from" else ErrorCode.PUSH_FAILED
    return TransientError(f"the {task} {url} failed: {printable(text)}", code=code, subject=url)


def host_refused(url: str, *, secure_shell: bool, why: str = "") -> TransientError:
    """The server did not prove who it is."""
    if secure_shell:
        return TransientError(
            f"the host key of {url} is not the one in known_hosts", code=ErrorCode.HOST_KEY_REFUSED, subject=url
        )
    because = f": {printable(why)}" if why else ""
    what = f"the certificate of {url} is refused{because}"
    return TransientError(what, code=ErrorCode.CERTIFICATE_REFUSED, subject=url)


@contextmanager
def own_machine() -> Iterator[None]:
    """Around work with the manager's own disk and processes: what goes wrong there is waited for and told, and is no bug.

    Raises:
        TransientError: FETCH_FAILED, with the system's words: the disk is full or read-only, no process can be made.
    """
    try:
        yield
    except (OSError, pygit2.GitError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TransientError(
            f"the manager's own disk or processes cannot be worked with: {printable(why)}",
            code=ErrorCode.FETCH_FAILED,
            hint="look at the space, the mount and the limits of the cache folder and of the temporary folder",
        ) from error


def printable(text: str) -> str:
    """Foreign text for a message: one line, short, without credentials."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return redact_text(line)[:MAX_FOREIGN_CHARACTERS]
