"""What the machines should have, and how a look at one is shown (cni-switch.md, sections 7.3, 7.4 and 7.6).  Pure.

The executor judges hashes and paths from an observation; for a request with exactly these hashes the same functions compute again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from gitops_ctl.api.talos_cluster import DEFAULT_PROXY_IMAGE
from gitops_ctl.api.talos_fields import Pending
from gitops_ctl.api.talos_machine import MachineObservation
from gitops_ctl.api.talos_observed import Gate, KubePrismObservation, OperationMachine
from gitops_ctl.cni.versions import version_of
from gitops_ctl.cni.worker.machine import Configuration, Look, MachineSpec, problem_of
from gitops_ctl.core.conditions import MESSAGE_LIMIT, cut
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, objects_at, text_at
from gitops_ctl.talos.machineconfig import KubeProxyPart, config_hash, contract_of, edited
from gitops_ctl.talos.model import Contract, Mode
from gitops_ctl.talos.pending import PendingPath, pending_paths

VERSION: Final = 128
NAME: Final = 253
"""Characters of what a machine says about itself."""

_FORMS: Mapping[str, Contract] = {"document": "v1.14", "legacy": "v1.13"}


@dataclass(frozen=True, slots=True)
class Question:
    """What an operation wants of its machines.

    Attributes:
        contract: the form that the cluster names; None: the one that its machines use.
        image: for kube-proxy where a configuration names none; empty when no version of Kubernetes is known.
    """

    mode: Mode
    contract: Contract | None
    image: str


def question_of(cluster: JsonObject, *, mode: Mode, kubernetes: str) -> Question:
    """The question of an operation; `kubernetes` is the version that runs, empty when it is not known."""
    template = text_at(cluster, "spec", "cni", "proxyImage", default=DEFAULT_PROXY_IMAGE)
    version = kubernetes.removeprefix("v")
    image = template.replace("{version}", version) if version or "{version}" not in template else ""
    named = text_at(cluster, "spec", "contract")
    contract: Contract | None = "v1.13" if named == "v1.13" else "v1.14" if named == "v1.14" else None
    return Question(mode, contract, image)


def contract_for(question: Question, looks: Iterable[Look]) -> Contract:
    """The form for all machines of a cluster (section 7.3).

    Raises:
        ConfigRefused: nothing says which.
    """
    if question.contract is not None:
        return question.contract
    known = [look for look in looks if look.configuration is not None]
    versions = [look.identity.version for look in known if look.identity is not None]
    # The oldest one decides, and one that cannot be read is older than all: the form must be known to every machine.
    oldest = min(versions, key=lambda version: version_of(version) or (-1, 0, 0), default="")
    return contract_of([look.configuration.base for look in known if look.configuration], version=oldest)


def wanted_of(configuration: Configuration, spec: MachineSpec, *, question: Question, contract: Contract) -> bytes:
    """The configuration that the machine should have.  It is as secret as the one that it has.

    Raises:
        ConfigRefused, ProxyImageUnknown: it cannot be made.
    """
    return edited(configuration.base, mode=question.mode, contract=contract, role=spec.role, image=question.image)


def machine_observation(look: Look, *, at: str) -> MachineObservation | None:
    """`TalosMachine.status.observed`; None when the machine's configuration is not known."""
    configuration = look.configuration
    if configuration is None or look.identity is None:
        return None
    try:
        pending = pending_paths(configuration.active, configuration.base, version=look.identity.version)
    except GitopsError:
        pending = ()
    return MachineObservation(
        at=at,
        version=cut(look.identity.version, limit=VERSION),
        type=look.identity.machine_type,
        hash=configuration.hash_active,
        kube_proxy=_word(configuration.part),
        pending=_shown(pending) if configuration.supplied else (),
    )


def operation_machine(
    look: Look, *, question: Question, looks: Iterable[Look], nodes: Mapping[str, JsonObject]
) -> OperationMachine:
    """One entry of `TalosOperation.status.observed.machines`."""
    configuration, identity, problem = look.configuration, look.identity, look.problem
    hash_wanted: str | None = None
    pending: tuple[Pending, ...] = ()
    if configuration is not None and identity is not None:
        try:
            contract = contract_for(question, looks)
            wanted = wanted_of(configuration, look.spec, question=question, contract=contract)
            hash_wanted = config_hash(wanted)
            if configuration.supplied:
                pending = _shown(pending_paths(configuration.active, wanted, version=identity.version))
        except GitopsError as error:
            problem = problem or problem_of(error)
    return OperationMachine(
        name=look.spec.name,
        reachable=look.reachable,
        problem=problem,
        version=cut(identity.version, limit=VERSION) if identity is not None else "",
        type=look.type,
        node_name=cut(identity.nodename, limit=NAME) if identity is not None else "",
        contract=_FORMS.get(configuration.part.form) if configuration is not None else None,
        kube_proxy=_word(configuration.part) if configuration is not None else None,
        hash_active=configuration.hash_active if configuration is not None else None,
        hash_persistent=configuration.hash_persistent if configuration is not None else None,
        hash_wanted=hash_wanted,
        pending=pending,
        kube_prism=KubePrismObservation(healthy=look.prism.healthy, port=look.prism.port or None)
        if look.prism
        else None,
        gates=_gates(look, mode=question.mode, node=nodes.get(look.spec.node, EMPTY)),
    )


def _gates(look: Look, *, mode: Mode, node: JsonObject) -> tuple[Gate, ...]:
    """The checks of section 7.6.  Of a machine that did not answer, only that."""
    if not look.reachable or look.problem is not None:
        return (_gate("api", "" if look.reachable else "the Talos API does not answer"), _node_gate(node))
    gates = [_gate("api", ""), _gate("services", _listed("not running and healthy", look.failing))]
    if look.spec.is_control_plane:
        enabled = mode == "enabled"
        rendered = bool(look.rendered)
        gates += [
            _gate(
                "proxy", "" if look.proxy_enabled is enabled else "kube-proxy is not rendered yet as the mode wants it"
            ),
            _gate(
                "manifest", "" if rendered is enabled else "the manifest of kube-proxy is not yet as the mode wants it"
            ),
            _gate("static-pods", _listed("not ready", look.static_unready)),
        ]
    return (*gates, _node_gate(node))


def _gate(name: str, problem: str) -> Gate:
    return Gate.model_validate({"name": name, "passed": not problem, "message": cut(problem, limit=MESSAGE_LIMIT)})


def _node_gate(node: JsonObject) -> Gate:
    conditions = objects_at(node, "status", "conditions")
    ready = any(text_at(item, "type") == "Ready" and text_at(item, "status") == "True" for item in conditions)
    return _gate(
        "node", "" if ready else "the Node is not Ready" if node else "the Node is not there, or cannot be read"
    )


def _listed(what: str, names: tuple[str, ...]) -> str:
    return f"{what}: {', '.join(names)}" if names else ""


def _word(part: KubeProxyPart) -> Literal["enabled", "disabled"]:
    return "enabled" if part.enabled else "disabled"


def _shown(paths: Iterable[PendingPath]) -> tuple[Pending, ...]:
    return tuple(Pending(path=item.path, cls=item.cls) for item in paths)
