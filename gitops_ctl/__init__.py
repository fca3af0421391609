"""A GitOps controller for networks and the clusters beside them."""

__version__ = "0.1.0"
