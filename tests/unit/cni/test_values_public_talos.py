"""Quirks of real Cilium values in Talos configuration and in what tools write, seen in public repositories; the files here are our own."""

import pytest

from tests.support.values import Public, require_row

ROWS = (
    Public(
        "nutanix-cloud-native/cluster-api-runtime-extensions-nutanix", "K", "the kustomization is a template",
        """
        === hack/cilium/kustomization.yaml.tmpl
        kind: Kustomization
        helmCharts:
        - name: cilium
          chart: cilium
          version: ${CILIUM_VERSION}
          valuesFile: helm-values.yaml
        === hack/cilium/helm-values.yaml
        hubble: {enabled: true}
        """,
        "Generated", note="hack/cilium/kustomization.yaml.tmpl is a template",
    ),
    Public(
        "soupglasses/ops", "K", "an inline manifest with a Job and flags only, no values",
        """
        === talos/patches/cilium.yaml
        cluster:
          proxy:
            disabled: true

          inlineManifests:
            - name: cilium-install
              contents: |
                ---
                kind: ServiceAccount
                metadata: {name: cilium-install}
                ---
                kind: Job
                metadata: {name: cilium-install}
                spec:
                  command:
                    - cilium
                    - install
                    - --set
                    - kubeProxyReplacement=true
        """,
        "NoValuesInManifest", note="--set kubeProxyReplacement=true, change that flag",
    ),
    Public(
        "tdgiertz/omni-kube-homelab", "K", "rendered objects in an inline manifest, `data` before `kind`",
        """
        === patches/cilium.yaml
        cluster:
          inlineManifests:
            - name: kube-system
              contents: |
                kind: ServiceAccount
                metadata: {name: cilium}
                ---
                apiVersion: v1
                data:
                  kube-proxy-replacement: "true"
                  kube-proxy-replacement-healthz-bind-address: ""
                kind: ConfigMap
                metadata:
                  name: cilium-config
        """,
        "Rendered", note="kube-system holds rendered objects",
    ),
    Public(
        "Jubblin/talos-flux", "K", "rendered objects with the chart's own marks and a key in an inline manifest",
        """
        === patches/cilium.yaml
        cluster:
          inlineManifests:
            - name: cilium
              contents: |
                ---
                # Source: cilium/templates/cilium-ca-secret.yaml
                kind: Secret
                metadata: {name: cilium-ca}
                data: {ca.key: bm8gc2VjcmV0}
                ---
                # Source: cilium/templates/cilium-configmap.yaml
                kind: ConfigMap
                metadata: {name: cilium-config}
                data: {kube-proxy-replacement: "true"}
        """,
        "Rendered", note="manifest sync",
    ),
    Public(
        "celttechie/talos-k8s-platform", "A", "the Talos side of the switch in a patch, which is reported and left alone",
        """
        === talos/patches/cilium.yaml
        # before Cilium, with kubeProxyReplacement
        cluster:
          proxy:
            disabled: true
        === cilium/values.yaml
        kubeProxyReplacement: false
        k8sServiceHost: localhost
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "cilium/values.yaml",
        "cluster.proxy.disabled in talos/patches/cilium.yaml is the Talos side of the switch",
    ),
    Public(
        "thatMacAdmin/geekzoo-talos-prod", "K", "rendered manifests with long comments and plain scalars over several lines",
        """
        === infrastructure/cilium/cilium.yaml
        ---
        # Source: cilium/templates/namespace.yaml
        kind: Namespace
        metadata:
          name: "cilium-secrets"
          annotations:

        ---
        # Source: cilium/templates/cilium-configmap.yaml
        kind: ConfigMap
        metadata:
          name: cilium-config
        data:

          # Off unless somebody
          # turns it on.
          metrics:
            write-cni-file
            sync-host-ips
          kube-proxy-replacement: "true"
        """,
        "Rendered", note="infrastructure/cilium/cilium.yaml:20",
    ),
    Public(
        "eleven-am/homelab", "K", "a template of the machine configuration that gets the manifest as a variable",
        """
        === modules/talos/master.yaml.tpl
        cluster:
          inlineManifests:
            - name: cilium
              contents: ${CILIUM_MANIFEST}
        """,
        "Generated", note="modules/talos/master.yaml.tpl is a template",
    ),
    Public(
        "kube-hetzner/terraform-hcloud-kube-hetzner", "K", "a template of a HelmChart whose values are a variable",
        """
        === templates/cilium.yaml.tpl
        kind: HelmChart
        spec:
          chart: cilium
          valuesContent: |-
            ${values}
        """,
        "Generated", note="templates/cilium.yaml.tpl is a template",
    ),
    Public(
        "zifeo/terraform-openstack-rke2", "K", "the key in a template, in quotes and with a blank behind it",
        """
        === manifests/cilium.yaml.tpl
        kind: HelmChartConfig
        spec:
          valuesContent: |-
            kubeProxyReplacement: "strict"%
            k8sServiceHost: ${host}
        """.replace("%", " "),
        "Generated", note="manifests/cilium.yaml.tpl is a template",
    ),
    Public(
        "yuki-nemurenai/talos-k8s-proxmox", "K", "one block of Terraform for each value",
        """
        === cilium.tf
        resource "helm_release" "cilium" {
          chart = "cilium"
          set {
            name  = "kubeProxyReplacement"
            value = "true"
          }
        }
        """,
        "Generated", note="cilium.tf generates the values (Terraform)",
    ),
    Public(
        "shutthegoatup/homelab", "K", "Terraform with the key under another one",
        """
        === modules/network/cilium.tf
        resource "helm_release" "cilium" {
          set {
            name  = "global.kubeProxyReplacement"
            value = "strict"
          }
        }
        """,
        "Generated", note="modules/network/cilium.tf",
    ),
    Public(
        "evanofslack/slacknet", "K", "a script with `--set=` in one word",
        """
        === talos/cilium/helm.sh
        helm install cilium cilium/cilium --version 1.17.2 \\
            --set=kubeProxyReplacement=true
        """,
        "Pipeline", note="helm install in talos/cilium/helm.sh",
    ),
    Public(
        "bvierra/homelab-k8s", "J", "values as text without a last newline in a text of an inline manifest, a variable at another key",
        """
        === talhelper/patches/cilium-values.yaml
        cluster:
          inlineManifests:
            - name: cilium-values
              contents: |
                ---
                apiVersion: v1
                kind: ConfigMap
                metadata:
                  name: cilium-values
                  namespace: kube-system
                data:
                  values.yaml: |-
                    hubble:
                      ui:
                        ingress: {hosts: ["hubble.${DOMAIN}"]}

                    # through the port on each node
                    k8sServiceHost: localhost
                    k8sServicePort: 7445
                    kubeProxyReplacement: false
                    rollOutCiliumPods: true
        """,
        ("-             kubeProxyReplacement: false", "+             kubeProxyReplacement: true"),
        "talhelper/patches/cilium-values.yaml", "Talos creates inline manifests once",
    ),
    Public(
        "ErikLundJensen/thdctrl", "K", "a script that renders with spaces up to the line ends, comments at its end",
        """
        === talos/gen-cilium.sh
        helm template       \\
            cilium          \\
            --set kubeProxyReplacement=true      > gen/cilium.yaml

        # Later
        #    --set routingMode=native \\
        """,
        "Pipeline", note="helm template in talos/gen-cilium.sh",
    ),
    Public(
        "michaelpesa/sre-commerce", "K", "a recipe in a file whose name begins with a dot, applied through a pipe",
        """
        === iac/talos/.justfile
        cilium:
          helm template cilium cilium/cilium --set kubeProxyReplacement=false | kubectl apply -f -
        """,
        "Pipeline", note="iac/talos/.justfile",
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.repository)
def test_a_repository_of_this_form_changes_in_exactly_the_wanted_lines(row):
    require_row(row)
