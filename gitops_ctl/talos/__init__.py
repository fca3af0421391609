"""Talos machines: reading them, judging their configuration, and applying it (cni-switch.md, sections 7, 14 and 15)."""
