"""The kube-proxy part of a machine configuration is read and changed in both forms, and nothing else is touched (cni-switch.md, 7.3)."""

import difflib
import itertools

import pytest
import yaml

from gitops_ctl.talos.configdocuments import split_documents
from gitops_ctl.talos.errors import ConfigRefused, ProxyImageUnknown
from gitops_ctl.talos.machineconfig import (
    KubeProxyPart,
    config_hash,
    contract_of,
    edited,
    kube_proxy_part,
    secret_values,
)
from tests.support.talos_configs import KEY, SECRET, machine_config

IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"
OTHER_IMAGE = "registry.example.net/kube-proxy:v1.36.1"
LEGACY = "version: v1alpha1\nmachine:\n  type: controlplane\n"


def changed_lines(before: bytes, after: bytes) -> list[str]:
    lines = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
    return [line for line in lines if line[:1] in "+-"]


def trees(text: bytes) -> list[object]:
    return [tree for tree in yaml.safe_load_all(text) if tree is not None]


class TestReading:
    @pytest.mark.parametrize("form", ["document", "legacy"])
    @pytest.mark.parametrize("enabled", [True, False])
    def test_either_form_says_whether_kube_proxy_runs(self, form, enabled):
        part = kube_proxy_part(machine_config(form=form, enabled=enabled, image=IMAGE))
        assert part == KubeProxyPart(form, enabled, IMAGE, explicit=True)

    def test_a_missing_document_does_not_mean_disabled(self):
        assert kube_proxy_part(machine_config(form="none")) == KubeProxyPart("none", enabled=True)

    @pytest.mark.parametrize("proxy", ["{}", "\n    image: registry.k8s.io/kube-proxy:v1.36.3"])
    def test_a_block_without_the_flag_is_enabled(self, proxy):
        part = kube_proxy_part(f"{LEGACY}cluster:\n  proxy: {proxy}\n".encode())
        assert (part.form, part.enabled, part.explicit) == ("legacy", True, False)

    def test_a_block_that_is_null_is_none(self):
        assert kube_proxy_part(f"{LEGACY}cluster:\n  id: x\n  proxy:\n".encode()).form == "none"

    def test_a_document_without_the_flag_is_enabled(self):
        text = LEGACY.encode() + b"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nimage: x:1\n"
        assert kube_proxy_part(text) == KubeProxyPart("document", enabled=True, image="x:1")

    def test_both_forms_at_once_are_a_conflict(self):
        text = machine_config(form="legacy") + b"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n"
        part = kube_proxy_part(text)
        assert part.conflict
        assert part.form == "document"

    @pytest.mark.parametrize("flag", ["enabled: maybe", 'enabled: "true"', "enabled: 1"])
    def test_a_flag_that_is_no_boolean_is_refused(self, flag):
        text = f"{LEGACY}---\napiVersion: v1alpha1\nkind: KubeProxyConfig\n{flag}\n".encode()
        with pytest.raises(ConfigRefused, match="is no boolean"):
            kube_proxy_part(text)

    def test_two_documents_of_the_kind_are_refused(self):
        one = "---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n"
        with pytest.raises(ConfigRefused, match="2 documents KubeProxyConfig"):
            kube_proxy_part(f"{LEGACY}{one}{one}".encode())

    def test_the_hash_is_of_the_bytes(self):
        assert config_hash(b"a") == "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


class TestSplitting:
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"a: 1\n",
            b"---\na: 1\n",
            b"# comment\n---\na: 1\n---\nb: 2",
            b"a: 1\r\n---\r\nb: 2\r\n",
            b"a: |\n  ---\n  not a marker\n--- # next\nb: 2\n...\n",
            machine_config(),
        ],
    )
    def test_joined_the_documents_are_the_text(self, text):
        assert b"".join(document.text for document in split_documents(text)) == text

    def test_kinds_and_names_are_told(self):
        text = machine_config(form="document") + b"---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"
        labels = [document.label for document in split_documents(text)]
        kinds = ["v1alpha1", "HostnameConfig", "SomethingNew", "KubeProxyConfig", "KubePrismConfig"]
        assert labels == [*kinds, "VolumeConfig[EPHEMERAL]"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"version: v1alpha1\n---\nsecret: [very-private\n", "yaml-syntax in line"),
            (b"version: v1alpha1\nkey: 1\nkey: 2\n", "duplicate-key in line 3"),
            (b"version: v1alpha1\n...\nkind: X\n", "without a marker"),
            (b"version: \xff\n", "yaml-syntax"),
        ],
    )
    def test_what_cannot_be_read_is_refused_without_its_text(self, text, message):
        with pytest.raises(ConfigRefused, match=message) as caught:
            split_documents(text)
        assert caught.value.code.reason == "MachineConfigUnreadable"
        assert "private" not in caught.value.message


class TestDocumentForm:
    def test_disabling_changes_the_flag_and_nothing_else(self):
        base = machine_config(form="document", enabled=True, image=IMAGE)
        wanted = edited(base, mode="replaced", contract="v1.14", role="controlplane")
        assert changed_lines(base, wanted) == ["- enabled: true # on or off", "+ enabled: false # on or off"]

    def test_enabling_adds_the_image_that_a_disabled_document_does_not_have(self):
        base = machine_config(form="document", enabled=False)
        wanted = edited(base, mode="enabled", contract="v1.14", role="controlplane", image=IMAGE)
        assert changed_lines(base, wanted) == [
            "- enabled: false # on or off",
            "+ enabled: true # on or off",
            f"+ image: {IMAGE}",
        ]

    def test_an_image_that_the_base_names_is_kept(self):
        base = machine_config(form="document", enabled=False, image=OTHER_IMAGE)
        wanted = edited(base, mode="enabled", contract="v1.14", role="controlplane", image=IMAGE)
        assert kube_proxy_part(wanted) == KubeProxyPart("document", True, OTHER_IMAGE, explicit=True)

    def test_an_image_that_is_written_down_as_nothing_is_replaced(self):
        base = machine_config(form="document", enabled=False).replace(b"enabled: false", b'image: ""\nenabled: false')
        wanted = edited(base, mode="enabled", contract="v1.14", role="controlplane", image=IMAGE)
        assert kube_proxy_part(wanted).image == IMAGE

    def test_enabling_without_any_image_is_refused(self):
        with pytest.raises(ProxyImageUnknown) as caught:
            edited(
                machine_config(form="document", enabled=False), mode="enabled", contract="v1.14", role="controlplane"
            )
        assert caught.value.reason == "ProxyImageUnknown"

    def test_enabled_is_written_down(self):
        base = machine_config(form="document", image=IMAGE).replace(b"enabled: true # on or off\n", b"")
        wanted = edited(base, mode="enabled", contract="v1.14", role="controlplane")
        assert kube_proxy_part(wanted).explicit
        assert changed_lines(base, wanted) == ["+ enabled: true"]

    @pytest.mark.parametrize("mode", ["enabled", "replaced"])
    def test_a_missing_document_is_appended(self, mode):
        base = machine_config(form="none")
        wanted = edited(base, mode=mode, contract="v1.14", role="controlplane", image=IMAGE)
        assert wanted.startswith(base)
        image = {"image": IMAGE} if mode == "enabled" else {}
        document = {"apiVersion": "v1alpha1", "kind": "KubeProxyConfig", "enabled": mode == "enabled", **image}
        assert trees(wanted[len(base) :]) == [document]

    @pytest.mark.parametrize("end", [b"", b"\n", b"\n...\n", b"\n\n# the end\n", b"\r\n"])
    def test_appending_respects_how_the_text_ends(self, end):
        base = b"version: v1alpha1\nmachine:\n  type: controlplane"
        base = base.replace(b"\n", b"\r\n") + end if end == b"\r\n" else base + end
        wanted = edited(base, mode="replaced", contract="v1.14", role="controlplane")
        assert wanted.startswith(base)
        assert len(trees(wanted)) == 2
        assert (b"\r\n" in wanted[len(base) :]) is (b"\r\n" in base)

    def test_a_text_whose_end_would_change_its_meaning_is_refused(self):
        base = b"version: v1alpha1\n---\nkind: Other\ntext: |+\n  kept"
        with pytest.raises(ConfigRefused, match="would change more"):
            edited(base, mode="replaced", contract="v1.14", role="controlplane")

    def test_the_block_of_the_older_form_goes_and_its_settings_are_kept(self):
        base = machine_config(form="legacy", enabled=True, image=OTHER_IMAGE).replace(
            b"        disabled: false\n", b"        mode: iptables\n        extraArgs:\n            v: 2\n"
        )
        wanted = edited(base, mode="enabled", contract="v1.14", role="controlplane", image=IMAGE)
        assert "proxy" not in trees(wanted)[0]["cluster"]
        assert trees(wanted)[-1] == {
            "apiVersion": "v1alpha1",
            "kind": "KubeProxyConfig",
            "enabled": True,
            "image": OTHER_IMAGE,
            "mode": "iptables",
            "extraArgs": {"v": 2},
        }
        assert not kube_proxy_part(wanted).conflict

    def test_a_conflict_of_both_forms_is_settled(self):
        base = (
            machine_config(form="legacy")
            + b"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: true\nimage: x:1\n"
        )
        wanted = edited(base, mode="replaced", contract="v1.14", role="controlplane")
        assert kube_proxy_part(wanted) == KubeProxyPart("document", False, "x:1", explicit=True)

    def test_a_worker_gets_no_document(self):
        base = machine_config("worker", form="none")
        assert edited(base, mode="replaced", contract="v1.14", role="worker") == base
        assert edited(base, mode="enabled", contract="v1.14", role="worker") == base

    def test_a_block_of_a_worker_goes_only_when_it_says_otherwise(self):
        base = machine_config("worker", form="legacy", enabled=True)
        assert edited(base, mode="enabled", contract="v1.14", role="worker") == base
        wanted = edited(base, mode="replaced", contract="v1.14", role="worker")
        assert changed_lines(base, wanted) == ["-     proxy:", "-         disabled: false"]

    def test_a_worker_with_the_document_is_refused(self):
        base = machine_config("worker", form="document", image=IMAGE)
        with pytest.raises(ConfigRefused, match="control planes only"):
            edited(base, mode="replaced", contract="v1.14", role="worker")


class TestLegacyForm:
    @pytest.mark.parametrize("role", ["controlplane", "worker"])
    def test_the_flag_is_changed_in_its_place(self, role):
        base = machine_config(role, form="legacy", enabled=True, image=IMAGE)
        wanted = edited(base, mode="replaced", contract="v1.13", role=role)
        assert changed_lines(base, wanted) == ["-         disabled: false", "+         disabled: true"]

    def test_a_missing_flag_is_added_behind_the_other_members(self):
        base = machine_config(form="legacy", image=IMAGE).replace(b"        disabled: false\n", b"")
        wanted = edited(base, mode="enabled", contract="v1.13", role="controlplane")
        assert changed_lines(base, wanted) == ["+         disabled: false"]

    @pytest.mark.parametrize(
        "cluster",
        [
            "cluster:\n  id: x\n  proxy: {}\n  token: y\n",
            "cluster:\n  id: x\n  proxy: {}\n",
            "cluster:\n  proxy: {}\n",
            "cluster:\n  id: x\n  proxy:\n",
            "cluster:\n  id: x\n",
            "cluster: {}\n",
            "cluster:\n",
            "",
            "cluster:\n  id: x\n  proxy: {image: x}\n",
        ],
    )
    def test_a_missing_or_empty_block_is_made(self, cluster):
        base = f"{LEGACY}{cluster}debug: false\n".encode()
        wanted = edited(base, mode="replaced", contract="v1.13", role="controlplane")
        before, after = trees(base)[0], trees(wanted)[0]
        assert after["cluster"]["proxy"]["disabled"] is True
        kept = {key: value for key, value in (before.get("cluster") or {}).items() if key != "proxy"}
        assert {key: value for key, value in after["cluster"].items() if key != "proxy"} == kept
        assert {key: before[key] for key in before if key != "cluster"} == {
            key: after[key] for key in after if key != "cluster"
        }

    def test_the_flag_inside_a_flow_mapping_is_changed_there(self):
        base = f"{LEGACY}cluster:\n  proxy: {{disabled: false, image: x}}\n".encode()
        wanted = edited(base, mode="replaced", contract="v1.13", role="controlplane")
        assert wanted == base.replace(b"disabled: false", b"disabled: true")

    def test_a_document_becomes_a_block(self):
        base = machine_config(form="document", enabled=True, image=OTHER_IMAGE)
        wanted = edited(base, mode="replaced", contract="v1.13", role="controlplane")
        assert kube_proxy_part(wanted) == KubeProxyPart("legacy", False, OTHER_IMAGE, explicit=True)
        assert not any(line.startswith(("- machine", "- token")) for line in changed_lines(base, wanted))


@pytest.mark.parametrize("form", ["document", "legacy", "none"])
@pytest.mark.parametrize("contract", ["v1.13", "v1.14"])
@pytest.mark.parametrize("mode", ["enabled", "replaced"])
class TestEveryEdit:
    def test_it_says_what_is_wanted_and_once_more_changes_nothing(self, form, contract, mode):
        wanted = edited(
            machine_config(form=form, image=IMAGE), mode=mode, contract=contract, role="controlplane", image=IMAGE
        )
        part = kube_proxy_part(wanted)
        assert part.enabled is (mode == "enabled")
        assert part.explicit
        assert not part.conflict
        assert edited(wanted, mode=mode, contract=contract, role="controlplane", image=IMAGE) == wanted

    def test_documents_that_nobody_knows_stay_byte_for_byte(self, form, contract, mode):
        base = machine_config(form=form, image=IMAGE)
        wanted = edited(base, mode=mode, contract=contract, role="controlplane", image=IMAGE)
        kinds = ("SomethingNew", "HostnameConfig", "KubePrismConfig")
        texts = [[one.text for one in split_documents(text) if one.kind in kinds] for text in (base, wanted)]
        assert texts[0] == texts[1] != []

    def test_there_and_back_keeps_the_meaning(self, form, contract, mode):
        base = machine_config(form=form, image=IMAGE)
        other = "replaced" if mode == "enabled" else "enabled"
        first = edited(base, mode=mode, contract=contract, role="controlplane", image=IMAGE)
        second = edited(first, mode=other, contract=contract, role="controlplane", image=IMAGE)
        assert edited(second, mode=mode, contract=contract, role="controlplane", image=IMAGE) == first or form == "none"


class TestRefusals:
    def test_a_text_without_the_older_document_is_refused(self):
        with pytest.raises(ConfigRefused, match="no v1alpha1 document"):
            edited(b"kind: HostnameConfig\n", mode="replaced", contract="v1.14", role="controlplane")

    def test_what_the_splice_refuses_is_said_with_its_reason(self):
        base = f"{LEGACY}---\n{{apiVersion: v1alpha1, kind: KubeProxyConfig}}\n".encode()
        with pytest.raises(ConfigRefused, match="cannot be edited: FlowMapping"):
            edited(base, mode="replaced", contract="v1.14", role="controlplane")

    @pytest.mark.parametrize(("form", "contract"), [*itertools.product(["document", "legacy"], ["v1.13", "v1.14"])])
    def test_no_refusal_shows_a_secret(self, form, contract):
        broken = (
            machine_config(form=form)
            .replace(b"cluster:\n", b"cluster: &all\n")
            .replace(b"debug: false", b"debug: *all")
        )
        with pytest.raises(ConfigRefused) as caught:
            edited(
                broken.replace(b"kind: KubeProxyConfig", b"kind: [KubeProxyConfig"),
                mode="replaced",
                contract=contract,
                role="controlplane",
            )
        assert SECRET not in str(caught.value)
        assert KEY not in str(caught.value)


class TestContract:
    @pytest.mark.parametrize(
        ("forms", "version", "contract"),
        [
            (["none", "document"], "v1.13.0", "v1.14"),
            (["legacy", "none"], "v1.14.2", "v1.13"),
            (["legacy", "document"], "v1.14.0", "v1.14"),
            (["none"], "v1.14.0", "v1.14"),
            (["none"], "1.15.0-alpha.1-g0a1b2c3", "v1.14"),
            (["none"], "v1.13.9", "v1.13"),
            (["none"], "v2.0.0", "v1.14"),
        ],
    )
    def test_the_form_in_use_decides_then_the_version(self, forms, version, contract):
        assert contract_of([machine_config(form=form) for form in forms], version=version) == contract

    def test_without_either_nothing_is_decided(self):
        with pytest.raises(ConfigRefused, match="version of Talos is not known"):
            contract_of([machine_config()], version="")


class TestSecretValues:
    def test_tokens_and_keys_are_known(self):
        assert {SECRET, KEY} <= set(secret_values(machine_config()))

    def test_images_and_names_are_not_secret(self):
        values = secret_values(machine_config(form="document", image=IMAGE))
        assert not {IMAGE, "north", "controlplane"} & set(values)

    def test_of_a_text_that_cannot_be_read_all_longer_words_are(self):
        assert SECRET in secret_values(b"broken: [\n" + machine_config())
