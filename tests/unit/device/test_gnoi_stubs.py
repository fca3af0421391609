"""The generated messages of gNOI are byte for byte those of the published Go stubs, and keep out of the way of other packages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import Message

from gitops_ctl.netpb.gnoi.os import os_pb2
from gitops_ctl.netpb.gnoi.system import system_pb2
from gitops_ctl.netpb.gnoi.types import types_pb2

GOLDEN: dict[str, str] = json.loads((Path(__file__).parents[2] / "vectors" / "gnoi" / "golden.json").read_text())

_STANDBY = os_pb2.StandbyResponse(id="R1", version="17.18.02", activation_fail_message="held back")
_ABSENT = os_pb2.StandbyState(state=os_pb2.StandbyState.NON_EXISTENT)
_SUBCOMPONENT = types_pb2.Path(origin="openconfig", elem=[types_pb2.PathElem(name="component", key={"name": "R0"})])

OURS: dict[str, Message] = {
    "install transfer_request": os_pb2.InstallRequest(
        transfer_request=os_pb2.TransferRequest(version="17.18.03", standby_supervisor=True, package_size=1249368115)
    ),
    "install transfer_content": os_pb2.InstallRequest(transfer_content=b"\x00\x01\xff"),
    "install transfer_end": os_pb2.InstallRequest(transfer_end=os_pb2.TransferEnd()),
    "install transfer_ready": os_pb2.InstallResponse(transfer_ready=os_pb2.TransferReady()),
    "install transfer_progress": os_pb2.InstallResponse(
        transfer_progress=os_pb2.TransferProgress(bytes_received=5242880)
    ),
    "install sync_progress": os_pb2.InstallResponse(sync_progress=os_pb2.SyncProgress(percentage_transferred=40)),
    "install validated": os_pb2.InstallResponse(
        validated=os_pb2.Validated(version="17.18.03.0.5496", description="checked")
    ),
    "install install_error": os_pb2.InstallResponse(
        install_error=os_pb2.InstallError(
            type=os_pb2.InstallError.NOT_SUPPORTED_ON_BACKUP, detail="one install for all"
        )
    ),
    "activate request": os_pb2.ActivateRequest(version="17.18.03", standby_supervisor=True, no_reboot=True),
    "activate ok": os_pb2.ActivateResponse(activate_ok=os_pb2.ActivateOK()),
    "activate error": os_pb2.ActivateResponse(
        activate_error=os_pb2.ActivateError(type=os_pb2.ActivateError.NON_EXISTENT_VERSION, detail="not there")
    ),
    "verify with standby": os_pb2.VerifyResponse(
        version="17.18.03",
        verify_standby=os_pb2.VerifyStandby(verify_response=_STANDBY),
        individual_supervisor_install=True,
    ),
    "verify without standby": os_pb2.VerifyResponse(
        version="17.18.02",
        activation_fail_message="no boot",
        verify_standby=os_pb2.VerifyStandby(standby_state=_ABSENT),
    ),
    "reboot status request": system_pb2.RebootStatusRequest(subcomponents=[_SUBCOMPONENT]),
    "reboot status active": system_pb2.RebootStatusResponse(
        active=True, wait=5 * 10**9, when=179 * 10**16, reason="upgrade", count=1, method=system_pb2.COLD
    ),
    "reboot status failed": system_pb2.RebootStatusResponse(
        status=system_pb2.RebootStatus(status=system_pb2.RebootStatus.STATUS_RETRIABLE_FAILURE, message="again")
    ),
    "cancel reboot request": system_pb2.CancelRebootRequest(message="not now"),
    "time response": system_pb2.TimeResponse(time=179 * 10**16 + 1),
}


def test_every_golden_message_is_compared() -> None:
    assert set(OURS) == set(GOLDEN)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_message_has_the_bytes_of_the_published_stubs(name: str) -> None:
    assert OURS[name].SerializeToString(deterministic=True).hex() == GOLDEN[name]
    assert type(OURS[name]).FromString(bytes.fromhex(GOLDEN[name])) == OURS[name]


def test_the_services_keep_their_names_on_the_wire() -> None:
    assert os_pb2.DESCRIPTOR.services_by_name["OS"].full_name == "gnoi.os.OS"
    assert system_pb2.DESCRIPTOR.services_by_name["System"].full_name == "gnoi.system.System"
    assert {method.name for method in os_pb2.DESCRIPTOR.services_by_name["OS"].methods} == {
        "Install",
        "Activate",
        "Verify",
    }


def test_the_stubs_live_in_one_process_with_those_of_talos_and_with_pygithub() -> None:
    program = (
        "from gitops_ctl.netpb.gnoi.system import system_pb2_grpc\n"
        "from gitops_ctl.netpb.talos.machine import machine_pb2_grpc\n"
        "import github\n"
        "print(github.Github.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    assert (done.stdout, done.stderr) == ("Github\n", "")
