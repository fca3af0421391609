"""Git objects, history and transport.

Objects are read as raw bytes from a bare repository and parsed by this room; nothing is checked out and no ref is believed
that the server has not just named (gitops.md, sections 2 and 4.3).
"""
