"""A stand-in for one Talos machine: its API over mutual TLS, and its manifest controller against a real API server.

It imitates what the published source of Talos v1.14.0 does, texts included.  Nothing of the product imports it, and it uses nothing of
the product but the generated stubs.
"""
