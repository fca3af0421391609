"""Quirks of real Cilium values under Flux, seen in public repositories; the files here are our own (cni-switch.md, 12.4)."""

import pytest

from tests.support.values import Public, require_row

ROWS = (
    Public(
        "onedr0p/home-ops", "C", "keys in alphabetical order, and a longer key with the same beginning on the next line",
        """
        === kube/net/cilium/release.yaml
        ---
        apiVersion: helm.toolkit.fluxcd.io/v2
        kind: HelmRelease
        metadata:
          name: cilium
        spec:
          chartRef: {kind: OCIRepository, name: cilium}
          valuesFrom:
            - kind: ConfigMap
              name: cilium-values
        === kube/net/cilium/kustomization.yaml
        configMapGenerator:
          - name: cilium-values
            files:
              - values.yaml=helm/values.yaml
        === kube/net/cilium/helm/values.yaml
        ---
        bpf:
          masquerade: true
          # tproxy: true
        k8sServiceHost: 127.0.0.1
        k8sServicePort: 7445
        kubeProxyReplacement: false
        kubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256
        operator:
          rollOutPods: true
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"),
        "kube/net/cilium/helm/values.yaml", "k8sServiceHost in kube/net/cilium/helm/values.yaml",
    ),
    Public(
        "onedr0p/home-ops, in 2023", "B", "a host that was never filled in, with a comment in its place, and an old chart's word",
        """
        === net/cilium.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart:
            spec: {chart: cilium, version: 1.14.0-rc.1}
          values:
            k8sServiceHost: #TODO the address
            k8sServicePort: 6443
            kubeProxyReplacement: disabled
            rollOutCiliumPods: true
            ui:
              hosts:
                - &host hubble.example.net
              tls:
                - hosts: [*host]
        """,
        ("-     k8sServiceHost: #TODO the address", "+     k8sServiceHost: localhost #TODO the address",
         "-     k8sServicePort: 6443", "+     k8sServicePort: 7445",
         "-     kubeProxyReplacement: disabled", "+     kubeProxyReplacement: true"),
        "net/cilium.yaml",
    ),
    Public(
        "Diaoul/home-ops", "C", "inline values beside the generated ones that do not set the key, with a substitution in them",
        """
        === apps/cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.16.2}}
          valuesFrom:
            - {kind: ConfigMap, name: cilium-helm-values}
          values:
            hubble:
              ui:
                hosts: ["hubble.${DOMAIN}"]
        === apps/cilium/kustomization.yaml
        configMapGenerator:
          - name: cilium-helm-values
            files: [values.yaml=./values.yaml]
        === apps/cilium/values.yaml
        kubeProxyReplacement: false
        k8sServiceHost: api.example.net
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ rollOutCiliumPods: true"),
        "apps/cilium/values.yaml",
    ),
    Public(
        "DavidIlie/home-cluster", "C", "a values file under another name, with remarks between its keys",
        """
        === apps/cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.18.0}}
          valuesFrom:
            - {kind: ConfigMap, name: cilium-helm-values}
          values:
            hubble: {enabled: true}
        === apps/cilium/kustomization.yaml
        configMapGenerator:
          - name: cilium-helm-values
            files: [values.yaml=./helm-values.yaml]
        === apps/cilium/helm-values.yaml
        ---
        cgroup: {hostRoot: /sys/fs/cgroup}
        # NOTE: only with more than one interface
        # devices: eno+
        kubeProxyReplacement: false
        # NOTE: hubble is in the release
        kubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ k8sServiceHost: localhost",
         "+ k8sServicePort: 7445", "+ rollOutCiliumPods: true"),
        "apps/cilium/helm-values.yaml",
    ),
    Public(
        "PrymalInstynct/k8s-cluster", "C", "a ConfigMap in a file of its own, whose host Flux substitutes",
        """
        === cilium/release.yaml
        kind: HelmRelease
        metadata:
          name: cilium

        spec:
          chart:
            spec:
              chart: cilium
              version: 1.14.4
          valuesFrom:
            - name: cilium-values
              kind: ConfigMap
              valuesKey: values.yaml
        === cilium/helmvalues.yaml
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: cilium-values
        data:
          values.yaml: |
            ipv4NativeRoutingCIDR: "${CLUSTER_CIDR}"
            k8sServiceHost: "${VIP}"
            k8sServicePort: 6443
            kubeProxyReplacement: false
            l2announcements:
              # see the thread
              leaseDuration: 120s
            rollOutCiliumPods: true
        """,
        ("-     kubeProxyReplacement: false", "+     kubeProxyReplacement: true"), "cilium/helmvalues.yaml",
        "is kept: it is substituted later",
    ),
    Public(
        "Samoth69/Fern", "K", "the ConfigMap that the release takes its values from is made somewhere else",
        """
        === apps/cilium/app/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.18.1}}
          valuesFrom: [{kind: ConfigMap, name: cilium-helm-values}]
        """,
        "NotReadable", note="values.yaml of ConfigMap cilium-helm-values is not in this repository",
    ),
    Public(
        "FreekingDean/homelab", "B", "chartRef instead of a chart, and a comment behind the address",
        """
        === cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chartRef:
            kind: OCIRepository
            name: cilium
          interval: 1h
          values:
            tunnelPort: 8473 # not the usual one, see #12
            kubeProxyReplacement: false
            k8sServiceHost: localhost # kubeprism
            k8sServicePort: 7445
            bgpControlPlane:
              enabled: true
        """,
        ("-     kubeProxyReplacement: false", "+     kubeProxyReplacement: true", "+     rollOutCiliumPods: true"),
        "cilium/release.yaml", "version of the chart is not known",
    ),
    Public(
        "typedrat/homelab", "B", "four spaces of indentation, a range as version, a quoted port",
        """
        === cilium/release.yaml
        kind: HelmRelease
        metadata:
            name: cilium
        spec:
            chart:
                spec:
                    chart: cilium
                    version: ">=1.16.2 <1.17.0"
            values:
                cni:
                    exclusive: false
                kubeProxyReplacement: false
                caps:
                    agent:
                        - CHOWN
                k8sServicePort: "6443"
        """,
        ("-         kubeProxyReplacement: false", "+         kubeProxyReplacement: true",
         "+         k8sServiceHost: localhost", '-         k8sServicePort: "6443"', '+         k8sServicePort: "7445"',
         "+         rollOutCiliumPods: true"),
        "cilium/release.yaml",
    ),
    Public(
        "lestherll/homelab", "B", "long comments that name the key, above, below and behind other keys",
        """
        === cilium/release.yaml
        # kubeProxyReplacement: true is what this file once said.
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: "1.20.0"}}
          values:
            # --- Datapath ----------------------------------------------------
            # kubeProxyReplacement also serves NodePort, hence:
            kubeProxyReplacement: false

            # Not part of kubeProxyReplacement: the MTU.
            MTU: 1500

            # --- Footprint ----------------------------------------------------
            resources:
              requests: { cpu: 100m, memory: 256Mi }
              # kubeProxyReplacement: false
        """,
        ("-     kubeProxyReplacement: false", "+     kubeProxyReplacement: true", "+     k8sServiceHost: localhost",
         "+     k8sServicePort: 7445", "+     rollOutCiliumPods: true"),
        "cilium/release.yaml",
    ),
    Public(
        "thebigbone/homelab", "C", "an empty `values:` and the ConfigMap as second document of the same file",
        """
        === cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium, namespace: kube-system}
        spec:
          chart:
            spec:
              chart: cilium
              # renovate: datasource=helm
              version: 1.19.4
          values:
          valuesFrom:
            - kind: ConfigMap
              name: cilium-values
              valuesKey: values.yaml
        ---
        kind: ConfigMap
        metadata:
          name: cilium-values
        data:
          values.yaml: |
            k8sServiceHost: 192.0.2.154
            k8sServicePort: 6443
            kubeProxyReplacement: false
            hubble:
              metrics:
                enabled:
                - dns:query
        """,
        ("-     kubeProxyReplacement: false", "+     kubeProxyReplacement: true", "+     rollOutCiliumPods: true"),
        "cilium/release.yaml",
    ),
    Public(
        "jbaikge/homelab-talos", "C", "a stripped block in a ConfigMap of its own, lists in brackets, blank lines, comments",
        """
        === cilium/config-map.yaml
        kind: ConfigMap
        metadata:
          name: cilium-values
        data:
          values.yaml: |-
            cluster:
              name: north

            kubeProxyReplacement: false

            # Talos
            k8sServiceHost: localhost
            securityContext:
              agent: [ CHOWN, KILL ]

            #debug:
            #  enabled: true

            # Roll out by itself
            rollOutCiliumPods: false
        === cilium/helm-release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.17.x}}
          valuesFrom: [{kind: ConfigMap, name: cilium-values}]
        """,
        ("-     kubeProxyReplacement: false", "+     kubeProxyReplacement: true",
         "-     rollOutCiliumPods: false", "+     rollOutCiliumPods: true"),
        "cilium/config-map.yaml",
    ),
    Public(
        "raphaelCamblong/homelab-iac", "C", "the generator names a file without a key, and no hash suffix",
        """
        === cilium/kustomization.yaml
        kind: Kustomization
        configMapGenerator:
          - name: cilium-values
            namespace: kube-system
            files:
              - values.yaml
        generatorOptions:
          disableNameSuffixHash: true
        === cilium/helmrelease.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.18.2}}
          valuesFrom: [{kind: ConfigMap, name: cilium-values}]
        === cilium/values.yaml
        ipam: {mode: kubernetes}
        kubeProxyReplacement: false
        k8sServiceHost: 192.0.2.95
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "cilium/values.yaml",
    ),
    Public(
        "buroa/k8s-gitops", "C", "a Helmfile for the bootstrap that reads the very same values file",
        """
        === bootstrap/helmfile.yaml
        releases:
          - name: cilium
            chart: oci://registry.example.net/charts/cilium
            version: 1.18.0
            values: ["../apps/cilium/values.yaml"]
        === apps/cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chartRef: {kind: OCIRepository, name: cilium}
          valuesFrom: [{kind: ConfigMap, name: cilium-values}]
        === apps/cilium/kustomization.yaml
        configMapGenerator: [{name: cilium-values, files: [values.yaml]}]
        === apps/cilium/values.yaml
        kubeProxyReplacement: false
        rollOutCiliumPods: true
        k8sServiceHost: 127.0.0.1
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "apps/cilium/values.yaml",
    ),
    Public(
        "ahinko/home-ops", "A", "a Helmfile alone, with a quoted path; another release reads a file of the same name",
        """
        === bootstrap/helmfile.yaml
        releases:
          - name: cilium
            chart: cilium/cilium
            version: 1.17.2
            values:
              - "../apps/cilium/values.yaml"
          - name: coredns
            chart: oci://registry.example.net/charts/coredns
            values: [../apps/coredns/values.yaml]
        === apps/coredns/values.yaml
        replicas: 2
        === apps/cilium/values.yaml
        kubeProxyReplacement: 'false'
        rollOutCiliumPods: true
        k8sServiceHost: 127.0.0.1
        """,
        ("- kubeProxyReplacement: 'false'", "+ kubeProxyReplacement: 'true'"), "apps/cilium/values.yaml",
    ),
    Public(
        "auricom/home-ops", "C", "`rollOutPods` of the operator before the agents' own key, and `dashboards` on two levels",
        """
        === apps/cilium/release.yaml
        kind: HelmRelease
        metadata: {name: cilium}
        spec:
          chart: {spec: {chart: cilium, version: 1.18.0}}
          valuesFrom: [{kind: ConfigMap, name: cilium-values}]
        === apps/cilium/kustomization.yaml
        configMapGenerator: [{name: cilium-values, files: [values.yaml=./helm/values.yaml]}]
        === apps/cilium/helm/values.yaml
        ---
        k8sServiceHost: localhost
        kubeProxyReplacement: false
        operator:
          rollOutPods: true
          dashboards:
            enabled: true
        dashboards:
          enabled: true
        rollOutCiliumPods: false
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true",
         "- rollOutCiliumPods: false", "+ rollOutCiliumPods: true"),
        "apps/cilium/helm/values.yaml",
    ),
    Public(
        "Smana/cloud-native-ref", "B", "a chart that takes both words, another key without a value, a comment behind `rollOutPods`",
        """
        === cilium/release.yaml
        kind: HelmRelease
        metadata:
          name: cilium
        spec:
          chart:
            spec:
              chart: cilium
              version: "1.14.0"
          values:
            kubeProxyReplacement: strict
            operator:
              rollOutPods: true # when the values change
            k8sServiceHost: api.example.net
            envoy:
              resources:
                requests:
                  memory:
        """,
        ("-     kubeProxyReplacement: strict", "+     kubeProxyReplacement: true", "+     rollOutCiliumPods: true"),
        "cilium/release.yaml",
    ),
    Public(
        "onedr0p/cluster-template", "K", "a template whose marks are YAML comments, so that it reads as YAML",
        """
        === templates/cilium/values.yaml.j2
        ---
        #% if bgp %#
        bgpControlPlane: {enabled: true}
        #% endif %#
        ipv4NativeRoutingCIDR: "#{ pods }#"
        kubeProxyReplacement: false
        """,
        "Generated", note="templates/cilium/values.yaml.j2 is a template",
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.repository)
def test_a_repository_of_this_form_changes_in_exactly_the_wanted_lines(row):
    require_row(row)
