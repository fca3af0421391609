"""Devices, their Nodes and the fleet's rules as values: read from JSON trees, hashed, judged.  Pure: no I/O, no clock."""
