# Generated from github.com/siderolabs/talos v1.14.0, api/resource/definitions/runtime/runtime.proto by tools/generate_stubs.py; never edited by hand.
# SPDX-License-Identifier: MPL-2.0
import datetime

from gitops_ctl.netpb.talos.common import common_pb2 as _common_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from gitops_ctl.netpb.talos.resource.definitions.enums import enums_pb2 as _enums_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class APIServiceConfigSpec(_message.Message):
    __slots__ = ("listen_address", "node_routing_disabled", "readonly_role_mode", "skip_verifying_client_cert")
    LISTEN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NODE_ROUTING_DISABLED_FIELD_NUMBER: _ClassVar[int]
    READONLY_ROLE_MODE_FIELD_NUMBER: _ClassVar[int]
    SKIP_VERIFYING_CLIENT_CERT_FIELD_NUMBER: _ClassVar[int]
    listen_address: str
    node_routing_disabled: bool
    readonly_role_mode: bool
    skip_verifying_client_cert: bool
    def __init__(self, listen_address: _Optional[str] = ..., node_routing_disabled: _Optional[bool] = ..., readonly_role_mode: _Optional[bool] = ..., skip_verifying_client_cert: _Optional[bool] = ...) -> None: ...

class BootIDSpec(_message.Message):
    __slots__ = ("boot_id",)
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    boot_id: str
    def __init__(self, boot_id: _Optional[str] = ...) -> None: ...

class BootedEntrySpec(_message.Message):
    __slots__ = ("booted_entry",)
    BOOTED_ENTRY_FIELD_NUMBER: _ClassVar[int]
    booted_entry: str
    def __init__(self, booted_entry: _Optional[str] = ...) -> None: ...

class DevicesStatusSpec(_message.Message):
    __slots__ = ("ready",)
    READY_FIELD_NUMBER: _ClassVar[int]
    ready: bool
    def __init__(self, ready: _Optional[bool] = ...) -> None: ...

class DiagnosticSpec(_message.Message):
    __slots__ = ("message", "details")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    message: str
    details: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, message: _Optional[str] = ..., details: _Optional[_Iterable[str]] = ...) -> None: ...

class EnvironmentSpec(_message.Message):
    __slots__ = ("variables",)
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    variables: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, variables: _Optional[_Iterable[str]] = ...) -> None: ...

class EventSinkConfigSpec(_message.Message):
    __slots__ = ("endpoint",)
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    def __init__(self, endpoint: _Optional[str] = ...) -> None: ...

class ExtensionServiceConfigFile(_message.Message):
    __slots__ = ("content", "mount_path")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MOUNT_PATH_FIELD_NUMBER: _ClassVar[int]
    content: str
    mount_path: str
    def __init__(self, content: _Optional[str] = ..., mount_path: _Optional[str] = ...) -> None: ...

class ExtensionServiceConfigSpec(_message.Message):
    __slots__ = ("files", "environment")
    FILES_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[ExtensionServiceConfigFile]
    environment: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, files: _Optional[_Iterable[_Union[ExtensionServiceConfigFile, _Mapping]]] = ..., environment: _Optional[_Iterable[str]] = ...) -> None: ...

class ExtensionServiceConfigStatusSpec(_message.Message):
    __slots__ = ("spec_version",)
    SPEC_VERSION_FIELD_NUMBER: _ClassVar[int]
    spec_version: str
    def __init__(self, spec_version: _Optional[str] = ...) -> None: ...

class ImageFactorySchematicSpec(_message.Message):
    __slots__ = ("schematic_id", "flavor", "apiurl")
    SCHEMATIC_ID_FIELD_NUMBER: _ClassVar[int]
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    APIURL_FIELD_NUMBER: _ClassVar[int]
    schematic_id: str
    flavor: str
    apiurl: str
    def __init__(self, schematic_id: _Optional[str] = ..., flavor: _Optional[str] = ..., apiurl: _Optional[str] = ...) -> None: ...

class KernelCmdlineSpec(_message.Message):
    __slots__ = ("cmdline",)
    CMDLINE_FIELD_NUMBER: _ClassVar[int]
    cmdline: str
    def __init__(self, cmdline: _Optional[str] = ...) -> None: ...

class KernelModuleSpecSpec(_message.Message):
    __slots__ = ("name", "parameters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Iterable[str]] = ...) -> None: ...

class KernelModuleStatusSpec(_message.Message):
    __slots__ = ("type", "size", "reference_count", "dependencies", "state", "address")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    type: _enums_pb2.RuntimeKernelModuleType
    size: int
    reference_count: int
    dependencies: _containers.RepeatedScalarFieldContainer[str]
    state: _enums_pb2.RuntimeKernelModuleState
    address: str
    def __init__(self, type: _Optional[_Union[_enums_pb2.RuntimeKernelModuleType, str]] = ..., size: _Optional[int] = ..., reference_count: _Optional[int] = ..., dependencies: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[_enums_pb2.RuntimeKernelModuleState, str]] = ..., address: _Optional[str] = ...) -> None: ...

class KernelParamSpecSpec(_message.Message):
    __slots__ = ("value", "ignore_errors")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IGNORE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    value: str
    ignore_errors: bool
    def __init__(self, value: _Optional[str] = ..., ignore_errors: _Optional[bool] = ...) -> None: ...

class KernelParamStatusSpec(_message.Message):
    __slots__ = ("current", "default", "unsupported")
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    current: str
    default: str
    unsupported: bool
    def __init__(self, current: _Optional[str] = ..., default: _Optional[str] = ..., unsupported: _Optional[bool] = ...) -> None: ...

class KmsgLogConfigSpec(_message.Message):
    __slots__ = ("destinations",)
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    destinations: _containers.RepeatedCompositeFieldContainer[_common_pb2.URL]
    def __init__(self, destinations: _Optional[_Iterable[_Union[_common_pb2.URL, _Mapping]]] = ...) -> None: ...

class LoadedKernelModuleSpec(_message.Message):
    __slots__ = ("size", "reference_count", "dependencies", "state", "address")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    size: int
    reference_count: int
    dependencies: _containers.RepeatedScalarFieldContainer[str]
    state: str
    address: str
    def __init__(self, size: _Optional[int] = ..., reference_count: _Optional[int] = ..., dependencies: _Optional[_Iterable[str]] = ..., state: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class MachineStatusSpec(_message.Message):
    __slots__ = ("stage", "status")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    stage: _enums_pb2.RuntimeMachineStage
    status: MachineStatusStatus
    def __init__(self, stage: _Optional[_Union[_enums_pb2.RuntimeMachineStage, str]] = ..., status: _Optional[_Union[MachineStatusStatus, _Mapping]] = ...) -> None: ...

class MachineStatusStatus(_message.Message):
    __slots__ = ("ready", "unmet_conditions")
    READY_FIELD_NUMBER: _ClassVar[int]
    UNMET_CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    ready: bool
    unmet_conditions: _containers.RepeatedCompositeFieldContainer[UnmetCondition]
    def __init__(self, ready: _Optional[bool] = ..., unmet_conditions: _Optional[_Iterable[_Union[UnmetCondition, _Mapping]]] = ...) -> None: ...

class MaintenanceServiceConfigSpec(_message.Message):
    __slots__ = ("listen_address", "reachable_addresses")
    LISTEN_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    listen_address: str
    reachable_addresses: _containers.RepeatedCompositeFieldContainer[_common_pb2.NetIP]
    def __init__(self, listen_address: _Optional[str] = ..., reachable_addresses: _Optional[_Iterable[_Union[_common_pb2.NetIP, _Mapping]]] = ...) -> None: ...

class MetaKeySpec(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class MetaLoadedSpec(_message.Message):
    __slots__ = ("done",)
    DONE_FIELD_NUMBER: _ClassVar[int]
    done: bool
    def __init__(self, done: _Optional[bool] = ...) -> None: ...

class MountStatusSpec(_message.Message):
    __slots__ = ("source", "target", "filesystem_type", "options", "encrypted", "encryption_providers")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FILESYSTEM_TYPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    filesystem_type: str
    options: _containers.RepeatedScalarFieldContainer[str]
    encrypted: bool
    encryption_providers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., filesystem_type: _Optional[str] = ..., options: _Optional[_Iterable[str]] = ..., encrypted: _Optional[bool] = ..., encryption_providers: _Optional[_Iterable[str]] = ...) -> None: ...

class OOMActionSpec(_message.Message):
    __slots__ = ("trigger_context", "score", "processes")
    TRIGGER_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    trigger_context: str
    score: float
    processes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, trigger_context: _Optional[str] = ..., score: _Optional[float] = ..., processes: _Optional[_Iterable[str]] = ...) -> None: ...

class PlatformMetadataSpec(_message.Message):
    __slots__ = ("platform", "hostname", "region", "zone", "instance_type", "instance_id", "provider_id", "spot", "internal_dns", "external_dns", "tags")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    SPOT_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_DNS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DNS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    platform: str
    hostname: str
    region: str
    zone: str
    instance_type: str
    instance_id: str
    provider_id: str
    spot: bool
    internal_dns: str
    external_dns: str
    tags: _containers.ScalarMap[str, str]
    def __init__(self, platform: _Optional[str] = ..., hostname: _Optional[str] = ..., region: _Optional[str] = ..., zone: _Optional[str] = ..., instance_type: _Optional[str] = ..., instance_id: _Optional[str] = ..., provider_id: _Optional[str] = ..., spot: _Optional[bool] = ..., internal_dns: _Optional[str] = ..., external_dns: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SBOMItemSpec(_message.Message):
    __slots__ = ("name", "version", "license", "cp_es", "pur_ls", "extension")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LICENSE_FIELD_NUMBER: _ClassVar[int]
    CP_ES_FIELD_NUMBER: _ClassVar[int]
    PUR_LS_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    license: str
    cp_es: _containers.RepeatedScalarFieldContainer[str]
    pur_ls: _containers.RepeatedScalarFieldContainer[str]
    extension: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., license: _Optional[str] = ..., cp_es: _Optional[_Iterable[str]] = ..., pur_ls: _Optional[_Iterable[str]] = ..., extension: _Optional[bool] = ...) -> None: ...

class SecurityStateSpec(_message.Message):
    __slots__ = ("secure_boot", "uki_signing_key_fingerprint", "pcr_signing_key_fingerprint", "se_linux_state", "booted_with_uki", "fips_state", "module_signature_enforced")
    SECURE_BOOT_FIELD_NUMBER: _ClassVar[int]
    UKI_SIGNING_KEY_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    PCR_SIGNING_KEY_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SE_LINUX_STATE_FIELD_NUMBER: _ClassVar[int]
    BOOTED_WITH_UKI_FIELD_NUMBER: _ClassVar[int]
    FIPS_STATE_FIELD_NUMBER: _ClassVar[int]
    MODULE_SIGNATURE_ENFORCED_FIELD_NUMBER: _ClassVar[int]
    secure_boot: bool
    uki_signing_key_fingerprint: str
    pcr_signing_key_fingerprint: str
    se_linux_state: _enums_pb2.RuntimeSELinuxState
    booted_with_uki: bool
    fips_state: _enums_pb2.RuntimeFIPSState
    module_signature_enforced: bool
    def __init__(self, secure_boot: _Optional[bool] = ..., uki_signing_key_fingerprint: _Optional[str] = ..., pcr_signing_key_fingerprint: _Optional[str] = ..., se_linux_state: _Optional[_Union[_enums_pb2.RuntimeSELinuxState, str]] = ..., booted_with_uki: _Optional[bool] = ..., fips_state: _Optional[_Union[_enums_pb2.RuntimeFIPSState, str]] = ..., module_signature_enforced: _Optional[bool] = ...) -> None: ...

class ServicePIDSpec(_message.Message):
    __slots__ = ("pid", "mount_namespace")
    PID_FIELD_NUMBER: _ClassVar[int]
    MOUNT_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    pid: int
    mount_namespace: str
    def __init__(self, pid: _Optional[int] = ..., mount_namespace: _Optional[str] = ...) -> None: ...

class UnattendedInstallStatusSpec(_message.Message):
    __slots__ = ("image", "phase", "error")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    image: str
    phase: _enums_pb2.RuntimeUnattendedInstallPhase
    error: str
    def __init__(self, image: _Optional[str] = ..., phase: _Optional[_Union[_enums_pb2.RuntimeUnattendedInstallPhase, str]] = ..., error: _Optional[str] = ...) -> None: ...

class UniqueMachineTokenSpec(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class UnmetCondition(_message.Message):
    __slots__ = ("name", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    reason: str
    def __init__(self, name: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class VersionSpec(_message.Message):
    __slots__ = ("version", "name")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    version: str
    name: str
    def __init__(self, version: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class WatchdogTimerConfigSpec(_message.Message):
    __slots__ = ("device", "timeout")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    device: str
    timeout: _duration_pb2.Duration
    def __init__(self, device: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchdogTimerStatusSpec(_message.Message):
    __slots__ = ("device", "timeout", "feed_interval")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    FEED_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    device: str
    timeout: _duration_pb2.Duration
    feed_interval: _duration_pb2.Duration
    def __init__(self, device: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., feed_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
