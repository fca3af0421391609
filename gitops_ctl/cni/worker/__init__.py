"""The cluster worker: the only part that talks to Talos machines and target clusters (cni-switch.md, section 2.1)."""
