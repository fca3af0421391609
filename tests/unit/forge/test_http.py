"""The HTTP client: limits, redirects, repeats, pauses, and what its errors do not say (forges.md, sections 2 and 14)."""

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import httpx2
import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, RateLimited, Refused, ReplyLost, Unavailable
from gitops_ctl.core.http import HttpAnswer, Terms
from gitops_ctl.forge.errors import AnswerRefused, RedirectRefused
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.forge.pauses import pause_asked, retry_after
from tests.support.git_servers import Authority
from tests.support.kube_clock import JumpingClock

HERE = "https://git.example.net/api"
TOKEN = "not-for-anybody-5f1c"
Answer = Callable[[httpx2.Request], httpx2.Response]


class Script(httpx2.AsyncBaseTransport):
    """Answers in order; the last one stays.  Keeps what was asked."""

    def __init__(self, *answers: httpx2.Response | BaseException | Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(request) if callable(answer) else answer


def says(status: int, body: bytes = b"{}", **headers: str) -> Answer:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return lambda _: httpx2.Response(status, headers=named, stream=Pieces(body))


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), 1000):
            yield self.body[start : start + 1000]


def client(*answers: httpx2.Response | BaseException | Answer) -> tuple[HttpxClient, Script, JumpingClock]:
    script, clock = Script(*answers), JumpingClock()
    return HttpxClient(clock=clock, draw=lambda: 0.5, transport=script), script, clock


async def test_an_answer_has_status_headers_in_lower_case_and_body():
    http, script, _ = client(says(404, b"no", X_Next_Page="2"))
    answer = await http.request("GET", HERE, headers={"Authorization": f"token {TOKEN}"})
    assert (answer.status, answer.body, answer.headers["x-next-page"]) == (404, b"no", "2")
    assert script.asked[0].headers["user-agent"].startswith("gitops-ctl/")
    assert script.asked[0].headers["authorization"] == f"token {TOKEN}"


async def test_every_wait_of_a_request_has_a_limit():
    http, script, _ = client(says(200))
    await http.request("GET", HERE)
    assert script.asked[0].extensions["timeout"] == {"connect": 5.0, "read": 30.0, "write": 30.0, "pool": 5.0}


async def test_nothing_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    (tmp_path / "netrc").write_text("machine git.example.net login a password b")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    http, script, _ = client(says(200))
    await http.request("GET", HERE)
    assert "authorization" not in script.asked[0].headers
    assert not http._clients[None].client._mounts
    assert not (tmp_path / "keys").exists()


async def test_a_reading_request_is_repeated_three_times_with_jitter():
    http, script, clock = client(says(502))
    with pytest.raises(Unavailable) as caught:
        await http.request("GET", HERE)
    assert len(script.asked) == 4
    assert clock.slept == [0.5, 1.0, 2.0]
    assert caught.value.code is ErrorCode.FORGE_UNAVAILABLE


async def test_a_repeat_that_works_is_the_answer():
    http, script, _ = client(httpx2.ReadTimeout("slow"), says(503), says(200, b"good"))
    assert (await http.request("GET", HERE)).body == b"good"
    assert len(script.asked) == 3


@pytest.mark.parametrize("failure", [says(500), says(502), httpx2.ReadTimeout("x"), httpx2.RemoteProtocolError("x")])
async def test_a_post_is_never_repeated_and_its_outcome_is_unknown(failure):
    http, script, _ = client(failure)
    with pytest.raises(ReplyLost) as caught:
        await http.request("POST", HERE, body=b"{}")
    assert len(script.asked) == 1
    assert caught.value.code is ErrorCode.FORGE_UNAVAILABLE


@pytest.mark.parametrize("failure", [httpx2.ConnectError("x"), httpx2.ConnectTimeout("x"), httpx2.PoolTimeout("x")])
async def test_what_was_never_sent_did_not_happen(failure):
    http, script, _ = client(failure)
    with pytest.raises(Unavailable):
        await http.request("POST", HERE, body=b"{}")
    assert len(script.asked) == 1


async def test_a_caller_may_say_that_a_request_can_be_repeated():
    http, script, _ = client(says(502), says(201))
    assert (await http.request("PUT", HERE, body=b"{}", idempotent=True)).status == 201
    assert len(script.asked) == 2


async def test_the_whole_exchange_has_a_deadline():
    async def never(_: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError

    script = Script(says(200))
    script.handle_async_request = never  # type: ignore[method-assign]
    http = HttpxClient(clock=JumpingClock(), transport=script)
    with pytest.raises(ReplyLost, match=r"within 0\.05 s"):
        await http.request("POST", HERE, terms=Terms(deadline_s=0.05))


async def test_one_byte_too_many_fails():
    http, _, _ = client(says(200, b"x" * 5000))
    assert len((await http.request("GET", HERE, terms=Terms(most_bytes=5000))).body) == 5000
    with pytest.raises(AnswerRefused) as caught:
        await http.request("GET", HERE, terms=Terms(most_bytes=4999))
    assert caught.value.code is ErrorCode.ANSWER_REFUSED


async def test_a_compressed_answer_is_refused_since_what_it_unpacks_to_has_no_limit():
    http, script, _ = client(says(200, b"bomb", Content_Encoding="gzip"))
    with pytest.raises(AnswerRefused, match="compressed"):
        await http.request("GET", HERE)
    assert script.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "target",
    [
        "https://elsewhere.example.net/api",
        "http://git.example.net/api",
        "https://git.example.net:8443/api",
        "//elsewhere.example.net/",
        "ftp://git.example.net/",
        "https://git.example.net.evil.example/",
        "https://[",
    ],
)
async def test_a_redirect_to_another_place_is_refused_and_takes_no_token_along(target):
    http, script, _ = client(says(302, Location=target))
    with pytest.raises(RedirectRefused) as caught:
        await http.request("GET", HERE, headers={"Authorization": f"token {TOKEN}"})
    assert len(script.asked) == 1
    assert caught.value.code is ErrorCode.REDIRECT_REFUSED


async def test_reading_follows_a_redirect_within_the_place():
    http, script, _ = client(says(301, Location="/repositories/7?x=1"), says(200, b"there"))
    answer = await http.request("GET", HERE, headers={"Authorization": f"token {TOKEN}"})
    assert answer.body == b"there"
    assert str(script.asked[1].url) == "https://git.example.net/repositories/7?x=1"
    assert script.asked[1].headers["authorization"] == f"token {TOKEN}"


async def test_writing_follows_no_redirect():
    http, script, _ = client(says(307, Location="/repositories/7"))
    with pytest.raises(RedirectRefused, match="only reading follows"):
        await http.request("POST", HERE, body=b"{}")
    assert len(script.asked) == 1


async def test_redirects_in_a_circle_end():
    http, script, _ = client(says(302, Location="/api"))
    with pytest.raises(RedirectRefused, match="more than 3"):
        await http.request("GET", HERE)
    assert len(script.asked) == 4


@pytest.mark.parametrize(
    ("status", "headers", "body", "pause"),
    [
        (429, {"retry-after": "17"}, b"", 17.0),
        (403, {"retry-after": "5"}, b"", 5.0),
        (429, {}, b"", 60.0),
        (403, {}, b'{"message": "You have exceeded a Secondary Rate Limit. Please wait"}', 60.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767226600"}, b"", 1000.0),
        (429, {"ratelimit-remaining": "0", "ratelimit-reset": "1767225700"}, b"", 100.0),
        (429, {"retry-after": "86400"}, b"", 3600.0),
        (429, {"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, b"", 60.0),
        (429, {"retry-after": "soon"}, b"", 60.0),
        (429, {"x-ratelimit-reset": "1"}, b"", 1.0),
        (403, {"x-ratelimit-remaining": "4999"}, b'{"message": "Resource not accessible"}', None),
        (200, {"retry-after": "5", "x-ratelimit-remaining": "0"}, b"", None),
    ],
)
def test_how_long_a_forge_asks_us_to_wait(status, headers, body, pause):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert pause_asked(HttpAnswer(status, headers, body), now=now) == pause


def test_a_date_without_a_zone_is_no_reason_to_fail():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after({"retry-after": "Thu, 01 Jan 2026 00:01:00"}, now=now) is None


async def test_P13_a_pause_counts_for_all_calls_of_the_token_and_is_not_tried_meanwhile():
    http, script, clock = client(says(429, Retry_After="40"), says(200))
    mine, other = {"Authorization": f"token {TOKEN}"}, {"Authorization": "token of-another-source"}
    with pytest.raises(RateLimited) as caught:
        await http.request("GET", HERE, headers=mine)
    assert (caught.value.retry_after_s, caught.value.code) == (40.0, ErrorCode.FORGE_RATE_LIMITED)
    clock.now_s += 30
    with pytest.raises(RateLimited) as caught:
        await http.request("POST", HERE, headers=mine)
    assert caught.value.retry_after_s == 10.0
    assert len(script.asked) == 1
    assert (await http.request("GET", HERE, headers=other)).status == 200
    clock.now_s += 11
    assert (await http.request("GET", HERE, headers=mine)).status == 200


async def test_a_server_that_is_down_says_when_to_come_back():
    http, script, _ = client(says(503, Retry_After="120"))
    with pytest.raises(Unavailable) as caught:
        await http.request("GET", HERE)
    assert (caught.value.retry_after_s, len(script.asked)) == (120.0, 1)


async def test_P13_calls_that_create_keep_their_distance_per_host():
    http, _, clock = client(says(201))
    gap = Terms(gap_s=1.0)
    for _ in range(3):
        await http.request("POST", HERE, terms=gap)
    await http.request("POST", "https://other.example.net/", terms=gap)
    await http.request("GET", HERE)
    assert clock.slept == [1.0, 1.0]
    clock.now_s += 5
    await http.request("POST", HERE, terms=gap)
    assert clock.slept == [1.0, 1.0]


@pytest.mark.parametrize(
    "url", ["ftp://git.example.net/", "https://user:pw@git.example.net/", "git.example.net", "https://"]
)
async def test_an_odd_address_is_refused_before_anything_is_sent(url):
    http, script, _ = client(says(200))
    with pytest.raises(Refused) as caught:
        await http.request("GET", url)
    assert caught.value.code is ErrorCode.URL_REFUSED
    assert "pw" not in str(caught.value)
    assert script.asked == []


@pytest.mark.parametrize(
    "failure",
    [
        says(502),
        says(429),
        says(302, Location=f"https://{TOKEN}@elsewhere.example.net/?t={TOKEN}"),
        says(200, b"x" * 20_000_000),
        httpx2.ReadTimeout(TOKEN),
        httpx2.ConnectError("x"),
        httpx2.LocalProtocolError(f"Illegal header value b'{TOKEN}'"),
    ],
)
async def test_promise_09_no_error_text_holds_the_token_or_a_query(failure):
    http, _, _ = client(failure)
    with pytest.raises(GitopsError) as caught:
        await http.request("POST", f"{HERE}?private_token={TOKEN}", headers={"Authorization": f"token {TOKEN}"})
    assert TOKEN not in f"{caught.value} {caught.value.subject} {caught.value.hint}"
    if not isinstance(caught.value.__cause__, httpx2.ReadTimeout):  # its text is what this test gave it
        assert TOKEN not in "".join(traceback.format_exception(caught.value))


async def test_a_token_with_a_line_end_never_reaches_a_header_or_a_trace():
    http = HttpxClient(clock=JumpingClock())
    async with http:
        with pytest.raises(GitopsError) as caught:
            await http.request("POST", "http://127.0.0.1:9/", headers={"Authorization": f"token {TOKEN}\n"})
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


async def test_an_untrusted_certificate_is_told_as_such():
    refused = httpx2.ConnectError("x")
    refused.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    http, script, _ = client(refused)
    with pytest.raises(BlockedError) as caught:
        await http.request("GET", HERE)
    assert caught.value.code is ErrorCode.CERTIFICATE_REFUSED
    assert len(script.asked) == 1


async def test_a_bundle_without_a_certificate_is_told_as_such():
    http, _, _ = client(says(200))
    with pytest.raises(BlockedError) as caught:
        await http.request("GET", HERE, terms=Terms(ca=b"no certificate"))
    assert caught.value.code is ErrorCode.CERTIFICATE_REFUSED


async def test_authorities_are_forgotten_when_there_are_too_many():
    http, _, _ = client(says(200))
    for _ in range(40):
        await http.request("GET", HERE, terms=Terms(ca=Authority().pem))
    assert len(http._clients) <= 32
    await http.close()
    assert http._clients == {}
