"""What an operation says: live value, exact values, where, and the address of the pull request (cni-switch.md, section 11)."""

from dataclasses import replace

import pytest

from gitops_ctl.cni.messages import Place, awaiting, succeeded
from gitops_ctl.cni.model import CiliumSeen, MachineSeen, Mode, Observed
from tests.support.switch_bench import BEGIN, make_bench

PLACE = Place("https://git.example.net/network, sites/north/cni.yaml /kubeProxyReplacement")
MACHINES = {"cp-1": MachineSeen("cp-1", reachable=True, prism_port=7445)}


def seen(**changes: object) -> Observed:
    return Observed(at=BEGIN, cilium=replace(CiliumSeen(present=True, value="false"), **changes), machines=MACHINES)  # type: ignore[arg-type]


def test_to_replaced_names_host_port_and_the_restart() -> None:
    assert awaiting(seen(), target=Mode.REPLACED, place=PLACE) == (
        "live kube-proxy-replacement is false; set kubeProxyReplacement: true, with k8sServiceHost: localhost and "
        "k8sServicePort: 7445, and rollOutCiliumPods: true so that the agents restart; "
        "in https://git.example.net/network, sites/north/cni.yaml /kubeProxyReplacement"
    )


def test_a_host_that_works_stays_and_a_checksum_needs_no_further_value() -> None:
    text = awaiting(seen(service_host="192.0.2.10", checksum="one"), target=Mode.REPLACED, place=PLACE)
    assert "set kubeProxyReplacement: true; in" in text


def test_to_enabled_leaves_host_and_port_as_they_are() -> None:
    text = awaiting(seen(value="true", checksum="one"), target=Mode.ENABLED, place=PLACE)
    assert "set kubeProxyReplacement: false; in" in text
    assert "k8sServiceHost" not in text


@pytest.mark.parametrize(("value", "text"), [(None, "is unset"), ("", 'is ""'), ("strict", "is strict")])
def test_the_live_value_is_shown_as_it_is(value: str | None, text: str) -> None:
    assert text in awaiting(seen(value=value), target=Mode.ENABLED, place=PLACE)


def test_another_port_of_kube_prism_is_the_one_that_is_asked_for() -> None:
    other = replace(seen(), machines={"cp-1": MachineSeen("cp-1", reachable=True, prism_port=7446)})
    assert "k8sServicePort: 7446" in awaiting(other, target=Mode.REPLACED, place=PLACE)


def test_a_place_that_was_not_found_says_why_and_a_proposal_is_linked() -> None:
    place = Place(
        "the Application's or release's Helm values in Git", "OciSource: nothing to open a pull request against"
    )
    text = awaiting(seen(), target=Mode.REPLACED, place=place)
    assert "OciSource: nothing to open a pull request against" in text
    assert "proposed by https://git.example.net/pulls/7" in awaiting(
        seen(), target=Mode.REPLACED, place=replace(place, url="https://git.example.net/pulls/7")
    )


def test_a_value_that_is_neither_mode_is_called_that_while_it_is_waited_for() -> None:
    assert "the live value is neither mode" in awaiting(seen(value="partial"), target=Mode.REPLACED, place=PLACE)


def test_the_pause_names_step_reason_and_the_value_to_set() -> None:
    bench = make_bench("replaced")
    bench.live.machines["cp-1"].staged = True
    bench.run()
    message = bench.paused[1]
    assert message.startswith("step replaced/1-preflight failed: StagedConfigPending: cp-1")
    assert message.endswith("to try this step again set spec.cni.operation.resume: 1 in Git")


def test_the_end_of_a_removal_names_udp_clients_that_may_stick_to_dead_backends() -> None:
    """cilium/cilium#12859: sockets that were connected before keep the backend that they have."""
    text = succeeded(Mode.REPLACED, noted="the Service kubernetes answered")
    assert "UDP clients that were connected may have to be restarted" in text
    assert text.endswith("; the Service kubernetes answered")
    assert "UDP" not in succeeded(Mode.ENABLED)
