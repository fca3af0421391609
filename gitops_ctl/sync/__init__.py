"""From an accepted revision to the cluster: plan, server-side apply, prune, health, drift, status (gitops.md, sections 6 to 12)."""
