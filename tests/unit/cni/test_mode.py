"""Which side serves, and what proves that every agent runs the new mode (cni-switch.md, sections 9 and 10)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.cni.mode import (
    Replacement,
    current_mode,
    next_baseline,
    proxy_missing,
    replacement_of,
    restart_proof,
    serves,
)
from gitops_ctl.cni.model import (
    Baseline,
    CiliumSeen,
    Cluster,
    Mode,
    Observed,
    Override,
    ProxySeen,
    Record,
    RollOut,
)
from gitops_ctl.core.ids import NamespacedName

AT = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
FULL = RollOut(3, 3, 5, 5, 5, 5, 5)
BEFORE = Baseline("one", 4, AT - timedelta(hours=1))
GOOD = CiliumSeen(
    present=True,
    value="true",
    agents=FULL,
    operator=FULL,
    checksum="two",
    template_generation=5,
    template_written=AT,
    written=AT,
    oldest_start=AT + timedelta(seconds=9),
)


def seen(cilium: CiliumSeen | None) -> Observed:
    return Observed(at=AT, cilium=cilium)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("true", Replacement.TRUE),
        ("strict", Replacement.TRUE),
        ("false", Replacement.FALSE),
        ("disabled", Replacement.FALSE),
        (None, Replacement.FALSE),
        ("partial", Replacement.MIXED),
        ("probe", Replacement.MIXED),
        ("something new", Replacement.MIXED),
    ],
)
def test_old_and_new_values_have_their_meaning(value: str | None, meaning: Replacement) -> None:
    assert replacement_of(value) is meaning


def test_the_live_value_wins_over_status_and_spec() -> None:
    cluster = Cluster(NamespacedName("lab", "north"), "u", Mode.REPLACED, "", Record(mode=Mode.REPLACED))
    assert current_mode(cluster, seen(replace(GOOD, value="false"))) is Mode.ENABLED
    assert current_mode(cluster, seen(CiliumSeen(present=False))) is Mode.REPLACED
    assert current_mode(replace(cluster, record=Record()), None) is Mode.REPLACED
    assert current_mode(replace(cluster, record=Record(mode=Mode.ENABLED)), None) is Mode.ENABLED


def test_everything_together_is_a_side_that_serves() -> None:
    assert serves(seen(GOOD), Mode.REPLACED, BEFORE) == ()
    assert serves(seen(replace(GOOD, value=None)), Mode.ENABLED, BEFORE) == ()


@pytest.mark.parametrize(
    "agents",
    [
        replace(FULL, observed_generation=2),
        replace(FULL, updated=4),
        replace(FULL, ready=4),
        replace(FULL, available=4),
        replace(FULL, current=6),
        RollOut(1, 1),
    ],
)
def test_agents_that_are_not_all_there_are_not_ready_and_none_at_all_neither(agents: RollOut) -> None:
    assert serves(seen(replace(GOOD, agents=agents)), Mode.REPLACED, BEFORE) == ("the Cilium agents are rolling out",)


def test_trap_1_a_true_value_and_a_complete_daemon_set_prove_nothing_while_the_agents_are_old() -> None:
    old = replace(
        GOOD,
        checksum="",
        template_written=AT - timedelta(days=3),
        oldest_start=AT - timedelta(days=2),
        template_generation=4,
    )
    [missing] = serves(seen(old), Mode.REPLACED, replace(BEFORE, checksum=""))
    assert "kubectl -n kube-system rollout restart daemonset/cilium" in missing
    assert "rollOutCiliumPods: true" in missing


def test_each_of_the_three_proofs_shows_a_restart() -> None:
    bare = replace(GOOD, checksum="", oldest_start=None, template_generation=4)
    assert restart_proof(bare, BEFORE) == ""
    assert restart_proof(replace(bare, checksum="two"), BEFORE) == "checksum"
    assert restart_proof(replace(bare, oldest_start=AT + timedelta(seconds=1)), BEFORE) == "containers"
    assert restart_proof(replace(bare, checksum="one", template_generation=5), BEFORE) == "generation"


def test_the_same_second_is_not_later() -> None:
    bare = replace(GOOD, checksum="", template_generation=4)
    assert restart_proof(replace(bare, oldest_start=AT + timedelta(milliseconds=900)), BEFORE) == ""


def test_a_template_that_is_older_than_the_configuration_proves_nothing() -> None:
    early = replace(GOOD, oldest_start=None, template_written=AT - timedelta(seconds=1))
    assert restart_proof(early, BEFORE) == ""


def test_trap_2_the_operator_must_be_rolled_out_too() -> None:
    assert serves(seen(replace(GOOD, operator=replace(FULL, ready=4))), Mode.REPLACED, BEFORE) == (
        "the Cilium operator is rolling out",
    )
    assert serves(seen(replace(GOOD, operator=None)), Mode.REPLACED, BEFORE) != ()


def test_trap_3_an_override_for_some_nodes_is_named_with_them() -> None:
    [missing] = serves(
        seen(replace(GOOD, overrides=(Override("kube-system/edge", "false", ("node-2",)),))), Mode.REPLACED, BEFORE
    )
    assert "kube-system/edge" in missing
    assert "node-2" in missing


def test_what_cannot_be_read_does_not_serve() -> None:
    assert serves(None, Mode.REPLACED, BEFORE) != ()
    assert serves(seen(None), Mode.ENABLED, BEFORE) != ()
    assert serves(seen(CiliumSeen(present=False)), Mode.ENABLED, BEFORE) != ()


def test_the_baseline_is_the_last_look_before_the_value_was_changed() -> None:
    early = replace(GOOD, value="false", checksum="zero", template_generation=2)
    first = next_baseline(None, early, Mode.REPLACED, now=AT)
    assert first == Baseline("zero", 2, AT)
    again = next_baseline(first, early, Mode.REPLACED, now=AT + timedelta(minutes=1))
    assert again is first
    moved = replace(early, checksum="one", template_generation=4)
    second = next_baseline(first, moved, Mode.REPLACED, now=AT + timedelta(minutes=2))
    assert second == Baseline("one", 4, AT + timedelta(minutes=2))
    assert next_baseline(second, GOOD, Mode.REPLACED, now=AT + timedelta(hours=1)) is second
    assert next_baseline(None, GOOD, Mode.REPLACED, now=AT) == Baseline("two", 5, AT)
    assert next_baseline(None, None, Mode.REPLACED, now=AT) is None


def test_kube_proxy_that_desires_no_pod_is_not_ready() -> None:
    assert proxy_missing(ProxySeen(present=True, roll_out=FULL)) == ()
    assert proxy_missing(ProxySeen(present=True, roll_out=RollOut(1, 1))) != ()
    assert (
        proxy_missing(ProxySeen(present=True, roll_out=FULL, missing=("ServiceAccount kube-system/kube-proxy",))) != ()
    )
    assert proxy_missing(ProxySeen(present=False)) == ("the kube-proxy DaemonSet has not been created yet",)
    assert proxy_missing(None) != ()
