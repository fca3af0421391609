"""The real components that tests and benchmarks use, built and fetched in one go.

Their recipes are in `gitops_ctl/local`; the descriptions of interfaces that only tests need are pinned here.
"""
