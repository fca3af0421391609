"""The device worker: the only processes that talk to switches (rollouts.md, sections 13 and 17)."""
