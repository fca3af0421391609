"""What is built from Go modules, and how.

Each folder under `modules/` pins one program family with its go.mod and go.sum, apart from the others, so that their dependencies
never have to agree.  `-mod=readonly` refuses every module whose checksum is not written there.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MODULES = Path(__file__).with_name("modules")
_GIB = 1024**3

# Everything that changes what the compiler writes; the caller's own settings must not.
GO_ENVIRONMENT: Mapping[str, str] = {
    "CGO_ENABLED": "0",
    "GO111MODULE": "on",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOWORK": "off",
}


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """One module folder and the programs that it gives.

    Attributes:
        name: folder under `modules/`.
        module: import path of the required module; its version is the recipe's version.
        programs: program name to the package that is its main.
        version_variables: package paths whose gitVersion is set to the version, as the upstream build does.
        main_version: set the variable Version of its main to the version, without the v.
        tags: build tags.
        needs_c: parts of it are written in C, so a C compiler is needed.
        disk_bytes: free space that a build from nothing needs, Go's own caches included.
        memory_bytes: memory that the linker of its largest program needs.
    """

    name: str
    module: str
    programs: Mapping[str, str]
    version_variables: tuple[str, ...] = ()
    main_version: bool = False
    tags: tuple[str, ...] = ()
    needs_c: bool = False
    disk_bytes: int = 2 * _GIB
    memory_bytes: int = _GIB

    @property
    def folder(self) -> Path:
        return _MODULES / self.name

    @property
    def version(self) -> str:
        """The pinned version, as go.mod has it."""
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^(?:require )?\s*{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        assert found, f"{self.folder}/go.mod does not require {self.module}"
        return found[1]

    @property
    def linker_flags(self) -> str:
        values = []
        for package in self.version_variables:
            major, minor, _ = self.version.lstrip("v").split(".", 2)
            known = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
            values += [f"-X {package}.{variable}={value}" for variable, value in known.items()]
        if self.main_version:
            values.append(f"-X main.Version={self.version.lstrip('v')}")
        return " ".join(["-s", "-w", *values])

    @property
    def environment(self) -> Mapping[str, str]:
        return {**GO_ENVIRONMENT, "CGO_ENABLED": "1"} if self.needs_c else GO_ENVIRONMENT

    @property
    def tag_arguments(self) -> tuple[str, ...]:
        return ("-tags", ",".join(self.tags)) if self.tags else ()

    def key(self) -> str:
        """Names the build by everything it is made from, except the version of Go."""
        digest = hashlib.sha256()
        for part in ((self.folder / "go.mod").read_bytes(), (self.folder / "go.sum").read_bytes()):
            digest.update(hashlib.sha256(part).digest())
        settings = {
            "environment": dict(self.environment),
            "ldflags": self.linker_flags,
            "programs": dict(self.programs),
        }
        if self.tags:
            settings["tags"] = ",".join(self.tags)
        digest.update(json.dumps(settings, sort_keys=True).encode())
        return f"{self.name}-{digest.hexdigest()[:16]}"


KUBERNETES = Recipe(
    name="kubernetes",
    module="k8s.io/kubernetes",
    programs={
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    version_variables=("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"),
    disk_bytes=8 * _GIB,
    memory_bytes=5 * _GIB // 2,
)
ETCD = Recipe(name="etcd", module="go.etcd.io/etcd/server/v3", programs={"etcd": "go.etcd.io/etcd/server/v3"})
KWOK = Recipe(name="kwok", module="sigs.k8s.io/kwok", programs={"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
GITEA = Recipe(
    name="gitea",
    module="code.gitea.io/gitea",
    programs={"gitea": "code.gitea.io/gitea"},
    main_version=True,
    tags=("sqlite", "sqlite_unlock_notify"),
    needs_c=True,
    disk_bytes=4 * _GIB,
    memory_bytes=2 * _GIB,
)

NFD = Recipe(
    name="nfd",
    module="sigs.k8s.io/node-feature-discovery",
    programs={"nfd-master": "sigs.k8s.io/node-feature-discovery/cmd/nfd-master"},
    disk_bytes=3 * _GIB,
)
KUEUE = Recipe(
    name="kueue",
    module="sigs.k8s.io/kueue",
    programs={"minimalkueue": "sigs.k8s.io/kueue/test/performance/scheduler/minimalkueue"},
    disk_bytes=3 * _GIB,
)

CONTROL_PLANE = (ETCD, KUBERNETES)
