"""Refs of a server over https, asked by ourselves.

One GET of the smart protocol.  libgit2 could do it too, but it hides the status, `Retry-After` and the reason for which a
certificate was refused, and it follows redirects (gitops.md, section 2.1; fault G20).
"""

import base64
import http.client
import re
import ssl
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.git.failures import from_status, host_refused, printable
from gitops_ctl.git.fetching import Credentials, FetchRequest, RemoteTip

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
USER_AGENT: Final = "git/2.0 (gitops-ctl)"
"""Some servers only talk Git to agents that start like Git."""

_SERVICE: Final = "git-upload-pack"
_KIND: Final = f"application/x-{_SERVICE}-advertisement"
_OBJECT_ID: Final = re.compile(rb"[0-9a-f]{40}")


def discover(request: FetchRequest) -> RemoteTip:
    """What the server names for the ref of the request.

    Raises:
        TransientError (and its kinds), Refused: with the 30xx codes.
    """
    return tip_of(_ask(request), request.ref.full)


def tip_of(refs: dict[str, str], ref: str) -> RemoteTip:
    """The commit and, for an annotated tag, the tag object that a list of refs gives for one of them."""
    found, peeled = refs.get(ref), refs.get(f"{ref}^{{}}")
    return RemoteTip(commit=peeled or found, tag=found if peeled else None)


def authorization(credentials: Credentials | None) -> str:
    """Value of the header, empty without credentials."""
    if credentials is None:
        return ""
    if credentials.bearer_token:
        return f"Bearer {credentials.bearer_token}"
    if credentials.username or credentials.password:
        return "Basic " + base64.b64encode(f"{credentials.username}:{credentials.password}".encode()).decode()
    return ""


def _ask(request: FetchRequest) -> dict[str, str]:
    url = request.url
    authority = request.ca.decode() if request.ca else None
    headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Pragma": "no-cache"}
    if value := authorization(request.credentials):
        headers["Authorization"] = value
    try:
        context = ssl.create_default_context(cadata=authority)
        host = url.host.strip("[]")
        connection = http.client.HTTPSConnection(host, url.port, timeout=request.limits.timeout_s, context=context)
        connection.request("GET", f"{url.path}/info/refs?service={_SERVICE}", headers=headers)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            seen = {name.lower(): value for name, value in answer.getheaders()}
            raise from_status(answer.status, seen, url=url.display, has_credentials=bool(value))
        if answer.getheader("Content-Type", "") != _KIND:
            raise _failed(url.display, "it does not answer as a Git server")
        return _parse(answer.read(MAX_ANSWER_BYTES + 1), url.display)
    except ssl.SSLCertVerificationError as error:
        raise host_refused(url.display, secure_shell=False, why=error.verify_message) from error
    except ssl.SSLError as error:
        raise _failed(url.display, f"TLS: {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _failed(url.display, str(error) or type(error).__name__) from error


def _parse(data: bytes, url: str) -> dict[str, str]:
    """Refs of an advertisement in version 0 or 1: packets of four hexadecimal digits of length and a line."""
    if len(data) > MAX_ANSWER_BYTES:
        raise TransientError(
            f"{url} lists more than {MAX_ANSWER_BYTES} bytes of refs", code=ErrorCode.FETCH_TOO_LARGE, subject=url
        )
    refs: dict[str, str] = {}
    place = 0
    while place < len(data):
        try:
            length = int(data[place : place + 4], 16)
        except ValueError:
            raise _failed(url, "its list of refs cannot be read") from None
        line = data[place + 4 : place + max(length, 4)]
        place += max(length, 4)
        if place > len(data):
            raise _failed(url, "its list of refs is cut off")
        if line.startswith(b"ERR "):
            raise _failed(url, line[4:].decode(errors="replace"))
        object_id, _, name = line.split(b"\0", 1)[0].rstrip(b"\n").partition(b" ")
        if name and _OBJECT_ID.fullmatch(object_id):
            refs[name.decode(errors="surrogateescape")] = object_id.decode()
    if not data.endswith(b"0000"):
        raise _failed(url, "its list of refs is cut off")
    return refs


def _failed(url: str, what: str) -> TransientError:
    return TransientError(
        f"the refs of {url} cannot be read: {printable(what)}", code=ErrorCode.FETCH_FAILED, subject=url
    )
