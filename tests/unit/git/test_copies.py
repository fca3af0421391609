"""Copies that sources share: generations, readers, repair, size.

Fetches from real servers, and kills in the middle of one: tests/peers/test_git_*.py.
"""

import threading
from dataclasses import replace

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, NotFound, Refused
from gitops_ctl.git import fetch_child
from gitops_ctl.git.collect import collect_garbage
from gitops_ctl.git.fetching import FetchRequest, Ref
from gitops_ctl.git.layout import UNFINISHED_FILE, exclusive, pack_files, prepare_repository, size_bytes
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import walk_tree
from gitops_ctl.git.url import parse_url


class InProcess:
    """Collects without a child."""

    async def collect(self, request, *, keep, into):
        collect_garbage(request.repository, keep=keep, into=into)


@pytest.fixture
def cache(tmp_path):
    return CloneCache(tmp_path / "cache")


@pytest.fixture
def request_for(repo, cache):
    def make(**more):
        url = parse_url(repo.url, allow_file=True)
        path = cache.path_for(url, tenant="team-a")
        return replace(FetchRequest(url=url, repository=path, ref=Ref("branch", "main")), **more)

    return make


def fetch(request):
    """One fetch in this process, from the file system; the tip."""
    with exclusive(request.repository):
        prepare_repository(request.repository)
        return fetch_child.fetch(request)["tip"]


def test_G20_five_hundred_sources_of_one_address_share_one_copy(cache):
    urls = [f"https://Git.example.net{':443' if n % 2 else ''}/net/work{'/' if n % 3 else ''}" for n in range(500)]
    assert len({cache.path_for(parse_url(url), tenant="team-a") for url in urls}) == 1


def test_copies_are_not_shared_between_tenants_or_addresses(cache):
    url = parse_url("https://git.example.net/net/work")
    other = parse_url("https://git.example.net/net/other")
    paths = {cache.path_for(url, tenant="a"), cache.path_for(url, tenant="b"), cache.path_for(other, tenant="a")}
    assert len(paths) == 3


async def test_G08_a_reader_finds_every_file_while_the_copy_moves_to_new_generations(
    repo, cache, request_for, monkeypatch
):
    monkeypatch.setattr("gitops_ctl.git.repository.is_due", lambda path: True)
    repo.line(20)
    fetch(request_for())
    stop, problems, passes = threading.Event(), [], []
    url = request_for().url

    def read():
        while not stop.is_set():
            with (
                cache.lease(url, tenant="team-a") as snapshot,
                snapshot.open() as store,
            ):
                try:
                    tips = [str(store.repository.references[name].target) for name in store.repository.references]
                    for tip in tips:
                        for file in walk_tree(store, store.links(tip).tree):
                            store.blob(file.id)
                    passes.append(len(tips))
                except (GitopsError, KeyError, OSError) as error:
                    problems.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(15):
        tip = repo.line(1, start=100 + number)[0]
        assert fetch(request_for()) == tip
        await cache.collect(request_for(), keep=(), collector=InProcess())
    stop.set()
    reader.join()
    assert problems == []
    assert passes


async def test_G09_a_generation_lives_until_its_last_reader_is_done(repo, cache, request_for, monkeypatch):
    monkeypatch.setattr("gitops_ctl.git.repository.is_due", lambda path: True)
    tip = repo.line(5)[-1]
    fetch(request_for())
    old = request_for().repository
    slow, quick = cache.snapshot(old), cache.snapshot(old)
    fresh = await cache.collect(request_for(), keep=(), collector=InProcess())
    assert request_for().repository == fresh != old
    quick.close()
    with slow.open() as store:
        assert len(list(walk_tree(store, store.links(tip).tree))) == 5
    slow.close()
    assert not old.exists()
    with pytest.raises(NotFound):
        cache.snapshot(old)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_G11_the_size_of_a_copy_is_bounded_over_many_fetches(repo, cache, request_for, count):
    repo.line(1)
    sizes = []
    for number in range(count):
        tip = repo.line(1, start=number % 50 + 1)[0]
        assert fetch(request_for()) == tip
        await cache.collect(request_for(), keep=(), collector=InProcess())
        sizes.append(size_bytes(request_for().repository))
        assert len(pack_files(request_for().repository)) <= 501
    slope = (max(sizes[-60:]) - max(sizes[:60])) / (count - 60)
    assert slope < 1024
    assert len(list((cache.root).glob("*/generation-*"))) == 1


async def test_collecting_keeps_what_is_asked_for_and_drops_the_rest(repo, cache, request_for, tmp_path):
    abandoned = repo.line(3)
    fetch(request_for())
    repo.git("checkout", "--quiet", "--orphan", "fresh")
    repo.commit({"fresh": "1"})
    repo.git("branch", "-M", "fresh", "main")
    fetch(request_for())
    for name, keep in (("kept", (abandoned[-1],)), ("dropped", ())):
        collect_garbage(request_for().repository, keep=keep, into=tmp_path / name)
        with ObjectStore.open(tmp_path / name) as store:
            assert store.contains(repo.head())
            assert store.contains(abandoned[0]) == bool(keep)


def test_G17_a_restart_removes_what_is_unfinished_and_keeps_what_is_sound(repo, cache, request_for):
    tip = repo.line(3)[-1]
    fetch(request_for())
    path = request_for().repository
    (path.parent / "building" / "objects").mkdir(parents=True)
    (path.parent / "generation-7").mkdir()
    again = CloneCache(cache.root)
    assert [each.name for each in path.parent.iterdir()] in ([], [path.name])
    fresh = replace(request_for(), repository=again.path_for(request_for().url, tenant="team-a"))
    assert fetch(fresh) == tip


@pytest.mark.parametrize(
    "damage",
    ["objects/pack/pack_git2_abc", "objects/pack/tmp_pack_x", "objects/pack/pack-1.idx", "objects/pack/pack-2.pack", "shallow.lock", "refs/kept/x.lock"],
)  # fmt: skip
def test_G17_leftovers_of_a_killed_writer_are_removed(repo, request_for, damage):
    repo.line(3)
    fetch(request_for())
    path = request_for().repository
    (path / damage).parent.mkdir(parents=True, exist_ok=True)
    (path / damage).write_bytes(b"rest")
    (path / UNFINISHED_FILE).touch()
    tip = repo.line(1, start=9)[0]
    assert fetch(request_for()) == tip
    assert not (path / damage).exists()
    assert not (path / UNFINISHED_FILE).exists()


def test_G17_a_copy_that_cannot_be_repaired_is_discarded_and_fetched_anew(repo, cache, request_for):
    tip = repo.line(3)[-1]
    fetch(request_for())
    damaged = request_for().repository
    # Read by somebody: opened anew, such a pack would be passed over, and its objects fetched again.
    reader = ObjectStore.open(damaged)
    assert reader.contains(tip)
    assert reader.read(tip).kind == "commit"
    (pack,) = pack_files(damaged)
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:12] + bytes(pack.stat().st_size - 12))
    (damaged / UNFINISHED_FILE).touch()
    with pytest.raises(GitopsError) as caught:
        fetch(request_for())
    reader.close()
    assert caught.value.code is ErrorCode.REPOSITORY_DAMAGED
    cache.discard(damaged)
    assert not damaged.exists()
    assert fetch(request_for()) == tip


def test_a_forgotten_address_leaves_nothing(repo, cache, request_for):
    repo.line(1)
    fetch(request_for())
    path = request_for().repository
    cache.forget(request_for().url, tenant="team-a")
    assert not path.exists()


def test_a_damaged_object_is_said_to_be_one(repo, open_store):
    repo.commit({"a": "1"})
    blob = repo.git("rev-parse", "HEAD:a")
    file = repo.git_dir / "objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(b"no object")
    with pytest.raises(Refused) as caught:
        open_store(repo).blob(blob)
    assert caught.value.code is ErrorCode.REPOSITORY_DAMAGED
    with pytest.raises(Refused, match="no Git repository"):
        ObjectStore.open(repo.path / "nowhere")


@pytest.mark.parametrize(
    "name",
    ["", "a b", "-x", "a..b", "a:b", "a*", "a?", "a~1", "a^", "a\\b", "/a", "a//b", ".a", "a.lock", "@", "a@{1}"],
)
def test_a_name_that_is_no_plain_ref_name_is_refused(name):
    with pytest.raises(Refused) as caught:
        Ref("branch", name)
    assert caught.value.code is ErrorCode.REF_NOT_FOUND
    assert Ref("tag", "release/v1.0").full == "refs/tags/release/v1.0"
