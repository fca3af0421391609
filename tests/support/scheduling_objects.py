"""Objects of a small hall, as the API server gives them: Nodes, a source with its snapshot, and a queue that serves them."""

import json

import yaml

from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.nodefeature import feature_name
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import Managed, Queue, apply_tree
from gitops_ctl.scheduling.queue_plan import World, plan_queue
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.topology import topology_object

REGION, ZONE, RACK = (f"topology.gpustack.ai/{name}" for name in ("region", "zone", "rack"))
HOSTNAME = "kubernetes.io/hostname"
PROFILE = "topology.gpustack.ai/profile"
GENERAL = "general.feature.gpustack.ai/amd-25"
NAMESPACE = "gpustack-system"
ZONED, RACKED = "fnv64-29c7d645fad688b1", "fnv64-dde125aa4572179a"
ZONED_FLAVOR, RACKED_FLAVOR = (f"gpustack--amd-25-linux-amd64-4c-{profile}" for profile in (ZONED, RACKED))
UID = "6f1c2b1e-1111-2222-3333-444455556666"
POOL = {
    "resource.gpustack.ai/type": "instancetypes",
    "kubernetes.io/os": "linux",
    "feature.gpustack.ai/acceleratable": "false",
    GENERAL: "true",
}
OWNER = "cluster/team/lab/lab"
SOURCE_DOCUMENT = """\
apiVersion: worker.gpustack.ai/v1
kind: TopologySource
metadata: {name: hall-7}
spec:
  nodeSelector: {}
  levels: [topology.gpustack.ai/region, topology.gpustack.ai/zone]
  configMap:
    configMapRef: {namespace: gpustack-system, name: hall-7}
    key: snapshot.yaml
    maxStaleness: 1h
"""
READY = {"status": "True", "reason": "Observed", "lastTransitionTime": "2031-04-02T05:00:00Z"}


def owned(kind, name):
    """The mark of the Sync that owns an object of the hall."""
    return {"gitops-ctl.dev/owner-id": f"{OWNER}:{kind}:/{name}"}


def node(name, *, profile=ZONED, **labels):
    """A managed Node with region and zone from the inventory; `labels` are more of `topology.gpustack.ai`."""
    own = {REGION: "north", ZONE: "hall7", **{f"topology.gpustack.ai/{key}": value for key, value in labels.items()}}
    hardware = {"gpustack.ai/managed": "true", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"nfd.node.kubernetes.io/feature-labels": ",".join(sorted(own))},
            "labels": {**hardware, GENERAL: "true", f"{GENERAL}.count": "4", HOSTNAME: name, **own, PROFILE: profile},
        },
    }


def nodes(*names):
    """Nodes by name."""
    return {name: node(name) for name in names}


def source(*levels, name="hall", live=True, **status):
    """A source with a ConfigMap of its name."""
    metadata = {"name": name}
    tree = {
        "apiVersion": "worker.gpustack.ai/v1alpha1",
        "kind": "TopologySource",
        "metadata": metadata,
        "spec": {
            "nodeSelector": {},
            "levels": list(levels),
            "configMap": {
                "configMapRef": {"namespace": NAMESPACE, "name": name},
                "key": "snapshot.yaml",
                "maxStaleness": "1h",
            },
        },
    }
    if not live:
        return tree
    metadata |= {"uid": UID, "generation": 1, "annotations": owned("worker.gpustack.ai/TopologySource", name)}
    ready = {"type": "Ready", **READY}
    told = {"lastSuccessfulRevision": "hall-7/1", "lastSuccessfulRefreshTime": "2031-04-02T05:30:00Z", **status}
    return {**tree, "status": {"conditions": [ready], **told}}


def snapshot(revision, nodes, *, name="hall"):
    """The ConfigMap with a snapshot: `nodes` are the last parts of the level keys, and their values."""
    described = {
        node: {f"topology.gpustack.ai/{key}": value for key, value in labels.items()} for node, labels in nodes.items()
    }
    text = {"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": revision, "nodes": described}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"snapshot.yaml": yaml.safe_dump(text)},
    }


def feature(name, *, uid=UID, at="2031-04-02T05:00:00Z", **labels):
    """The NodeFeature of the source for a Node."""
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": feature_name(uid, name),
            "namespace": NAMESPACE,
            "creationTimestamp": at,
            "labels": {"nfd.node.kubernetes.io/node-name": name, "topology.gpustack.ai/source-uid": uid},
        },
        "spec": {"labels": {f"topology.gpustack.ai/{key}": value for key, value in labels.items()}},
    }


def flavors(nodes):
    """The ResourceFlavors that these Nodes feed."""
    found = flavors_of({name: labels_of(tree) for name, tree in nodes.items()}, options=Options())
    return tuple(flavor_object(flavor) for flavor in found.values())


def queue(nodes, *, reserved=0, name="pool", marks=None, policy="None", levels=(REGION, ZONE, HOSTNAME)):
    """A live queue that serves the plan of these Nodes."""
    metadata = {
        "name": name,
        "uid": "u",
        "generation": 1,
        "labels": POOL,
        "annotations": owned("kueue.x-k8s.io/ClusterQueue", name),
    }
    bare = Queue.of({"metadata": metadata})
    topology = topology_object(levels)["metadata"]["name"]
    labels = {one: labels_of(tree) for one, tree in nodes.items()}
    plan = plan_queue(bare, World(flavors(nodes), frozenset({topology}), labels), options=Options())
    marks = {"topology.gpustack.ai/tas-queue": "true", **(marks or {})}
    served = apply_tree(bare, Managed(policy, plan.groups, (), marks))
    names = [one for group in plan.groups for one, _ in group.flavors]
    counted = [{"name": one, "resources": [{"name": "cpu", "total": str(reserved), "borrowed": "0"}]} for one in names]
    active = ("True", "Ready") if policy == "None" else ("False", "Stopped")
    conditions = [{"type": "Active", "status": active[0], "reason": active[1], "observedGeneration": 1}]
    status = {
        "conditions": conditions,
        "reservingWorkloads": reserved,
        "admittedWorkloads": reserved,
        "flavorsReservation": counted,
        "flavorsUsage": counted,
    }
    annotations = {**metadata["annotations"], **marks}
    return {**served, "metadata": {**metadata, "annotations": annotations}, "status": status}


def queue_document(name="pool", **spec):
    """The same queue as Git declares it."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name, "labels": POOL},
        "spec": spec,
    }


def local_queue(name="users", *, namespace="default", queue="pool"):
    """A LocalQueue of the queue."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": queue},
    }


def workload(name, *, queue="", flavor="", required="", requests=("cpu",), evicted=False, finished=False):
    """A Workload: with quota in `queue`, or waiting."""
    container = {"name": "main", "resources": {"requests": dict.fromkeys(requests, "1")}}
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": [container]}}}
    pod_set |= {"topologyRequest": {"required": required}} if required else {}
    conditions = [{"type": "QuotaReserved", **READY}] if queue else []
    conditions += [{"type": kind, **READY} for kind, given in (("Evicted", evicted), ("Finished", finished)) if given]
    assigned = [{"name": "main", "flavors": {"cpu": flavor}, "count": 2}]
    admission = {"admission": {"clusterQueue": queue, "podSetAssignments": assigned}} if queue else {}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queueName": "users", "podSets": [pod_set]},
        "status": {"conditions": conditions, **admission},
    }


def topology(*levels):
    """A Topology of these levels, host name last."""
    return topology_object((*levels, HOSTNAME))


def as_list(items):
    """What `kubectl get … -o yaml` writes."""
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(items)})


def as_json(items):
    """What `kubectl get … -o json` writes."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
