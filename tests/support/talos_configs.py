"""Machine configurations with the shapes of real ones and invented values."""

from typing import Literal

SECRET = "9d2kfo.invented0token0value"
KEY = "LS0tLS1CRUdJTiBJTlZFTlRFRCBLRVktLS0tLQppbnZlbnRlZC1rZXktbWF0ZXJpYWwtMDEyMzQ1Njc4OQo="

_HEAD = """\
version: v1alpha1 # Indicates the schema used to decode the contents.
debug: false
persist: true
# Provides machine specific configuration options.
machine:
    type: {role}
    token: {token}
    ca:
        crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmludmVudGVkCg==
        key: {key}
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.36.3 # The kubelet image.
    install:
        disk: /dev/sda # The disk used for installations.
{prism}\
# Provides cluster specific configuration options.
cluster:
    id: aW52ZW50ZWQtY2x1c3Rlci1pZA==
    secret: {key}
    controlPlane:
        endpoint: https://192.0.2.10:6443
    clusterName: north
    network:
        dnsDomain: cluster.local
        podSubnets:
            - 10.244.0.0/16
    token: {token}
"""
_LEGACY_PRISM = """\
    features:
        rbac: true
        # Configures KubePrism, the local load balancer.
        kubePrism:
            enabled: true
            port: 7445
"""
_OTHER = """\
---
apiVersion: v1alpha1
kind: HostnameConfig
# the name comes from the rack
hostname: north
---
apiVersion: example.net/v1
kind: SomethingNew   # nobody knows this kind
list: [ 1,2 ,3 ]
text: |+
    keep

"""
Form = Literal["document", "legacy", "none"]


def machine_config(
    role: str = "controlplane", *, form: Form = "none", enabled: bool = True, image: str = "", others: bool = True
) -> bytes:
    """A complete configuration; `form` says where its kube-proxy part is."""
    legacy_prism = form == "legacy"
    text = _HEAD.format(role=role, token=SECRET, key=KEY, prism=_LEGACY_PRISM if legacy_prism else "")
    if form == "legacy":
        text += "    proxy:\n"
        text += f"        image: {image} # The image.\n" if image else ""
        text += f"        disabled: {str(not enabled).lower()}\n"
    if others:
        text += _OTHER
    if form == "document":
        text += f"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: {str(enabled).lower()} # on or off\n"
        text += f"image: {image}\n" if image else ""
    if not legacy_prism:
        text += "---\napiVersion: v1alpha1\nkind: KubePrismConfig\nport: 7445\n"
    return text.encode()
