"""Memory stays flat while an image goes from a server into the spool and from there to a device (rollouts.md, 13.8; devices.md, 14).

The measured process is a worker without anything else: the server of the image and the device are processes of their own.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gitops_ctl.device.gnoitarget import TlsMaterial
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_peer import LOGIN, NEW, start_switch
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import write_package

pytestmark = pytest.mark.peers

__all__ = ["pki"]

GROWTH_KIB = 24 * 1024
"""What a transfer may cost on top: buffers of TLS, of gRPC and of one chunk."""

PROGRAM = """
import asyncio, json, sys
from contextlib import asynccontextmanager
from pathlib import Path
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.device.gnoi import gnoi_session
from gitops_ctl.device.gnoitarget import GnoiTarget, TlsMaterial
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.installstream import InstallOrder, InstallTerms
from gitops_ctl.device.login import Login
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.spool import Spool, Wanted

told = json.loads(sys.argv[1])
clock = SystemClock()


async def blocks(path):
    with open(path, "rb") as file:
        while block := file.read(262144):
            yield block


@asynccontextmanager
async def opening():
    yield Download(told["size"], blocks(told["image"]))


def kib(name):
    # Not ru_maxrss: that begins with what the parent process had.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


async def main():
    tls = TlsMaterial(*(told[name].encode() for name in ("ca", "certificate", "key")))
    target = GnoiTarget("127.0.0.1", told["port"], tls=tls, login=Login(told["username"], told["password"]))
    async with gnoi_session(target, clock=clock) as session:
        await session.verify()
    # The highest mark begins anew, at what is used now.
    Path("/proc/self/clear_refs").write_text("5")
    before = kib("VmRSS:")
    spool, wanted = Spool(Path(told["spool"])), Wanted(told["sha256"], told["size"])
    async with spool.image(wanted, opening, pacer=Pacer(None, clock=clock)) as image:
        async with gnoi_session(target, clock=clock) as session:
            order = InstallOrder("17.18.03", image.size, image.sha256)
            terms = InstallTerms(clock.boot_s() + 3000, Pacer(None, clock=clock))
            outcome = await session.install(order, image, terms=terms)
    print(json.dumps({"outcome": repr(outcome), "before": before, "after": kib("VmHWM:")}))


asyncio.run(main())
"""


def growth(tmp_path: Path, pki: GnoiPki, *, filler: int) -> int:
    """KiB that the peak grew by, from the first call to the end of an install."""
    package = write_package(tmp_path / "image.bin", NEW, filler=filler)
    material: TlsMaterial = pki.material()
    with start_switch(tmp_path, serial="FOC2401L0AA", pki=pki) as switch:
        switch.set(supervisors=[{**switch.state()["supervisors"][0], "flashFree": 2**40}])
        told = {
            "image": str(package.path),
            "size": package.size,
            "sha256": package.sha256,
            "spool": str(tmp_path / "spool"),
            "port": switch.port,
            "ca": material.ca.decode(),
            "certificate": material.certificate.decode(),
            "key": material.key.decode(),
            "username": LOGIN.username,
            "password": LOGIN.password,
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(told)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["outcome"] == f"Accepted(version='{NEW}', sent_bytes={package.size})"
        state = switch.state()
        assert [each["method"] for each in state["mutations"]] == ["Install"]
        assert state["calls"] == {"Verify": 1, "Install": 1}
    return int(found["after"] - found["before"])


def test_an_image_of_64_mib_costs_no_memory_of_its_size(tmp_path: Path, pki: GnoiPki) -> None:
    assert growth(tmp_path, pki, filler=64 * 2**20) < GROWTH_KIB


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_an_image_of_8_gib_costs_no_more(tmp_path: Path, pki: GnoiPki) -> None:
    assert growth(tmp_path, pki, filler=8 * 2**30 - 4096) < GROWTH_KIB
