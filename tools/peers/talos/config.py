"""What a machine understands of its configuration, and what it refuses (the part that the tests need)."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

CONTROL_PLANE_ONLY = ("KubeProxyConfig", "KubeFlannelCNIConfig", "KubeAPIServerConfig", "KubeSchedulerConfig")
MODES = ("iptables", "ipvs", "nftables")
DEFAULT_IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"
_CONFLICT = "{what} config in v1alpha1 config ({path}) can't be used with {document} document, please remove it to avoid conflicts"


class ParseError(Exception):
    """Not a configuration at all."""


class InvalidError(Exception):
    """Understood and refused, with everything that is wrong."""

    def __init__(self, errors: list[str]) -> None:
        noun = "error" if len(errors) == 1 else "errors"
        super().__init__(f"{len(errors)} {noun} occurred:\n" + "".join(f"\t* {error}\n" for error in errors) + "\n")


@dataclass(frozen=True)
class Proxy:
    """kube-proxy as the machine would run it."""

    enabled: bool
    image: str
    mode: str
    config: dict[str, Any] | None
    extra_args: dict[str, Any]

    @cached_property
    def file(self) -> str:
        """The configuration of kube-proxy that its ConfigMap has.  Written once: whoever waits for a change looks at it again and again."""
        head = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": self.mode}
        return yaml.safe_dump({**head, **(self.config or {})})


class Config:
    """One configuration, understood."""

    def __init__(self, text: bytes) -> None:
        try:
            trees = [tree for tree in yaml.safe_load_all(text.decode()) if tree is not None]
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
            raise ParseError(f"yaml: line {line}: {getattr(error, 'problem', 'not UTF-8')}") from None
        if not all(isinstance(tree, dict) for tree in trees):
            raise ParseError("yaml: unmarshal errors: cannot unmarshal into a document")
        self.text = text
        self.legacy: dict[str, Any] | None = None
        self.documents: dict[str, dict[str, Any]] = {}
        for tree in trees:
            kind = tree.get("kind")
            if kind is None and tree.get("version") == "v1alpha1":
                self._once(self.legacy is None, "v1alpha1")
                self.legacy = tree
            else:
                self._once(str(kind) not in self.documents or "name" in tree, str(kind))
                self.documents[str(kind) if "name" not in tree else f"{kind}/{tree['name']}"] = tree

    @staticmethod
    def _once(condition: bool, kind: str) -> None:
        if not condition:
            raise ParseError(f"not a valid config document: duplicate document: {kind}")

    @cached_property
    def proxy(self) -> Proxy:
        document = self.documents.get("KubeProxyConfig")
        if document is not None:
            return Proxy(
                enabled=document.get("enabled", True) is True,
                image=document.get("image", ""),
                mode=document.get("mode", "nftables"),
                config=document.get("config") or {},
                extra_args=document.get("extraArgs") or {},
            )
        block = self.block("cluster", "proxy") or {}
        return Proxy(
            enabled=not block.get("disabled", False),
            image=block.get("image") or DEFAULT_IMAGE,
            mode=block.get("mode", "nftables"),
            config=None,
            extra_args=block.get("extraArgs") or {},
        )

    @property
    def kubeprism_port(self) -> int | None:
        """None when it is switched off."""
        document = self.documents.get("KubePrismConfig")
        if document is not None:
            return int(document.get("port", 7445))
        block = self.block("machine", "features", "kubePrism") or {}
        return int(block.get("port", 7445)) if block.get("enabled") else None

    def block(self, *path: str) -> dict[str, Any] | None:
        """What the older document has at a place."""
        found: Any = self.legacy or {}
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None

    def validate(self, machine_type: str) -> list[str]:
        """Warnings.

        Raises:
            InvalidError: it is refused.
        """
        errors = list(self._errors(machine_type))
        if errors:
            raise InvalidError(errors)
        warnings = []
        document = self.documents.get("KubeProxyConfig", {})
        if document.get("enabled", True) and document.get("mode", "nftables") in ("iptables", "ipvs"):
            mode = document["mode"]
            warnings.append(f'proxy mode "{mode}" is not recommended, please switch to nftables if possible')
        if document.get("enabled", True) and document.get("extraArgs"):
            warnings.append("extraArgs is not recommended, please use config instead")
        return warnings

    def _errors(self, machine_type: str) -> Any:
        proxy, prism = self.documents.get("KubeProxyConfig"), self.documents.get("KubePrismConfig")
        if proxy is not None and self.block("cluster", "proxy") is not None:
            yield _CONFLICT.format(what="cluster proxy", path=".machine.cluster.proxy", document="KubeProxyConfig")
        if prism is not None and self.block("machine", "features", "kubePrism") is not None:
            yield _CONFLICT.format(what="KubePrism", path=".machine.features.kubePrism", document="KubePrismConfig")
        if machine_type == "worker":
            kinds = sorted(kind for kind in self.documents if kind in CONTROL_PLANE_ONLY)
            if kinds:
                yield f"the following document kinds are only allowed on control plane machines: [{' '.join(kinds)}]"
        if proxy is not None and proxy.get("enabled", True):
            if not proxy.get("image"):
                yield "proxy image cannot be empty"
            if proxy.get("mode", "nftables") not in MODES:
                yield f'invalid proxy mode "{proxy["mode"]}": supported modes are iptables, ipvs and nftables'
        declared = (self.legacy or {}).get("machine", {}).get("type")
        if declared is not None and not re.fullmatch("controlplane|worker|init", str(declared)):
            yield f'machine type is invalid: "{declared}"'
