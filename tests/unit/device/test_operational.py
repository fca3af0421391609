"""What is read from operational data, and that a partial answer is told as one (devices.md, section 5.2)."""

from copy import deepcopy
from dataclasses import replace

import pytest
from lxml import etree

from gitops_ctl.device.operational import Flash, Interface, Mode, Neighbor, VersionState, inventory_state
from gitops_ctl.device.operationalxml import read_apps, read_install, read_platform, read_surroundings
from tests.support.operational import (
    cdp,
    filesystem,
    filesystems,
    hardware,
    install,
    interface,
    interfaces,
    location,
    tree,
    version,
)

RUNNING = "17.18.02.0.4112"
FULL = f"{RUNNING}.1766116039"
HEALTHY = location(version(RUNNING, "provisioned-committed"))


def without(element: etree._Element, name: str) -> etree._Element:
    for leaf in list(element.iter(f"{{*}}{name}")):
        leaf.getparent().remove(leaf)
    return element


class TestSurroundings:
    def test_interfaces_and_neighbours_are_read_sorted_in_bits(self):
        seen = read_surroundings(
            (
                interfaces(interface("Te1/1/2", state="no-pass"), interface()),
                cdp(("core-2", "Te1/1/2"), ("core-1", "Te1/1/1")),
            )
        )
        assert seen.complete
        assert seen.value.interfaces == (
            Interface("Te1/1/1", up=True, speed=10**10, ingress=1_000_000, egress=2_000_000),
            Interface("Te1/1/2", up=False, speed=10**10, ingress=1_000_000, egress=2_000_000),
        )
        assert seen.value.neighbors == (Neighbor("cdp", "core-1", "Te1/1/1"), Neighbor("cdp", "core-2", "Te1/1/2"))

    def test_an_lldp_neighbour_without_a_name_has_the_id_of_its_chassis(self):
        entries = (
            "<lldp-intf-details><if-name>Te1/1/1</if-name><lldp-neighbor-details><chassis-id>c092.2a31.3508</chassis-id>"
            "<port-id>1</port-id></lldp-neighbor-details></lldp-intf-details>"
        )
        seen = read_surroundings((interfaces(interface()), tree("lldp-oper", "lldp-entries", entries)))
        assert seen.value.neighbors == (Neighbor("lldp", "c092.2a31.3508", "Te1/1/1"),)

    def test_a_device_leaves_out_rates_that_it_does_not_have(self):
        seen = read_surroundings((without(without(interfaces(interface()), "statistics"), "speed"),))
        assert seen.complete
        assert seen.value.interfaces == (Interface("Te1/1/1", up=True, speed=None, ingress=None, egress=None),)

    @pytest.mark.parametrize(
        ("trees", "gap"),
        [
            ((), "interfaces is missing"),
            ((interfaces(),), "interfaces is empty"),
            ((without(interfaces(interface()), "name"),), "an interface has no name"),
            ((without(interfaces(interface()), "oper-status"),), "Te1/1/1 has no oper-status"),
            ((interfaces(interface(speed="fast")),), "Te1/1/1: speed is no number"),
            ((interfaces(interface(rx=-1)),), "Te1/1/1: statistics/rx-kbps is no number"),
            ((interfaces(interface(rx="9" * 30)),), "Te1/1/1: statistics/rx-kbps is no number"),
            (
                (interfaces(interface()), without(cdp(("core-1", "Te1/1/1")), "device-name")),
                "a CDP neighbour has no device-name",
            ),
            ((interfaces(interface()), cdp(("core-1", ""))), "CDP neighbour core-1 has no local-intf-name"),
        ],
    )
    def test_what_is_missing_or_malformed_is_named(self, trees, gap):
        seen = read_surroundings(trees)
        assert not seen.complete
        assert gap in seen.gaps

    def test_a_tree_of_another_model_is_not_taken_for_this_one(self):
        assert not read_surroundings((etree.fromstring("<interfaces xmlns='urn:other'/>"),)).complete

    def test_a_thousand_gaps_are_a_few(self):
        broken = without(interfaces(*(interface(f"Te{number}") for number in range(1000))), "oper-status")
        seen = read_surroundings((broken,))
        assert len(seen.gaps) <= 9
        assert len(seen.why) <= 256


class TestInstall:
    def test_the_committed_running_version_carries_its_extension(self):
        seen = read_install((install(HEALTHY),))
        assert seen.complete
        state = seen.value
        assert (state.running, state.committed, state.mode, state.supervisors) == (FULL, True, Mode.INSTALL, 1)
        assert (state.operation, state.timer, state.pending) == (False, False, ())

    def test_an_extension_that_the_version_has_already_is_not_repeated(self):
        seen = read_install((install(location(version(FULL, "provisioned-committed"))),))
        assert seen.value.running == FULL

    def test_an_activated_version_is_running_and_not_committed_while_the_timer_runs(self):
        rows = version("17.18.03.0.5496", "provisioned-uncommitted"), version(RUNNING, "present")
        state = read_install((install(location(*rows, timer="active")),)).value
        assert (state.running, state.committed, state.timer) == ("17.18.03.0.5496.1766116039", False, True)

    def test_a_version_in_progress_is_pending(self):
        rows = version(RUNNING, "provisioned-committed"), version("17.18.03.0.5496", "in-progress")
        assert read_install((install(location(*rows)),)).value.pending == ("17.18.03.0.5496.1766116039",)

    @pytest.mark.parametrize(
        ("state", "word"),
        [
            ("present", "Present"),
            ("installed", "Installed"),
            ("in-progress", "InProgress"),
            ("invalid", "Invalid"),
        ],
    )
    def test_the_inventory_state_of_a_leaf_is_that_of_one_version(self, state, word):
        seen = read_install((install(location(version(RUNNING, "provisioned-committed"), version("17.18.03", state))),))
        assert inventory_state(seen, "17.18.03") == word
        assert inventory_state(seen, "17.18.02") == "ProvisionedCommitted"
        assert inventory_state(seen, "17.18.04") == "Absent"
        assert inventory_state(seen, "17.18") == "Unknown"
        assert inventory_state(replace(seen, gaps=("a gap",)), "17.18.03") == "Unknown"
        assert inventory_state(replace(seen, gaps=("a gap",)), "17.18.04") == "Unknown"

    @pytest.mark.parametrize("activity", ["install-in-progress", "issu-in-progress"])
    def test_an_operation_is_seen(self, activity):
        assert read_install(
            (install(location(version(RUNNING, "provisioned-committed"), activity=activity)),)
        ).value.operation

    def test_one_wanted_version_is_found_by_its_beginning_and_two_are_none(self):
        rows = (version(RUNNING, "provisioned-committed"), version("17.18.03.0.5496", "installed"))
        state = read_install((install(location(*rows)),)).value
        added = (VersionState.ADDED,)
        assert state.holds("17.18.03", states=added) == "17.18.03.0.5496.1766116039"
        assert state.holds("17.18.0", states=added) == ""
        assert state.holds("17.18.02", states=added) == ""
        twice = (*rows, version("17.18.03.0.9999", "installed"))
        assert read_install((install(location(*twice)),)).value.holds("17.18.03", states=added) == ""

    @pytest.mark.parametrize(
        ("trees", "gap"),
        [
            ((), "install-oper-data is missing"),
            ((install(),), "install-oper-data has no location"),
            ((install(location()),), "supervisor 1/0 names 0 running versions"),
            (
                (
                    install(
                        location(version(RUNNING, "provisioned-committed"), version("18", "provisioned-uncommitted"))
                    ),
                ),
                "supervisor 1/0 names 2 running versions",
            ),
            ((without(install(HEALTHY), "sys-activity"),), "supervisor 1/0 has no sys-activity"),
            ((without(install(HEALTHY), "auto-abort-timer"),), "supervisor 1/0 has no state"),
            ((without(install(HEALTHY), "boot-mode"),), "supervisor 1/0 has no boot-mode"),
            (
                (install(location(version(RUNNING, "provisioned-committed"), timer="unknown")),),
                "supervisor 1/0: state is install-timer-state-unknown",
            ),
            (
                (install(location(version(RUNNING, "provisioned-committed"), mode="unknown")),),
                "supervisor 1/0: boot-mode is install-boot-mode-unknown",
            ),
            ((without(install(HEALTHY), "fru"),), "a location of install-oper-data has no fru"),
            (
                (without(install(HEALTHY), "version-extension"),),
                f"version {RUNNING} of supervisor 1/0 has no version-extension",
            ),
            ((without(install(HEALTHY), "version"),), "a version of supervisor 1/0 has no version"),
            (
                (install(location(version(RUNNING, "provisioned-committed"), version("9", "weird"))),),
                "the state of version 9.1766116039 is weird",
            ),
        ],
    )
    def test_what_is_missing_or_malformed_is_named(self, trees, gap):
        seen = read_install(trees)
        assert gap in seen.gaps

    def test_supervisors_have_to_agree(self):
        other = location(version("17.18.03.0.5496", "provisioned-committed"), slot=1)
        seen = read_install((install(HEALTHY, other),))
        assert "the supervisors disagree about the running version" in seen.gaps
        assert seen.value.running == ""

    def test_one_supervisor_that_is_not_committed_is_none_that_is(self):
        other = location(version(RUNNING, "provisioned-uncommitted"), slot=1)
        seen = read_install((install(HEALTHY, other),))
        assert not seen.value.committed
        assert not seen.complete

    def test_two_equal_supervisors_are_complete(self):
        seen = read_install((install(HEALTHY, location(version(RUNNING, "provisioned-committed"), slot=1)),))
        assert (seen.complete, seen.value.supervisors, seen.value.committed) == (True, 2, True)


class TestPlatform:
    def test_serial_and_flash_of_each_supervisor_in_bytes(self):
        seen = read_platform((hardware("FOC1234"), filesystems(filesystem(), filesystem(slot=1, used=900))))
        assert seen.complete
        assert seen.value.serial == "FOC1234"
        assert seen.value.flash == (
            Flash("supervisor -1/0", 1000 * 1024, 600 * 1024),
            Flash("supervisor -1/1", 1000 * 1024, 100 * 1024),
        )

    @pytest.mark.parametrize(
        ("trees", "gap"),
        [
            ((filesystems(filesystem()),), "device-hardware-data is missing"),
            ((hardware("FOC1234"),), "cisco-platform-software is missing"),
            ((hardware(), filesystems(filesystem())), "the inventory has 0 chassis"),
            ((hardware("FOC1", "FOC2"), filesystems(filesystem())), "the inventory has 2 chassis"),
            ((hardware(""), filesystems(filesystem())), "the chassis has no serial-number"),
            ((hardware("FOC1"), filesystems()), "cisco-platform-software has no file system"),
            (
                (hardware("FOC1"), filesystems(filesystem(primary="false"))),
                "supervisor -1/0 has 0 primary writable file systems",
            ),
            ((hardware("FOC1"), filesystems(filesystem(used="most"))), "supervisor -1/0: used-size is no number"),
            ((hardware("FOC1"), filesystems(filesystem(used=2000))), "supervisor -1/0 uses more flash than it has"),
        ],
    )
    def test_what_is_missing_or_malformed_is_named(self, trees, gap):
        assert gap in read_platform(trees).gaps


class TestApps:
    PRESENT = tree(
        "app-hosting-oper",
        "app-hosting-oper-data",
        "<app><name>edge</name><details><state>RUNNING</state></details></app>",
    )
    NONE = tree(
        "app-hosting-oper", "app-hosting-oper-data", "<app-globals><iox-enabled>true</iox-enabled></app-globals>"
    )

    def test_an_empty_inventory_is_one_that_says_so(self):
        seen = read_apps((self.NONE,), ())
        assert seen.complete
        assert seen.value.none

    def test_present_and_configured_applications_count(self):
        configured = tree(
            "app-hosting-cfg",
            "app-hosting-cfg-data",
            "<apps><app><application-name>edge</application-name></app></apps>",
        )
        assert read_apps((self.PRESENT,), ()).value.present == (("edge", "RUNNING"),)
        assert read_apps((self.NONE,), (configured,)).value.configured == ("edge",)

    def test_a_missing_inventory_is_no_empty_one(self):
        seen = read_apps((), ())
        assert not seen.complete
        assert "app-hosting-oper-data is missing" in seen.gaps

    def test_an_application_without_a_name_is_a_gap_and_still_counts(self):
        seen = read_apps(
            (without(tree("app-hosting-oper", "app-hosting-oper-data", "<app><name>x</name></app>"), "name"),), ()
        )
        assert not seen.complete
        assert not seen.value.none


class TestNothingIsGuessed:
    """Whatever single leaf a device leaves out: the reading is the same, or it is incomplete."""

    ROWS = version(RUNNING, "provisioned-committed"), version("17.18.03.0.5496", "installed")
    INSTALL = install(location(*ROWS), location(*ROWS, slot=1))
    PLATFORM = (hardware("FOC1234"), filesystems(filesystem(), filesystem(slot=1)))
    NAMES = ("slot", "bay", "chassis")
    """Leaves that only name a place to people."""

    @staticmethod
    def leaves(trees: tuple[etree._Element, ...]) -> int:
        return sum(len(leaf) == 0 for tree in trees for leaf in tree.iter())

    @classmethod
    def cut(cls, trees: tuple[etree._Element, ...], number: int) -> tuple[tuple[etree._Element, ...], str]:
        copies = tuple(deepcopy(tree) for tree in trees)
        leaf = [leaf for tree in copies for leaf in tree.iter() if len(leaf) == 0][number]
        leaf.getparent().remove(leaf)
        return copies, etree.QName(leaf).localname

    @pytest.mark.parametrize(
        ("read", "trees"), [(read_install, (INSTALL,)), (read_platform, PLATFORM)], ids=["install", "platform"]
    )
    def test_one_leaf_less_changes_nothing_or_is_told(self, read, trees):
        whole = read(trees)
        assert whole.complete
        for number in range(self.leaves(trees)):
            broken, name = self.cut(trees, number)
            seen = read(broken)
            assert not seen.complete or seen.value == whole.value or name in self.NAMES, name

    @pytest.mark.parametrize("text", ["", "?", "-1", "1e3", "\u0661"])
    def test_one_leaf_of_nonsense_changes_nothing_or_is_told(self, text):
        whole = read_platform(self.PLATFORM)
        for number in range(self.leaves(self.PLATFORM)):
            copies = tuple(deepcopy(tree) for tree in self.PLATFORM)
            leaf = [leaf for tree in copies for leaf in tree.iter() if len(leaf) == 0][number]
            leaf.text, name = text, etree.QName(leaf).localname
            seen = read_platform(copies)
            assert not seen.complete or seen.value == whole.value or name in (*self.NAMES, "serial-number"), name
