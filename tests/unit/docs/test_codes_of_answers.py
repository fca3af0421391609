"""The pages of the API server's codes: which answer leads to which code."""

import json

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.kube.answers import classify

QUOTA = 'pods "probe" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10'


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (503, {"message": "etcd is not there"}, ErrorCode.UNAVAILABLE),
        (429, {"message": "too many requests"}, ErrorCode.RATE_LIMITED),
        (403, {"message": QUOTA}, ErrorCode.BLOCKED),
        (403, {"message": 'User "a" cannot patch resource "configmaps"'}, ErrorCode.FORBIDDEN),
        (404, {"message": 'configmaps "a" not found', "reason": "NotFound"}, ErrorCode.NOT_FOUND),
        (409, {"message": "the object has been modified", "reason": "Conflict"}, ErrorCode.CONFLICT),
        (422, {"message": "ConfigMap is invalid"}, ErrorCode.REFUSED),
        (404, None, ErrorCode.KIND_NOT_SERVED),
        (401, {"message": "Unauthorized"}, ErrorCode.UNAUTHENTICATED),
        (410, {"message": "too old resource version: 1201 (4402)"}, ErrorCode.GONE),
    ],
    ids=lambda value: value.label if isinstance(value, ErrorCode) else "",
)
def test_an_answer_has_the_code_that_its_page_explains(status, answer, code):
    body = b"404 page not found" if answer is None else json.dumps({"kind": "Status", **answer}).encode()
    assert classify(status, body).code is code
