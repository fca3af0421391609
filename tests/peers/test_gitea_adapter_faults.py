"""What networks and proxies do between us and a real Gitea: the outcome is known, or looked up, and nothing happens twice (forges.md, 14, 18, 21.9)."""

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError, RateLimited, ReplyLost, Unavailable
from gitops_ctl.core.http import Terms
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.errors import AlreadyExists, AnswerRefused, RedirectRefused
from gitops_ctl.forge.http import HttpxClient
from tests.support.forge_gitea import adapter_of
from tests.support.forge_proxy import FaultProxy
from tests.support.gitea import GiteaHandle, GiteaRepo

pytestmark = pytest.mark.peers

HEAD = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84"
PULLS = r"/pulls(\?.*)?$"
MARK = "<!-- gitops-ctl:check -->"


@pytest.fixture
async def proxy(gitea: GiteaHandle):
    async with FaultProxy(gitea.url, ca_file=gitea.ca_file, certificate=gitea.certificate) as made:
        yield made


@pytest.fixture
def repo(gitea: GiteaHandle) -> GiteaRepo:
    made = gitea.create_repo()
    made.push(HEAD, {"values.yaml": "kubeProxyReplacement: true\n"}, base="main")
    return made


@pytest.fixture
async def adapter(gitea: GiteaHandle, proxy: FaultProxy, repo: GiteaRepo):
    async with HttpxClient(clock=SystemClock()) as http:
        yield adapter_of(gitea, repo.project, token=gitea.bot_token, http=http, url=proxy.url)


async def create(adapter: ForgeAdapter):
    return await adapter.create(HEAD, base="main", title="t", body="b")


@pytest.mark.parametrize("kind", ["drop-after", "broken"])
async def test_P12_a_lost_reply_of_a_creation_is_looked_up_and_never_sent_again(proxy, adapter, kind):
    proxy.spoil(kind, method="POST", path=PULLS)
    with pytest.raises(ReplyLost):
        await create(adapter)
    assert proxy.forwarded("POST", PULLS) == 1
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    assert (found.title, found.state) == ("t", "open")


@pytest.mark.parametrize("kind", ["drop-before", "status"])
async def test_a_creation_that_did_not_happen_looks_the_same_and_is_found_out(proxy, adapter, kind):
    proxy.spoil(kind, method="POST", path=PULLS)
    with pytest.raises(ReplyLost):
        await create(adapter)
    assert proxy.forwarded("POST", PULLS) == 0
    assert await adapter.find_open(HEAD, base="main") is None
    assert (await create(adapter)).state == "open"


async def test_a_creation_that_is_delivered_twice_makes_one(proxy, adapter, repo):
    proxy.spoil("twice", method="POST", path=PULLS)
    with pytest.raises(AlreadyExists):
        await create(adapter)
    assert len(repo.api("GET", "/pulls?state=all").body) == 1
    assert await adapter.find_open(HEAD, base="main") is not None


async def test_a_comment_whose_reply_is_lost_is_updated_next_time(proxy, adapter):
    pr = await create(adapter)
    proxy.spoil("drop-after", method="POST", path=r"/comments$")
    with pytest.raises(ReplyLost):
        await adapter.put_comment(pr, marker=MARK, text="first")
    await adapter.put_comment(pr, marker=MARK, text="second")
    assert [comment.text for comment in await adapter.comments(pr)] == [f"second\n\n{MARK}"]


@pytest.mark.parametrize("kind", ["drop-before", "drop-after", "status", "broken"])
async def test_reading_goes_on_after_two_failures(proxy, adapter, kind):
    proxy.spoil(kind, method="GET", path=PULLS, times=2)
    assert await adapter.find_open(HEAD, base="main") is None
    assert sum(method == "GET" for method, _ in proxy.received) == 3


async def test_P13_a_forge_that_stays_down_is_told(proxy, adapter):
    proxy.spoil("status", times=100)
    with pytest.raises(Unavailable, match="answered with the status 502"):
        await adapter.find_open(HEAD, base="main")
    assert len(proxy.received) == 4


async def test_P13_a_rate_limit_is_kept_to_by_the_next_call_too(proxy, adapter):
    proxy.spoil("limit", method="POST")
    with pytest.raises(RateLimited) as caught:
        await create(adapter)
    assert caught.value.retry_after_s == 30
    seen = len(proxy.received)
    with pytest.raises(RateLimited):
        await adapter.find_open(HEAD, base="main")
    assert len(proxy.received) == seen


async def test_half_of_an_answer_is_no_answer(proxy, adapter):
    await create(adapter)
    proxy.spoil("cut", method="GET", path=PULLS)
    with pytest.raises(AnswerRefused, match="no JSON"):
        await adapter.find_open(HEAD, base="main")


async def test_a_redirect_to_another_host_gets_no_token(proxy, adapter):
    proxy.spoil("redirect", method="GET", path=PULLS)
    with pytest.raises(RedirectRefused, match=r"elsewhere\.example\.net"):
        await adapter.find_open(HEAD, base="main")


async def test_an_answer_without_end_is_cut_off(proxy, gitea, repo):
    proxy.spoil("flood", method="GET", path="/version")
    async with HttpxClient(clock=SystemClock()) as http:
        with pytest.raises(AnswerRefused, match="longer than 10485760 bytes"):
            await http.request("GET", f"{proxy.url}/api/v1/version", terms=Terms(ca=gitea.ca))


async def test_an_answer_that_comes_in_drops_has_a_deadline(proxy, gitea, repo):
    proxy.spoil("slow", method="GET", path="/version", pause_s=2.0)
    async with HttpxClient(clock=SystemClock()) as http:
        url = f"{proxy.url}/api/v1/version"
        with pytest.raises(Unavailable, match=r"no answer within 0\.3 s"):
            await http.request("GET", url, terms=Terms(ca=gitea.ca, deadline_s=0.3))


async def test_another_authority_is_not_trusted(gitea, proxy):
    async with HttpxClient(clock=SystemClock()) as http:
        with pytest.raises(GitopsError, match="certificate of the server is not trusted"):
            await http.request("GET", f"{proxy.url}/api/v1/version")
    assert proxy.received == []
