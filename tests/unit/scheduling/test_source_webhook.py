"""Webhook sources against a real HTTPS server on loopback (topology-scheduling.md, 9.1 and 10; cases 44 to 59).

Each case runs with our defaults and with those of the reference.
"""

import asyncio
from base64 import b64encode

import pytest

from gitops_ctl.core.errors import Forbidden, Unavailable
from gitops_ctl.scheduling.fetching import read_snapshot
from gitops_ctl.scheduling.snapshot import LARGEST
from gitops_ctl.scheduling.source_status import Failed
from gitops_ctl.scheduling.sourceports import SOURCE
from gitops_ctl.scheduling.wakes import Reference, woken_by_reference
from tests.support.inventory_server import Authority, answer, inventory_service, server_context
from tests.support.source_bench import HALL, NAMESPACE, REGION, STANDARD_ZONE, SourceBench, snapshot

TOKEN = "only-for-tests-4c1d"
ROTATED = "only-for-tests-9e7f"
HIDDEN = "a-word-of-the-answer"
OFTEN = {"pollInterval": "10s", "timeout": "10s"}
GOOD = answer(snapshot({"node-a": HALL}))


@pytest.fixture(scope="module")
def authority():
    return Authority("inventory-ca")


@pytest.fixture
async def service(authority, tmp_path):
    async with inventory_service(server_context(tmp_path, authority.issue("inventory"))) as found:
        found.next = GOOD
        yield found


@pytest.fixture
async def bench(source_bench, service, authority):
    """With the CA in a ConfigMap, the token in a Secret, and a source that reads both."""
    await source_bench.config_map(authority.pem, "ca", "ca.crt")
    await secret(source_bench, "token", token=f" {TOKEN}\n")
    await source(source_bench, service.url)
    return source_bench


async def secret(bench: SourceBench, name: str, **data: str):
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}"
    await bench.client.apply(path, tree, manager="tests", force=True)


def reference(name: str):
    return {"namespace": NAMESPACE, "name": name}


async def source(bench: SourceBench, url: str, name: str = "first", **changes):
    arm = {
        "url": url,
        "pollInterval": "1m",
        "timeout": "1m",
        "maxStaleness": "1m",
        "caBundleConfigMapRef": reference("ca"),
        "bearerTokenSecretRef": reference("token"),
        **changes,
    }
    given = {key: value for key, value in arm.items() if value is not None}
    await bench.source(name, webhook=given)


def everything_said(bench: SourceBench) -> str:
    return f"{bench.status()} {bench.told}"


async def refused(bench: SourceBench, said: str):
    """One pass, whose failure says so."""
    assert await bench.look() == 60.0
    assert bench.words() == {
        "Ready": "False WebhookReadFailed",
        "Valid": "False WebhookReadFailed",
        "OwnershipConflict": "False NoConflict",
    }
    assert said in bench.condition("Valid")["message"]
    assert bench.features == []
    for hidden in (TOKEN, HIDDEN):
        assert hidden not in everything_said(bench)


async def test_case_44_a_bearer_token_over_a_private_authority_gives_the_snapshot(bench, service):
    assert await bench.look() == 60.0
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "True Observed")
    [request] = service.requests
    assert request.startswith("GET /inventory?hall=7 HTTP/1.1\r\n")
    assert service.header("authorization") == f"Bearer {TOKEN}"
    assert service.header("accept-encoding") == "identity"
    names = {line.partition(":")[0].lower() for line in request.split("\r\n")[1:] if line}
    assert names == {"host", "authorization", "accept-encoding", "user-agent"}
    assert (bench.status()["sourceKind"], bench.status()["lastSuccessfulRevision"]) == ("Webhook", "r1")


async def test_case_45_mutual_tls_gives_the_snapshot(bench, authority, tmp_path):
    chain, key = authority.issue("gitops-ctl")
    await secret(bench, "client", **{"tls.crt": chain, "tls.key": key})
    context = server_context(tmp_path, authority.issue("inventory"), clients=authority)
    async with inventory_service(context) as service:
        service.next = GOOD
        mutual = {"bearerTokenSecretRef": None, "tlsClientCertificateSecretRef": reference("client")}
        await source(bench, service.url, **mutual)
        await bench.look()
        assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "True Observed")
        assert service.header("authorization") == ""


async def test_case_46_a_redirect_is_a_failure_and_nothing_is_sent_there(bench, service):
    service.next = answer(HIDDEN, status="302 Found", headers=f"Location: https://127.0.0.1:{service.port}/other\r\n")
    await refused(bench, "302")
    assert len(service.requests) == 1


@pytest.mark.parametrize("has_length", [True, False], ids=["with a length", "without a length"])
async def test_case_47_a_byte_more_than_a_mebibyte_is_too_long(has_length, bench, service):
    body = HIDDEN.encode().ljust(LARGEST + 1, b"#")
    service.next = answer(body) if has_length else b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body
    await refused(bench, f"longer than {LARGEST} bytes")


async def test_a_mebibyte_is_not_too_long(bench, service):
    service.next = answer(snapshot({"node-a": HALL}).encode().ljust(LARGEST, b"\n"))
    await bench.look()
    assert bench.words()["Ready"] == "True Observed"


@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error", "204 No Content", "429 Wait"])
async def test_cases_48_and_49_every_other_status_is_named_and_its_body_is_not_shown(status, bench, service):
    service.next = answer(HIDDEN, status=status, headers="Retry-After: 1\r\n")
    await refused(bench, status[:3])
    assert len(service.requests) == 1, "nothing is repeated"


async def test_case_50_a_private_authority_needs_its_bundle(bench, service):
    await source(bench, service.url, caBundleConfigMapRef=None)
    await refused(bench, "certificate of the server is not trusted")
    assert service.requests == []


async def test_case_51_a_server_slower_than_the_deadline_is_a_failure(bench, service):
    async def silence(_writer):
        await asyncio.sleep(3600)

    service.next = silence
    await source(bench, service.url, timeout="200ms")
    await refused(bench, "timeout of 200ms")


async def test_a_drip_does_not_hold_the_deadline_up(bench, service):
    async def drip(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            writer.write(b"#")
            await writer.drain()
            await asyncio.sleep(0.01)

    service.next = drip
    await source(bench, service.url, timeout="300ms")
    await refused(bench, "timeout of 300ms")


async def test_the_deadline_counts_from_the_reading_of_the_credentials(bench, service, monkeypatch):
    asked = bench.client.get

    async def slow(path, **options):
        if "/secrets/" in path:
            await asyncio.sleep(3600)
        return await asked(path, **options)

    monkeypatch.setattr(bench.client, "get", slow)
    await source(bench, service.url, timeout="200ms")
    await refused(bench, "timeout of 200ms")
    assert service.requests == []


async def test_case_52_a_rotated_token_is_used_by_the_next_pass(bench, service):
    await bench.look()
    await secret(bench, "token", token=ROTATED)
    await bench.look(after=10)
    assert service.header("authorization") == f"Bearer {ROTATED}"


async def test_case_53_the_token_is_what_the_api_server_has_and_not_what_a_cache_shows(bench, service):
    stale = {"features": bench.features, "sources": bench.all("topologysources", "worker.gpustack.ai")}
    bench.restart(sources=lambda: tuple(stale["sources"]), features=lambda: tuple(stale["features"]))
    await secret(bench, "token", token=ROTATED)
    bench.api.audit.clear()
    await bench.look()
    assert service.header("authorization") == f"Bearer {ROTATED}"
    read = [(one.resource, one.name) for one in bench.api.audit if one.verb == "get"]
    assert read == [("topologysources", "first"), ("configmaps", "ca"), ("secrets", "token")]


async def test_case_54_neither_body_nor_token_of_a_401_is_shown(bench, service, caplog):
    service.next = answer(f"{HIDDEN} {TOKEN}", status="401 Unauthorized", headers=f"WWW-Authenticate: {TOKEN}\r\n")
    with caplog.at_level("INFO"):
        await refused(bench, "401")
    assert TOKEN not in caplog.text
    assert HIDDEN not in caplog.text


@pytest.mark.parametrize("data", [{"token": " \n"}, {"other": TOKEN}])
async def test_case_54_an_empty_token_is_missing(data, bench, service):
    await bench.client.delete(f"/api/v1/namespaces/{NAMESPACE}/secrets/token")
    await secret(bench, "token", **data)
    await refused(bench, "token missing")
    assert service.requests == []


@pytest.mark.parametrize("names", [(), ("bearerTokenSecretRef", "tlsClientCertificateSecretRef")])
async def test_case_55_exactly_one_credential_is_needed_also_at_run_time(names, bench, service):
    """The schema refuses such a source; one from before the schema is judged by the controller and by the reader."""
    arm = {"url": service.url, "pollInterval": "10s", "timeout": "10s", "maxStaleness": "1m"}
    tree = {"spec": {"webhook": {**arm, **{name: reference("token") for name in names}}}}
    found = await read_snapshot(tree, client=bench.client, get=bench.ports.http)
    assert isinstance(found, Failed)
    assert "exactly one of bearerTokenSecretRef and tlsClientCertificateSecretRef" in found.detail
    assert service.requests == []


async def test_case_56_a_webhook_goes_stale_expires_and_recovers_by_itself(bench, service):
    await source(bench, service.url, **OFTEN)
    assert await bench.look() == 10.0
    service.next = answer(HIDDEN, status="503 Service Unavailable")
    assert await bench.look(after=30) == 10.0
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "False Stale")
    assert await bench.look(after=25) == 5.0, "what is left of maxStaleness is shorter than the interval"
    assert await bench.look(after=95) == 10.0
    assert (bench.features, bench.words()["Ready"]) == ([], "False Expired")
    assert await bench.look(after=10) == 10.0
    assert bench.words()["Ready"] == "False Expired"
    service.next = GOOD
    assert await bench.look(after=10) == 10.0
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "True Observed")
    assert [reason for _, reason, _ in bench.told] == ["Observed", "Stale", "Expired", "Observed"]


async def test_staleness_is_counted_from_the_status_and_survives_a_restart(bench, service):
    await bench.look()
    service.next = answer("", status="503 Service Unavailable")
    bench.restart()
    await bench.look(after=59)
    assert bench.words()["Ready"] == "False Stale"
    bench.restart()
    await bench.look(after=1)
    assert (bench.features, bench.words()["Ready"]) == ([], "False Expired")


async def test_case_57_a_slow_webhook_in_conflict_is_looked_at_within_a_minute(bench, service):
    for name in ("first", "second"):
        await source(bench, service.url, name, pollInterval="10m")
    assert await bench.look() == 60.0
    assert bench.condition()["message"].endswith("second")
    assert bench.words()["Ready"] == "False OwnershipConflict"


async def test_case_57_a_staleness_below_the_poll_interval_warns_by_default(bench, service):
    await source(bench, service.url, pollInterval="10m")
    await bench.look()
    assert bench.words()["Valid"] == "True Observed"
    warns = bench.ports.options.short_staleness == "warn"
    assert ("short-staleness" in bench.condition("Valid")["message"]) == warns


async def test_case_58_what_a_source_reads_wakes_it_and_nothing_else_does(bench):
    trees = bench.all("topologysources", "worker.gpustack.ai")
    for kind, name, woken in (("ConfigMap", "ca", ("first",)), ("Secret", "token", ("first",)), ("Secret", "x", ())):
        assert woken_by_reference(trees, Reference(kind, NAMESPACE, name)) == woken


@pytest.mark.parametrize("bad", ["an unknown node", "another standard zone"])
async def test_case_59_invalid_content_keeps_the_last_revision_until_it_expires(bad, bench, service):
    levels = (STANDARD_ZONE, REGION)
    await source(bench, service.url, **OFTEN)
    await bench.client.patch_merge("/api/v1/nodes/node-a", {"metadata": {"labels": {STANDARD_ZONE: "z1"}}})
    await bench.client.patch_merge(SOURCE.path(name="first"), {"spec": {"levels": list(levels)}})
    good = answer(snapshot({"node-a": {STANDARD_ZONE: "z1", REGION: "north"}}))
    wrong = {"unknown": {}} if bad == "an unknown node" else {"node-a": {STANDARD_ZONE: "z9", REGION: "north"}}
    service.next = answer(snapshot(wrong, "r2"))
    assert await bench.look() == 10.0
    assert (bench.features, bench.words()["Ready"]) == ([], "False SnapshotInvalid")
    service.next = good
    await bench.look(after=10)
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": {REGION: "north"}}, "True Observed")
    service.next = answer(snapshot(wrong, "r2"))
    assert await bench.look(after=30) == 10.0
    assert bench.words() == {
        "Ready": "False Stale",
        "Valid": "False SnapshotInvalid",
        "OwnershipConflict": "False NoConflict",
    }
    assert (bench.labels, bench.status()["lastSuccessfulRevision"]) == ({"node-a": {REGION: "north"}}, "r1")
    assert await bench.look(after=120) == 10.0
    assert (bench.features, bench.words()["Ready"]) == ([], "False Expired")


async def test_a_body_that_is_no_snapshot_is_a_failed_read_and_quotes_nothing(bench, service):
    service.next = answer(f"{HIDDEN}: [")
    await refused(bench, "rule 1")


async def test_what_the_manager_may_not_read_is_a_failure_that_names_it(bench, service, monkeypatch):
    asked = bench.client.get

    async def get(path, **options):
        if "/secrets/" in path:
            raise Forbidden("secrets is forbidden")
        return await asked(path, **options)

    monkeypatch.setattr(bench.client, "get", get)
    await refused(bench, f"Secret {NAMESPACE}/token cannot be read: Forbidden")
    assert service.requests == []


async def test_an_api_server_that_does_not_give_the_token_is_asked_again_soon(bench, service, monkeypatch):
    asked = bench.client.get

    async def get(path, **options):
        if "/secrets/" in path:
            raise Unavailable("no answer")
        return await asked(path, **options)

    monkeypatch.setattr(bench.client, "get", get)
    with pytest.raises(Unavailable):
        await bench.look()
    assert (bench.status(), service.requests) == ({}, [])


@pytest.mark.parametrize("text", [None, " ", "no certificate"])
async def test_a_bundle_that_is_none_is_a_failure(text, bench, service):
    await bench.config_map(text, "ca", "ca.crt")
    await refused(bench, "does not exist" if text is None else "no ca.crt" if not text.strip() else "CA bundle")
    assert service.requests == []


async def test_a_token_that_is_no_text_is_a_failure(bench, service):
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"token": "/w=="}}
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/token"
    await bench.client.apply(path, tree, manager="tests", force=True)
    await refused(bench, "is no text")


async def test_half_a_client_certificate_is_a_failure(bench, service, authority):
    await secret(bench, "client", **{"tls.crt": authority.issue("gitops-ctl")[0]})
    mutual = {"bearerTokenSecretRef": None, "tlsClientCertificateSecretRef": reference("client")}
    await source(bench, service.url, **mutual)
    await refused(bench, "tls.key missing")
