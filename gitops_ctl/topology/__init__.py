"""Inventory of devices: their Nodes, their identity, their evidence, and the workers that serve them (rollouts.md, 5, 13.6, 15 to 17.2)."""
