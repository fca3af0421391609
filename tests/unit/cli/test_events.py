"""Which Events `gitops-ctl events` shows."""

from gitops_ctl.cli.events import newest_events
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.events import EventRecorder
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.direct import direct_client


def about(kind: str, api_version: str) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": kind.lower(), "namespace": "lab", "uid": f"uid-{kind}"},
    }


async def test_events_of_switches_and_proposals_are_shown_beside_those_of_sources() -> None:
    async with direct_client(ApiServer(), component="tests", clock=SystemClock()) as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
        recorder = EventRecorder(client, instance="tests")
        for kind, api_version in (
            ("GitSource", "gitops-ctl.dev/v1alpha1"),
            ("Proposal", "gitops-ctl.dev/v1alpha1"),
            ("TalosOperation", "ichor.maesh.dev/v1alpha1"),
            ("ConfigMap", "v1"),
            ("Thing", "gitops-ctl.dev.example.net/v1"),
        ):
            recorder.emit(about(kind, api_version), type="Normal", reason="Told", action="Test", note="n")
        await recorder.flush()
        found = await newest_events(client, namespace="lab", limit=50)
    assert [item["object"] for item in found] == [
        "GitSource/lab/gitsource",
        "Proposal/lab/proposal",
        "TalosOperation/lab/talosoperation",
    ]


async def test_events_of_queues_and_nodes_are_shown_when_they_are_our_own() -> None:
    queue: JsonObject = {**about("ClusterQueue", "kueue.x-k8s.io/v1beta2"), "metadata": {"name": "epyc", "uid": "u"}}
    async with direct_client(ApiServer(), component="tests", clock=SystemClock()) as client:
        ours, others = EventRecorder(client, instance="tests"), EventRecorder(client, instance="k", controller="kueue")
        ours.emit(queue, type="Warning", reason="DrainStuck", action="Test", note="n")
        others.emit(queue, type="Normal", reason="Theirs", action="Test", note="n")
        await ours.flush()
        await others.flush()
        found = await newest_events(client, namespace="", limit=50)
    assert [(item["object"], item["reason"]) for item in found] == [("ClusterQueue/epyc", "DrainStuck")]
