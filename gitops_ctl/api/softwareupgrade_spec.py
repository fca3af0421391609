"""`spec` of a leaf: one device and one operation; it never changes (rollouts.md, section 4.1)."""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.model import rule
from gitops_ctl.api.rolloutfields import (
    ByteRate,
    NameText,
    Part,
    Sha256,
    SoftwareVersion,
    TimeoutSeconds,
    Window,
)

_FORMS = ("url", "configMapRef", "preinstalled", "deviceFile", "localPath")


class Named(Part):
    """An object of the same namespace."""

    name: NameText


class Preinstalled(Part):
    """The version is on the device already, and is only activated."""


class DeviceFile(Part):
    """A file that lies on the device."""

    path: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.DEVICE_FILE)]
    sha256: Sha256


class LeafImageSource(Part):
    """Where the image comes from: one of `url`, `configMapRef`, `preinstalled`, `deviceFile` and `localPath`."""

    url: Annotated[str, Field(min_length=1, max_length=2048, pattern=patterns.ANY_IMAGE_URL)] | None = None
    sha256: Sha256 | None = None
    """Digest of what `url` serves."""
    url_secret_ref: Named | None = None
    config_map_ref: Named | None = None
    preinstalled: Preinstalled | None = None
    device_file: DeviceFile | None = None
    local_path: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.DEVICE_FILE)] | None = None
    """Deprecated: use `preinstalled` or `deviceFile`."""
    local_path_sha256: Annotated[Sha256 | None, Field(alias="localPathSHA256")] = None
    """Deprecated."""

    @rule(
        " + ".join(f"(has(self.{form}) ? 1 : 0)" for form in _FORMS) + " == 1",
        message="give exactly one of url, configMapRef, preinstalled, deviceFile and localPath",
    )
    def _has_one_form(self) -> bool:
        forms = (self.url, self.config_map_ref, self.preinstalled, self.device_file, self.local_path)
        return forms.count(None) == len(forms) - 1

    @rule("has(self.url) == has(self.sha256)", message="sha256 is needed with url, and with nothing else")
    def _pins_what_it_fetches(self) -> bool:
        return (self.url is None) == (self.sha256 is None)

    @rule(
        "!has(self.urlSecretRef) || (has(self.url) && self.url.matches('^(ftp|scp|sftp)://'))",
        message="urlSecretRef is for ftp, scp and sftp",
    )
    def _keeps_secrets_from_others(self) -> bool:
        if self.url_secret_ref is None:
            return True
        return self.url is not None and self.url.startswith(("ftp://", "scp://", "sftp://"))

    @rule(
        "!has(self.localPathSHA256) || has(self.localPath)",
        message="localPathSHA256 is for localPath",
    )
    def _pins_a_path_that_is_there(self) -> bool:
        return self.local_path_sha256 is None or self.local_path is not None


class UpgradeSpec(Part):
    """What is done to one device."""

    device_ref: Named
    """A CiscoDevice of the same namespace."""
    image_source: LeafImageSource
    target_version: Annotated[SoftwareVersion, Field(min_length=1)]
    max_transfer_bytes_per_second: ByteRate | None = None
    require_network_evidence: bool = False
    """True: no change begins without fresh evidence of the network around the device."""
    strategy: Literal["Reload", "ISSU", "NoReboot", "PrepareOnly"] = "Reload"
    """`ISSU` is refused before anything is sent."""
    rollback_on_failure: bool = True
    maintenance_window: Window | None = None
    resume_policy: Literal["Retry", "Abort"] = "Retry"
    """Deprecated and ignored."""
    max_retries: Annotated[int, Field(ge=0, le=10)] = 3
    """Deprecated and ignored."""
    install_timeout_seconds: TimeoutSeconds = 3600
    reboot_timeout_seconds: TimeoutSeconds = 1800
