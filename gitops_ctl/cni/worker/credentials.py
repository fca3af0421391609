"""Credentials from mounted files: the worker has no right on Secrets (cni-switch.md, section 2.1).

    clusters/<TalosCluster>/talosconfig         key `talosconfig` of spec.talosconfigSecretRef
    clusters/<TalosCluster>/kubeconfig          key `kubeconfig` of spec.kubeconfigSecretRef
    machines/<TalosMachine>/machineconfig.yaml  key `machineconfig.yaml` of spec.configSecretRef

A file is read each time it is needed, so that a Secret that was replaced counts without a restart.  No text of a file is ever shown.
"""

from pathlib import Path
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, text_at

LIMIT_BYTES: Final = 4 * 1024 * 1024


class CredentialNotMounted(BlockedError):
    """A Secret that an object names is not there as a file."""

    code = ErrorCode.CREDENTIAL_NOT_MOUNTED


class Credentials:
    """The files below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def talosconfig(self, cluster: JsonObject) -> bytes:
        """Of a TalosCluster.

        Raises:
            CredentialNotMounted: it is not there.
        """
        secret = text_at(cluster, "spec", "talosconfigSecretRef", "name")
        return self._read("clusters", cluster, key="talosconfig", secret=secret)

    def kubeconfig(self, cluster: JsonObject) -> bytes | None:
        """Of a TalosCluster; None when it names no Secret, so that Talos is asked for one.

        Raises:
            CredentialNotMounted: it names one, and the file is not there.
        """
        secret = text_at(cluster, "spec", "kubeconfigSecretRef", "name")
        return self._read("clusters", cluster, key="kubeconfig", secret=secret) if secret else None

    def base(self, machine: JsonObject) -> bytes | None:
        """The configuration that somebody rendered for a TalosMachine; None when it names no Secret.

        Raises:
            CredentialNotMounted: it names one, and the file is not there.
        """
        secret = text_at(machine, "spec", "configSecretRef", "name")
        return self._read("machines", machine, key="machineconfig.yaml", secret=secret) if secret else None

    def _read(self, kind: str, object: JsonObject, *, key: str, secret: str) -> bytes:
        path = self._folder / kind / text_at(object, "metadata", "name") / key
        try:
            with path.open("rb") as stream:
                data = stream.read(LIMIT_BYTES + 1)
        except OSError as error:
            raise _missing(secret, key, path, error.strerror or "") from None
        if not data.strip() or len(data) > LIMIT_BYTES:
            raise _missing(secret, key, path, "it is empty" if not data.strip() else f"larger than {LIMIT_BYTES} bytes")
        return data


def _missing(secret: str, key: str, path: Path, why: str) -> CredentialNotMounted:
    return CredentialNotMounted(
        f"the key {key} of the Secret {secret} is not mounted at {path}: {why}",
        hint=f"mount the key {key} of the Secret {secret} into the cluster worker, read-only, at {path}",
    )
