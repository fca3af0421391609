"""The switch of a cluster between kube-proxy and Cilium."""
