"""Quirks of real Cilium values in plain files and under kustomize, seen in public repositories; the files here are our own."""

import pytest

from tests.support.values import Public, require_row

ROWS = (
    Public(
        "waveFrontSet/homelab", "A", "the key is the first line of the file, and no host is set",
        """
        === infrastructure/cilium/values.yaml
        kubeProxyReplacement: false
        caps:
          agent:
            - CHOWN
        cgroup:
          hostRoot: '/sys/fs/cgroup'
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ k8sServiceHost: localhost",
         "+ k8sServicePort: 7445", "+ rollOutCiliumPods: true"),
        "infrastructure/cilium/values.yaml",
    ),
    Public(
        "Tim275/talos-homelab", "A", "a variable of Terraform names the file; comments stand in columns behind values",
        """
        === tofu/cluster.auto.tfvars
        cluster = {
          proxmox = "north"
          cilium = { values_file_path = "talos/cilium-values.yaml" }
        }
        === tofu/talos/cilium-values.yaml
        # https://example.net/cilium/values.yaml
        cluster:
          name: north

        kubeProxyReplacement: false

        # Talos
        k8sServiceHost: localhost
        operator:
          limits:
            cpu: 1000m        # for the gateway
            memory: 512Mi     # for the gateway

        # Roll out agents
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "tofu/talos/cilium-values.yaml",
    ),
    Public(
        "rhysj6/homelab", "A", "Terraform installs the chart with a values file that is read as it is",
        """
        === core/cilium.tf
        resource "helm_release" "cilium" {
          chart      = "cilium"
          version    = "1.17.0"
          values = [
            "${file("${path.module}/cilium_values.yaml")}"
          ]
        }
        === core/cilium_values.yaml
        kubeProxyReplacement: false
        k8sServiceHost: 127.0.0.1
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ rollOutCiliumPods: true"),
        "core/cilium_values.yaml", "core/cilium.tf generates the values (Terraform)",
    ),
    Public(
        "Jubblin/talos-cilium", "A", "a generated ConfigMap that a Job mounts, and a comment that shows the command",
        """
        === cilium/kustomization.yaml
        # kubectl apply -k cilium/
        namespace: kube-system
        resources: [jobs/job.yaml]
        configMapGenerator:
          - name: cilium-values
            files:
              - values.yaml
        === cilium/jobs/job.yaml
        kind: Job
        metadata: {name: cilium-install}
        spec:
          template:
            spec:
              containers:
                - command: [cilium, install, --values, /values/values.yaml]
        === cilium/values.yaml
        # helm install cilium cilium/cilium -f cilium/values.yaml
        #   - kubeProxyReplacement needs the patch first
        ipam:
          mode: kubernetes

        kubeProxyReplacement: false

        k8sServiceHost: localhost
        k8sServicePort: 7445
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ rollOutCiliumPods: true"),
        "cilium/values.yaml",
    ),
    Public(
        "chaijunkin/home-ops", "A", "a Job for the bootstrap with the flag as an argument of its own",
        """
        === terraform/inline/cilium-install.yaml
        ---
        kind: Job
        metadata:
          name: cilium-install
        spec:
          template:
            spec:
              containers:
                - name: cilium-install
                  command:
                    - cilium
                    - install
                    - --version=v1.19.3 # renovate
                    - --set
                    - kubeProxyReplacement=false
                    - --values
                    - values.yaml
        === kubernetes/cilium/values.yaml
        kubeProxyReplacement: false
        k8sServiceHost: localhost
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "kubernetes/cilium/values.yaml",
        "Job cilium-install in terraform/inline/cilium-install.yaml sets kubeProxyReplacement=false",
    ),
    Public(
        "hausteen/kubernetesApplications", "H", "a comment behind every line, and a longer key with the same beginning",
        """
        === cilium/kustomization.yaml
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        helmCharts:
          - name: cilium
            repo: https://helm.example.net/
            version: 1.18.6
            valuesFile: values.yaml
        resources:
          - resources/pool.yaml
        === cilium/values.yaml
        cgroup: # for talos
          hostRoot: /sys/fs/cgroup
        k8sServiceHost: 192.0.2.140 # the vip of the API
        kubeProxyReplacement: false # since the beginning
        kubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256 # stays
        l7Proxy: false # for istio
        """,
        ("- kubeProxyReplacement: false # since the beginning", "+ kubeProxyReplacement: true # since the beginning",
         "+ rollOutCiliumPods: true"),
        "cilium/values.yaml",
    ),
    Public(
        "vehkiya/homelab-k8s", "H", "a quoted path, blanks at the end of lines, neither file ends with a newline",
        """
        === cilium/kustomization.yaml
        kind: Kustomization

        helmCharts:
          - name: cilium
            version: 1.17.4
            valuesFile: "values/values.yaml"

        resources:
          - bgp.yaml
        === cilium/values/values.yaml
        # -- for the agent
        k8sServiceHost: "localhost"
        # -- for the agent
        k8sServicePort: "7445"
        kubeProxyReplacement: false
        loadBalancer:
          algorithm: maglev
        %
        rollOutCiliumPods: true
        # for Multus%
        pmtuDiscovery:
          # -- the path
          enabled: true""".replace("%", "  "),
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "cilium/values/values.yaml",
    ),
    Public(
        "Alphaegen/talos-kubernetes-homelab", "H", "host and port far from the key, and once more as comments",
        """
        === cilium/kustomization.yaml
        kind: Kustomization
        helmCharts:
          - name: cilium
            version: 1.19.4
            valuesFile: cilium-values.yaml
        === cilium/cilium-values.yaml
        kubeProxyReplacement: false

        # Stays as it was.
        devices: ""
        upgradeCompatibility: "1.18"

        # The API server
        k8sServiceHost: localhost
        k8sServicePort: 7445

        # k8sServiceHost: 192.0.2.100
        # k8sServicePort: 6443

        hubble: {ui: {enabled: true}}
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ rollOutCiliumPods: true"),
        "cilium/cilium-values.yaml",
    ),
    Public(
        "jhuertom/kustomize-proxmos-talos", "H", "inline values, host and port as the last lines of a file without a newline",
        """
        === cilium/kustomization.yaml
        kind: Kustomization
        namespace: kube-system
        helmCharts:
          - name: cilium
            version: 1.16.1
            valuesInline:
              ipam:
                mode: kubernetes
              kubeProxyReplacement: false
              caps:
                agent:
                  - CHOWN
              k8sServiceHost: localhost
              k8sServicePort: 7445""",
        ("-       kubeProxyReplacement: false", "+       kubeProxyReplacement: true", "+       rollOutCiliumPods: true"),
        "cilium/kustomization.yaml",
    ),
    Public(
        "vehagn/homelab", "H", "a comment behind the version, dashboards among the resources, values in brackets",
        """
        === net/cilium/kustomization.yaml
        kind: Kustomization
        resources:
          - dashboards/cilium.yaml
        helmCharts:
          - name: cilium
            version: 1.19.3 # renovate: github-releases
            releaseName: "cilium"
            valuesFile: values.yaml
        === net/cilium/dashboards/cilium.yaml
        kind: ConfigMap
        metadata: {name: dashboard}
        data:
          cilium.json: '{"title": "kubeProxyReplacement: true"}'
        === net/cilium/values.yaml
        kubeProxyReplacement: false
        caps: [ CHOWN, KILL ]
        k8sServiceHost: localhost
        rollOutCiliumPods: true
        """,
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true"), "net/cilium/values.yaml",
    ),
    Public(
        "mitchross/k3s-argocd-proxmox", "H", "a comment indented by one space, and comments with two marks",
        """
        === infra/cilium/kustomization.yaml
        kind: Kustomization
        helmCharts:
          - name: cilium
            version: 1.17.0-rc1
            valuesFile: values.yaml
        === infra/cilium/values.yaml
        kubeProxyReplacement: false

        # # Off
        enableEnvoyConfig: false

         # Talos
        k8sServiceHost: 192.0.2.11
        # mTLS
        authentication:
          enabled: false""",
        ("- kubeProxyReplacement: false", "+ kubeProxyReplacement: true", "+ rollOutCiliumPods: true"),
        "infra/cilium/values.yaml",
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.repository)
def test_a_repository_of_this_form_changes_in_exactly_the_wanted_lines(row):
    require_row(row)
