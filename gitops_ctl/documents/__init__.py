"""Reads and checks what people write: the strict loader, schemas, contract rules and policies (gitops.md, section 5).

Nothing here touches the network, and nothing here starts from the assumption that a document is well formed.
"""
