# Generated from github.com/openconfig/gnoi v0.5.0, system/system.proto by tools/generate_stubs.py; never edited by hand.
# SPDX-License-Identifier: Apache-2.0
from gitops_ctl.netpb.gnoi.common import common_pb2 as _common_pb2
from gitops_ctl.netpb.gnoi.types import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RebootMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[RebootMethod]
    COLD: _ClassVar[RebootMethod]
    POWERDOWN: _ClassVar[RebootMethod]
    HALT: _ClassVar[RebootMethod]
    WARM: _ClassVar[RebootMethod]
    NSF: _ClassVar[RebootMethod]
    POWERUP: _ClassVar[RebootMethod]
UNKNOWN: RebootMethod
COLD: RebootMethod
POWERDOWN: RebootMethod
HALT: RebootMethod
WARM: RebootMethod
NSF: RebootMethod
POWERUP: RebootMethod

class SwitchControlProcessorRequest(_message.Message):
    __slots__ = ("control_processor",)
    CONTROL_PROCESSOR_FIELD_NUMBER: _ClassVar[int]
    control_processor: _types_pb2.Path
    def __init__(self, control_processor: _Optional[_Union[_types_pb2.Path, _Mapping]] = ...) -> None: ...

class SwitchControlProcessorResponse(_message.Message):
    __slots__ = ("control_processor", "version", "uptime")
    CONTROL_PROCESSOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    control_processor: _types_pb2.Path
    version: str
    uptime: int
    def __init__(self, control_processor: _Optional[_Union[_types_pb2.Path, _Mapping]] = ..., version: _Optional[str] = ..., uptime: _Optional[int] = ...) -> None: ...

class RebootRequest(_message.Message):
    __slots__ = ("method", "delay", "message", "subcomponents", "force")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBCOMPONENTS_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    method: RebootMethod
    delay: int
    message: str
    subcomponents: _containers.RepeatedCompositeFieldContainer[_types_pb2.Path]
    force: bool
    def __init__(self, method: _Optional[_Union[RebootMethod, str]] = ..., delay: _Optional[int] = ..., message: _Optional[str] = ..., subcomponents: _Optional[_Iterable[_Union[_types_pb2.Path, _Mapping]]] = ..., force: _Optional[bool] = ...) -> None: ...

class RebootResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelRebootRequest(_message.Message):
    __slots__ = ("message", "subcomponents")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBCOMPONENTS_FIELD_NUMBER: _ClassVar[int]
    message: str
    subcomponents: _containers.RepeatedCompositeFieldContainer[_types_pb2.Path]
    def __init__(self, message: _Optional[str] = ..., subcomponents: _Optional[_Iterable[_Union[_types_pb2.Path, _Mapping]]] = ...) -> None: ...

class CancelRebootResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RebootStatusRequest(_message.Message):
    __slots__ = ("subcomponents",)
    SUBCOMPONENTS_FIELD_NUMBER: _ClassVar[int]
    subcomponents: _containers.RepeatedCompositeFieldContainer[_types_pb2.Path]
    def __init__(self, subcomponents: _Optional[_Iterable[_Union[_types_pb2.Path, _Mapping]]] = ...) -> None: ...

class RebootStatusResponse(_message.Message):
    __slots__ = ("active", "wait", "when", "reason", "count", "method", "status")
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    active: bool
    wait: int
    when: int
    reason: str
    count: int
    method: RebootMethod
    status: RebootStatus
    def __init__(self, active: _Optional[bool] = ..., wait: _Optional[int] = ..., when: _Optional[int] = ..., reason: _Optional[str] = ..., count: _Optional[int] = ..., method: _Optional[_Union[RebootMethod, str]] = ..., status: _Optional[_Union[RebootStatus, _Mapping]] = ...) -> None: ...

class RebootStatus(_message.Message):
    __slots__ = ("status", "message")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNKNOWN: _ClassVar[RebootStatus.Status]
        STATUS_SUCCESS: _ClassVar[RebootStatus.Status]
        STATUS_RETRIABLE_FAILURE: _ClassVar[RebootStatus.Status]
        STATUS_FAILURE: _ClassVar[RebootStatus.Status]
    STATUS_UNKNOWN: RebootStatus.Status
    STATUS_SUCCESS: RebootStatus.Status
    STATUS_RETRIABLE_FAILURE: RebootStatus.Status
    STATUS_FAILURE: RebootStatus.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    status: RebootStatus.Status
    message: str
    def __init__(self, status: _Optional[_Union[RebootStatus.Status, str]] = ..., message: _Optional[str] = ...) -> None: ...

class TimeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TimeResponse(_message.Message):
    __slots__ = ("time",)
    TIME_FIELD_NUMBER: _ClassVar[int]
    time: int
    def __init__(self, time: _Optional[int] = ...) -> None: ...

class PingRequest(_message.Message):
    __slots__ = ("destination", "source", "count", "interval", "wait", "size", "do_not_fragment", "do_not_resolve", "l3protocol", "network_instance")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_RESOLVE_FIELD_NUMBER: _ClassVar[int]
    L3PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NETWORK_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    destination: str
    source: str
    count: int
    interval: int
    wait: int
    size: int
    do_not_fragment: bool
    do_not_resolve: bool
    l3protocol: _types_pb2.L3Protocol
    network_instance: str
    def __init__(self, destination: _Optional[str] = ..., source: _Optional[str] = ..., count: _Optional[int] = ..., interval: _Optional[int] = ..., wait: _Optional[int] = ..., size: _Optional[int] = ..., do_not_fragment: _Optional[bool] = ..., do_not_resolve: _Optional[bool] = ..., l3protocol: _Optional[_Union[_types_pb2.L3Protocol, str]] = ..., network_instance: _Optional[str] = ...) -> None: ...

class PingResponse(_message.Message):
    __slots__ = ("source", "time", "sent", "received", "min_time", "avg_time", "max_time", "std_dev", "bytes", "sequence", "ttl")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    MIN_TIME_FIELD_NUMBER: _ClassVar[int]
    AVG_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_TIME_FIELD_NUMBER: _ClassVar[int]
    STD_DEV_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    source: str
    time: int
    sent: int
    received: int
    min_time: int
    avg_time: int
    max_time: int
    std_dev: int
    bytes: int
    sequence: int
    ttl: int
    def __init__(self, source: _Optional[str] = ..., time: _Optional[int] = ..., sent: _Optional[int] = ..., received: _Optional[int] = ..., min_time: _Optional[int] = ..., avg_time: _Optional[int] = ..., max_time: _Optional[int] = ..., std_dev: _Optional[int] = ..., bytes: _Optional[int] = ..., sequence: _Optional[int] = ..., ttl: _Optional[int] = ...) -> None: ...

class TracerouteRequest(_message.Message):
    __slots__ = ("source", "destination", "initial_ttl", "max_ttl", "wait", "do_not_fragment", "do_not_resolve", "l3protocol", "l4protocol", "do_not_lookup_asn", "network_instance")
    class L4Protocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ICMP: _ClassVar[TracerouteRequest.L4Protocol]
        TCP: _ClassVar[TracerouteRequest.L4Protocol]
        UDP: _ClassVar[TracerouteRequest.L4Protocol]
    ICMP: TracerouteRequest.L4Protocol
    TCP: TracerouteRequest.L4Protocol
    UDP: TracerouteRequest.L4Protocol
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    INITIAL_TTL_FIELD_NUMBER: _ClassVar[int]
    MAX_TTL_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_RESOLVE_FIELD_NUMBER: _ClassVar[int]
    L3PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    L4PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_LOOKUP_ASN_FIELD_NUMBER: _ClassVar[int]
    NETWORK_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    initial_ttl: int
    max_ttl: int
    wait: int
    do_not_fragment: bool
    do_not_resolve: bool
    l3protocol: _types_pb2.L3Protocol
    l4protocol: TracerouteRequest.L4Protocol
    do_not_lookup_asn: bool
    network_instance: str
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., initial_ttl: _Optional[int] = ..., max_ttl: _Optional[int] = ..., wait: _Optional[int] = ..., do_not_fragment: _Optional[bool] = ..., do_not_resolve: _Optional[bool] = ..., l3protocol: _Optional[_Union[_types_pb2.L3Protocol, str]] = ..., l4protocol: _Optional[_Union[TracerouteRequest.L4Protocol, str]] = ..., do_not_lookup_asn: _Optional[bool] = ..., network_instance: _Optional[str] = ...) -> None: ...

class TracerouteResponse(_message.Message):
    __slots__ = ("destination_name", "destination_address", "hops", "packet_size", "hop", "address", "name", "rtt", "state", "icmp_code", "mpls", "as_path", "icmp_ext_data")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DEFAULT: _ClassVar[TracerouteResponse.State]
        NONE: _ClassVar[TracerouteResponse.State]
        UNKNOWN: _ClassVar[TracerouteResponse.State]
        ICMP: _ClassVar[TracerouteResponse.State]
        HOST_UNREACHABLE: _ClassVar[TracerouteResponse.State]
        NETWORK_UNREACHABLE: _ClassVar[TracerouteResponse.State]
        PROTOCOL_UNREACHABLE: _ClassVar[TracerouteResponse.State]
        SOURCE_ROUTE_FAILED: _ClassVar[TracerouteResponse.State]
        FRAGMENTATION_NEEDED: _ClassVar[TracerouteResponse.State]
        PROHIBITED: _ClassVar[TracerouteResponse.State]
        PRECEDENCE_VIOLATION: _ClassVar[TracerouteResponse.State]
        PRECEDENCE_CUTOFF: _ClassVar[TracerouteResponse.State]
    DEFAULT: TracerouteResponse.State
    NONE: TracerouteResponse.State
    UNKNOWN: TracerouteResponse.State
    ICMP: TracerouteResponse.State
    HOST_UNREACHABLE: TracerouteResponse.State
    NETWORK_UNREACHABLE: TracerouteResponse.State
    PROTOCOL_UNREACHABLE: TracerouteResponse.State
    SOURCE_ROUTE_FAILED: TracerouteResponse.State
    FRAGMENTATION_NEEDED: TracerouteResponse.State
    PROHIBITED: TracerouteResponse.State
    PRECEDENCE_VIOLATION: TracerouteResponse.State
    PRECEDENCE_CUTOFF: TracerouteResponse.State
    class IcmpExtData(_message.Message):
        __slots__ = ("type", "data")
        CLASS_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        type: int
        data: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, type: _Optional[int] = ..., data: _Optional[_Iterable[int]] = ..., **kwargs) -> None: ...
    class MplsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DESTINATION_NAME_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    PACKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RTT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ICMP_CODE_FIELD_NUMBER: _ClassVar[int]
    MPLS_FIELD_NUMBER: _ClassVar[int]
    AS_PATH_FIELD_NUMBER: _ClassVar[int]
    ICMP_EXT_DATA_FIELD_NUMBER: _ClassVar[int]
    destination_name: str
    destination_address: str
    hops: int
    packet_size: int
    hop: int
    address: str
    name: str
    rtt: int
    state: TracerouteResponse.State
    icmp_code: int
    mpls: _containers.ScalarMap[str, str]
    as_path: _containers.RepeatedScalarFieldContainer[int]
    icmp_ext_data: _containers.RepeatedCompositeFieldContainer[TracerouteResponse.IcmpExtData]
    def __init__(self, destination_name: _Optional[str] = ..., destination_address: _Optional[str] = ..., hops: _Optional[int] = ..., packet_size: _Optional[int] = ..., hop: _Optional[int] = ..., address: _Optional[str] = ..., name: _Optional[str] = ..., rtt: _Optional[int] = ..., state: _Optional[_Union[TracerouteResponse.State, str]] = ..., icmp_code: _Optional[int] = ..., mpls: _Optional[_Mapping[str, str]] = ..., as_path: _Optional[_Iterable[int]] = ..., icmp_ext_data: _Optional[_Iterable[_Union[TracerouteResponse.IcmpExtData, _Mapping]]] = ...) -> None: ...

class Package(_message.Message):
    __slots__ = ("filename", "version", "activate", "remote_download")
    FILENAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_FIELD_NUMBER: _ClassVar[int]
    REMOTE_DOWNLOAD_FIELD_NUMBER: _ClassVar[int]
    filename: str
    version: str
    activate: bool
    remote_download: _common_pb2.RemoteDownload
    def __init__(self, filename: _Optional[str] = ..., version: _Optional[str] = ..., activate: _Optional[bool] = ..., remote_download: _Optional[_Union[_common_pb2.RemoteDownload, _Mapping]] = ...) -> None: ...

class SetPackageRequest(_message.Message):
    __slots__ = ("package", "contents", "hash")
    PACKAGE_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    package: Package
    contents: bytes
    hash: _types_pb2.HashType
    def __init__(self, package: _Optional[_Union[Package, _Mapping]] = ..., contents: _Optional[bytes] = ..., hash: _Optional[_Union[_types_pb2.HashType, _Mapping]] = ...) -> None: ...

class SetPackageResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KillProcessRequest(_message.Message):
    __slots__ = ("pid", "name", "signal", "restart")
    class Signal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SIGNAL_UNSPECIFIED: _ClassVar[KillProcessRequest.Signal]
        SIGNAL_TERM: _ClassVar[KillProcessRequest.Signal]
        SIGNAL_KILL: _ClassVar[KillProcessRequest.Signal]
        SIGNAL_HUP: _ClassVar[KillProcessRequest.Signal]
        SIGNAL_ABRT: _ClassVar[KillProcessRequest.Signal]
    SIGNAL_UNSPECIFIED: KillProcessRequest.Signal
    SIGNAL_TERM: KillProcessRequest.Signal
    SIGNAL_KILL: KillProcessRequest.Signal
    SIGNAL_HUP: KillProcessRequest.Signal
    SIGNAL_ABRT: KillProcessRequest.Signal
    PID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    pid: int
    name: str
    signal: KillProcessRequest.Signal
    restart: bool
    def __init__(self, pid: _Optional[int] = ..., name: _Optional[str] = ..., signal: _Optional[_Union[KillProcessRequest.Signal, str]] = ..., restart: _Optional[bool] = ...) -> None: ...

class KillProcessResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
