"""The hall of switches that the demo runs: both sides of each switch and the image server answer with what the Secrets say."""

import hashlib
import ssl
import urllib.request
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.device.gnoi import GnoiClient
from gitops_ctl.device.gnoitarget import GnoiTarget, tls_material
from gitops_ctl.device.login import endpoint_of
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.reads import install_state
from gitops_ctl.local.switches import Image, Switch, Switches
from tests.support.netconf_device import QUICK

pytestmark = pytest.mark.peers

OLD = "17.18.02.0.4112.1766116039"


async def test_each_switch_answers_on_both_sides_and_the_image_is_what_its_digest_says(tmp_path):
    switches = Switches(tmp_path / "switches", checkout=Path(__file__).parents[2], clock=SystemClock())
    hall = [Switch("access-a1", "FOC24010A01"), Switch("access-b1", "FOC24010B01", failing=("17.18.03",))]
    await switches.start(hall, [Image("cat9k.bin", "17.18.03.0.5496.1776157760", 100_000)])
    try:
        material = tls_material({name: text.encode() for name, text in switches.tls().items()})
        client = NetconfClient(limits=QUICK)
        for one in hall:
            ports = switches.ports[one.name]
            async with GnoiClient(SystemClock()).session(GnoiTarget("127.0.0.1", ports.gnoi, tls=material)) as session:
                assert (await session.verify()).version == OLD
            secret = {name: text.encode() for name, text in switches.login(one.name).items()}
            endpoint = endpoint_of(secret, name=one.name, address="127.0.0.1", port=ports.netconf)
            async with client.session(endpoint) as netconf:
                assert (await install_state(netconf)).complete
        assert switches.versions() == {"access-a1": OLD, "access-b1": OLD}
        assert switches.changes() == {"access-a1": 0, "access-b1": 0}
        image = switches.images["cat9k.bin"]
        context = ssl.create_default_context(cafile=str(switches.authority_file))
        with urllib.request.urlopen(image.url, context=context, timeout=30) as reply:
            assert hashlib.sha256(reply.read()).hexdigest() == image.sha256
    finally:
        await switches.stop()
