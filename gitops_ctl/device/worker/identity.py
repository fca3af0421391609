"""Who this worker is: its account and its Pod, as the API server knows them from the token (rollouts.md, sections 17.1 and 17.2).

The token is bound to the Pod, so nothing that somebody writes into the environment can make one Pod speak for another.
"""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, text_at
from gitops_ctl.kube.transport import KubeClient

_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_POD: Final = "authentication.kubernetes.io/pod-"


@dataclass(frozen=True, slots=True)
class Who:
    """The account by its user name, and the Pod."""

    username: str
    pod_name: str
    pod_uid: str


class NotAPod(BlockedError):
    """The token belongs to no Pod, so nothing that this worker reports would count."""

    code = ErrorCode.WORKER_WITHOUT_POD


async def who_am_i(client: KubeClient) -> Who:
    """Ask the API server whose token this is.

    Raises:
        NotAPod: the token is not bound to a Pod.
        GitopsError: the server does not say.
    """
    review: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = object_at(await client.create(_REVIEWS, review), "status", "userInfo")
    found = Who(text_at(user, "username"), _extra(user, "name"), _extra(user, "uid"))
    if not found.pod_name or not found.pod_uid:
        raise NotAPod(f"the token of {found.username or 'this worker'} is not bound to a Pod")
    return found


def _extra(user: JsonObject, member: str) -> str:
    values = list_at(object_at(user, "extra"), f"{_POD}{member}")
    return values[0] if values and isinstance(values[0], str) else ""
