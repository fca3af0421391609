"""Where the files that are generated at build time lie: in the package, or, in a checkout, beside it."""

from importlib.resources import files
from pathlib import Path

_TOP_LEVEL = ("policies", "examples-repo")
_CHECKOUT = Path(__file__).resolve().parents[2]


def manifest(name: str) -> Path:
    """Path of `install.yaml`, `crds`, `json`, `policies` or `examples-repo`.

    Raises:
        FileNotFoundError: neither the package nor a checkout around it has it.
    """
    packaged = Path(str(files("gitops_ctl"))) / "manifests" / name
    beside = _CHECKOUT / name if name in _TOP_LEVEL else _CHECKOUT / "schemas" / name
    for path in (packaged, beside):
        if path.exists():
            return path
    raise FileNotFoundError(f"{name} is not part of this installation of gitops-ctl")
