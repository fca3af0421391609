"""The Secret of an sftp source: bound to exactly one server, decoded by workers alone (rollouts.md, section 13.8).

No text of this module carries a value of the Secret.
"""

from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, Refused
from gitops_ctl.device.addresses import ImageEndpoint
from gitops_ctl.device.login import Endpoint, endpoint_of

PURPOSE_LABEL: Final = "cisco.vk/purpose"
PURPOSE: Final = "software-image-source"


def image_login(data: Mapping[str, bytes], *, labels: Mapping[str, str], endpoint: ImageEndpoint) -> Endpoint:
    """Who logs in at the image server, and which host keys it may have.

    Args:
        data: the decoded values of the Secret.
        labels: of the Secret.
        endpoint: of the URL; the Secret must be bound to it.

    Raises:
        Refused: IMAGE_CREDENTIAL_INVALID: the Secret is for something else, or cannot be used.
    """
    if labels.get(PURPOSE_LABEL) != PURPOSE:
        raise _invalid(f"it has not the label {PURPOSE_LABEL}={PURPOSE}", endpoint)
    bound = {"allowedScheme": endpoint.scheme, "allowedHost": endpoint.host, "allowedPort": str(endpoint.port)}
    for key, wanted in bound.items():
        if data.get(key, b"").decode("utf-8", "replace").strip() != wanted:
            raise _invalid(f"{key} is not the {key.removeprefix('allowed').lower()} of the URL", endpoint)
    try:
        return endpoint_of(data, name=str(endpoint), address=endpoint.host, port=endpoint.port)
    except GitopsError as error:
        raise _invalid(error.message, endpoint) from None


def _invalid(why: str, endpoint: ImageEndpoint) -> Refused:
    message = f"the Secret of the image source is not acceptable: {why}"
    return Refused(message, code=ErrorCode.IMAGE_CREDENTIAL_INVALID, subject=str(endpoint))
