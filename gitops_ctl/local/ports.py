"""Free ports on the loopback address.

A port that is free now may be taken a moment later, so whoever uses one must be ready to take another; ports of the last start are
preferred, because kubeconfigs and shells out there still name them.
"""

import socket
from collections.abc import Sequence
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


def pick_ports(count: int, *, preferred: Sequence[int] = ()) -> tuple[int, ...]:
    """`count` different ports that were free just now, the preferred ones where they are."""
    with ExitStack() as stack:
        return tuple(_bind(stack, preferred[i] if i < len(preferred) else 0) for i in range(count))


def _bind(stack: ExitStack, port: int) -> int:
    for candidate in (port, 0):
        holder = stack.enter_context(socket.socket())
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((LOOPBACK, candidate))
            # Two sockets with this option may share a port until one of them listens.
            holder.listen(1)
        except OSError:
            continue
        return int(holder.getsockname()[1])
    raise OSError("no free port on the loopback address")
