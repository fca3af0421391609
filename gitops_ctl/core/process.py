"""What the long-running processes of the product have in common: their name, and how they are asked to end."""

import asyncio
import os
import secrets
import signal
import socket


def replica_identity(name: str | None) -> str:
    """The name of one run of a replica: `name`, or host and process, with a part that no other run has."""
    return f"{name or f'{socket.gethostname()}-{os.getpid()}'}/{secrets.token_hex(4)}"


def asked_to_end() -> asyncio.Event:
    """Set by SIGTERM and SIGINT; from the first moment on, so that a start that is called off ends in order as well."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    return asked
