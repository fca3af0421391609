"""What each answer of a real API server means.  The bodies are those that kube-apiserver 1.36 gives.

In scope: the table behind `classify`.  Tested elsewhere: retries (test_transport.py), the same against a real server
(tests/cluster/test_kube_answers.py).
"""

import json

import pytest

from gitops_ctl.core.errors import BlockedError, Conflict, Forbidden, NotFound, RateLimited, Refused, Unavailable
from gitops_ctl.kube.answers import (
    AlreadyExists,
    FieldCause,
    FieldConflict,
    Gone,
    KindNotServed,
    NamespaceMissing,
    ObjectReplaced,
    ServerRefused,
    Unauthenticated,
    classify,
)
from tests.support.kube_server import status_object

APPLY = "apply /api/v1/namespaces/default/configmaps/a"


def answer(code: int, reason: str = "", message: str = "", **details: object) -> bytes:
    return json.dumps(status_object(code, reason, message, **details)).encode()


def cause(field: str, message: str = "", reason: str = "FieldValueInvalid") -> dict[str, str]:
    return {"field": field, "message": message, "reason": reason}


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (401, answer(401, "Unauthorized"), Unauthenticated),
        (403, answer(403, "Forbidden", 'configmaps is forbidden: User "x" cannot list resource'), Forbidden),
        (403, answer(403, "Forbidden", 'pods "a" is forbidden: exceeded quota: q'), BlockedError),
        (403, answer(403, "Forbidden", 'pods "a" is forbidden: violates PodSecurity "restricted"'), ServerRefused),
        (403, answer(403, "Forbidden", "x", causes=[cause("", "", "NamespaceTerminating")]), NamespaceMissing),
        (404, b"404 page not found\n", KindNotServed),
        (404, answer(404, "NotFound", kind="configmaps", name="a"), NotFound),
        (404, answer(404, "NotFound", kind="namespaces", name="default"), NamespaceMissing),
        (409, answer(409, "AlreadyExists"), AlreadyExists),
        (409, answer(409, "Conflict"), Conflict),
        (410, answer(410, "Expired"), Gone),
        (413, answer(413, "RequestEntityTooLarge"), ServerRefused),
        (422, answer(422, "Invalid", causes=[cause("metadata.uid", "field is immutable")]), ObjectReplaced),
        (429, answer(429, "TooManyRequests"), RateLimited),
        (500, answer(500, "InternalError", "etcdserver: request is too large"), ServerRefused),
        (500, answer(500, "", "failed calling webhook"), Unavailable),
        (502, b"<html>bad gateway</html>", Unavailable),
        (503, answer(503), Unavailable),
        (504, answer(504, "Timeout"), Unavailable),
    ],
)
def test_every_answer_becomes_one_kind_of_error(code: int, body: bytes, kind: type[Exception]) -> None:
    assert type(classify(code, body, subject=APPLY)) is kind


def test_a_conflict_names_each_manager_and_field() -> None:
    causes = [
        cause(".data.x", 'conflict with "kubectl-edit" using v1', "FieldManagerConflict"),
        cause(".data.y", 'conflict with "hpa" with subresource "scale" using v1', "FieldManagerConflict"),
    ]
    error = classify(409, answer(409, "Conflict", "Apply failed with 2 conflicts", causes=causes), subject=APPLY)
    assert isinstance(error, FieldConflict)
    assert error.causes == (FieldCause("kubectl-edit", ".data.x"), FieldCause("hpa", ".data.y"))


def test_S05_a_field_that_the_server_does_not_know_is_final_and_named_although_the_answer_is_500() -> None:
    text = (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): errors:\n"
        "  .foo: field not declared in schema\n  .spec.bar: field not declared in schema"
    )
    error = classify(500, answer(500, "", text), subject=APPLY)
    assert isinstance(error, Refused)
    assert isinstance(error, ServerRefused)
    assert error.fields == (".foo", ".spec.bar")


@pytest.mark.parametrize(
    "said",
    [
        "Invalid value: {}: field is immutable",
        "Invalid value: []: may not change once set",
        "Invalid value: x: cannot change roleRef",
        "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
        "Forbidden: updates to parameters are forbidden.",
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
    ],
)
def test_immutable_fields_are_told_apart_from_invalid_ones(said: str) -> None:
    causes = [cause("spec.selector", said), cause("spec.replicas", "must be positive")]
    error = classify(422, answer(422, "Invalid", causes=causes), subject=APPLY)
    assert isinstance(error, ServerRefused)
    assert error.fields == ("spec.selector", "spec.replicas")
    assert error.immutable_fields == ("spec.selector",)


@pytest.mark.parametrize("value", ["immutable", "cannot change", 'a \\"immutable\\" thing'])
def test_S08_a_refused_value_that_holds_the_words_is_not_an_immutable_field(value: str) -> None:
    causes = [cause("metadata.labels", f'Invalid value: "{value}": a valid label must be alphanumeric')]
    error = classify(422, answer(422, "Invalid", causes=causes), subject=APPLY)
    assert isinstance(error, ServerRefused)
    assert (error.fields, error.immutable_fields) == (("metadata.labels",), ())


def test_S11_an_entry_of_a_version_that_is_gone_is_final_although_the_answer_is_500() -> None:
    text = "request to convert CR to an invalid group/version: example.net/v1beta1"
    error = classify(500, answer(500, "", text), subject=APPLY)
    assert isinstance(error, ServerRefused)
    assert error.dropped_version == "example.net/v1beta1"


def test_the_longer_of_header_and_details_is_the_wait() -> None:
    error = classify(429, answer(429, retryAfterSeconds=7), retry_after_s=2.0)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("code", "body", "shown"),
    [
        (
            500,
            answer(
                500,
                "",
                "failed to create typed patch object (/s; /v1, Kind=Secret): .data.a: expected string, got s3cr3t",
            ),
            ".data.a",
        ),
        (
            422,
            answer(422, "Invalid", "data[k]: s3cr3t", kind="Secret", name="s", causes=[cause("data[k]", "s3cr3t")]),
            "data[k]",
        ),
        (500, answer(500, "", "failed to convert new object: illegal base64 data in s3cr3t"), "illegal base64 data"),
    ],
    ids=["typed patch", "invalid", "base64"],
)
def test_H22_a_refused_secret_is_explained_without_its_values(code: int, body: bytes, shown: str) -> None:
    error = classify(code, body, subject="apply /api/v1/namespaces/default/secrets/s")
    assert "s3cr3t" not in error.message
    assert shown in error.message


def test_long_foreign_text_is_cut() -> None:
    assert len(classify(503, b"x" * 100_000).message) <= 1000
