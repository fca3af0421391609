"""Topology-aware scheduling: from an inventory to Node labels, profiles, flavors and the plan of a queue (topology-scheduling.md)."""
