"""The device workers of a namespace in a local system: what a kubelet does for their Pods is done here (rollouts.md, section 17.1).

The manager makes the Deployments, their controller makes the Pods, kwok lets them run, and a process of this machine does the work, with a token that
is bound to exactly its Pod.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.fleet.names import WORKER_TEMPLATE_DIGEST
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.certificates import write_private
from gitops_ctl.local.supervise import ProcessSpec

PLANES: Final = ("network", "node")
_TOKEN_S: Final = 3600
_READY_S: Final = 120.0
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """The Pod of one plane."""

    name: str
    uid: str
    account: str
    digest: str


async def worker_pod(client: KubeClient, *, namespace: str, plane: str) -> WorkerPod:
    """The running Pod of a plane, as soon as there is one.

    Raises:
        TerminalError: there is none in time (LOCAL_SYSTEM).
    """
    deadline_s = client.clock.boot_s() + _READY_S
    selector = f"app.kubernetes.io/component={plane},app.kubernetes.io/part-of=managed-topology"
    while True:
        pods = (await client.list_all(f"/api/v1/namespaces/{namespace}/pods", label_selector=selector)).items
        running = [pod for pod in pods if text_at(pod, "status", "phase") == "Running"]
        if running:
            return _pod(running[0])
        if client.clock.boot_s() > deadline_s:
            said = "; ".join(f"{text_at(pod, 'metadata', 'name')}: {_why(pod)}" for pod in pods) or "there is none"
            what = f"no Pod of the {plane} plane runs within {_READY_S:g} s: {said}"
            raise TerminalError(what, code=ErrorCode.LOCAL_SYSTEM)
        await client.clock.sleep(_POLL_S)


def _pod(tree: JsonObject) -> WorkerPod:
    meta = object_at(tree, "metadata")
    return WorkerPod(
        name=text_at(meta, "name"),
        uid=text_at(meta, "uid"),
        account=text_at(tree, "spec", "serviceAccountName"),
        digest=text_at(meta, "annotations", WORKER_TEMPLATE_DIGEST),
    )


def _why(pod: JsonObject) -> str:
    said = [text_at(one, "message") for one in objects_at(pod, "status", "conditions")]
    return "; ".join([text_at(pod, "status", "phase"), *filter(None, said)])


async def pod_kubeconfig(
    kubelet: KubeClient, pod: WorkerPod, *, namespace: str, server: str, authority: Path, path: Path
) -> Path:
    """Write a kubeconfig with the token that a kubelet mounts into the Pod.

    Args:
        kubelet: a client with the identity of the Node that the Pod runs on.
    """
    request: JsonObject = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": [],
            "expirationSeconds": _TOKEN_S,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},
        },
    }
    answer = await kubelet.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{pod.account}/token", request)
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "worker", "user": {"token": text_at(answer, "status", "token")}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "worker"}}],
        "current-context": "local",
    }
    write_private(path, yaml.safe_dump(tree, sort_keys=False).encode())
    return path


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the workers of a namespace run.

    Attributes:
        home: journals, spools and logs are in it.
        environment: of their processes.
        options: further ones of `worker device`, by plane.
    """

    namespace: str
    home: Path
    environment: Mapping[str, str]
    options: Mapping[str, Sequence[str]]

    def process(self, plane: str, pod: WorkerPod, *, kubeconfig: Path) -> ProcessSpec:
        """The process of one plane."""
        own = self.home / f"worker-{plane}"
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        argv = (
            *(sys.executable, "-m", "gitops_ctl", "worker", "device", f"--plane={plane}"),
            *(f"--namespace={self.namespace}", f"--kubeconfig={kubeconfig}", f"--template-digest={pod.digest}"),
            *(f"--journal-dir={own / 'journal'}", f"--spool-dir={own / 'spool'}", *self.options[plane]),
        )
        log = self.home / f"logs/worker-{plane}.log"
        return ProcessSpec(f"worker-{plane}", argv, log, self.environment, grace_s=30.0)
