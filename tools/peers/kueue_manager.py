"""The full manager of Kueue with its webhooks, for the rules that only they enforce (topology-scheduling.md, sections 7.7 and 14.3).

It makes its certificates itself, puts them into a Secret, and writes their authority into the webhook configurations and the definitions, so
all of them must be there before it starts, under the names that it expects; then it waits until the Secret is mounted as files.  The API server calls it as the Service `kueue-webhook-service`, whose address is in a
range of Services that are loopback addresses: the published configurations are used as they are.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from gitops_ctl.local.build import Builder
from gitops_ctl.local.kueue import KUEUE_CRDS
from gitops_ctl.local.progress import Progress
from gitops_ctl.local.published import Published, published_files
from gitops_ctl.local.recipes import KUEUE
from gitops_ctl.local.supervise import ProcessSpec

KUEUE_MANAGER: Final = replace(KUEUE, programs={"kueue": "sigs.k8s.io/kueue/cmd/kueue"}, memory_bytes=2 * 1024**3)
KUEUE_WEBHOOKS: Final = Published(
    KUEUE.folder, KUEUE.module, KUEUE.version, ("config/components/webhook/manifests.yaml",)
)
NAMESPACE: Final = "kueue-system"
SERVICE: Final = "kueue-webhook-service"
SECRET: Final = "kueue-webhook-server-cert"
SERVICE_RANGE: Final = "127.97.0.0/24"
ADDRESS, PORT = "127.97.0.10", 9443

_GROUPS: Final = frozenset({"kueue.x-k8s.io", "batch"})
_CONVERTED: Final = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
_TARGET: Final = {"namespace": NAMESPACE, "name": SERVICE, "port": PORT}


async def find_kueue_manager(*, progress: Progress) -> Path:
    """The program from the cache, built first when it is missing.

    Raises:
        GitopsError: as `Builder.programs`.
    """
    return (await Builder(progress=progress).programs((KUEUE_MANAGER,)))["kueue"]


def manager_process(program: Path, *, kubeconfig: Path, folder: Path) -> ProcessSpec:
    """Its process; configuration and certificates are written into `folder`."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": ADDRESS, "port": PORT, "certDir": str(folder / "certificates")},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    file = folder / "kueue.yaml"
    file.write_text(yaml.safe_dump(configuration))
    gates = "--feature-gates=VisibilityOnDemand=false,MultiKueue=false"
    flags = (f"--config={file}", f"--kubeconfig={kubeconfig}", gates, "--zap-log-level=2")
    return ProcessSpec("kueue-manager", (str(program), *flags), folder / "kueue-manager.log")


def manager_objects() -> list[dict[str, Any]]:
    """What has to be there before it starts, in the order in which it can be applied.

    Raises:
        GitopsError: as `published_files`.
    """
    metadata = {"name": SERVICE, "namespace": NAMESPACE}
    port = {"name": "webhook", "port": PORT, "targetPort": PORT}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": NAMESPACE},
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": ADDRESS, "ports": [port]}},
        *[_converting(tree) for tree in _trees(KUEUE_CRDS)],
        *[_configured(tree) for tree in _trees(KUEUE_WEBHOOKS)],
    ]


def _trees(published: Published) -> list[dict[str, Any]]:
    files = asyncio.run(published_files(published)).values()
    return [tree for path in files for tree in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if tree]


def _converting(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition with the conversion that the manager looks for."""
    if definition["spec"]["names"]["plural"] in _CONVERTED:
        client = {"service": {**_TARGET, "path": "/convert"}}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return definition


def _configured(configuration: dict[str, Any]) -> dict[str, Any]:
    """The configuration under its real name, with what concerns the kinds that are served here."""
    configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
    configuration["webhooks"] = [
        webhook
        for webhook in configuration["webhooks"]
        if {group for rule in webhook["rules"] for group in rule["apiGroups"]} <= _GROUPS
    ]
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"]["service"].update(_TARGET)
    return configuration
