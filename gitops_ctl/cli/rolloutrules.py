"""Joins software rollouts to Syncs: domains do not know each other, a process that runs both does (rollouts.md, 2.6 and 3.5).

The import teaches Syncs of this process what is checked, what holds a document, and when a rollout is current.
"""

import gitops_ctl.rollout.holds
import gitops_ctl.rollout.policydocuments  # noqa: F401 - rules of documents, and what holds them
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.rollout.documentrules import ROLLOUT
from gitops_ctl.rollout.standing import failure_of, is_current
from gitops_ctl.sync.health import generic_health, register_health
from gitops_ctl.sync.model import CURRENT, Health, HealthStatus


def _rollout(tree: JsonObject) -> Health:
    failure = failure_of(tree)
    if failure:
        return Health(HealthStatus.FAILED, failure)
    return CURRENT if is_current(tree) else generic_health(tree)


register_health(ROLLOUT, _rollout)
