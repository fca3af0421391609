"""The form of the configuration that an operation writes (cni-switch.md, section 7.3)."""

import pytest

from gitops_ctl.cni.worker.machine import Configuration, Look, MachineSpec
from gitops_ctl.cni.worker.wanted import Question, contract_for
from gitops_ctl.talos.errors import ConfigRefused
from gitops_ctl.talos.machineconfig import config_hash, kube_proxy_part
from gitops_ctl.talos.model import Contract, Identity
from tests.support.talos_configs import machine_config

ANY = Question("replaced", None, "registry.k8s.io/kube-proxy:v1.36.3")


def look(name: str, *, version: str, form: str = "none") -> Look:
    text = machine_config(form=form)
    digest = config_hash(text)
    return Look(
        MachineSpec(name, "192.0.2.1", name, "controlplane"),
        0.0,
        reachable=True,
        identity=Identity(version, name, "controlplane"),
        configuration=Configuration(text, text, False, digest, digest, kube_proxy_part(text)),
    )


@pytest.mark.parametrize(
    ("versions", "contract"),
    [
        (("v1.14.0", "v1.9.5"), "v1.13"),
        (("v1.9.5", "v1.14.0"), "v1.13"),
        (("v1.14.0", "v1.15.2"), "v1.14"),
        (("v1.100.0", "v1.14.0"), "v1.14"),
    ],
)
def test_where_no_machine_uses_a_form_the_oldest_version_decides(versions: tuple[str, ...], contract: Contract) -> None:
    looks = [look(f"cp-{number}", version=version) for number, version in enumerate(versions)]
    assert contract_for(ANY, looks) == contract


def test_a_version_that_cannot_be_read_decides_nothing() -> None:
    with pytest.raises(ConfigRefused, match="version of Talos is not known"):
        contract_for(ANY, [look("cp-1", version="v1.14.0"), look("cp-2", version="unknown")])


def test_a_form_that_is_in_use_or_named_needs_no_version() -> None:
    assert contract_for(ANY, [look("cp-1", version="", form="legacy")]) == "v1.13"
    assert contract_for(Question("replaced", "v1.14", ""), []) == "v1.14"
