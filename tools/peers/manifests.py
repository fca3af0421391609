"""Manifests that tests apply as documents that nobody here wrote, pinned by the go.mod and go.sum in the folders beside this file."""

from pathlib import Path

from gitops_ctl.local.published import Published

_HERE = Path(__file__).parent

KUEUE = Published(_HERE / "kueue", "sigs.k8s.io/kueue", "v0.17.0", ("config/components/crd/bases/*.yaml",))
NFD = Published(
    _HERE / "nfd",
    "sigs.k8s.io/node-feature-discovery",
    "v0.19.0",
    ("deployment/base/nfd-crds/nfd-api-crds.yaml", "deployment/base/rbac/*.yaml"),
)
