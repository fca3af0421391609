"""The API server in memory as a process of its own, with a fleet in it and stand-ins for its workers: `python -m tools.bench.memoryserver JOB.json`.

It serves plain HTTP on loopback, and beside it what the benchmark asks: `GET /seen` tells counts, `POST /mark` begins to count anew.  The
stand-ins write into the store itself: heartbeats, Leases of Nodes and reports at the pace of the real workers, at no cost for the manager
but what it sees of them.  `POST /multiply` fills every namespace: what the manager made of its first device is there for each of them then.
"""

import asyncio
import json
import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.names import SYSTEM_NAMESPACE
from gitops_ctl.core.clock import from_rfc3339, to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.health import conditions_hash
from gitops_ctl.fleet.identity import device_key, mutation_lease_name
from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.fleet.projection import Projection, projected_labels
from gitops_ctl.fleet.revision import worker_revision
from gitops_ctl.kube.lease import micro_time
from tests.doubles.apiserver import FakeApiServer
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.request import Answer, Request
from tests.doubles.apiserver.store import Change, Collection
from tests.doubles.apiserver.streams import Streams
from tests.doubles.peer_crds import install
from tests.support.topology_devices import APP_ACCOUNT, NETWORK_ACCOUNT
from tools.bench.devices import FRESHNESS_S, HEARTBEAT_S, LEASE_S, Site, collection, is_ready

Tree = dict[str, Any]
DEVICES, NODES = ("cisco.vk", "ciscodevices"), ("", "nodes")
_DEPLOYMENTS, _PODS, _LEASES = ("apps", "deployments"), ("", "pods"), ("coordination.k8s.io", "leases")
_TOGETHER_S = 0.05
_LONG_AGO = "2026-01-01T00:00:00Z"
_JOURNAL = "5a0dd3a1-9f0c-4f1e-8f60-0d3ad0f3a6c1"


class Writes:
    """What the manager wrote since the last mark.

    Attributes:
        evidence: renewals of evidence; every other write is in `others`, by verb and resource.
        early: renewals that were not due: a third of the limit had not passed, and nothing else had changed.
        requests: all of them, reads too.
    """

    def __init__(self) -> None:
        self.evidence, self.early = 0, 0
        self.others: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()

    def add(self, request: Request, resource: str, *, before: Tree | None, now: datetime) -> None:
        """One answered request of the manager."""
        self.requests[f"{request.method} {resource}"] += 1
        if request.method == "GET" or resource in ("leases", "events"):
            return
        observed = evidence_only(request) if resource == "ciscodevices/status" else None
        if not observed:
            self.others[f"{request.method} {resource}"] += 1
            return
        self.evidence += 1
        self.early += not was_due(before, now=now)


def evidence_only(request: Request) -> bool:
    """Whether a patch of a status changes the evidence and nothing else."""
    members = json.loads(request.body).get("status", {})
    return set(members) == {"healthObservation"}


def was_due(device: Tree | None, *, now: datetime) -> bool:
    """Whether a third of the limit had passed since the evidence of a device was observed; a second is lost to rounding."""
    observed = (device or {}).get("status", {}).get("healthObservation", {}).get("observedAt", "")
    return not observed or (now - from_rfc3339(observed)).total_seconds() >= FRESHNESS_S / 3 - 1


class CountingServer(ApiServer):
    """Keeps no audit log, which would grow without end, and counts what the manager writes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.audit = deque(maxlen=0)  # type: ignore[assignment]
        self.written = Writes()

    def handle(self, request: Request) -> Answer:
        if "(manager)" not in request.user_agent:
            return super().handle(request)
        target, _ = self._what(request)
        if target is None:
            return super().handle(request)
        before = self.store.get((target.group, target.plural), (target.namespace, target.name))
        answer = super().handle(request)
        resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
        self.written.add(request, resource, before=before, now=datetime.now(UTC))
        return answer


class TogetherStreams(Streams):
    """Tells open watches of changes a few times a second, not of each one: a watch costs the same for one as for many."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api)
        self._is_due = False

    def _wake(self, change: Change) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_TOGETHER_S, self._tell, change)

    def _tell(self, change: Change) -> None:
        self._is_due = False
        super()._wake(change)


class Planes:
    """Both planes of the device workers of every namespace, and whoever runs their Pods."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._reports: dict[tuple[str, str], str] = {}
        self._bound: set[str] = set()

    async def run(self) -> None:
        """A step each second: what is due of heartbeats and Leases, and answers to what the manager made."""
        tick = 0
        while True:
            began = time.monotonic()
            self.step(tick)
            tick += 1
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))

    def step(self, tick: int) -> None:
        now = datetime.now(UTC)
        for key, deployment in self._api.store.all(_DEPLOYMENTS):
            if self._api.store.get(_PODS, (key[0], f"{key[1]}-x")) is None:
                self._start(key, deployment, now=to_rfc3339(now))
        for number, (key, device) in enumerate(list(self._api.store.objects.get(DEVICES, {}).items())):
            self._report(key, device, now=to_rfc3339(now))
            is_new = key[1] not in self._bound
            if is_new or number % HEARTBEAT_S == tick % HEARTBEAT_S:
                self._beat(key, device, now=to_rfc3339(now))
            if number % LEASE_S == tick % LEASE_S:
                self._renew(key[1], now=micro_time(now))

    def _start(self, key: tuple[str, str], deployment: Tree, *, now: str) -> None:
        """The Pod of a Deployment, ready."""
        template, (namespace, name) = deployment["spec"]["template"], key
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-1", "uid": "rs", "controller": True}
        metadata = {**template["metadata"], "name": f"{name}-x", "namespace": namespace}
        metadata |= {"uid": self._api.store.new_uid(), "ownerReferences": [owner]}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        status = {"phase": "Running", "startTime": now, "conditions": [ready]}
        pod = {"metadata": metadata, "spec": template["spec"], "status": status}
        self._api.store.put(_PODS, (namespace, f"{name}-x"), pod)
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        seen = {"observedGeneration": deployment["metadata"]["generation"], **counts}
        self._api.store.put(_DEPLOYMENTS, key, {**deployment, "status": seen})

    def _revision(self, namespace: str, account: str) -> tuple[str, str]:
        """UID of the Pod of an account, and what it has loaded for each device; both empty without one."""
        pod = self._api.store.get(_PODS, (namespace, f"{account}-x"))
        secret = self._api.store.get(("", "secrets"), (namespace, "login"))
        if pod is None or secret is None:
            return "", ""
        digest, version = (
            pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST],
            secret["metadata"]["resourceVersion"],
        )
        return pod["metadata"]["uid"], worker_revision(
            template_digest=digest, credential=version, tls="", provisioning=""
        )

    def _report(self, key: tuple[str, str], device: Tree, *, now: str) -> None:
        """The network plane says once what it has loaded."""
        if key in self._reports:
            return
        uid, revision = self._revision(key[0], NETWORK_ACCOUNT)
        if not uid:
            return
        self._reports[key] = revision
        report = {"podUID": uid, "observedRevision": revision, "materialValid": True, "loadedAt": now}
        report["journal"] = {"id": _JOURNAL, "sequence": 0, "state": "Ready"}
        self._api.store.put(DEVICES, key, {**device, "status": {**device.get("status", {}), "workerReport": report}})

    def _beat(self, key: tuple[str, str], device: Tree, *, now: str) -> None:
        """The node plane writes the Node that is bound to its Pod."""
        node = self._api.store.get(NODES, ("", key[1]))
        uid, revision = self._revision(key[0], APP_ACCOUNT)
        if node is None or not uid or node["metadata"].get("annotations", {}).get(names.APP_WORKER_POD_UID) != uid:
            return
        self._bound.add(key[1])
        annotations = {**node["metadata"]["annotations"], names.WORKER_OBSERVED_REVISION: revision}
        old = {one["type"]: one for one in node.get("status", {}).get("conditions", ())}
        words = (("Ready", "DeviceReachable"), (names.MANAGED_WRITER, names.MANAGED_WRITER_REASON))
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "lastHeartbeatTime": now,
                "lastTransitionTime": old.get(kind, {}).get("lastTransitionTime", now),
            }
            for kind, reason in words
        ]
        chassis = device["spec"]["physicalIdentity"]
        status = {"nodeInfo": {"machineID": chassis, "systemUUID": chassis}, "conditions": conditions}
        changed = {**node, "metadata": {**node["metadata"], "annotations": annotations}, "status": status}
        self._api.store.put(NODES, ("", key[1]), changed)

    def _renew(self, name: str, *, now: str) -> None:
        lease = self._api.store.get(_LEASES, ("kube-node-lease", name))
        if lease is not None:
            spec = {**lease["spec"], "holderIdentity": name, "renewTime": now, "leaseDurationSeconds": 40}
            self._api.store.put(_LEASES, ("kube-node-lease", name), {**lease, "spec": spec})


class Copies:
    """Every namespace filled with copies of its first device, as if the manager had taken up each of them."""

    def __init__(self, api: ApiServer, site: Site) -> None:
        self._api, self._site = api, site
        policy, _ = site.policy()
        self._policy = parse_policy(policy["data"][names.POLICY_KEY])

    def make(self) -> None:
        """Devices, Nodes and Leases; evidence is as old as it would be had it been renewed in turn."""
        firsts = {key[0]: tree for key, tree in self._api.store.all(DEVICES)}
        for number, wanted in enumerate(self._site.devices()):
            first = firsts[wanted["metadata"]["namespace"]]
            if wanted["metadata"]["name"] != first["metadata"]["name"]:
                self._copy(first, wanted, age_s=number % (FRESHNESS_S // 3))

    def _copy(self, first: Tree, wanted: Tree, *, age_s: int) -> None:
        store, (namespace, name) = self._api.store, (wanted["metadata"]["namespace"], wanted["metadata"]["name"])
        old, bound = first["metadata"]["name"], first["status"]["nodeIdentity"]["nodeUID"]
        uids = {first["metadata"]["uid"]: store.new_uid(), bound: store.new_uid()}
        key, old_key = device_key(namespace, name), device_key(namespace, old)
        words = {**uids, old_key: key, old: name, old.lower(): name}

        def copied(collection: Collection, space: str, what: str) -> Tree:
            text = json.dumps(store.get(collection, (space, what)))
            for was, now in words.items():
                text = text.replace(was, now)
            tree: Tree = json.loads(text)
            return tree

        device, node = copied(DEVICES, namespace, old), copied(NODES, "", old)
        device["metadata"] |= {"labels": wanted["metadata"]["labels"], "creationTimestamp": _LONG_AGO}
        self._project(device, node)
        health, at = device["status"]["healthObservation"], to_rfc3339(datetime.now(UTC) - timedelta(seconds=age_s))
        health |= {"observedAt": at, "nodeReadyHeartbeatTime": at}
        for seen in health["conditionObservations"]:
            seen["observedAt"] = at
        for condition in node["status"]["conditions"]:
            condition |= {"lastHeartbeatTime": at, "lastTransitionTime": device["metadata"]["creationTimestamp"]}
        store.put(DEVICES, (namespace, name), device)
        store.put(NODES, ("", name), node)
        for space, lease, copy in (
            ("kube-node-lease", old, name),
            (namespace, mutation_lease_name(namespace, old), mutation_lease_name(namespace, name)),
        ):
            tree = copied(_LEASES, space, lease)
            tree["metadata"] |= {"name": copy, "uid": store.new_uid()}
            store.put(_LEASES, (space, copy), tree)

    def _project(self, device: Tree, node: Tree) -> None:
        """The labels of the copy on its Node, with their hash where it stands."""
        projection = projected_labels(device_of(device), self._policy)
        assert isinstance(projection, Projection), projection
        node["metadata"]["labels"] |= projection.labels
        node["metadata"]["annotations"][names.PROJECTION_HASH] = projection.hash
        status = device["status"]
        status["topologyProjection"]["effectiveLabelHash"] = projection.hash
        status["healthObservation"]["deviceConditionsHash"] = conditions_hash(status["phase"], status["conditions"])


def filled(site: Site) -> CountingServer:
    """A server with the definitions of the product, the policy, and one device in each namespace."""
    api = CountingServer(lag=0, window=200_000)
    install(api, [json.loads(json.dumps(crd_of(kind))) for kind in ALL_KINDS])
    trees = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in site.spaces]
    trees.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
    trees += [*site.policy(), *map(site.secret, site.spaces)]
    firsts = {tree["metadata"]["namespace"]: tree for tree in reversed(list(site.devices()))}
    for tree in (*trees, *firsts.values()):
        headers = {"content-type": "application/json"}
        answer = api.handle(Request("POST", collection(tree), {}, headers, json.dumps(tree).encode()))
        if answer.code != 201:
            raise RuntimeError(str(answer.body))
    return api


def seen_by(api: CountingServer) -> Tree:
    """What the benchmark asks for."""
    written = api.written
    return {
        "ready": sum(map(is_ready, api.store.objects.get(DEVICES, {}).values())),
        "evidence": written.evidence,
        "early": written.early,
        "others": dict(written.others),
        "requests": dict(written.requests),
    }


def asked(api: CountingServer, site: Site) -> web.Application:
    """The benchmark's own endpoints."""

    async def seen(_: web.Request) -> web.Response:
        return web.json_response(seen_by(api))

    async def mark(_: web.Request) -> web.Response:
        api.written = Writes()
        return web.json_response({})

    async def multiply(_: web.Request) -> web.Response:
        Copies(api, site).make()
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.get("/seen", seen), web.post("/mark", mark), web.post("/multiply", multiply)])
    return app


async def serve(job: Tree) -> None:
    """Serve until the process is ended; the file `ready` has the addresses once both listen."""
    site = Site(job["namespaces"], job["each"], job["targets"])
    api = filled(site)
    server = FakeApiServer(api)
    server._streams = TogetherStreams(api)
    async with server:
        runner = web.AppRunner(asked(api, site), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        _tell(job["ready"], {"url": server.url, "asked": runner.addresses[0][1]})
        await Planes(api).run()


def _tell(place: str, found: Tree) -> None:
    Path(place).write_text(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_bytes())))
