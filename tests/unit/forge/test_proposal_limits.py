"""Files that a Proposal must not touch, or that are too large: nothing is pushed and a person is told (forges.md, sections 14 and 21)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gitops_ctl.git.transport import Fetched, FetchRequest
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver import ApiServer, FakeApiServer
from tests.support.git_keys import SshKey
from tests.support.proposal_room import Tenant, tenant
from tests.support.proposals import TEXT, VALUES
from tests.support.sync_cluster import until


@pytest.fixture
async def lab(tmp_path: Path, key: SshKey) -> AsyncIterator[Tenant]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FakeApiServer(ApiServer(lag=0)))
        config = ClusterConfig(server.url)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="manager"))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
        yield await stack.enter_async_context(tenant(admin, manager, "lab", tmp_path, key=key))


def link(lab: Tenant, path: str, target: str) -> None:
    """A person commits a symlink in place of what stands at `path`."""
    person = lab.remote.person
    lab.remote.commit(delete=[VALUES])
    place = person.path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    lab.remote.commit()


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (VALUES, "/etc/passwd"),
        (VALUES, "other.yaml"),
        ("clusters/site-1", "../elsewhere"),
    ],
    ids=["out of the repository", "inside of it", "on the way"],
)
async def test_a_symlink_is_never_followed(lab: Tenant, path: str, target: str):
    lab.remote.commit({"elsewhere/cilium.yaml": TEXT, "clusters/site-1/other.yaml": TEXT})
    if path != VALUES:
        lab.remote.commit(delete=["clusters/site-1/other.yaml"])
    link(lab, path, target)
    await lab.ask()
    tree = await lab.until_reason("DocumentInvalid")
    message = (await lab.ready())["message"]
    assert tree["status"]["phase"] == "Pending"
    assert message.startswith(f"{path}: a symlink, a submodule or a folder is where a file is needed")
    assert f"by hand: in {VALUES} /kubeProxyReplacement set true" in message
    assert lab.git.pushes == []
    assert lab.forge.pulls == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, (500 * 2**20, 60.0)), ({"limits": {"bytes": 2**20}, "timeout": "10m"}, (2**20, 120.0))],
)
async def test_a_fetch_of_a_proposal_has_its_own_limits(
    lab: Tenant, monkeypatch: pytest.MonkeyPatch, spec: dict[str, object], expected: tuple[int, float]
):
    seen: list[tuple[int, float]] = []
    fetch = lab.git.fetch

    async def watched(request: FetchRequest) -> Fetched:
        seen.append((request.limits.bytes, request.limits.timeout_s))
        return await fetch(request)

    monkeypatch.setattr(lab.git, "fetch", watched)
    await lab.admin.patch_merge(lab.path("gitsources", "network"), {"spec": spec})
    await lab.ask()
    await lab.until_reason("Open")
    lab.wake()
    await until(lambda: seen[-1] == expected, what=f"a fetch within {expected}")


async def test_a_file_above_one_mebibyte_is_not_read(lab: Tenant):
    lab.remote.commit({VALUES: TEXT + "#" * 2**20})
    await lab.ask()
    tree = await lab.until_reason("FetchTooLarge")
    assert tree["status"]["phase"] == "Pending"
    assert f"{VALUES}: the file is larger than 1048576 bytes" in (await lab.ready())["message"]
    assert lab.git.pushes == []
    lab.remote.commit({VALUES: TEXT})
    lab.wake()
    await lab.until_reason("Open")
