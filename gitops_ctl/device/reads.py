"""The reads of an upgrade over one NETCONF session (devices.md, sections 5.2 and 7.1; rollouts.md, sections 9.4, 13.2, 15.5).

Every read asks by filter for what is used, so that replies stay small.  A subtree that the device refuses, or answers with
something unusable, is a reading with a gap; a session that ends is an error of the caller's, who opens another one.
"""

from collections.abc import Awaitable
from typing import Final, TypeVar

from lxml import etree

from gitops_ctl.device import configurations
from gitops_ctl.device.installhistory import InstallHistory, read_history
from gitops_ctl.device.netconf import AnswerUnusable, NetconfRefused, NetconfSession, Reply
from gitops_ctl.device.operational import Apps, InstallState, Platform, SavedConfiguration, Seen, Surroundings
from gitops_ctl.device.operationalxml import (
    MODELS,
    Trees,
    read_apps,
    read_install,
    read_platform,
    read_serial,
    read_surroundings,
)

T = TypeVar("T")
_FILTERS: Final = {
    "interfaces-oper": "<interfaces{ns}><interface><name/><oper-status/><speed/>"
    "<statistics><rx-kbps/><tx-kbps/></statistics></interface></interfaces>",
    "cdp-oper": "<cdp-neighbor-details{ns}><cdp-neighbor-detail><device-id/><device-name/><local-intf-name/>"
    "</cdp-neighbor-detail></cdp-neighbor-details>",
    "lldp-oper": "<lldp-entries{ns}><lldp-intf-details><if-name/><lldp-neighbor-details/></lldp-intf-details></lldp-entries>",
    "install-oper": "<install-oper-data{ns}><install-location-information><fru/><slot/><bay/><chassis/>"
    "<install-version-info><version/><version-extension/><current/><src-filename/></install-version-info>"
    "<oper-state/></install-location-information></install-oper-data>",
    "platform-software-oper": "<cisco-platform-software{ns}><q-filesystem><fru/><slot/><bay/><chassis/>"
    "<partitions><name/><total-size/><used-size/><is-primary/><is-writable/></partitions></q-filesystem>"
    "</cisco-platform-software>",
    "device-hardware-oper": "<device-hardware-data{ns}><device-hardware><device-inventory><hw-type/><hw-dev-index/>"
    "<serial-number/></device-inventory></device-hardware></device-hardware-data>",
    "app-hosting-oper": "<app-hosting-oper-data{ns}/>",
    "app-hosting-cfg": "<app-hosting-cfg-data{ns}/>",
}
_HISTORY: Final = (
    (
        "install-oper",
        "<install-oper-data{ns}><install-location-information><fru/><slot/><bay/><chassis/><install-version-info><version/>"
        "<version-extension/><src-filename/><install-package-state-info><package-type/><pkg-name/>"
        "</install-package-state-info></install-version-info></install-location-information><install-oper-hist><op-uuid/>"
        "<op-status/><op-done/><start-time/><end-time/><add-param><dest-filename/></add-param></install-oper-hist>"
        "</install-oper-data>",
    ),
    (
        "device-hardware-oper",
        "<device-hardware-data{ns}><device-hardware><device-system-data><current-time/></device-system-data>"
        "</device-hardware></device-hardware-data>",
    ),
)


async def surroundings(session: NetconfSession) -> Seen[Surroundings]:
    """Interfaces with rates, and CDP and LLDP neighbours."""
    trees, refused = await _trees(session.get(*_filters("interfaces-oper", "cdp-oper", "lldp-oper")))
    return _with(read_surroundings(trees), refused)


async def install_state(session: NetconfSession) -> Seen[InstallState]:
    """What the install manager says now."""
    trees, refused = await _trees(session.get(*_filters("install-oper")))
    return _with(read_install(trees), refused)


async def install_history(session: NetconfSession) -> Seen[InstallHistory]:
    """Which installs the device remembers, and what its clock says."""
    wanted = [_filter(model, text) for model, text in _HISTORY]
    trees, refused = await _trees(session.get(*wanted))
    return _with(read_history(trees), refused)


async def platform(session: NetconfSession) -> Seen[Platform]:
    """Serial number and flash."""
    trees, refused = await _trees(session.get(*_filters("device-hardware-oper", "platform-software-oper")))
    return _with(read_platform(trees), refused)


async def serial(session: NetconfSession) -> Seen[str]:
    """Serial number of the chassis."""
    trees, refused = await _trees(session.get(*_filters("device-hardware-oper")))
    return _with(read_serial(trees), refused)


async def apps(session: NetconfSession) -> Seen[Apps]:
    """Applications that the device has, or is configured to have."""
    present, refused = await _trees(session.get(*_filters("app-hosting-oper")))
    configured, refused_too = await _trees(session.get_config("running", *_filters("app-hosting-cfg")))
    return _with(read_apps(present, configured), refused or refused_too)


async def saved_configuration(session: NetconfSession) -> Seen[SavedConfiguration]:
    """Whether running and startup are equal; one that cannot be read is a gap, and counts as not saved."""
    running, refused = await _trees(session.get_config("running"))
    startup, refused_too = await _trees(session.get_config("startup"))
    if refused or refused_too:
        store = "running" if refused else "startup"
        return Seen(
            SavedConfiguration(saved=False), (f"the {store} datastore cannot be read: {refused or refused_too}",)
        )
    if not running:
        return Seen(SavedConfiguration(saved=False), ("the running datastore is empty",))
    differences = configurations.differences(running, startup)
    return Seen(SavedConfiguration(not differences, differences))


def _filters(*models: str) -> list[etree._Element]:
    return [_filter(model, _FILTERS[model]) for model in models]


def _filter(model: str, text: str) -> etree._Element:
    return etree.fromstring(text.replace("{ns}", f' xmlns="{MODELS}{model}"'))


async def _trees(reading: Awaitable[Reply]) -> tuple[Trees, str]:
    """The trees, and why there are none."""
    try:
        return (await reading).data, ""
    except (NetconfRefused, AnswerUnusable) as error:
        return (), error.message


def _with(seen: Seen[T], refused: str) -> Seen[T]:
    return Seen(seen.value, (refused, *seen.gaps)) if refused else seen
