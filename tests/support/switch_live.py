"""A cluster of machines with Cilium and kube-proxy, as far as a switch sees it, and a cluster worker that acts on it.

What agents really run is kept apart from what cilium-config says, so that a removal of kube-proxy too early is seen as such.  The worker
here does what cni-switch.md, section 2.1, asks of one, on trees: it reads an operation, claims, acts once, and writes receipts.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gitops_ctl.core.clock import to_rfc3339

Tree = dict[str, Any]


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass
class LiveMachine:
    """One machine; `gates` are names of checks that do not pass now."""

    name: str
    role: str
    proxy: str
    contract: str = "v1.13"
    version: str = "v1.14.0"
    reachable: bool = True
    problem: Tree | None = None
    staged: bool = False
    prism: bool = True
    prism_port: int = 7445
    pending: list[Tree] = field(default_factory=list)
    gates: set[str] = field(default_factory=set)
    refuses: str = ""
    loses: int = 0
    type: str = ""
    touched: int = 0

    def hash(self, proxy: str | None = None) -> str:
        word = proxy or self.proxy
        if self.contract == "v1.14" and self.role == "worker":
            word = "none"
        return digest(f"{self.name} {word} {self.touched}")

    def seen(self, mode: str) -> Tree:
        if not self.reachable:
            return {"name": self.name, "reachable": False, **({"problem": self.problem} if self.problem else {})}
        names = ["api", "services", "node"]
        names += ["proxy", "manifest", "static-pods"] if self.role == "controlplane" else []
        found: Tree = {
            "name": self.name,
            "reachable": True,
            "version": self.version,
            "type": self.type or self.role,
            "contract": self.contract,
            "kubeProxy": self.proxy,
            "hashActive": self.hash(),
            "hashPersistent": digest("staged") if self.staged else self.hash(),
            "hashWanted": self.hash("disabled" if mode == "replaced" else "enabled"),
            "pending": self.pending,
            "gates": [
                {"name": name, "passed": name not in self.gates, "message": "not yet" if name in self.gates else ""}
                for name in names
            ],
        }
        if self.prism:
            found["kubePrism"] = {"healthy": True, "port": self.prism_port}
        if self.problem:
            found["problem"] = self.problem
        return found


@dataclass
class Live:
    """The whole of it.  `broken` collects what must never happen."""

    now: datetime
    machines: dict[str, LiveMachine]
    value: str | None = "false"
    agents_run: str = "enabled"
    rolls_out: bool = True
    checksum: str = "one"
    template_generation: int = 1
    template_written: datetime | None = None
    written: datetime | None = None
    started: datetime | None = None
    agents_ready: bool = True
    operator_ready: bool = True
    overrides: list[Tree] = field(default_factory=list)
    service_host: str = ""
    service_port: str = ""
    cilium_version: str = "1.18.3"
    kubernetes_version: str = "v1.36.3"
    proxy: bool = True
    proxy_ready: bool = True
    proxy_pods: int = 5
    renders_at: datetime | None = None
    service: str = "Answered"
    undeletable: int = 0
    problems: list[Tree] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    # -- the CNI's owner ---------------------------------------------------------------------------------------------

    def change_cni(self, value: str) -> None:
        """The owner of the CNI writes the value and, with `rolls_out`, restarts the agents."""
        self.value, self.written = value, self.now
        if self.rolls_out:
            self.restart_agents()
            self.checksum = f"for {value}"
            self.template_generation += 1
            self.template_written = self.now

    def restart_agents(self) -> None:
        self.started = self.now + timedelta(seconds=5)
        self.agents_run = "replaced" if self.value in ("true", "strict") else "enabled"

    def tick(self) -> None:
        """Nothing happens by itself here."""

    # -- what is seen ------------------------------------------------------------------------------------------------

    def observed(self, *, request: str, mode: str, probe: str = "") -> Tree:
        tree: Tree = {"at": to_rfc3339(self.now), "kubernetesVersion": self.kubernetes_version}
        if request:
            tree["request"] = request
        if self.problems:
            return {**tree, "problems": self.problems, "machines": []}
        tree["cilium"] = self._cilium()
        tree["kubeProxy"] = self._proxy()
        tree["machines"] = [machine.seen(mode) for machine in self.machines.values()]
        if probe:
            tree["service"] = {"request": probe, "result": self.service, "message": "", "at": to_rfc3339(self.now)}
        return tree

    def _cilium(self) -> Tree:
        found: Tree = {
            "present": True,
            "mode": "replaced" if self.value in ("true", "strict") else "enabled",
            "agents": roll_out(5, ready=self.agents_ready),
            "operator": roll_out(2, ready=self.operator_ready),
            "templateGeneration": self.template_generation,
            "lagging": [] if self.agents_ready else ["cilium-x1"],
            "overrides": self.overrides,
            "version": self.cilium_version,
        }
        moments = {
            "configWrittenAt": self.written,
            "oldestAgentStart": self.started,
            "templateWrittenAt": self.template_written,
        }
        found |= {name: to_rfc3339(moment) for name, moment in moments.items() if moment is not None}
        place = {"serviceHost": self.service_host, "servicePort": self.service_port}
        texts = {"value": self.value, "checksum": self.checksum, **place}
        return found | {name: text for name, text in texts.items() if text}

    def _proxy(self) -> Tree:
        names = [("apps", "DaemonSet", "kube-system"), ("", "ServiceAccount", "kube-system")]
        objects = [{"group": g, "kind": k, "namespace": n, "name": "kube-proxy"} for g, k, n in names]
        rendered = self.renders and (self.renders_at is None or self.now >= self.renders_at)
        found: Tree = {"present": self.proxy, "pods": self.proxy_pods, "rendered": rendered}
        found["objects" if self.proxy else "missing"] = objects if self.proxy or rendered else []
        if self.proxy:
            found["rollOut"] = roll_out(5, ready=self.proxy_ready)
        return found

    @property
    def renders(self) -> bool:
        return any(one.proxy == "enabled" for one in self.machines.values() if one.role == "controlplane")

    # -- effects -----------------------------------------------------------------------------------------------------

    def act(self, request: Mapping[str, Any]) -> Tree:
        """One effect, with what the worker writes about it."""
        self.effects.append(str(request["id"]))
        match request["action"]:
            case "apply-mode":
                return self._apply(request)
            case "remove-kube-proxy":
                return self._remove()
            case _:
                self.proxy, self.proxy_pods = True, 5
                return {"result": "Done"}

    def _apply(self, request: Mapping[str, Any]) -> Tree:
        machine = self.machines[request["machine"]]
        if machine.loses:
            machine.loses -= 1
            return {"result": "Refused", "message": "NotApplied: the reply was lost and nothing was changed"}
        machine.proxy = "disabled" if request["mode"] == "replaced" else "enabled"
        return {"result": "Done", "hashApplied": machine.hash()}

    def _remove(self) -> Tree:
        if self.agents_run != "replaced":
            self.broken.append("kube-proxy was removed while an agent runs the old mode")
        if self.renders:
            self.broken.append("kube-proxy was removed while a control plane renders it")
        if self.undeletable:
            self.undeletable -= 1
            return {"result": "Unknown", "message": "DaemonSet kube-system/kube-proxy: forbidden"}
        self.proxy, self.proxy_pods = False, 0
        return {"result": "Done"}

    def read_back(self, request: Mapping[str, Any]) -> Tree:
        """What became of a request that was claimed by a process that is gone: settled by looking, never by acting again."""
        match request["action"]:
            case "apply-mode":
                machine = self.machines[request["machine"]]
                done = machine.hash() == request["hashWanted"]
                lost = {"result": "Refused", "message": "NotApplied: the machine is as before"}
                return {"result": "Done", "hashApplied": machine.hash()} if done else lost
            case "remove-kube-proxy":
                return (
                    {"result": "Done"}
                    if not self.proxy
                    else {"result": "Refused", "message": "NotApplied: still there"}
                )
            case _:
                return (
                    {"result": "Done"} if self.proxy else {"result": "Refused", "message": "NotApplied: still missing"}
                )

    def refusal(self, request: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
        """Why the worker does not even claim."""
        status = cluster.get("status", {})
        if request["action"] != "apply-mode":
            return ""
        machine = self.machines[request["machine"]]
        if status.get("cni", {}).get("kubeProxy") != request["mode"]:
            self.broken.append("a machine was asked for before the mode was set")
        if machine.refuses:
            return machine.refuses
        return "" if machine.hash() == request["hashBefore"] else "HashChanged: somebody else changed it"


def roll_out(count: int, *, ready: bool = True, generation: int = 1) -> Tree:
    done = count if ready else count - 1
    return {
        **{"generation": generation, "observedGeneration": generation, "desired": count, "current": count},
        **{"updated": done, "ready": done, "available": done},
    }


def worked(
    operation: Tree, cluster: Tree, live: Live, *, claims_only: bool = False, looks_only: bool = False
) -> Tree | None:
    """The operation's status after one look of the worker; None when it has nothing to write."""
    status = operation.get("status", {})
    requests = status.get("requests", [])
    if status.get("phase") in (None, "Pending", "Succeeded", "Cancelled"):
        return None
    new = {**status, "claims": list(status.get("claims", [])), "receipts": list(status.get("receipts", []))}
    done = {one["id"] for one in new["receipts"]}
    claimed = {one["id"] for one in new["claims"]}
    at = to_rfc3339(live.now)
    for request in requests:
        if looks_only or request["action"] in ("observe", "probe-service") or request["id"] in done:
            continue
        if request["action"] == "restore-kube-proxy" and not live._proxy().get("missing"):
            continue
        refusal = live.refusal(request, cluster) if request["id"] not in claimed else ""
        if refusal:
            new["receipts"].append({"id": request["id"], "result": "Refused", "at": at, "message": refusal})
            continue
        if request["id"] not in claimed:
            new["claims"].append({"id": request["id"], "worker": "model", "at": at})
        if not claims_only:
            new["receipts"].append({"id": request["id"], "at": at, **live.act(request)})
    by_action = {one["action"]: one for one in requests}
    look = by_action.get("observe", {})
    probe = by_action.get("probe-service", {})
    seen = live.observed(request=look.get("id", ""), mode=look.get("mode", "enabled"), probe=probe.get("id", ""))
    if _timeless(seen) != _timeless(status.get("observed", {})):
        new["observed"] = seen
    return new if new != {"claims": [], "receipts": [], **status} else None


def _timeless(seen: Tree) -> Tree:
    """A look without the moments at which it was made."""
    found = {name: value for name, value in seen.items() if name != "at"}
    if "service" in found:
        found["service"] = {name: value for name, value in found["service"].items() if name != "at"}
    return found
