"""Which configuration a worker has to have loaded for a device: the template of its Pod and the Secrets of the device (rollouts.md, 17.2).

The manager computes it from metadata, the worker from what it really loaded; no byte of a Secret enters.
"""

from typing import NamedTuple

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.encoding import sha256_of


class DeviceSecrets(NamedTuple):
    """Names of the Secrets of a device, empty where there is none."""

    credential: str
    tls: str
    provisioning: str


def secrets_of(spec: JsonObject) -> DeviceSecrets:
    """The Secrets that `spec` of a CiscoDevice names; certificate provisioning stands in either of two places."""
    provisioning = ("certificateProvisioning", "secretRef", "name")
    return DeviceSecrets(
        credential=text_at(spec, "credentialSecretRef", "name"),
        tls=text_at(spec, "gnoi", "tls", "secretRef", "name"),
        provisioning=text_at(spec, "gnoi", *provisioning) or text_at(spec, "xe", "gnoi", *provisioning),
    )


def worker_revision(*, template_digest: str, credential: str, tls: str, provisioning: str) -> str:
    """The revision of one device.

    Args:
        template_digest: `sha256:…` of the Pod template without the members that carry it.
        credential, tls, provisioning: resourceVersions of the device's Secrets, empty where there is none.
    """
    return sha256_of({"template": template_digest, "credential": credential, "tls": tls, "provisioning": provisioning})
