"""Software rollouts: from an intent to a frozen, approved plan that is carried out device by device (rollouts.md)."""
