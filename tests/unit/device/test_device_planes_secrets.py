"""Secrets of devices in the workers: read by name, rotated without a restart, and what is said when they cannot be used (rollouts.md, 17.2)."""

from pathlib import Path
from typing import Any

from tests.support.device_planes import PASSWORD, Planes, in_planes
from tests.support.device_world import SECRETS


def test_a_rotated_secret_is_loaded_at_once_and_proved_by_both_planes(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        before: Any = await planes.status("workerReport")
        began_s = planes.world.clock.boot_s()
        await planes.secret("access-1-login", address="192.0.2.1", password="another-password")

        async def is_proved() -> bool:
            report = await planes.status("workerReport")
            sample, revision = await planes.sample(), report["observedRevision"]
            return revision != before["observedRevision"] and sample["producerRevision"] == revision

        await planes.world.until(is_proved, what="the new version is loaded")
        assert planes.world.clock.boot_s() - began_s < 30
        await planes.world.ready()
        app: Any = await planes.status("workerRevision")
        assert app["desiredRevision"] == app["observedRevision"]

    in_planes(tmp_path, story)


def test_secrets_are_read_by_name_and_only_those_that_devices_name(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.switch("access-2", number=2)
        await planes.secret("of-somebody-else", address="192.0.2.9")
        await planes.node()
        await planes.network()
        await planes.world.ready()
        assert set(planes.secret_reads) == {"access-1-login", "access-2-login"}

    in_planes(tmp_path, story)


def test_a_secret_that_cannot_be_read_is_told_and_read_again(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        planes.refused = "/secrets/access-1-login"
        await planes.network()

        async def is_told() -> bool:
            report = await planes.status("workerReport")
            return bool(report) and not report["materialValid"]

        await planes.world.until(is_told, what="it is told")
        assert "Secrets cannot be read" in (await planes.status("workerReport"))["message"]
        planes.refused = ""

        async def is_loaded() -> bool:
            return bool((await planes.status("workerReport"))["materialValid"])

        await planes.world.until(is_loaded, what="it is loaded", timeout_s=40)
        assert "message" not in await planes.status("workerReport")

    in_planes(tmp_path, story)


def test_what_is_loaded_stays_in_use_while_the_server_does_not_give_the_secret(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        before: Any = await planes.status("workerReport")
        planes.refused = "/secrets/access-1-login"
        first = await planes.sample()
        await planes.world.clock.sleep(700)
        assert await planes.status("workerReport") == before
        last = await planes.sample()
        assert last["complete"]
        assert last["sampleSequence"] >= first["sampleSequence"] + 6

    in_planes(tmp_path, story)


def test_a_missing_secret_is_named(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch(credentialSecretRef={"name": "nobody-made-it"})
        await planes.network()

        async def is_told() -> bool:
            return bool(await planes.status("workerReport"))

        await planes.world.until(is_told, what="it is told")
        report: Any = await planes.status("workerReport")
        assert not report["materialValid"]
        assert report["message"] == "Secret nobody-made-it does not exist"

    in_planes(tmp_path, story)


def test_a_secret_without_a_host_key_opens_no_session_and_says_so_without_a_value(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.secret("access-1-login", address="192.0.2.1", known_hosts="")
        await planes.network()
        await planes.world.clock.sleep(120)
        report: Any = await planes.status("workerReport")
        assert not report["materialValid"]
        assert report["message"].startswith("HostKeysInvalid: ")
        assert PASSWORD not in str(await planes.world.seen())

    in_planes(tmp_path, story)


def test_a_device_that_goes_takes_its_duties_with_it(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.switch("access-2", number=2)
        network, node = await planes.network(), await planes.node()
        await planes.world.ready()
        await planes.world.ready("access-2")
        await planes.world.admin.delete("/apis/cisco.vk/v1alpha1/namespaces/campus/ciscodevices/access-2")

        async def is_gone() -> bool:
            return {place.key.name for room in (network, node) for place in room.places} == {"access-1"}

        await planes.world.until(is_gone, what="nobody works for it")
        planes.writes.clear()
        planes.secret_reads.clear()
        await planes.world.clock.sleep(400)
        assert not [path for _, path in planes.writes if "access-2" in path]
        assert set(planes.secret_reads) == {"access-1-login"}
        assert await planes.world.get(f"{SECRETS}/access-2-login")

    in_planes(tmp_path, story)
