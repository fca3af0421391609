"""Fixtures and rules for every test."""

from hypothesis import settings

from tests.support.cluster import audit_log, control_plane, kube_admin, kube_user, namespace, pytest_configure
from tests.support.examples import RANDOM
from tests.support.gitea import gitea, gitea_unsigned
from tests.support.kueue import kueue, kueue_manager
from tests.support.nfd import nfd
from tests.support.topology_plane import peer_plane
from tests.support.whole_run import (
    pytest_collection,
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_xdist_make_scheduler,
)

__all__ = [
    "audit_log",
    "control_plane",
    "gitea",
    "gitea_unsigned",
    "kube_admin",
    "kube_user",
    "kueue",
    "kueue_manager",
    "namespace",
    "nfd",
    "peer_plane",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_configure_node",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_xdist_make_scheduler",
]

# The same examples in each run, so that a change is judged by what it changes; `make soak` draws others each time.
# How long an example takes says something about the machine, not about the law.
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile(RANDOM, deadline=None)
settings.load_profile("everyday")
