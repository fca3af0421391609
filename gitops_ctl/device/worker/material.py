"""What a worker has loaded for one device: how it logs in, whom it trusts, and the revision that this proves (rollouts.md, 5.1 and 17.2).

Pure.  The problem names what cannot be used, never what stands in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import int_at, object_at, text_at
from gitops_ctl.device.gnoitarget import GnoiTarget, port_of, tls_material, transport_of
from gitops_ctl.device.login import Endpoint, endpoint_of
from gitops_ctl.device.worker.secretreader import SecretSeen
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.revision import DeviceSecrets, secrets_of, worker_revision

NETCONF_PORT = 830
DRIVER = "XE"
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Material:
    """The inputs of one device as they are loaded.

    Attributes:
        revision: that they prove.
        versions: resourceVersions of the Secrets, empty where there is none.
        endpoint: NETCONF; None when it cannot be used.
        target: gNOI; None when it cannot be used.
        problem: why not all of it can be used, for people; empty when it can.
    """

    revision: str
    versions: DeviceSecrets
    endpoint: Endpoint | None
    target: GnoiTarget | None
    problem: str = ""
    made_for: tuple[str, int] = ("", 0)
    """UID and generation of the device that address and ports are from."""


def material_of(device: Device, secrets: Mapping[str, SecretSeen | None], *, template_digest: str) -> Material:
    """From the device and the Secrets that it names, by name; None is one that does not exist."""
    named = secrets_of(device.spec)
    versions = DeviceSecrets(*(_version(secrets, name) for name in named))
    revision = worker_revision(template_digest=template_digest, **versions._asdict())
    made_for = device.uid, device.generation
    missing = sorted({name for name in named if name and secrets.get(name) is None})
    problem = f"Secret {', '.join(missing)} does not exist" if missing else _spec_problem(device, named)
    if problem:
        return Material(revision, versions, None, None, problem[:_LONGEST], made_for)
    endpoint, why = _endpoint(device, _data(secrets, named.credential))
    target, why_not = _target(device, endpoint, _data(secrets, named.tls) if named.tls else None)
    return Material(revision, versions, endpoint, target, (why or why_not)[:_LONGEST], made_for)


def _spec_problem(device: Device, named: DeviceSecrets) -> str:
    if device.driver.upper() != DRIVER:
        return f"driver {device.driver or 'none'} is not supported: XE is"
    return "" if named.credential else "spec.credentialSecretRef names no Secret"


def _endpoint(device: Device, data: Mapping[str, bytes]) -> tuple[Endpoint | None, str]:
    try:
        found = endpoint_of(
            data,
            name=device.name,
            address=text_at(device.spec, "address"),
            port=int_at(device.spec, "netconfPort") or NETCONF_PORT,
            username=text_at(device.spec, "username"),
        )
    except GitopsError as error:
        return None, f"{error.reason}: {error.message}"
    return found, ""


def _target(
    device: Device, endpoint: Endpoint | None, tls: Mapping[str, bytes] | None
) -> tuple[GnoiTarget | None, str]:
    gnoi = object_at(device.spec, "gnoi")
    security = text_at(gnoi, "transportSecurity", default="auto")
    transport = transport_of(security, has_tls_member=bool(object_at(gnoi, "tls")), has_credentials=True)
    port = port_of(int_at(gnoi, "port"), transport=transport)
    address = text_at(device.spec, "address")
    try:
        if transport == "plaintext":
            return GnoiTarget(address, port), ""
        if tls is None:
            return None, "gNOI over TLS needs spec.gnoi.tls.secretRef, a Secret with ca.crt"
        login = endpoint.login if endpoint is not None else None
        return GnoiTarget(address, port, tls=tls_material(tls), login=login), ""
    except GitopsError as error:
        return None, f"{error.reason}: {error.message}"


def _version(secrets: Mapping[str, SecretSeen | None], name: str) -> str:
    found = secrets.get(name) if name else None
    return found.version if found is not None else ""


def _data(secrets: Mapping[str, SecretSeen | None], name: str) -> Mapping[str, bytes]:
    found = secrets.get(name)
    return found.data if found is not None else _NOTHING


_NOTHING: Mapping[str, bytes] = {}
