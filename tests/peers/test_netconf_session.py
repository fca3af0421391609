"""NETCONF sessions with a server that behaves and with one that does not (devices.md, sections 2, 6 and 20)."""

import asyncio
import logging
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, ReplyLost, Unavailable
from gitops_ctl.device import reads
from gitops_ctl.device.netconf import AnswerUnusable, NetconfClient, NetconfRefused
from tests.support.git_servers import silent_port
from tests.support.netconf_device import QUICK, NetconfDevice
from tests.support.netconf_password import PasswordServer
from tools.peers.iosxe.state import DeviceFile, new_device

pytestmark = pytest.mark.peers
IMPATIENT = replace(QUICK, rpc_s=0.5)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with NetconfDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


@pytest.fixture
def device(started):
    started.renew(new_device("FOC1234"))
    return started


@pytest.fixture
def client():
    return NetconfClient(limits=QUICK)


def processes_of_sessions(device) -> list[int]:
    """The sshd of each session of the device."""
    pids = device.file.read()["sessions"]
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in pids]
    return [int(stat.rpartition(")")[2].split()[1]) for stat in stats]


def open_sockets() -> int:
    links = (os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return sum(link.startswith("socket:") for link in links)


async def until_quiet(threads: int, sockets: int) -> None:
    """Until nothing of a session is left; fails by the time-out of the test otherwise."""
    async with asyncio.timeout(60):
        while threading.active_count() > threads or open_sockets() > sockets:
            await asyncio.sleep(0.02)


@pytest.fixture
async def leaves_nothing():
    threads, sockets = threading.active_count(), open_sockets()
    yield
    await until_quiet(threads, sockets)


@pytest.mark.parametrize("framing", ["base10", "base11"])
async def test_both_framings_carry_reads(device, client, framing):
    if framing == "base10":
        device.fault("base10", on="hello")
    async with client.session(device.endpoint()) as session:
        assert session.offers("urn:ietf:params:netconf:base:1.1") is (framing == "base11")
        assert (await reads.install_state(session)).complete
        assert (await reads.surroundings(session)).complete


async def test_what_the_device_offers_is_asked_at_every_connect(device, client):
    async with client.session(device.endpoint()) as session:
        assert session.offers("http://cisco.com/ns/yang/Cisco-IOS-XE-install-oper")
        assert not session.offers("urn:ietf:params:netconf:capability:candidate:1.0")
    device.fault("base10", on="hello")
    async with client.session(device.endpoint()) as session:
        assert not session.offers("urn:ietf:params:netconf:base:1.1")


class TestFaultsOfReplies:
    @pytest.mark.parametrize(
        ("kind", "members", "limits"),
        [
            ("silent", {}, IMPATIENT),
            ("late", {"seconds": 3}, IMPATIENT),
            ("drop-before", {}, QUICK),
            ("wrong-id", {}, QUICK),
            ("raw", {"text": "no chunk"}, QUICK),
            ("huge", {"bytes": 100_000}, replace(QUICK, largest_reply=50_000)),
        ],
    )
    async def test_a_reply_that_never_comes_right_is_lost_and_leaves_nothing(
        self, device, leaves_nothing, kind, members, limits
    ):
        device.fault(kind, on="get", **members)
        with pytest.raises(ReplyLost) as raised:
            async with NetconfClient(limits=limits).session(device.endpoint()) as session:
                await reads.install_state(session)
        assert raised.value.code is ErrorCode.NETCONF_REPLY_LOST
        assert raised.value.subject == "FOC1234"

    async def test_a_server_that_is_frozen_is_left_within_the_limits(self, device, leaves_nothing):
        frozen: list[int] = []

        async def freeze_and_read() -> None:
            async with NetconfClient(limits=IMPATIENT).session(device.endpoint()) as session:
                frozen.extend(processes_of_sessions(device))
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                await reads.install_state(session)

        try:
            with pytest.raises(ReplyLost, match="no reply within"):
                await freeze_and_read()
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)

    async def test_a_session_that_lost_a_reply_sends_nothing_more(self, device):
        device.fault("drop-before", on="get")
        async with NetconfClient(limits=QUICK).session(device.endpoint()) as session:
            with pytest.raises(ReplyLost):
                await reads.install_state(session)
            with pytest.raises(Unavailable):
                await reads.install_state(session)

    async def test_a_late_answer_within_the_limit_is_an_answer(self, device, client):
        device.fault("late", on="get", seconds=0.3)
        async with client.session(device.endpoint()) as session:
            assert (await reads.install_state(session)).complete

    @pytest.mark.parametrize("kind", ["empty", "malformed"])
    async def test_an_answer_that_says_nothing_is_unusable_and_the_next_one_counts(self, device, client, kind):
        device.fault(kind, on="get")
        async with client.session(device.endpoint()) as session:
            with pytest.raises(AnswerUnusable):
                await session.get(etree.fromstring("<interfaces/>"))
            assert (await reads.install_state(session)).complete

    async def test_all_errors_of_an_answer_are_told(self, device, client):
        told = [{"tag": "in-use", "message": "held by session 7"}, {"tag": "access-denied", "message": "no"}]
        device.fault("error", on="get", errors=told)
        async with client.session(device.endpoint()) as session:
            with pytest.raises(NetconfRefused, match="held by session 7") as raised:
                await session.get(etree.fromstring("<interfaces/>"))
            assert [error.tag for error in raised.value.errors] == ["in-use", "access-denied"]

    async def test_a_refused_subtree_is_a_reading_with_a_gap(self, device, client):
        device.fault("error", on="get", errors=[{"tag": "operation-failed", "message": "no such model"}])
        async with client.session(device.endpoint()) as session:
            seen = await reads.install_state(session)
        assert "no such model" in seen.why


class TestFaultsOfConnecting:
    @pytest.mark.parametrize(
        ("kind", "members"),
        [("silent", {}), ("drop-before", {}), ("raw", {"text": "<a/>]]>]]>"}), ("raw", {"text": "login:"})],
    )
    async def test_without_a_hello_there_is_no_session_and_nothing_is_left(self, device, leaves_nothing, kind, members):
        device.fault(kind, on="hello", **members)
        limits = replace(QUICK, hello_s=2)
        with pytest.raises(Unavailable) as raised:
            async with NetconfClient(limits=limits).session(device.endpoint()):
                pass
        assert raised.value.code is ErrorCode.NETCONF_UNAVAILABLE

    async def test_a_device_without_a_free_session_is_unavailable(self, device, client):
        device.set(sessionLimit=0)
        with pytest.raises(Unavailable, match="no NETCONF hello"):
            async with client.session(device.endpoint()):
                pass

    async def test_a_closed_port_is_unavailable(self, device, client):
        endpoint = device.endpoint()
        with silent_port() as port:
            pass
        with pytest.raises(Unavailable, match=f"port {port}"):
            async with client.session(replace(endpoint, port=port)):
                pass

    async def test_a_port_that_says_nothing_is_unavailable_in_bounded_time(self, device, leaves_nothing):
        limits = replace(QUICK, hello_s=0.5)
        with silent_port() as port:
            with pytest.raises(Unavailable, match="no SSH"):
                async with NetconfClient(limits=limits).session(replace(device.endpoint(), port=port)):
                    pass

    async def test_a_subsystem_that_is_never_opened_ends_in_bounded_time(self, tmp_path, leaves_nothing):
        file = DeviceFile(tmp_path / "device.json")
        file.create(new_device("FOC1234"))
        limits = replace(QUICK, tcp_s=1, hello_s=1, margin_s=0.1)
        with PasswordServer(file, password="right", opens=False) as server:
            with pytest.raises(Unavailable, match="no session within"):
                async with NetconfClient(limits=limits).session(server.endpoint(password="right")):
                    pass


class TestCancelling:
    async def test_a_cancelled_call_ends_its_session(self, device, client, leaves_nothing):
        device.fault("silent", on="get")
        waiting = asyncio.Event()

        async def read() -> None:
            async with client.session(device.endpoint()) as session:
                waiting.set()
                await reads.install_state(session)

        task = asyncio.create_task(read())
        await waiting.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_sessions_beyond_the_bound_wait_for_a_place(self, device):
        client = NetconfClient(limits=QUICK, most_sessions=1)
        opened: list[str] = []

        async def hold(name: str) -> None:
            async with client.session(device.endpoint()):
                opened.append(f"{name} in")
                await asyncio.sleep(0)
                opened.append(f"{name} out")

        await asyncio.gather(hold("a"), hold("b"))
        assert [word.split()[1] for word in opened] == ["in", "out", "in", "out"]


class TestPasswords:
    @pytest.fixture
    def file(self, tmp_path):
        file = DeviceFile(tmp_path / "device.json")
        file.create(new_device("FOC1234"))
        return file

    @pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
    async def test_a_password_logs_in(self, file, client, method):
        with PasswordServer(file, password="right", method=method) as server:
            async with client.session(server.endpoint(password="right")) as session:
                assert (await reads.install_state(session)).complete

    @pytest.mark.parametrize("method", ["password", "keyboard-interactive", "publickey"])
    async def test_a_wrong_password_is_refused_and_not_told(self, file, client, method):
        with PasswordServer(file, password="right", method=method) as server:
            with pytest.raises(BlockedError) as raised:
                async with client.session(server.endpoint(password="Hunter2Hunter2")):
                    pass
        assert raised.value.code is ErrorCode.DEVICE_CREDENTIAL_REFUSED
        assert "account of the credential Secret" in raised.value.message
        for secret in ("automation", "Hunter2"):
            assert secret not in str(raised.value)


async def test_no_log_of_ours_or_of_the_libraries_holds_what_was_sent_or_read(tmp_path, client, caplog):
    file = DeviceFile(tmp_path / "device.json")
    planted = "<native xmlns='n'><secret>Hunter3Hunter3</secret></native>"
    file.create({**new_device("FOC1234"), "runningConfig": planted})
    caplog.set_level(logging.DEBUG)
    with PasswordServer(file, password="Hunter2Hunter2") as server:
        async with client.session(server.endpoint(password="Hunter2Hunter2")) as session:
            assert "/native" in (await reads.saved_configuration(session)).value.differences[0]
    assert "Hunter" not in caplog.text


async def test_a_thousand_operations_leave_no_thread_no_socket_and_no_memory(device, leaves_nothing):
    impatient, client = NetconfClient(limits=IMPATIENT), NetconfClient(limits=QUICK)
    sizes = []
    for number in range(10):
        if number % 5 == 4:
            device.fault("silent", on="get")
            with pytest.raises(ReplyLost):
                async with impatient.session(device.endpoint()) as session:
                    await reads.install_state(session)
        async with client.session(device.endpoint()) as session:
            for _ in range(25):
                for read in (reads.surroundings, reads.install_state, reads.platform, reads.apps):
                    assert (await read(session)).complete
        sizes.append(resident())
    assert sizes[-1] - sizes[2] < 8 * 2**20


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
