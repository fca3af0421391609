"""Whether the worker that runs has loaded the configuration that a device needs (rollouts.md, section 17.2).

Three things together prove it: the Deployment is the one that was asked for and complete, exactly one Pod of it is ready, and that Pod has
reported the revision.  A Deployment that is available proves nothing alone, and neither does a heartbeat from before the Pod.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import Condition, condition_of
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.revision import DeviceSecrets, secrets_of, worker_revision
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.topology.findings import Reason
from gitops_ctl.topology.node_plan import Worker
from gitops_ctl.topology.workers_plan import Plane, digest_of, selected

_TIMES: Final = ("readyHeartbeatTime", "podReadyTime", "observedAt")


@dataclass(frozen=True)
class Workplace:
    """One plane of a namespace as it runs.

    Attributes:
        digest: of the template that it has to run.
        deployment: None when there is none.
        pods: those that carry the labels of the plane.
    """

    plane: Plane
    account: str
    username: str
    digest: str
    deployment: JsonObject | None
    pods: tuple[JsonObject, ...]

    @cached_property
    def worker(self) -> Worker:
        """For the binding: its Pod only once the Deployment is complete and exactly one is ready."""
        pod = self.sole_pod if not self.deployment_problem else None
        if pod is None:
            return Worker(self.username)
        return Worker(self.username, *(text_at(pod, "metadata", member) for member in ("name", "uid")))

    @cached_property
    def deployment_problem(self) -> str:
        """Why the Deployment is not the wanted one, complete; empty when it is."""
        found = self.deployment
        if found is None:
            return f"Deployment {self.account} does not exist yet"
        if digest_of(found) != self.digest:
            return f"Deployment {self.account} still has another template"
        status = object_at(found, "status")
        seen = int_at(status, "observedGeneration") >= int_at(found, "metadata", "generation")
        counts = [int_at(status, f"{word}eplicas") for word in ("r", "updatedR", "readyR", "availableR")]
        if not seen or counts != [1, 1, 1, 1] or int_at(found, "spec", "replicas", default=1) != 1:
            return f"Deployment {self.account} is not complete"
        return ""

    @cached_property
    def sole_pod(self) -> JsonObject | None:
        """The one Pod of the plane that is there and ready; None when there are more, or another is still at work."""
        alive = [pod for pod in self.pods if text_at(pod, "status", "phase") not in ("Succeeded", "Failed")]
        ready = [pod for pod in alive if _is_ready(pod) and not text_at(pod, "metadata", "deletionTimestamp")]
        return ready[0] if len(ready) == 1 == len(alive) and self._is_own(ready[0]) else None

    def _is_own(self, pod: JsonObject) -> bool:
        """Of the wanted template, under the plane's account, made by a ReplicaSet of the Deployment."""
        labels = object_at(pod, "metadata", "labels")
        return (
            text_at(pod, "metadata", "annotations", names.WORKER_TEMPLATE_DIGEST) == self.digest
            and text_at(pod, "spec", "serviceAccountName") == self.account
            and all(labels.get(key) == value for key, value in selected(self.account, self.plane).items())
            and any(
                text_at(owner, "kind") == "ReplicaSet"
                and text_at(owner, "name").startswith(f"{self.account}-")
                and bool_at(owner, "controller")
                for owner in objects_at(pod, "metadata", "ownerReferences")
            )
        )


def _is_ready(pod: JsonObject) -> bool:
    found = condition_of(object_at(pod, "status"), "Ready")
    return found is not None and text_at(found, "status") == "True"


def desired_revision(device: JsonObject, *, digest: str, versions: Mapping[str, str]) -> str:
    """The revision that a worker has to prove; `versions` has the resourceVersion of each Secret of the namespace, by name."""
    credential, tls, provisioning = (versions.get(name, "") if name else "" for name in _secrets(device))
    return worker_revision(template_digest=digest, credential=credential, tls=tls, provisioning=provisioning)


def _secrets(device: JsonObject) -> DeviceSecrets:
    return secrets_of(object_at(device, "spec"))


@dataclass(frozen=True, slots=True)
class Proof:
    """The status member of one plane, and why it proves nothing yet; the text is empty when it does."""

    revision: JsonObject
    problem: str


def network_proof(device: JsonObject, workplace: Workplace, *, desired: str, now: datetime) -> Proof:
    """What the network plane proves for a device, by the report in its status."""
    report = object_at(device, "status", "workerReport")
    pod = workplace.sole_pod
    observed = ""
    if pod is not None and text_at(report, "podUID") == text_at(pod, "metadata", "uid"):
        observed = text_at(report, "observedRevision")
    ready = condition_of(object_at(pod or {}, "status"), "Ready") or {}
    since = text_at(ready, "lastTransitionTime")
    why = "the worker has not reported for this device yet" if not observed else ""
    old = object_at(device, "status", "networkWorkerRevision")
    return _proof(workplace, old, (desired, observed, "podReadyTime", since, why), now=now)


def app_proof(
    device: JsonObject, node: JsonObject | None, workplace: Workplace, *, desired: str, now: datetime
) -> Proof:
    """What the node plane proves for a device, by the annotation and the heartbeat of its Node."""
    pod = workplace.sole_pod
    annotations = object_at(node or {}, "metadata", "annotations")
    writer = condition_of(object_at(node or {}, "status"), names.MANAGED_WRITER) or {}
    heartbeat, started = moment_at(writer, "lastHeartbeatTime"), moment_at(object_at(pod or {}, "status"), "startTime")
    why = ""
    if pod is None or text_at(annotations, names.APP_WORKER_POD_UID) != text_at(pod, "metadata", "uid"):
        why = "the Node is not bound to the worker's Pod yet"
    elif heartbeat is None or started is None or heartbeat < started:
        why = "the worker's Pod has written no heartbeat yet"
    observed = "" if why else text_at(annotations, names.WORKER_OBSERVED_REVISION)
    old = object_at(device, "status", "workerRevision")
    since = text_at(writer, "lastHeartbeatTime") if not why else ""
    return _proof(workplace, old, (desired, observed, "readyHeartbeatTime", since, why), now=now)


def _proof(workplace: Workplace, old: JsonObject, seen: tuple[str, str, str, str, str], *, now: datetime) -> Proof:
    desired, observed, time_member, since, why = seen
    pod, found = workplace.sole_pod or {}, workplace.deployment or {}
    members: dict[str, JsonValue] = {
        "desiredRevision": desired,
        "observedRevision": observed,
        "deploymentUID": text_at(found, "metadata", "uid"),
        "deploymentGeneration": int_at(found, "metadata", "generation"),
        "podUID": text_at(pod, "metadata", "uid"),
        "podStartTime": text_at(pod, "status", "startTime"),
    }
    stable = {name: value for name, value in members.items() if value}
    problem = workplace.deployment_problem or ("" if pod else "no Pod, or more than one, is ready") or why
    if not problem and observed != desired:
        problem = "the worker has loaded an older configuration of this device"
    if problem:
        return Proof(stable, problem)
    # A later heartbeat of the same Pod proves nothing that was not proved: the times stay, and no write follows.
    if {name: value for name, value in old.items() if name not in _TIMES} == stable and old.get(time_member):
        return Proof(old, "")
    return Proof({**stable, time_member: since, "observedAt": to_rfc3339(now)}, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gnoi:
    """What GNOIConfigurationReady is judged by.

    Attributes:
        spec_problem: why the device's spec cannot be used for gNOI.
        versions: resourceVersion of each Secret of the namespace, by name.
        proof: of the network plane.
    """

    device: JsonObject
    spec_problem: str
    versions: Mapping[str, str]
    proof: Proof


def gnoi_condition(seen: Gnoi) -> Condition:
    """GNOIConfigurationReady, from metadata and what the worker reports; no session is opened for it."""
    reason, why = _gnoi_problem(seen)
    if why:
        return Condition(names.GNOI_READY, "False", reason, why)
    said = "the Secrets exist, and the worker that runs has loaded them; the device was not asked"
    return Condition(names.GNOI_READY, "True", Reason.VALIDATED, said)


def _gnoi_problem(seen: Gnoi) -> tuple[Reason, str]:
    if seen.spec_problem:
        return Reason.SPEC_INVALID, seen.spec_problem
    if missing := sorted(_missing(_secrets(seen.device), seen.versions)):
        return Reason.SECRET_MISSING, f"Secret {', '.join(missing)} does not exist"
    if seen.proof.problem:
        return Reason.WORKER_ROLLOUT_PENDING, seen.proof.problem
    report = object_at(seen.device, "status", "workerReport")
    if not bool_at(report, "materialValid"):
        said = text_at(report, "message") or "the worker could not use what the Secrets hold"
        return Reason.MATERIAL_INVALID, said
    return Reason.VALIDATED, ""


def _missing(secrets: DeviceSecrets, versions: Mapping[str, str]) -> Iterable[str]:
    return (name for name in secrets if name and name not in versions)


def spec_problem(device: JsonObject) -> str:
    """What the schema does not refuse and gNOI cannot use (5.1)."""
    spec = object_at(device, "spec")
    if text_at(spec, "driver") != "XE":
        return f"driver {text_at(spec, 'driver') or 'none'} has no gNOI: XE is the one that has"
    if any(text_at(taint, "key") == names.UNINITIALIZED for taint in objects_at(spec, "taints")):
        return f"spec.taints must not use {names.UNINITIALIZED}"
    pods = int_at(spec, "maxPods", default=16)
    if not 1 <= pods <= 110:
        return f"spec.maxPods is {pods}, and 1 to 110 are allowed"
    if not text_at(spec, "credentialSecretRef", "name"):
        return "spec.credentialSecretRef names no Secret"
    return ""
