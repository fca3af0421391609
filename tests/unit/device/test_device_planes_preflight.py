"""The preflight of a frozen campaign, as the network plane makes it (rollouts.md, section 9.4)."""

from pathlib import Path
from typing import Any

from gitops_ctl.device.worker.place import Intervals
from gitops_ctl.device.worker.preflight import MOST_ENTRIES, entries_with
from gitops_ctl.fleet import names
from tests.support.api_rollouts import an_upgrade
from tests.support.device_planes import IMAGE, Planes, in_planes
from tests.support.device_world import LEAVES

CHECKS = ["Netconf", "Gnoi", "Source", "Spool", "FlashSpace", "InstallMode", "Quiescent", "SavedConfiguration"]


async def until_preflight(planes: Planes, *, result: str, name: str = "access-1", timeout_s: float = 120.0) -> Any:
    """The entry once it has this result."""

    async def has_it() -> bool:
        return (await planes.preflight(name)).get("result") == result

    await planes.world.until(has_it, what=f"the preflight of {name} is {result}", timeout_s=timeout_s)
    return await planes.preflight(name)


def checks(entry: Any) -> dict[str, str]:
    return {check["name"]: check["status"] for check in entry["checks"]}


def test_a_target_of_a_frozen_plan_is_checked_before_anybody_approves(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.network()
        made: Any = await planes.rollout()
        entry = await until_preflight(planes, result="Passed")
        assert entry["rolloutUID"] == made["metadata"]["uid"]
        assert entry["imageSize"] == len(IMAGE)
        assert entry["runningVersion"].startswith("17.18.02")
        assert [check["name"] for check in entry["checks"]] == CHECKS
        assert set(checks(entry).values()) == {"Pass"}
        assert entry["workerPodUID"] == (await planes.status("workerReport"))["podUID"]

    in_planes(tmp_path, story)


def test_targets_share_one_download_of_the_image(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.switch("access-2", number=2)
        await planes.network()
        await planes.rollout(devices=("access-1", "access-2"))
        await until_preflight(planes, result="Passed")
        await until_preflight(planes, result="Passed", name="access-2")
        assert planes.images.asked == 1

    in_planes(tmp_path, story)


def test_a_check_that_fails_names_its_reason_and_is_made_again_soon(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        switch = await planes.switch()
        planes.images.away = True
        with switch.change() as state:
            state["mode"] = "bundle"
        await planes.network()
        await planes.rollout()
        entry = await until_preflight(planes, result="Failed")
        said = {check["name"]: check.get("message", "") for check in entry["checks"] if check["status"] != "Pass"}
        assert said["Source"].startswith("SourceUnreachable: ")
        assert said["InstallMode"].startswith("NotInstallMode: ")
        assert checks(entry)["FlashSpace"] == "Unknown"
        planes.images.away = False
        with switch.change() as state:
            state["mode"] = "install"
        await until_preflight(planes, result="Passed", timeout_s=300)

    in_planes(tmp_path, story)


def test_a_call_that_a_version_does_not_have_shows_before_anybody_approves_and_is_asked_anew_after_an_upgrade(
    tmp_path: Path,
) -> None:
    async def story(planes: Planes) -> None:
        switch = await planes.switch()
        await planes.network()
        device: Any = await planes.world.seen()
        tree = an_upgrade(name="leaf-1", namespace="campus", deviceRef={"name": "access-1"})
        tree["metadata"]["annotations"] = {names.DEVICE_UID: device["metadata"]["uid"]}
        await planes.world.admin.create(LEAVES, tree)
        status = {
            **{"phase": "Failed", "failureReason": "InstallUnsupported", "completionTime": "2026-02-01T00:00:00Z"},
            "previousVersion": switch.read()["running"],
        }
        await planes.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": status}, subresource="status")
        await planes.rollout()
        entry = await until_preflight(planes, result="Failed")
        said = {check["name"]: check.get("message", "") for check in entry["checks"] if check["status"] != "Pass"}
        running = switch.read()["running"]
        assert said == {
            "Gnoi": f"GnoiUnavailable: {running} does not offer OS.Install: upgrade leaf-1 ended with InstallUnsupported"
        }
        with switch.change() as state:
            state["running"] = state["committed"] = state["packages"][0]["version"] = "17.19.01.0.1"
        await until_preflight(planes, result="Passed", timeout_s=300)

    in_planes(tmp_path, story)


def test_a_device_that_does_not_answer_fails_every_check_of_it(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        planes.netconf.away.add("access-1")
        await planes.network()
        await planes.rollout()
        entry = await until_preflight(planes, result="Failed")
        blocked = {name for name, status in checks(entry).items() if status in ("Fail", "Unknown")}
        assert blocked == {"Netconf", "FlashSpace", "InstallMode", "Quiescent", "SavedConfiguration"}

    in_planes(tmp_path, story)


def test_an_unsaved_configuration_blocks_or_warns_as_the_option_says(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        switch = await planes.switch()
        with switch.change() as state:
            state["startupConfig"] = ""
        await planes.network(unsaved_blocks=False)
        await planes.rollout()
        entry = await until_preflight(planes, result="Warned")
        assert checks(entry)["SavedConfiguration"] == "Warn"

    in_planes(tmp_path, story)


def test_it_is_made_again_when_the_device_or_a_secret_changes_and_after_the_interval(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        planes.intervals = Intervals(preflight_s=400)
        await planes.switch()
        await planes.network()
        await planes.rollout()
        first = await until_preflight(planes, result="Passed")
        await planes.world.clock.sleep(200)
        assert await planes.preflight() == first, "nothing changed"
        await planes.secret("access-1-login", address="192.0.2.1", password="another-password")

        async def is_other(member: str, before: Any) -> bool:
            return (await planes.preflight())[member] != before[member]

        await planes.world.until(lambda: is_other("workerRevision", first), what="it is made with the new Secret")
        second = await planes.preflight()
        await planes.world.until(lambda: is_other("observedAt", second), what="it is made again", timeout_s=420)

    in_planes(tmp_path, story)


def test_read_only_the_plane_checks_and_samples_and_starts_no_upgrade(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network(read_only=True)
        await planes.world.ready()
        await planes.rollout()
        await until_preflight(planes, result="Passed")
        assert (await planes.sample())["complete"]
        assert planes.executor.steps == []

    in_planes(tmp_path, story)


def test_of_too_many_entries_the_oldest_of_an_ended_campaign_goes_first() -> None:
    stored = [{"rolloutUID": f"r{number}", "observedAt": f"2026-01-0{number}T00:00:00Z"} for number in range(1, 9)]
    fresh = {"rolloutUID": "new", "observedAt": "2026-02-01T00:00:00Z"}
    kept = entries_with(stored, fresh, ended=frozenset({"r5", "r7"}))
    assert len(kept) == MOST_ENTRIES
    assert {one["rolloutUID"] for one in kept} == {"r1", "r2", "r3", "r4", "r6", "r7", "r8", "new"}
    again = entries_with(kept, {**fresh, "result": "Passed"}, ended=frozenset())
    assert [one for one in again if one["rolloutUID"] == "new"] == [{**fresh, "result": "Passed"}]
