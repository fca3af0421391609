# Generated from github.com/openconfig/gnoi v0.5.0, os/os.proto by tools/generate_stubs.py; never edited by hand.
# SPDX-License-Identifier: Apache-2.0
from gitops_ctl.netpb.gnoi.types import types_pb2 as _types_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InstallRequest(_message.Message):
    __slots__ = ("transfer_request", "transfer_content", "transfer_end")
    TRANSFER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_CONTENT_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_END_FIELD_NUMBER: _ClassVar[int]
    transfer_request: TransferRequest
    transfer_content: bytes
    transfer_end: TransferEnd
    def __init__(self, transfer_request: _Optional[_Union[TransferRequest, _Mapping]] = ..., transfer_content: _Optional[bytes] = ..., transfer_end: _Optional[_Union[TransferEnd, _Mapping]] = ...) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("version", "standby_supervisor", "package_size")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STANDBY_SUPERVISOR_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    version: str
    standby_supervisor: bool
    package_size: int
    def __init__(self, version: _Optional[str] = ..., standby_supervisor: _Optional[bool] = ..., package_size: _Optional[int] = ...) -> None: ...

class TransferEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InstallResponse(_message.Message):
    __slots__ = ("transfer_ready", "transfer_progress", "sync_progress", "validated", "install_error")
    TRANSFER_READY_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SYNC_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    VALIDATED_FIELD_NUMBER: _ClassVar[int]
    INSTALL_ERROR_FIELD_NUMBER: _ClassVar[int]
    transfer_ready: TransferReady
    transfer_progress: TransferProgress
    sync_progress: SyncProgress
    validated: Validated
    install_error: InstallError
    def __init__(self, transfer_ready: _Optional[_Union[TransferReady, _Mapping]] = ..., transfer_progress: _Optional[_Union[TransferProgress, _Mapping]] = ..., sync_progress: _Optional[_Union[SyncProgress, _Mapping]] = ..., validated: _Optional[_Union[Validated, _Mapping]] = ..., install_error: _Optional[_Union[InstallError, _Mapping]] = ...) -> None: ...

class TransferReady(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TransferProgress(_message.Message):
    __slots__ = ("bytes_received",)
    BYTES_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    bytes_received: int
    def __init__(self, bytes_received: _Optional[int] = ...) -> None: ...

class SyncProgress(_message.Message):
    __slots__ = ("percentage_transferred",)
    PERCENTAGE_TRANSFERRED_FIELD_NUMBER: _ClassVar[int]
    percentage_transferred: int
    def __init__(self, percentage_transferred: _Optional[int] = ...) -> None: ...

class Validated(_message.Message):
    __slots__ = ("version", "description")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    version: str
    description: str
    def __init__(self, version: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class InstallError(_message.Message):
    __slots__ = ("type", "detail")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[InstallError.Type]
        INCOMPATIBLE: _ClassVar[InstallError.Type]
        TOO_LARGE: _ClassVar[InstallError.Type]
        PARSE_FAIL: _ClassVar[InstallError.Type]
        INTEGRITY_FAIL: _ClassVar[InstallError.Type]
        INSTALL_RUN_PACKAGE: _ClassVar[InstallError.Type]
        INSTALL_IN_PROGRESS: _ClassVar[InstallError.Type]
        UNEXPECTED_SWITCHOVER: _ClassVar[InstallError.Type]
        SYNC_FAIL: _ClassVar[InstallError.Type]
        NOT_SUPPORTED_ON_BACKUP: _ClassVar[InstallError.Type]
    UNSPECIFIED: InstallError.Type
    INCOMPATIBLE: InstallError.Type
    TOO_LARGE: InstallError.Type
    PARSE_FAIL: InstallError.Type
    INTEGRITY_FAIL: InstallError.Type
    INSTALL_RUN_PACKAGE: InstallError.Type
    INSTALL_IN_PROGRESS: InstallError.Type
    UNEXPECTED_SWITCHOVER: InstallError.Type
    SYNC_FAIL: InstallError.Type
    NOT_SUPPORTED_ON_BACKUP: InstallError.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    type: InstallError.Type
    detail: str
    def __init__(self, type: _Optional[_Union[InstallError.Type, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class ActivateRequest(_message.Message):
    __slots__ = ("version", "standby_supervisor", "no_reboot")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STANDBY_SUPERVISOR_FIELD_NUMBER: _ClassVar[int]
    NO_REBOOT_FIELD_NUMBER: _ClassVar[int]
    version: str
    standby_supervisor: bool
    no_reboot: bool
    def __init__(self, version: _Optional[str] = ..., standby_supervisor: _Optional[bool] = ..., no_reboot: _Optional[bool] = ...) -> None: ...

class ActivateResponse(_message.Message):
    __slots__ = ("activate_ok", "activate_error")
    ACTIVATE_OK_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_ERROR_FIELD_NUMBER: _ClassVar[int]
    activate_ok: ActivateOK
    activate_error: ActivateError
    def __init__(self, activate_ok: _Optional[_Union[ActivateOK, _Mapping]] = ..., activate_error: _Optional[_Union[ActivateError, _Mapping]] = ...) -> None: ...

class ActivateOK(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ActivateError(_message.Message):
    __slots__ = ("type", "detail")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[ActivateError.Type]
        NON_EXISTENT_VERSION: _ClassVar[ActivateError.Type]
        NOT_SUPPORTED_ON_BACKUP: _ClassVar[ActivateError.Type]
    UNSPECIFIED: ActivateError.Type
    NON_EXISTENT_VERSION: ActivateError.Type
    NOT_SUPPORTED_ON_BACKUP: ActivateError.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    type: ActivateError.Type
    detail: str
    def __init__(self, type: _Optional[_Union[ActivateError.Type, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("version", "activation_fail_message", "verify_standby", "individual_supervisor_install")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FAIL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VERIFY_STANDBY_FIELD_NUMBER: _ClassVar[int]
    INDIVIDUAL_SUPERVISOR_INSTALL_FIELD_NUMBER: _ClassVar[int]
    version: str
    activation_fail_message: str
    verify_standby: VerifyStandby
    individual_supervisor_install: bool
    def __init__(self, version: _Optional[str] = ..., activation_fail_message: _Optional[str] = ..., verify_standby: _Optional[_Union[VerifyStandby, _Mapping]] = ..., individual_supervisor_install: _Optional[bool] = ...) -> None: ...

class VerifyStandby(_message.Message):
    __slots__ = ("standby_state", "verify_response")
    STANDBY_STATE_FIELD_NUMBER: _ClassVar[int]
    VERIFY_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    standby_state: StandbyState
    verify_response: StandbyResponse
    def __init__(self, standby_state: _Optional[_Union[StandbyState, _Mapping]] = ..., verify_response: _Optional[_Union[StandbyResponse, _Mapping]] = ...) -> None: ...

class StandbyState(_message.Message):
    __slots__ = ("state",)
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[StandbyState.State]
        UNSUPPORTED: _ClassVar[StandbyState.State]
        NON_EXISTENT: _ClassVar[StandbyState.State]
        UNAVAILABLE: _ClassVar[StandbyState.State]
    UNSPECIFIED: StandbyState.State
    UNSUPPORTED: StandbyState.State
    NON_EXISTENT: StandbyState.State
    UNAVAILABLE: StandbyState.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: StandbyState.State
    def __init__(self, state: _Optional[_Union[StandbyState.State, str]] = ...) -> None: ...

class StandbyResponse(_message.Message):
    __slots__ = ("id", "version", "activation_fail_message")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FAIL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: str
    activation_fail_message: str
    def __init__(self, id: _Optional[str] = ..., version: _Optional[str] = ..., activation_fail_message: _Optional[str] = ...) -> None: ...
