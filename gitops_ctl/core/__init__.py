"""Ground that every other room stands on: errors, clocks, canonical JSON, conditions, identities.  Imports nothing of ours."""
