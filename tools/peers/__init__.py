"""The real components that tests and benchmarks use.

The control plane's own recipes are in `gitops_ctl/local`; the module files here pin what only tests need: the manifests that Kueue and
Node Feature Discovery publish.
"""
