"""Forges: pull requests, reviews and commit statuses behind one protocol, and the proposals that use it (forges.md)."""
