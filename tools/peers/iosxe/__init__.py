"""A switch that can be upgraded: one state file, seen through NETCONF here and through gNOI by its other half."""
