"""P5: the manager opens no session with a machine or a target cluster, and reads no credential of one."""

import inspect
import subprocess
import sys

from gitops_ctl.cni import authority, controller, proposals_reading, room

FORBIDDEN = ("grpc", "google.protobuf", "gitops_ctl.talos", "gitops_ctl.netpb", "gitops_ctl.cni.worker")


def test_promise_05_the_manager_loads_nothing_that_could_talk_to_a_machine() -> None:
    code = (
        "import sys; import gitops_ctl.cli.manager; "
        f"print([name for name in sys.modules if name.startswith({FORBIDDEN!r})])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_promise_05_the_executor_asks_the_api_server_for_no_secret() -> None:
    kinds = {controller.CLUSTER, controller.MACHINE, controller.OPERATION, controller.PROPOSAL}
    assert {kind.gvk.kind for kind in kinds} == {"TalosCluster", "TalosMachine", "TalosOperation", "Proposal"}
    texts = [inspect.getsource(module) for module in (controller, room, authority, proposals_reading)]
    assert "/secrets" not in "".join(texts)
