"""The objects of kube-proxy have fixed names: tests that make or delete them on the shared control plane take turns."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.cluster import ControlPlaneHandle


@contextmanager
def kube_proxy_turn(plane: ControlPlaneHandle) -> Iterator[None]:
    """As long as this lasts no other test of the run touches them."""
    with plane.kubeconfig.with_suffix(".kube-proxy-turn").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
