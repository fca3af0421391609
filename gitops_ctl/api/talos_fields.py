"""Field types that the Talos kinds share (cni-switch.md, section 3)."""

from typing import Annotated, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import Count, Digest, DnsName, ShortText
from gitops_ctl.api.model import Model

Mode = Literal["enabled", "replaced"]
"""`enabled`: kube-proxy serves Services; `replaced`: Cilium does."""

LiveMode = Literal["enabled", "replaced", "mixed", "unknown"]
"""What a cluster shows: some values and some moments are neither of the two modes."""

Role = Literal["controlplane", "worker"]
Contract = Literal["v1.13", "v1.14"]
"""Form of the machine configuration: the block `cluster.proxy`, or documents."""

PathClass = Literal["safe", "kube-proxy", "reboot", "install", "api-server", "unsupported", "unknown"]
"""What a pending path needs to take effect (section 7.4); `kube-proxy` is the part that the switch itself changes."""

ObjectIdText = Annotated[str, Field(min_length=40, max_length=64, pattern=patterns.OBJECT_ID)]
"""Whole id of a Git commit."""

ConfigPath = Annotated[str, Field(min_length=1, max_length=512)]
"""Place in a machine configuration: `<kind of the document>` or a dotted path; never a value."""

Uid = Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.UID)]
Version = Annotated[str, Field(max_length=128)]
StepName = Annotated[str, Field(min_length=3, max_length=64, pattern=patterns.STEP)]
RequestId = Annotated[str, Field(min_length=3, max_length=340, pattern=patterns.REQUEST_ID)]
Reason = Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.KIND)]
Message = Annotated[str, Field(max_length=2000)]


class ClusterRef(Model):
    """A TalosCluster of the same namespace."""

    name: DnsName


class Pending(Model):
    """One difference between what a machine has and its supplied base."""

    path: ConfigPath
    cls: Annotated[PathClass, Field(alias="class")]
    """What it needs to take effect."""


class Problem(Model):
    """Something that keeps the worker from seeing or doing its work."""

    reason: Reason
    message: Message = ""


class ProxyObject(Model):
    """One object of kube-proxy."""

    group: Annotated[str, Field(max_length=253, pattern=patterns.OPTIONAL_NAME)] = ""
    kind: Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.KIND)]
    namespace: Annotated[str, Field(max_length=63, pattern=patterns.OPTIONAL_LABEL)] = ""
    """Empty for cluster-scoped objects."""
    name: Annotated[str, Field(min_length=1, max_length=253)]


__all__ = [
    "ClusterRef",
    "ConfigPath",
    "Contract",
    "Count",
    "Digest",
    "LiveMode",
    "Message",
    "Mode",
    "ObjectIdText",
    "PathClass",
    "Pending",
    "Problem",
    "ProxyObject",
    "Reason",
    "RequestId",
    "Role",
    "ShortText",
    "StepName",
    "Uid",
    "Version",
]
