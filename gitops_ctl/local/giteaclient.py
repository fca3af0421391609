"""What the local system asks its own Gitea for: accounts and repositories.  No adapter: administration is none of a forge's adapter's matters."""

import json
from base64 import b64encode
from typing import Self

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, TerminalError
from gitops_ctl.core.http import Terms
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.forge.http import HttpxClient


class GiteaClient:
    """The API with name and password; a context manager.

    Args:
        url: of the server.
        login: name and password.
        ca: PEM of its authority.
        clock: for waits.
    """

    def __init__(self, url: str, *, login: tuple[str, str], ca: bytes, clock: Clock) -> None:
        self._url = f"{url}/api/v1"
        self._login = login
        self._terms = Terms(ca=ca)
        self._http = HttpxClient(clock=clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def call(self, method: str, path: str, tree: JsonObject | None = None) -> JsonObject:
        """One call; the answer as an object, empty when it is none.

        Raises:
            TerminalError: the server does not take it (LOCAL_SYSTEM).
        """
        user, password = self._login
        headers = {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}
        body = b"" if tree is None else json.dumps(tree).encode()
        if body:
            headers["Content-Type"] = "application/json"
        answer = await self._http.request(method, self._url + path, headers=headers, body=body, terms=self._terms)
        if answer.status >= 300:
            said = redact_text(answer.body.decode("utf-8", "replace")[:300], known=(password,))
            raise TerminalError(f"{method} {path}: status {answer.status}: {said}", code=ErrorCode.LOCAL_SYSTEM)
        found = json.loads(answer.body) if answer.body.strip() else {}
        return found if isinstance(found, dict) else {}

    async def new_account(self, user: str, *, password: str, email: str) -> None:
        """Make an account, as an administrator.

        Raises:
            TerminalError: the server does not take it.
        """
        wanted: JsonObject = {"username": user, "email": email, "password": password, "must_change_password": False}
        await self.call("POST", "/admin/users", wanted)

    async def new_token(self, user: str) -> str:
        """A token of the account for everything that it may do.

        Raises:
            TerminalError: the server does not take it.
        """
        made = await self.call("POST", f"/users/{user}/tokens", {"name": "gitops-ctl", "scopes": ["all"]})
        return text_at(made, "sha1")


async def answers(url: str, *, ca: bytes, clock: Clock, poll_s: float) -> None:
    """Return as soon as the server answers; never while it does not."""
    async with HttpxClient(clock=clock) as http:
        while True:
            try:
                answer = await http.request("GET", f"{url}/api/v1/version", idempotent=False, terms=Terms(ca=ca))
                if answer.status == 200:
                    return
            except GitopsError:
                pass
            await clock.sleep(poll_s)
