"""Who may change what: signatures, trust policy, judgement of commits, provenance (gitops.md, sections 3 and 4)."""
