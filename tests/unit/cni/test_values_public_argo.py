"""Quirks of real Cilium values under Argo CD and in charts, seen in public repositories; the files here are our own."""

import pytest

from tests.support.values import Public, require_row

HEAD = """
        === apps/cilium.yaml
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        metadata: {name: cilium, namespace: argocd}
"""


def added(pad: int, *, quote: str = "") -> tuple[str, ...]:
    space = " " * pad
    return (
        f"- {space}kubeProxyReplacement: {quote}false{quote}",
        f"+ {space}kubeProxyReplacement: {quote}true{quote}",
        f"+ {space}k8sServiceHost: localhost",
        f"+ {space}k8sServicePort: 7445",
        f"+ {space}rollOutCiliumPods: true",
    )


ROWS = (
    Public(
        "xxczaki/homelab", "E", "a comment in the values names the key before it comes, and the file has no last newline",
        HEAD + """
        spec:
          source:
            chart: cilium
            repoURL: https://helm.example.net/
            targetRevision: 1.19.4
            helm:
              valuesObject:
                k8sServiceHost: 192.0.2.10
                # Without the overlay, so that kubeProxyReplacement: true is left alone.
                routingMode: native
                kubeProxyReplacement: false
                extraConfig:
                  ipv6-mcast-device: "eth0"
          destination: {server: "https://kubernetes.default.svc"}""",
        ("-         kubeProxyReplacement: false", "+         kubeProxyReplacement: true", "+         rollOutCiliumPods: true"),
        "apps/cilium.yaml",
    ),
    Public(
        "farhan15r/cluster-chumbucket", "E", "a list that is not indented, and remarks in another language",
        """
        === apps/cilium.yaml
        # Jaringan: chart & valuesObject disamakan — hati-hati.
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        metadata: {name: cilium}
        spec:

          sources:
          - repoURL: https://helm.example.net/
            chart: cilium
            targetRevision: 1.19.2
            helm:
              valuesObject:
                k8sServicePort: 6443
                kubeProxyReplacement: false
                l2NeighDiscovery:
                  enabled: true

          destination: {namespace: kube-system}
        """,
        ("-         k8sServicePort: 6443", "+         k8sServicePort: 7445", "-         kubeProxyReplacement: false",
         "+         kubeProxyReplacement: true", "+         k8sServiceHost: localhost", "+         rollOutCiliumPods: true"),
        "apps/cilium.yaml",
    ),
    Public(
        "s1monb/yggdrasil", "E", "the only value file is the one that comes with the chart",
        HEAD + """
        spec:
          source:
            repoURL: https://helm.example.net/
            targetRevision: 1.18.0
            chart: cilium
            helm:
              valueFiles:
                - values.yaml
          destination: {name: in-cluster}
        """,
        ("+       valuesObject:", "+         kubeProxyReplacement: true", "+         k8sServiceHost: localhost",
         "+         k8sServicePort: 7445", "+         rollOutCiliumPods: true"),
        "apps/cilium.yaml",
    ),
    Public(
        "hiroyaonoe/my-k8s-cluster", "K", "a chart from before true and false, with the word partial",
        HEAD + """
        spec:
          source:
            chart: cilium
            targetRevision: 1.11.4
            helm:
              releaseName: cilium
              values: |
                kubeProxyReplacement: partial
                hostServices:
                  enabled: false
        """,
        "ChartTooOld", note="the chart is 1.11.4",
    ),
    Public(
        "barnes-c/k8s", "D", "blank lines between the keys in the block",
        HEAD + """
        spec:
          source:
            chart: cilium
            targetRevision: 1.17.3
            helm:
              values: |
                cgroup:
                  hostRoot: /sys/fs/cgroup

                kubeProxyReplacement: false

                bpf:
                  hostLegacyRouting: true
          destination: {namespace: kube-system}
        """,
        added(8), "apps/cilium.yaml",
    ),
    Public(
        "eddycharly/kind-playground", "D", "any version of the chart, the old word, the key first in the block",
        HEAD + """
        spec:
          source:
            chart: cilium
            targetRevision: '*'
            helm:
              values: |
                kubeProxyReplacement: disabled
                k8sServiceHost: balancer.example.net
                ui:
                  hosts:
                  - hubble.example.net
        """,
        ("-         kubeProxyReplacement: disabled", "+         kubeProxyReplacement: true", "+         rollOutCiliumPods: true"),
        "apps/cilium.yaml", "version of the chart is not known",
    ),
    Public(
        "the-technat/banana", "K", "a patch range before 1.14, the key between blank lines in a stripped block",
        HEAD + """
        spec:
          source:
            chart: cilium
            targetRevision: 1.12.x
            helm:
              version: v3
              values: |-
                rollOutCiliumPods: true

                kubeProxyReplacement: "strict"

                resources: {}
        """,
        "ChartTooOld", note="the chart is 1.12.x",
    ),
    Public(
        "Piotr1215/kubernetes-box", "K", "a version with a letter before it; parameters with quoted names and not the key",
        HEAD + """
        spec:
          source:
            targetRevision: v1.13.0-rc1
            chart: cilium
            helm:
              parameters:
              - name: "hubble.relay.enabled"
                value: "true"
        """,
        "ChartTooOld", note="the chart is v1.13.0-rc1",
    ),
    Public(
        "kenlasko/k8s", "G", "the source with the ref names no revision, the lists are not indented, any minor version",
        HEAD + """
        spec:
          sources:
          - repoURL: 'https://helm.example.net/'
            targetRevision: 1.*
            chart: cilium
            helm:
              valueFiles:
              - $values/cilium/values.yaml
          - repoURL: 'git@git.example.net:net/k8s.git'
            ref: values
        === cilium/values.yaml
        # -- of the agents
        kubeProxyReplacement: 'false'
        k8sServiceHost: 192.0.2.1
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: 'false'", "+ kubeProxyReplacement: 'true'"), "cilium/values.yaml",
    ),
    Public(
        "oquinena/homelab-k8s", "G", "the source with the ref comes after the chart; a comment stands above each key",
        HEAD + """
        spec:
          # where the values are
          sources:
            - repoURL: https://helm.example.net/
              chart: cilium
              targetRevision: 1.18.3
              helm:
                valueFiles:
                  - $values/networking/cilium-values.yaml

            - repoURL: https://git.example.net/homelab.git
              targetRevision: HEAD
              ref: values
        === networking/cilium-values.yaml
        # Cilium

        # IP Address Management
        ipam:
          mode: cluster-pool

        # Replace kube-proxy
        kubeProxyReplacement: false

        # Operator
        operator:
          replicas: 1
        """,
        added(0), "networking/cilium-values.yaml",
    ),
    Public(
        "mimartin12/kubernetes-lab", "G", "a third source with manifests, and paths deep in the same repository",
        HEAD + """
        spec:
          sources:
            - repoURL: https://helm.example.net
              targetRevision: 1.19.1
              chart: cilium
              helm:
                valueFiles:
                  - $values/argocd/values/cilium.yaml
            - repoURL: https://git.example.net/lab
              targetRevision: HEAD
              ref: values
            # pools
            - repoURL: https://git.example.net/lab
              targetRevision: HEAD
              path: argocd/manifests/cilium
        === argocd/values/cilium.yaml
        k8sServiceHost: "localhost"
        k8sServicePort: "7445"
        kubeProxyReplacement: "false"
        """,
        ('- kubeProxyReplacement: "false"', '+ kubeProxyReplacement: "true"', "+ rollOutCiliumPods: true"),
        "argocd/values/cilium.yaml",
    ),
    Public(
        "di3go-sona/homelab", "F", "names with escaped dots, and values that are quoted in some items and not in others",
        HEAD + r"""
        spec:
          sources:
            - repoURL: https://helm.example.net/
              chart: cilium
              targetRevision: 1.15.5
              helm:
                parameters:
                  - name: kubeProxyReplacement
                    value: "false"
                  - name: l2announcements.leaseDuration
                    value: 3s
                  - name: ingressController.service.annotations.lbipam\.cilium\.io/ips
                    value: "192.0.2.20"
            - repoURL: https://git.example.net/homelab.git
              path: apps/cilium/resources
        """,
        ('-             value: "false"', '+             value: "true"',
         "+           - name: k8sServiceHost", "+             value: localhost",
         "+           - name: k8sServicePort", '+             value: "7445"',
         "+           - name: rollOutCiliumPods", '+             value: "true"'),
        "apps/cilium.yaml",
    ),
    Public(
        "rverspaij/homelab", "I", "the chart's own values file is named as value file too; a blank line under the key",
        """
        === argocd/cilium.yaml
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        metadata: {name: cilium}
        spec:
          source:
            repoURL: https://git.example.net/homelab
            targetRevision: main
            path: charts/cilium/chart
            helm:
              valueFiles:
                - values.yaml
        === charts/cilium/chart/Chart.yaml
        name: cilium-wrapper
        dependencies:
          - name: cilium
            version: 1.18.1
        === charts/cilium/chart/values.yaml
        cilium:

          kubeProxyReplacement: false

          k8sServiceHost: localhost
          k8sServicePort: 7445

          devices: eno1
        """,
        ("-   kubeProxyReplacement: false", "+   kubeProxyReplacement: true", "+   rollOutCiliumPods: true"),
        "charts/cilium/chart/values.yaml",
    ),
    Public(
        "FlorisFeddema/homelab", "I", "the old word in a chart that takes both, trailing spaces, no last newline",
        """
        === apps/cilium/Chart.yaml
        name: cilium

        dependencies:
          - name: cilium
            version: 1.14.6
        === apps/cilium/values.yaml
        cilium:
          k8sServiceHost: k8s.example.net
          kubeProxyReplacement: strict
          rollOutCiliumPods: true
          tolerations:
            - operator: Exists
          %
          ui:
            annotations:
              auth: |-
                https://hubble.example.net/start?rd=$escaped
          cgroup:
            autoMount:
              enabled: false            %
          dashboards:
            enabled: true""".replace("%", "  "),
        ("-   kubeProxyReplacement: strict", "+   kubeProxyReplacement: true"), "apps/cilium/values.yaml",
    ),
    Public(
        "scareyo/homelab", "I", "the document begins with three dashes and the key stands between its siblings",
        """
        === apps/cilium/Chart.yaml
        name: cilium
        dependencies: [{name: cilium, version: 1.17.0}]
        === apps/cilium/values.yaml
        ---
        cilium:
          ipam:
            mode: kubernetes
          kubeProxyReplacement: false
          caps: [CHOWN, KILL]
        """,
        added(2), "apps/cilium/values.yaml",
    ),
    Public(
        "nicolastakashi/homelab", "I", "values of the wrapper itself before the dependency, everything quoted",
        """
        === apps/cilium/Chart.yaml
        name: net
        dependencies: [{name: cilium, version: 1.16.1, repository: https://helm.example.net}]
        === apps/cilium/values.yaml
        lbIPPool:
          start: "192.0.2.240"
        cilium:
          rollOutCiliumPods: true
          k8sServiceHost: "192.0.2.219"
          k8sServicePort: "6443"
          MTU: 1500
          kubeProxyReplacement: "false"
        """,
        ('-   kubeProxyReplacement: "false"', '+   kubeProxyReplacement: "true"'), "apps/cilium/values.yaml",
    ),
    Public(
        "ondrejnr/aiot-platform", "I", "a snapshot of live values: lists that are not indented, a comment that names the chart's key",
        """
        === apps/cilium/Chart.yaml
        name: cilium-app
        dependencies: [{name: cilium, version: 1.16.1}]
        === apps/cilium/values.yaml
        # Live values (snapshot)
        # chart key: cilium
        cilium:
          metrics:
            enabled:
            - dns
            - drop
          k8sServiceHost: 192.0.2.2
          kubeProxyReplacement: false
          operator:
            replicas: 2
        """,
        ("-   kubeProxyReplacement: false", "+   kubeProxyReplacement: true", "+   rollOutCiliumPods: true"),
        "apps/cilium/values.yaml",
    ),
    Public(
        "LTD-Beget/kaas-helm-charts", "K", "a template of a chart that writes the wrapper's values",
        """
        === charts/addons/templates/helpers.tpl
        {{- define "addons.cilium" }}
        default: |
          cilium:
            kubeProxyReplacement: true
        {{- end }}
        """,
        "Generated", note="charts/addons/templates/helpers.tpl is a template",
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.repository)
def test_a_repository_of_this_form_changes_in_exactly_the_wanted_lines(row):
    require_row(row)
