"""Laws of the edit, over configurations whose documents stand in any order and are written in any style."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.talos.configdocuments import split_documents
from gitops_ctl.talos.machineconfig import edited, kube_proxy_part
from gitops_ctl.talos.pending import is_kube_proxy_path, pending_paths

pytestmark = pytest.mark.property

IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"
LEGACY = st.sampled_from(
    [
        "version: v1alpha1\nmachine:\n    type: controlplane\ncluster:\n    id: x\n",
        "version: v1alpha1\ncluster:\n  proxy:\n    # on\n    disabled: false # here\n    image: a/b:1\n  id: x\n",
        "version: v1alpha1\ncluster: {id: x}\n" + "machine: {}\n",
        'version: "v1alpha1"\ndebug: true\n# the end of it\n',
        "version: v1alpha1\ncluster:\n  proxy: {}\n",
        "version: v1alpha1\ncluster:\n  proxy:\n    disabled: true\nmachine:\n  files:\n  - content: |\n      ---\n      a: b\n",
    ]
)
OTHER = st.sampled_from(
    [
        "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: ü-\U0001f600 # name\n",
        "kind: Unknown\nlist: [1,  2]\n\n\n",
        "kind: Text\nblock: |+\n  kept\n\n",
        "# only a comment\n",
        "kind: Quoted\nvalue: 'it''s'\nother: \"\\u00fc\"\n",
        "",
    ]
)
PROXY = st.sampled_from(
    [
        "apiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n",
        "apiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: true # yes\nimage: a/b:2\nmode: nftables\n",
        "kind: KubeProxyConfig\nconfig:\n    clusterCIDR: 192.0.2.0/24\nimage: a/b:3\n",
    ]
)


@st.composite
def configurations(draw: st.DrawFn) -> bytes:
    documents = [draw(LEGACY), *draw(st.lists(OTHER, max_size=3)), *draw(st.lists(PROXY, max_size=1))]
    ordered = draw(st.permutations(documents))
    marker = draw(st.sampled_from(["---\n", "--- # next\n"]))
    text = draw(st.sampled_from(["", marker])) + marker.join(ordered)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()


@given(configurations(), st.sampled_from(["enabled", "replaced"]), st.sampled_from(["v1.13", "v1.14"]))
def test_an_edit_gives_the_mode_once_and_leaves_every_other_document_byte_for_byte(base, mode, contract):
    flow = b"cluster: {id: x}"
    if flow in base and contract == "v1.13":
        base = base.replace(flow, b"debug: false")
    wanted = edited(base, mode=mode, contract=contract, role="controlplane", image=IMAGE)
    part = kube_proxy_part(wanted)
    assert (part.enabled, part.explicit, part.conflict) == (mode == "enabled", True, False)
    assert part.form == ("document" if contract == "v1.14" else "legacy")
    assert edited(wanted, mode=mode, contract=contract, role="controlplane", image=IMAGE) == wanted
    assert others(wanted) == others(base)
    assert all(is_kube_proxy_path(one.path) for one in pending_paths(base, wanted))


@given(configurations())
def test_the_documents_joined_are_the_text(base):
    assert b"".join(document.text for document in split_documents(base)) == base


def others(text: bytes) -> list[bytes]:
    documents = split_documents(text)
    return [one.text for one in documents if one.kind not in {"v1alpha1", "KubeProxyConfig"}]
