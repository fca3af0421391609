"""The operational data of a device, in the shape of the published Cisco-IOS-XE models as far as somebody reads them."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from lxml import etree

CISCO = "http://cisco.com/ns/yang/Cisco-IOS-XE-"
_STATES = {"committed": "provisioned-committed", "active": "provisioned-uncommitted", "added": "installed"}


def operational_data(
    device: dict[str, Any], *, now: float = 0.0, wanted: Collection[str] | None = None
) -> list[etree._Element]:
    """One tree for each model, in no order that anybody may rely on; `now` is what the clock of the device is made from.

    `wanted` are names of the roots that are asked for; all are without it.
    """
    builders: dict[str, Callable[[], etree._Element]] = {
        "interfaces": lambda: _interfaces(device),
        "cdp-neighbor-details": lambda: _cdp(device),
        "lldp-entries": lambda: _lldp(device),
        "install-oper-data": lambda: _install(device),
        "cisco-platform-software": lambda: _filesystems(device),
        "device-hardware-data": lambda: _hardware(device, now),
        "app-hosting-oper-data": lambda: _apps(device),
    }
    return [build() for name, build in builders.items() if wanted is None or name in wanted]


def configuration(device: dict[str, Any], text: str) -> list[etree._Element]:
    """The trees of a datastore: those in this text, and the applications."""
    trees = list(etree.fromstring(f"<config>{text}</config>"))
    return trees + ([_app_configuration(device)] if any(app["configured"] for app in device["apps"]) else [])


class _Tree:
    """Builds elements of one namespace."""

    def __init__(self, model: str, name: str) -> None:
        self._namespace = CISCO + model
        self.root = etree.Element(f"{{{self._namespace}}}{name}", nsmap={None: self._namespace})

    def below(self, parent: etree._Element, name: str, text: object = None) -> etree._Element:
        element = etree.SubElement(parent, f"{{{self._namespace}}}{name}")
        if text is not None:
            element.text = str(text)
        return element

    def leaves(self, parent: etree._Element, **members: object) -> None:
        for name, value in members.items():
            self.below(parent, name.replace("_", "-"), value)


def _interfaces(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("interfaces-oper", "interfaces")
    for seen in device["interfaces"]:
        entry = tree.below(tree.root, "interface")
        state = "if-oper-state-ready" if seen["oper"] == "up" else "if-oper-state-no-pass"
        tree.leaves(entry, name=seen["name"], interface_type="iana-iftype-ethernet-csmacd", oper_status=state)
        tree.leaves(entry, speed=seen["speed"])
        tree.leaves(tree.below(entry, "statistics"), rx_kbps=seen["inKbps"], tx_kbps=seen["outKbps"])
    return tree.root


def _cdp(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("cdp-oper", "cdp-neighbor-details")
    for number, seen in enumerate(device["cdp"], start=1):
        entry = tree.below(tree.root, "cdp-neighbor-detail")
        tree.leaves(entry, device_id=number, device_name=seen["id"], local_intf_name=seen["interface"])
    return tree.root


def _lldp(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("lldp-oper", "lldp-entries")
    for seen in device["lldp"]:
        details = tree.below(tree.root, "lldp-intf-details")
        tree.leaves(details, if_name=seen["interface"])
        neighbor = tree.below(details, "lldp-neighbor-details")
        tree.leaves(neighbor, chassis_id="0200.0000.0001", port_id="1", system_name=seen["id"])
    return tree.root


def _install(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("install-oper", "install-oper-data")
    for number, _ in enumerate(device["supervisors"]):
        place = tree.below(tree.root, "install-location-information")
        tree.leaves(place, fru="fru-rp", slot=number, bay=0, chassis=1)
        for name, state, file in _packages(device, number):
            version, _, extension = name.rpartition(".")
            entry = tree.below(place, "install-version-info")
            tree.leaves(entry, version=version, version_extension=extension, current=f"install-version-state-{state}")
            tree.leaves(entry, src_filename=file)
        state = tree.below(place, "oper-state")
        timer = tree.below(state, "auto-abort-timer")
        tree.leaves(timer, state=f"install-timer-state-{'active' if device['autoAbort'] else 'inactive'}")
        busy = device["operation"] or device["committing"]
        tree.leaves(state, sys_activity="install-install-in-progress" if busy else "install-no-activity")
        tree.leaves(state, boot_mode=f"install-boot-mode-{device['mode']}")
    for number, seen in enumerate(device.get("history", [])):
        entry = tree.below(tree.root, "install-oper-hist")
        tree.leaves(entry, op_uuid=f"00000000-0000-4000-9000-{number:012d}", op_id=1)
        tree.leaves(entry, op_status=f"install-op-{seen['status']}", op_done="op-complete")
        tree.leaves(entry, start_time=_moment(device, seen["begun"]), end_time=_moment(device, seen["ended"]))
        tree.leaves(tree.below(entry, "add-param"), dest_filename=seen["file"])
    return tree.root


def _moment(device: dict[str, Any], at: float) -> str:
    """As the clock of the device tells it."""
    told = datetime.fromtimestamp(at + device.get("gnoi", {}).get("clockOffsetS", 0.0), UTC)
    return told.isoformat(timespec="milliseconds")


def _packages(device: dict[str, Any], number: int) -> list[tuple[str, str, str]]:
    """Version, state and file of what one supervisor has; where each is installed on its own, the standby has its own list."""
    gnoi = device.get("gnoi", {})
    if number == 0 or gnoi.get("layout") != "individual":
        return [(each["version"], _version_state(device, each), each["file"]) for each in device["packages"]]
    running, coming = (device["supervisors"][number][name] for name in ("running", "next"))
    kept = "provisioned-committed" if running == device["committed"] else "provisioned-uncommitted"
    states = dict.fromkeys(gnoi["standbyVersions"], "installed") | {coming: "in-progress"} | {running: kept}
    return [(version, state, f"stby-flash:cat9k_iosxe.{version}.SPA.bin") for version, state in states.items()]


def _version_state(device: dict[str, Any], package: dict[str, Any]) -> str:
    version = package["version"]
    if version == device["running"]:
        state = "provisioned-committed" if version == device["committed"] else "provisioned-uncommitted"
    elif version == device["pending"]:
        state = "in-progress"
    else:
        state = _STATES.get(package["state"] if package["state"] == "added" else "", "present")
    return state


def _filesystems(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("platform-software-oper", "cisco-platform-software")
    for number, supervisor in enumerate(device["supervisors"]):
        place = tree.below(tree.root, "q-filesystem")
        tree.leaves(place, fru="fru-rp", slot=number, bay=0, chassis=-1)
        total, free = supervisor["flashTotal"] // 1024, supervisor["flashFree"] // 1024
        for name, primary in (("flash:", "true"), ("crashinfo:", "false")):
            partition = tree.below(place, "partitions")
            tree.leaves(partition, name=name, total_size=total, used_size=total - free, is_primary=primary)
            tree.leaves(partition, is_writable="true")
    return tree.root


def _hardware(device: dict[str, Any], now: float) -> etree._Element:
    tree = _Tree("device-hardware-oper", "device-hardware-data")
    hardware = tree.below(tree.root, "device-hardware")
    tree.leaves(tree.below(hardware, "device-system-data"), current_time=_moment(device, now))
    for kind, serial in (("chassis", device["serial"]), ("flash", "FLASH-0001")):
        item = tree.below(hardware, "device-inventory")
        tree.leaves(
            item, hw_type=f"hw-type-{kind}", hw_dev_index=0, part_number=device["platform"], serial_number=serial
        )
    return tree.root


def _apps(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("app-hosting-oper", "app-hosting-oper-data")
    for app in device["apps"]:
        if app["state"]:
            entry = tree.below(tree.root, "app")
            tree.leaves(entry, name=app["name"])
            tree.leaves(tree.below(entry, "details"), state=app["state"])
    return tree.root


def _app_configuration(device: dict[str, Any]) -> etree._Element:
    tree = _Tree("app-hosting-cfg", "app-hosting-cfg-data")
    apps = tree.below(tree.root, "apps")
    for app in device["apps"]:
        if app["configured"]:
            tree.leaves(tree.below(apps, "app"), application_name=app["name"])
    return tree.root
