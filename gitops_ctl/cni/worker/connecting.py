"""Connections to real machines, over the Talos API."""

from contextlib import AbstractAsyncContextManager

from gitops_ctl.cni.worker.machine import Connect, MachineLink
from gitops_ctl.core.clock import Clock
from gitops_ctl.talos.client import TalosClient
from gitops_ctl.talos.model import Expected
from gitops_ctl.talos.talosconfig import parse_talosconfig


def talos_machines(clock: Clock) -> Connect:
    """Opens a connection per use; errors of the talosconfig or the address come before anything is sent."""

    def connect(address: str, talosconfig: bytes, expected: Expected) -> AbstractAsyncContextManager[MachineLink]:
        return TalosClient.connect(address, talosconfig=parse_talosconfig(talosconfig), clock=clock, expect=expected)

    return connect
