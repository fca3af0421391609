"""How every demo is told: numbered steps, each of which waits for what it claims, and at the end a look around for who wants one."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable

from gitops_ctl.cli.demoworld import DemoWorld
from gitops_ctl.core.errors import GitopsError, TerminalError

Step = tuple[str, Callable[[], Awaitable[None]]]
"""A title, and what makes it true."""


async def tell(steps: Iterable[Step], *, say: Callable[[str], None]) -> None:
    """Tell the steps one after the other.

    Raises:
        TerminalError: something did not come; the message names the step, its subject a folder with the logs.
    """
    for number, (title, step) in enumerate(steps, start=1):
        say(f"\n{number}. {title}")
        try:
            await step()
        except GitopsError as error:
            message = f"step {number}, {title}: {error.message}"
            raise TerminalError(message, code=error.code, subject=error.subject, hint=error.hint) from error
    say("\nEverything came as it was claimed.")


async def farewell(world: DemoWorld, *, command: str, kinds: str, keep: bool, say: Callable[[str], None]) -> None:
    """The end: with `keep` nothing stops before Ctrl-C, and `kinds` is what kubectl is to show of it."""
    if keep:
        kubectl = "kubectl" if shutil.which("kubectl") else world.binary
        say("\nStill running; Ctrl-C ends it.  In another terminal:")
        say(f"  export KUBECONFIG={world.kubeconfig}\n  {kubectl} get {kinds} -A")
        await asyncio.Event().wait()
    say(f"All of it is stopped and removed now.  `{command} --keep` leaves it running, to look around.")
