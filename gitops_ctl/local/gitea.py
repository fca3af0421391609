"""A Gitea on the loopback address: a real forge for `up --forge` and for tests (forges.md, section 16.1).

    gitea/
      app.ini      its configuration, with the secrets that it makes itself
      accounts/    NAME.token and NAME.password of each account, 0600
      keys/        instance and bot: the SSH keys that sign its merges, and the proposals
      certs/       its authority and certificate
      data/        database and repositories

It is served by TLS, since sources are fetched by https or ssh only.  A bot's SSH key that is only uploaded never counts as verified there, so
the key of the bot is trusted by the instance itself.
"""

import asyncio
import os
import pwd
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.local.build import Builder
from gitops_ctl.local.certificates import Authority, write_private
from gitops_ctl.local.ports import LOOPBACK, pick_ports
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.published import Published, published_folder
from gitops_ctl.local.recipes import GITEA
from gitops_ctl.local.supervise import Exit, Family, ProcessSpec, log_tail

if TYPE_CHECKING:
    from gitops_ctl.local.giteaclient import GiteaClient

OWNER: Final = "owner"
"""Administrator of the server and owner of the repositories."""

BOT: Final = "bot"
"""Pushes and opens proposals; its key is the proposer's."""

PEOPLE: Final = ("network-author", "change-approver")
"""Write and review."""

DOMAIN: Final = "example.net"
_SIGNING_NAME: Final = "forge"
_START_ATTEMPTS: Final = 5
_START_S: Final = 60.0
_POLL_S: Final = 0.05
_PORT_TAKEN: Final = "address already in use"

# Pages without the built scripts and styles, which the module does not have; the API needs none of them.
STATIC = Published(
    folder=GITEA.folder,
    module=GITEA.module,
    version=GITEA.version,
    patterns=("templates/**/*", "options/**/*", "public/assets/img/**/*"),
)


@dataclass(frozen=True, slots=True)
class Gitea:
    """The program and the files that it reads."""

    program: Path
    static: Path


async def find_gitea(*, progress: Progress) -> Gitea:
    """The program from the cache, built first when it is missing.

    Raises:
        GitopsError: as `Builder.programs` and `published_folder`.
    """
    programs = await Builder(progress=progress).programs((GITEA,))
    return Gitea(programs["gitea"], await published_folder(STATIC))


class GiteaFolder:
    """Names of the files of one server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.configuration = path / "app.ini"
        self.accounts = path / "accounts"
        self.keys = path / "keys"
        self.certs = path / "certs"
        self.log = path / "gitea.log"
        self.ca_file = self.certs / "forge.crt"
        self.instance_key = self.keys / "instance.pub"
        self.bot_key = self.keys / "bot"
        self._port = path / "port"

    def token(self, user: str) -> str:
        """The token of an account.

        Raises:
            OSError: there is no such account.
        """
        return (self.accounts / f"{user}.token").read_text(encoding="ascii")

    def password(self, user: str) -> str:
        """The password of an account.

        Raises:
            OSError: there is no such account.
        """
        return (self.accounts / f"{user}.password").read_text(encoding="ascii")

    def keep_account(self, user: str, *, password: str, token: str) -> None:
        """Write down what an account is used with; the token last, so that it says that the account is whole."""
        write_private(self.accounts / f"{user}.password", password.encode())
        write_private(self.accounts / f"{user}.token", token.encode())

    def knows(self, user: str) -> bool:
        return (self.accounts / f"{user}.token").exists()

    def port(self) -> tuple[int, ...]:
        """The port of the last start, none when it is not known."""
        with suppress(OSError, ValueError):
            return (int(self._port.read_text(encoding="ascii")),)
        return ()

    def remember_port(self, port: int) -> None:
        write_private(self._port, str(port).encode())

    def make_keys(self) -> None:
        """Keys that are there already are kept."""
        for name in ("instance", "bot"):
            private = self.keys / name
            if private.exists():
                continue
            key = Ed25519PrivateKey.generate()
            public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
            write_private(private.with_suffix(".pub"), public + f" {name}@{DOMAIN}\n".encode())
            write_private(
                private,
                key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
                ),
            )


class GiteaServer:
    """One Gitea in one folder.

    Attributes:
        folder: where its files are.
        url: address of the server; set by `start`.
    """

    def __init__(self, gitea: Gitea, directory: Path, *, clock: Clock, signs_merges: bool = True) -> None:
        """With `signs_merges` it signs what its merge button makes with the instance key."""
        self.folder = GiteaFolder(directory)
        self.url = ""
        self._gitea = gitea
        self._clock = clock
        self._signs_merges = signs_merges
        self._family = Family()

    @property
    def pids(self) -> Mapping[str, int]:
        return self._family.pids

    async def start(self) -> None:
        """Start it, wait until it answers, and have the usual accounts.

        Raises:
            TerminalError: it ended or did not become ready in time (LOCAL_SYSTEM); nothing is left running.
        """
        for folder in (self.folder.path, self.folder.accounts, self.folder.keys, self.folder.certs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.make_keys()
        try:
            async with asyncio.timeout(_START_S):
                await self._start_process()
                await self._have_accounts()
        except TimeoutError:
            await self.stop()
            raise self._failure(f"Gitea was not ready within {_START_S:g} s") from None
        except BaseException:
            await self.stop()
            raise

    async def first_exit(self) -> Exit:
        """Wait until it ends."""
        return await self._family.first_exit()

    async def stop(self) -> None:
        """End it; nothing happens when it does not run."""
        await self._family.stop()

    def client(self, user: str) -> "GiteaClient":
        """Its API as that account; an asynchronous context manager."""
        return self._client_as(user, self.folder.password(user))

    def _client_as(self, user: str, password: str) -> "GiteaClient":
        # Not needed to ask for the help text.
        from gitops_ctl.local.giteaclient import GiteaClient  # noqa: PLC0415

        ca = self.folder.ca_file.read_bytes()
        return GiteaClient(self.url, login=(user, password), ca=ca, clock=self._clock)

    async def have_account(self, user: str, *, admin: bool = False) -> None:
        """Make an account with a token that may do everything which the account may; one that is there already is kept.

        Raises:
            GitopsError: the server does not take it.
        """
        if self.folder.knows(user):
            return
        if admin:
            # Its own random password: one in the arguments could be read by everybody on this machine.
            said = await self._command(
                *("admin", "user", "create", "--admin", "--username", user, "--email", f"{user}@{DOMAIN}"),
                *("--must-change-password=false", "--random-password"),
            )
            password = _quoted(said)
        else:
            password = secrets.token_urlsafe(18)
            async with self.client(OWNER) as client:
                await client.new_account(user, password=password, email=f"{user}@{DOMAIN}")
        async with self._client_as(user, password) as client:
            token = await client.new_token(user)
        self.folder.keep_account(user, password=password, token=token)

    async def _have_accounts(self) -> None:
        await self.have_account(OWNER, admin=True)
        for user in (BOT, *PEOPLE):
            await self.have_account(user)

    async def _start_process(self) -> None:
        port = self.folder.port()
        for _ in range(_START_ATTEMPTS):
            port = pick_ports(1, preferred=port)
            self.url = f"https://{LOOPBACK}:{port[0]}"
            certificate, key = Authority(self.folder.certs, "forge", clock=self._clock).server("gitea")
            self._write_configuration(port[0], certificate=certificate, key=key)
            await self._family.spawn(self._process("web"))
            ended = await self._unless_exit()
            if ended is None:
                self.folder.remember_port(port[0])
                return
            await self._family.stop()
            if _PORT_TAKEN not in ended.tail:
                raise self._failure(f"Gitea {ended.cause}: {ended.tail}")
            port = ()
        raise self._failure("no start of Gitea found its port free")

    async def _unless_exit(self) -> Exit | None:
        """None as soon as it answers, else how it ended."""
        from gitops_ctl.local.giteaclient import answers  # noqa: PLC0415

        ca = self.folder.ca_file.read_bytes()
        ready = asyncio.create_task(answers(self.url, ca=ca, clock=self._clock, poll_s=_POLL_S))
        exit_ = asyncio.create_task(self._family.first_exit())
        try:
            await asyncio.wait([ready, exit_], return_when=asyncio.FIRST_COMPLETED)
            return exit_.result() if exit_.done() else None
        finally:
            ready.cancel()
            exit_.cancel()
            await asyncio.gather(ready, exit_, return_exceptions=True)

    def _process(self, *arguments: str) -> ProcessSpec:
        argv = (str(self._gitea.program), "--config", str(self.folder.configuration), *arguments)
        return ProcessSpec("gitea", argv, self.folder.log, environment=self._environment)

    @property
    def _environment(self) -> Mapping[str, str]:
        # Git of its own reads no configuration of the user, and its own work folder is the one of the file.
        home = str(self.folder.path / "home")
        return {"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GITEA_WORK_DIR": str(self.folder.path), "LC_ALL": "C.UTF-8"}

    async def _command(self, *arguments: str) -> str:
        """Output of one of its commands."""
        process = await asyncio.create_subprocess_exec(
            *self._process(*arguments).argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **self._environment},
        )
        try:
            output, errors = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise self._failure(f"gitea {' '.join(arguments[:3])} failed: {errors.decode(errors='replace')[-500:]}")
        return output.decode()

    def _failure(self, message: str) -> TerminalError:
        said = log_tail(self.folder.log, lines=3)
        text = message if said in message else f"{message}; {said}"
        return TerminalError(text, code=ErrorCode.LOCAL_SYSTEM, subject=str(self.folder.log))

    def _write_configuration(self, port: int, *, certificate: Path, key: Path) -> None:
        """Write `app.ini`; the secrets that the server put there at its first start are kept."""
        text = _configuration(
            self.folder,
            static=self._gitea.static,
            server={
                "HTTP_PORT": str(port),
                "ROOT_URL": f"{self.url}/",
                "CERT_FILE": str(certificate),
                "KEY_FILE": str(key),
            },
            signing_key=str(self.folder.instance_key) if self._signs_merges else "none",
        )
        write_private(self.folder.configuration, text.encode())


def _quoted(said: str) -> str:
    """The password in `generated random password is '...'`."""
    found = re.search(r"password is '([^']+)'", said)
    if found is None:
        raise TerminalError("Gitea did not tell the password that it made", code=ErrorCode.LOCAL_SYSTEM)
    return found[1]


def _configuration(folder: GiteaFolder, *, static: Path, server: Mapping[str, str], signing_key: str) -> str:
    """The text of `app.ini`."""
    top = {"RUN_MODE": "prod", "WORK_PATH": str(folder.path), "RUN_USER": pwd.getpwuid(os.getuid()).pw_name}
    if os.geteuid() == 0:
        top["I_AM_BEING_UNSAFE_RUNNING_AS_ROOT"] = "true"
    sections: dict[str, Mapping[str, str]] = {
        "server": {
            "PROTOCOL": "https",
            "HTTP_ADDR": LOOPBACK,
            "STATIC_ROOT_PATH": str(static),
            "OFFLINE_MODE": "true",
            "DISABLE_SSH": "true",
            "LFS_START_SERVER": "false",
            **server,
        },
        "database": {
            "DB_TYPE": "sqlite3",
            "PATH": str(folder.path / "data" / "gitea.db"),
            "SQLITE_JOURNAL_MODE": "WAL",
            "DB_RETRIES": "1",
        },
        "security": {"INSTALL_LOCK": "true", **_secrets(folder)},
        "service": {"DISABLE_REGISTRATION": "true"},
        "webhook": {"ALLOWED_HOST_LIST": "loopback"},
        **{
            name: {"ENABLED": "false"}
            for name in ("actions", "packages", "cron", "cron.update_checker", "mailer", "oauth2")
        },
        "indexer": {"ISSUE_INDEXER_TYPE": "db"},
        "repository": {"DEFAULT_BRANCH": "main"},
        "repository.signing": _signing(folder, signing_key),
        "log": {"MODE": "console", "LEVEL": "warn"},
        "session": {"PROVIDER": "memory"},
    }
    lines = [f"{name} = {value}" for name, value in top.items()]
    for section, values in sections.items():
        lines += ["", f"[{section}]", *(f"{name} = {value}" for name, value in values.items())]
    return "\n".join((*lines, ""))


def _signing(folder: GiteaFolder, key: str) -> dict[str, str]:
    """What signs its merges, and whose commits it shows as verified."""
    merges = {} if key == "none" else {"MERGES": "always", "INITIAL_COMMIT": "always"}
    return {
        "SIGNING_KEY": key,
        "SIGNING_FORMAT": "ssh",
        "SIGNING_NAME": _SIGNING_NAME,
        "SIGNING_EMAIL": f"{_SIGNING_NAME}@{DOMAIN}",
        "TRUSTED_SSH_KEYS": folder.bot_key.with_suffix(".pub").read_text(encoding="ascii").strip(),
        **merges,
    }


def _secrets(folder: GiteaFolder) -> dict[str, str]:
    """Its secrets: made once, since what is stored is encrypted with them."""
    place = folder.path / "secret"
    if not place.exists():
        write_private(place, secrets.token_hex(32).encode())
    base = place.read_text(encoding="ascii")
    return {"SECRET_KEY": base, "INTERNAL_TOKEN": f"internal-{base}"}
