//go:build ignore

// Writes golden.json beside it: messages as the published Go stubs of github.com/openconfig/gnoi encode them.
// How to run it says NOTICE.md.
package main

import (
	"encoding/hex"
	"encoding/json"
	"os"

	ospb "github.com/openconfig/gnoi/os"
	syspb "github.com/openconfig/gnoi/system"
	typespb "github.com/openconfig/gnoi/types"
	"google.golang.org/protobuf/proto"
)

func main() {
	request := func(version string, standby bool, size uint64) proto.Message {
		transfer := &ospb.TransferRequest{Version: version, StandbySupervisor: standby, PackageSize: size}
		return &ospb.InstallRequest{Request: &ospb.InstallRequest_TransferRequest{TransferRequest: transfer}}
	}
	standby := &ospb.VerifyStandby{State: &ospb.VerifyStandby_VerifyResponse{
		VerifyResponse: &ospb.StandbyResponse{Id: "R1", Version: "17.18.02", ActivationFailMessage: "held back"}}}
	absent := &ospb.VerifyStandby{State: &ospb.VerifyStandby_StandbyState{
		StandbyState: &ospb.StandbyState{State: ospb.StandbyState_NON_EXISTENT}}}
	messages := map[string]proto.Message{
		"install transfer_request": request("17.18.03", true, 1249368115),
		"install transfer_content": &ospb.InstallRequest{Request: &ospb.InstallRequest_TransferContent{TransferContent: []byte{0, 1, 255}}},
		"install transfer_end":     &ospb.InstallRequest{Request: &ospb.InstallRequest_TransferEnd{TransferEnd: &ospb.TransferEnd{}}},
		"install transfer_ready":   &ospb.InstallResponse{Response: &ospb.InstallResponse_TransferReady{TransferReady: &ospb.TransferReady{}}},
		"install transfer_progress": &ospb.InstallResponse{Response: &ospb.InstallResponse_TransferProgress{
			TransferProgress: &ospb.TransferProgress{BytesReceived: 5242880}}},
		"install sync_progress": &ospb.InstallResponse{Response: &ospb.InstallResponse_SyncProgress{
			SyncProgress: &ospb.SyncProgress{PercentageTransferred: 40}}},
		"install validated": &ospb.InstallResponse{Response: &ospb.InstallResponse_Validated{
			Validated: &ospb.Validated{Version: "17.18.03.0.5496", Description: "checked"}}},
		"install install_error": &ospb.InstallResponse{Response: &ospb.InstallResponse_InstallError{
			InstallError: &ospb.InstallError{Type: ospb.InstallError_NOT_SUPPORTED_ON_BACKUP, Detail: "one install for all"}}},
		"activate request":       &ospb.ActivateRequest{Version: "17.18.03", StandbySupervisor: true, NoReboot: true},
		"activate ok":            &ospb.ActivateResponse{Response: &ospb.ActivateResponse_ActivateOk{ActivateOk: &ospb.ActivateOK{}}},
		"activate error":         &ospb.ActivateResponse{Response: &ospb.ActivateResponse_ActivateError{ActivateError: &ospb.ActivateError{Type: ospb.ActivateError_NON_EXISTENT_VERSION, Detail: "not there"}}},
		"verify with standby":    &ospb.VerifyResponse{Version: "17.18.03", VerifyStandby: standby, IndividualSupervisorInstall: true},
		"verify without standby": &ospb.VerifyResponse{Version: "17.18.02", ActivationFailMessage: "no boot", VerifyStandby: absent},
		"reboot status request":  &syspb.RebootStatusRequest{Subcomponents: []*typespb.Path{{Origin: "openconfig", Elem: []*typespb.PathElem{{Name: "component", Key: map[string]string{"name": "R0"}}}}}},
		"reboot status active":   &syspb.RebootStatusResponse{Active: true, Wait: 5000000000, When: 1790000000000000000, Reason: "upgrade", Count: 1, Method: syspb.RebootMethod_COLD},
		"reboot status failed":   &syspb.RebootStatusResponse{Status: &syspb.RebootStatus{Status: syspb.RebootStatus_STATUS_RETRIABLE_FAILURE, Message: "again"}},
		"cancel reboot request":  &syspb.CancelRebootRequest{Message: "not now"},
		"time response":          &syspb.TimeResponse{Time: 1790000000000000001},
	}
	golden := map[string]string{}
	for name, message := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			panic(err)
		}
		golden[name] = hex.EncodeToString(data)
	}
	text, _ := json.MarshalIndent(golden, "", "  ")
	if err := os.WriteFile("golden.json", append(text, '\n'), 0o644); err != nil {
		panic(err)
	}
}
