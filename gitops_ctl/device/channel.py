"""A connection to the gNOI service of one device: TLS pinned by authority and name, judged before anything is asked (devices.md, 14).

A channel is for one phase and never outlives a reboot.  Nothing is retried by the library, no proxy of the environment is used.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import grpc

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, Unavailable
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.tlsprobe import Finding, TlsReason, probe

# The library writes handshakes that failed to stderr, beside our own log; why they failed is told by `probe`.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

CONNECT_S: Final = 10.0
PROBE_S: Final = 5.0
_REPLY_BYTES: Final = 2**20
_OPTIONS: Final = (
    # Servers end a connection that asks for signs of life more often than every five minutes while nothing else happens.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", _REPLY_BYTES),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class GnoiUnavailable(Unavailable):
    """No connection, or no answer in time."""

    code = ErrorCode.GNOI_UNAVAILABLE


class GnoiTlsRefused(BlockedError):
    """One side does not accept the certificate of the other, or there is no TLS: not the same as being down."""

    code = ErrorCode.GNOI_TLS_REFUSED

    def __init__(self, message: str, *, tls_reason: TlsReason, subject: str) -> None:
        super().__init__(f"{tls_reason.value}: {message}", subject=subject)
        self.tls_reason = tls_reason


@asynccontextmanager
async def gnoi_channel(
    target: GnoiTarget, *, clock: Clock, connect_s: float = CONNECT_S, probe_s: float = PROBE_S
) -> AsyncIterator[grpc.aio.Channel]:
    """A connected channel.

    Raises:
        GnoiUnavailable: no connection; nothing was asked.
        GnoiTlsRefused: TLS ends it, and which side is wrong; nothing was asked.
    """
    channel = _channel(target)
    try:
        if not await _is_connected(channel, connect_s):
            raise _error(await probe(target, clock=clock, limit_s=probe_s), target)
        yield channel
    finally:
        await channel.close(None)


def _channel(target: GnoiTarget) -> grpc.aio.Channel:
    scheme = "ipv6" if ":" in target.address else "dns"
    where = f"{scheme}:{target}"
    if target.tls is None:
        return grpc.aio.insecure_channel(where, options=_OPTIONS)
    material = target.tls
    credentials = grpc.ssl_channel_credentials(material.ca, material.key or None, material.certificate or None)
    options = (*_OPTIONS, ("grpc.ssl_target_name_override", target.name))
    return grpc.aio.secure_channel(where, credentials, options=options)


async def _is_connected(channel: grpc.aio.Channel, limit_s: float) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            state = channel.get_state(try_to_connect=True)
            while state is not grpc.ChannelConnectivity.READY:
                if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    return False
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
    except TimeoutError:
        return False
    return True


def _error(finding: Finding, target: GnoiTarget) -> GitopsError:
    if finding.reason is not None:
        return GnoiTlsRefused(finding.message, tls_reason=finding.reason, subject=str(target))
    why = finding.message or "the connection ended before the service was ready"
    return GnoiUnavailable(f"there is no connection to the gNOI service: {why}", subject=str(target))
