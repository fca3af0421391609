"""Operational data of a switch as XML, written by hand from the published models, to be broken leaf by leaf."""

from lxml import etree

MODELS = "http://cisco.com/ns/yang/Cisco-IOS-XE-"
INTERFACE = (
    "<interface><name>{name}</name><oper-status>if-oper-state-{state}</oper-status><speed>{speed}</speed>"
    "<statistics><rx-kbps>{rx}</rx-kbps><tx-kbps>{tx}</tx-kbps></statistics></interface>"
)
VERSION = (
    "<install-version-info><version>{version}</version><version-extension>{extension}</version-extension>"
    "<current>install-version-state-{state}</current></install-version-info>"
)
OPER_STATE = (
    "<oper-state><auto-abort-timer><state>install-timer-state-{timer}</state></auto-abort-timer>"
    "<sys-activity>install-{activity}</sys-activity><boot-mode>install-boot-mode-{mode}</boot-mode></oper-state>"
)


def tree(model: str, name: str, inside: str) -> etree._Element:
    return etree.fromstring(f'<{name} xmlns="{MODELS}{model}">{inside}</{name}>')


def interface(
    name: str = "Te1/1/1", *, state: str = "ready", speed: object = 10**10, rx: object = 1000, tx: object = 2000
) -> str:
    return INTERFACE.format(name=name, state=state, speed=speed, rx=rx, tx=tx)


def interfaces(*inside: str) -> etree._Element:
    return tree("interfaces-oper", "interfaces", "".join(inside))


def cdp(*neighbors: tuple[str, str]) -> etree._Element:
    inside = "".join(
        f"<cdp-neighbor-detail><device-id>{number}</device-id><device-name>{name}</device-name>"
        f"<local-intf-name>{at}</local-intf-name></cdp-neighbor-detail>"
        for number, (name, at) in enumerate(neighbors)
    )
    return tree("cdp-oper", "cdp-neighbor-details", inside)


def version(name: str, state: str, *, extension: str = "1766116039") -> str:
    return VERSION.format(version=name, extension=extension, state=state)


def location(
    *versions: str, slot: int = 0, timer: str = "inactive", activity: str = "no-activity", mode: str = "install"
) -> str:
    state = OPER_STATE.format(timer=timer, activity=activity, mode=mode)
    place = f"<fru>fru-rp</fru><slot>{slot}</slot><bay>0</bay><chassis>1</chassis>"
    return f"<install-location-information>{place}{''.join(versions)}{state}</install-location-information>"


def install(*locations: str) -> etree._Element:
    return tree("install-oper", "install-oper-data", "".join(locations))


def filesystem(*, slot: int = 0, total: object = 1000, used: object = 400, primary: str = "true") -> str:
    return (
        f"<q-filesystem><fru>fru-rp</fru><slot>{slot}</slot><bay>0</bay><chassis>-1</chassis><partitions><name>flash:</name>"
        f"<total-size>{total}</total-size><used-size>{used}</used-size><is-primary>{primary}</is-primary>"
        "<is-writable>true</is-writable></partitions></q-filesystem>"
    )


def filesystems(*inside: str) -> etree._Element:
    return tree("platform-software-oper", "cisco-platform-software", "".join(inside))


def hardware(*serials: str) -> etree._Element:
    inside = "".join(
        f"<device-inventory><hw-type>hw-type-chassis</hw-type><serial-number>{serial}</serial-number></device-inventory>"
        for serial in serials
    )
    return tree("device-hardware-oper", "device-hardware-data", f"<device-hardware>{inside}</device-hardware>")
