"""Files that are made to be slow to search are searched as fast as others; the search holds up the whole manager (cni-switch.md, 12)."""

import time

import pytest

from gitops_ctl.cni.values import Locator, ValuesRefused, Wanted, plan_values
from gitops_ctl.cni.values_traces import _deploys

PATCH = """\
cluster:
  inlineManifests:
    - name: cilium
      contents: |
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: cilium-config
          namespace: kube-system
        data:
          kube-proxy-replacement: "false"
"""


def searched(files: dict[str, bytes], path: str = "") -> tuple[str, float]:
    """The reason of the refusal, and the seconds of the processor."""
    began_s = time.process_time()
    try:
        plan_values(files, locator=Locator(path=path, kind="", name="", key_prefix=""), wanted=Wanted("replaced"))
        reason = ""
    except ValuesRefused as refused:
        reason = refused.reason
    return reason, time.process_time() - began_s


@pytest.mark.parametrize("filler", ["\n", "          \n"], ids=["empty lines", "blank lines"])
def test_an_inline_manifest_of_empty_lines_is_searched_at_once(filler: str) -> None:
    text = PATCH + filler * 60_000 + "          other: x\n"
    _, seconds = searched({"talos/patch.yaml": text.encode()}, "talos/patch.yaml")
    assert seconds < 10


def test_a_program_that_names_inline_manifests_very_often_is_searched_at_once() -> None:
    _, seconds = searched({"main.go": b"inlineManifests " * 60_000, "cilium.md": b"cilium"})
    assert seconds < 10


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"inlineManifests: [cilium]\n", True),
        (b"// inlineManifests\n// and cilium\n", True),
        (b"cilium then inlineManifests\n", False),
        (b'chart = "cilium"\n', True),
        (b'chart = "other"\n', False),
    ],
)
def test_what_a_program_deploys_is_found_as_before(text: bytes, found: bool) -> None:
    assert _deploys(text) is found
