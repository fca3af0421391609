"""The committed stubs are what a fresh run of the generator makes, and agree with the descriptions that Talos publishes beside its files."""

import json
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gitops_ctl.netpb.cosi import state_pb2
from gitops_ctl.netpb.talos.common import common_pb2
from gitops_ctl.netpb.talos.machine import machine_pb2
from gitops_ctl.netpb.talos.resource.config import config_pb2
from gitops_ctl.netpb.talos.resource.definitions.enums import enums_pb2
from gitops_ctl.netpb.talos.resource.definitions.k8s import k8s_pb2
from gitops_ctl.netpb.talos.resource.definitions.proto import proto_pb2
from gitops_ctl.netpb.talos.resource.definitions.runtime import runtime_pb2
from gitops_ctl.netpb.talos.resource.definitions.v1alpha1 import v1alpha1_pb2
from tools.generate_stubs import GNOI, TALOS, TARGET, descriptor_set, differences, generate

pytestmark = pytest.mark.peers

STUBS = (common_pb2, machine_pb2, config_pb2, enums_pb2, k8s_pb2, proto_pb2, runtime_pb2, v1alpha1_pb2)


@pytest.fixture(scope="module")
def published() -> dict[str, descriptor_pb2.FileDescriptorProto]:
    """The module's own compiled description, which did not go through our generator."""
    found = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set())
    return {file.name: file for file in found.file}


def test_a_fresh_run_gives_what_is_committed(tmp_path: Path) -> None:
    generate(tmp_path)
    assert differences(tmp_path) == []


def test_the_manifest_says_what_they_were_made_from() -> None:
    manifest = json.loads((TARGET / "SOURCES.json").read_text())
    assert [(one["module"], one["version"]) for one in manifest["modules"]] == [
        ("github.com/siderolabs/talos", "v1.14.0"),
        ("github.com/openconfig/gnoi", "v0.5.0"),
    ]
    for published in (TALOS, GNOI):
        licences = {entry["licence"] for entry in manifest["files"] if published.module in entry["source"]}
        assert licences == {published.licence}
    assert (TARGET / "talos" / "LICENSE").read_text().startswith("Mozilla Public License Version 2.0")
    assert "Apache License" in (TARGET / "gnoi" / "LICENSE").read_text()


@pytest.mark.parametrize("name", TALOS.files)
def test_each_file_is_described(name: str, published: dict[str, descriptor_pb2.FileDescriptorProto]) -> None:
    stub = next(stub for stub in STUBS if stub.DESCRIPTOR.name.endswith(f"/talos/{name}"))
    assert stub.DESCRIPTOR.package == published[name].package
    described = {message.name for message in published[name].message_type}
    # The description is as old as the last release that promised compatibility; the text has one message more.
    assert set(stub.DESCRIPTOR.message_types_by_name) - described <= {"KubeletStatusSpec"}
    assert described <= set(stub.DESCRIPTOR.message_types_by_name)
    assert set(stub.DESCRIPTOR.services_by_name) == {service.name for service in published[name].service}


@pytest.mark.parametrize("name", TALOS.files)
def test_numbers_types_and_names_of_all_fields_agree(
    name: str, published: dict[str, descriptor_pb2.FileDescriptorProto]
) -> None:
    stub = next(stub for stub in STUBS if stub.DESCRIPTOR.name.endswith(f"/talos/{name}"))
    checked = sum(
        agreeing(stub.DESCRIPTOR.message_types_by_name[message.name], message)
        for message in published[name].message_type
    )
    assert checked == sum(map(fields, published[name].message_type))
    for enum in published[name].enum_type:
        agreeing_values(stub.DESCRIPTOR.enum_types_by_name[enum.name], enum)


def test_methods_and_their_messages_agree(published: dict[str, descriptor_pb2.FileDescriptorProto]) -> None:
    service = published["machine/machine.proto"].service[0]
    ours = machine_pb2.DESCRIPTOR.services_by_name[service.name]
    assert len(service.method) == len(ours.methods)
    for method in service.method:
        found = ours.methods_by_name[method.name]
        assert f".{found.input_type.full_name}" == method.input_type
        assert f".{found.output_type.full_name}" == method.output_type
        assert (found.client_streaming, found.server_streaming) == (method.client_streaming, method.server_streaming)


def test_a_request_that_forgets_its_mode_would_ask_for_a_reboot() -> None:
    assert machine_pb2.ApplyConfigurationRequest().mode == machine_pb2.ApplyConfigurationRequest.REBOOT


def test_our_own_file_of_the_state_service_has_the_published_numbers() -> None:
    fields_of = {
        "GetRequest": {"namespace": 1, "type": 2, "id": 3, "options": 4},
        "ListRequest": {"namespace": 1, "type": 2, "options": 3},
        "WatchRequest": {"namespace": 1, "type": 2, "id": 3, "options": 4, "api_version": 5},
        "Resource": {"metadata": 1, "spec": 2},
        "Spec": {"proto_spec": 1, "yaml_spec": 2},
        "Event": {"resource": 1, "event_type": 2, "old": 3, "error": 4, "bookmark": 5},
        "Metadata": {
            **{"namespace": 1, "type": 2, "id": 3, "version": 4, "owner": 5, "phase": 6},
            **{"created": 7, "updated": 8, "finalizers": 9, "labels": 10, "annotations": 11},
        },
    }
    for name, numbers in fields_of.items():
        found = state_pb2.DESCRIPTOR.message_types_by_name[name]
        assert {field.name: field.number for field in found.fields} == numbers
    assert state_pb2.DESCRIPTOR.services_by_name["State"].full_name == "cosi.resource.State"


def fields(message: descriptor_pb2.DescriptorProto) -> int:
    return len(message.field) + sum(map(fields, message.nested_type))


def agreeing(ours: Descriptor, theirs: descriptor_pb2.DescriptorProto) -> int:
    """How many fields were compared."""
    for field in theirs.field:
        found: FieldDescriptor = ours.fields_by_number[field.number]
        is_repeated = field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
        assert (found.name, found.type, found.is_repeated) == (field.name, field.type, is_repeated)
        target = found.message_type or found.enum_type
        assert target is None or f".{target.full_name}" == field.type_name
    assert len(ours.fields) >= len(theirs.field)
    for enum in theirs.enum_type:
        agreeing_values(ours.enum_types_by_name[enum.name], enum)
    nested = sum(agreeing(ours.nested_types_by_name[message.name], message) for message in theirs.nested_type)
    return len(theirs.field) + nested


def agreeing_values(ours: EnumDescriptor, theirs: descriptor_pb2.EnumDescriptorProto) -> None:
    found = {value.name: value.number for value in ours.values}
    assert {value.name: found.get(value.name) for value in theirs.value} == {
        value.name: value.number for value in theirs.value
    }
