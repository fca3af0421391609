"""Whatever goes wrong around an apply, what the client says about it is true (cni-switch.md, 2.1 and 17)."""

import random

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.talos.errors import ApplyUnknown
from gitops_ctl.talos.machineconfig import config_hash, edited
from tests.support.talos_bench import IMAGE, MachineBench, control_plane_machine, one_control_plane
from tests.support.talos_configs import machine_config

pytestmark = pytest.mark.peers
__all__ = ["control_plane_machine", "one_control_plane"]

BASE = machine_config(form="document", image=IMAGE)
REFUSED = BASE + b"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\n"
CONFIGS = (BASE, edited(BASE, mode="replaced", contract="v1.14", role="controlplane"), REFUSED)
FAULTS = (
    ("drop-before", {}),
    ("drop-after", {}),
    ("error", {"code": "UNAVAILABLE"}),
    ("error", {"code": "INTERNAL"}),
    ("error", {"code": "INVALID_ARGUMENT", "message": "1 error occurred:\n\t* no"}),
    ("error", {"code": "PERMISSION_DENIED", "message": "not authorized"}),
)
METHODS = ("ApplyConfiguration", "ApplyConfiguration", "Version", "Get")


@pytest.mark.parametrize("seed", [1, pytest.param(range(2, 40), marks=pytest.mark.soak)], ids=["quick", "many"])
async def test_done_is_done_refused_is_untouched_and_only_unknown_may_be_either(
    control_plane_machine: MachineBench, seed
):
    seen: set[str] = set()
    for one in [seed] if isinstance(seed, int) else seed:
        seen |= await _walk(control_plane_machine, random.Random(one))
    assert seen == {"done", "refused", "unknown"}


async def _walk(bench: MachineBench, chance: random.Random) -> set[str]:
    """How the applies of one walk ended."""
    seen = set()
    for _ in range(30):
        machine, before = bench.machine, bench.machine.state()
        machine.clear_faults()
        if chance.random() < 0.7:
            kind, members = chance.choice(FAULTS)
            machine.fault(kind, method=chance.choice(METHODS), **members)
        wanted, dry_run = chance.choice(CONFIGS), chance.random() < 0.3
        outcome = await _outcome(bench, wanted, dry_run=dry_run)
        machine.clear_faults()
        after = machine.state()
        taken = len(after["applies"]) - len(before["applies"])
        assert taken == {"done": int(not dry_run), "refused": 0}.get(outcome, min(taken, 1))
        assert after["active"] == after["persistent"] == (config_hash(wanted) if taken else before["active"])
        assert not (dry_run and outcome == "unknown")
        seen.add(outcome)
    return seen


async def _outcome(bench: MachineBench, wanted: bytes, *, dry_run: bool) -> str:
    async with bench.client() as client:
        try:
            await client.apply_configuration(wanted, dry_run=dry_run)
        except ApplyUnknown:
            return "unknown"
        except GitopsError:
            return "refused"
    return "done"
