"""Fixtures that every test can use."""

from tests.support.cluster import audit_log, control_plane, kube_admin, kube_user, namespace, pytest_configure

__all__ = ["audit_log", "control_plane", "kube_admin", "kube_user", "namespace", "pytest_configure"]
