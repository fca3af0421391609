"""The world of `gitops-ctl demo rollout`, as far as it needs no cluster.

Out of scope: the story itself (tests/e2e/test_rollout_demo.py), the stand-ins (tests/peers/test_local_switches.py).
"""

import asyncio
from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.demorollout import RolloutStory
from gitops_ctl.cli.demorolloutrepository import at_loopback, example_switches, rollout_document
from gitops_ctl.cli.demorolloutworld import FAILING, SECOND, rollout_world
from gitops_ctl.cli.rolloutplan import stored_form
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.deviceworkers import WorkerPod, Workplace, pod_kubeconfig, worker_pod
from gitops_ctl.local.state import locked, state_home
from gitops_ctl.local.switches import Ports, Served
from tests.doubles.apiserver.direct import direct_client
from tests.support.rollout_cluster import rollout_server

POD = WorkerPod("network-1", "pod-uid", "gitops-ctl-network-management", f"sha256:{'a' * 64}")


def test_the_demo_plays_the_switches_of_the_example():
    switches = example_switches({FAILING: (SECOND.version,)})
    assert len(switches) == 12
    assert [(one.name, one.failing) for one in switches if one.failing] == [(FAILING, (SECOND.version,))]
    assert len({one.serial for one in switches}) == 12


def test_a_device_is_found_where_its_stand_in_listens():
    gnoi = {"port": 9339, "transportSecurity": "tls", "tls": {"secretRef": {"name": "access-tls"}}}
    tree = {
        "metadata": {"name": "access-a1"},
        "spec": {"driver": "XE", "address": "192.0.2.1", "username": "x", "gnoi": gnoi},
    }
    spec = at_loopback(tree, {"access-a1": Ports(gnoi=7001, netconf=7002)})["spec"]
    assert spec == {"driver": "XE", "address": "127.0.0.1", "netconfPort": 7002, "gnoi": {**gnoi, "port": 7001}}


def test_the_rollout_names_the_image_that_the_stand_in_serves():
    text = rollout_document("spring", "17.18.03", Served("https://127.0.0.1:7003/image.bin", "ab" * 32))
    tree = stored_form(yaml.safe_load(text), now=SystemClock().wall())
    plan = tree["spec"]["plan"]
    assert (plan["image"]["sha256"], plan["targetVersion"]) == ("ab" * 32, "17.18.03")
    assert [source["url"] for source in plan["image"]["sources"]] == ["https://127.0.0.1:7003/image.bin"]
    assert plan["health"]["canarySoakSeconds"] == 1


def test_a_worker_runs_with_the_digest_of_its_pod_and_its_own_folders(tmp_path):
    place = Workplace("campus", tmp_path, {"SSL_CERT_FILE": "/ca"}, {"network": ("--worker-poll=1",)})
    spec = place.process("network", POD, kubeconfig=tmp_path / "kubeconfig")
    assert f"--template-digest={POD.digest}" in spec.argv
    assert spec.argv[-1] == "--worker-poll=1"
    assert f"--journal-dir={tmp_path / 'worker-network/journal'}" in spec.argv
    assert spec.environment == {"SSL_CERT_FILE": "/ca"}


async def test_the_kubeconfig_of_a_worker_holds_the_token_of_its_pod(tmp_path):
    class Kubelet:
        async def create(self, path, tree):
            self.asked = (path, tree["spec"]["boundObjectRef"])
            return {"status": {"token": "bound"}}

    kubelet = Kubelet()
    path = await pod_kubeconfig(
        kubelet, POD, namespace="campus", server="https://127.0.0.1:1", authority=Path("/ca.crt"), path=tmp_path / "k"
    )
    assert kubelet.asked == (
        "/api/v1/namespaces/campus/serviceaccounts/gitops-ctl-network-management/token",
        {"apiVersion": "v1", "kind": "Pod", "name": "network-1", "uid": "pod-uid"},
    )
    tree = yaml.safe_load(path.read_text())
    assert tree["users"][0]["user"] == {"token": "bound"}
    assert path.stat().st_mode & 0o077 == 0


async def test_the_running_pod_of_a_plane_is_found():
    api = rollout_server()
    labels = {"app.kubernetes.io/component": "node", "app.kubernetes.io/part-of": "managed-topology"}
    meta = {"name": "n-1", "namespace": "campus", "uid": "u-1", "labels": labels}
    annotations = {"topology.cisco.vk/worker-template-digest": POD.digest}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "annotations": annotations},
        "spec": {"serviceAccountName": "gitops-ctl-app-hosting"},
        "status": {"phase": "Running"},
    }
    api.store.put(("", "pods"), ("campus", "n-1"), pod)
    async with direct_client(api, component="demo", clock=SystemClock()) as client:
        found = await worker_pod(client, namespace="campus", plane="node")
    assert found == WorkerPod("n-1", "u-1", "gitops-ctl-app-hosting", POD.digest)


def test_a_second_demo_is_refused_while_one_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    async def try_it():
        async with rollout_world(say=print):
            raise AssertionError("it started")

    busy = BlockedError("busy", code=ErrorCode.LOCAL_BUSY)
    with locked(state_home() / "demo-rollout.lock", busy=busy), pytest.raises(BlockedError) as caught:
        asyncio.run(try_it())
    assert caught.value.code is ErrorCode.LOCAL_BUSY


def test_every_step_of_the_story_says_what_it_shows():
    titles = [title for title, _ in RolloutStory(None).steps()]
    assert len(titles) == len(set(titles)) == 8
