"""`gitops-ctl bootstrap` on a real API server of its own, since it installs the admission policies of the product.

In scope: what a person is shown and asked, what is written and what never is.  Out of scope: fetching from servers (tests/peers), what
the manager then does (other files).
"""

import asyncio
import base64
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervisor import Job, start_supervisor, stop_supervisor
from tests.support.cli import Done, run_cli
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.git_keys import SshKey
from tests.support.git_repos import RepoBuilder
from tests.support.product import ADMIN, PLATFORM, config_map, make_keys, policy_text

pytestmark = pytest.mark.cluster

TOKEN = "not-for-anybodys-eyes-42"
API = "/apis/gitops-ctl.dev/v1alpha1"


@pytest.fixture(scope="module")
def own_plane(
    control_plane: ControlPlaneHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlaneHandle]:
    """An API server for this module."""
    folder = SystemFolder(tmp_path_factory.mktemp("bootstrap") / "system")
    job = Job(folder.path, control_plane.binaries, Options(audit=True, durable=False, controllers=False))
    state = asyncio.run(start_supervisor(job, clock=SystemClock()))
    yield ControlPlaneHandle(folder, state, control_plane.binaries)
    asyncio.run(stop_supervisor(folder))
    shutil.rmtree(folder.path)


@dataclass
class Desk:
    """A person with a repository and a kubeconfig."""

    plane: ControlPlaneHandle
    repo: RepoBuilder
    keys: dict[str, SshKey]
    namespace: str
    folder: Path
    root: str = ""
    options: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return digest_bytes((self.repo.path / POLICY_PATH).read_bytes())

    async def bootstrap(self, *more: str, typed: str | None = None) -> Done:
        arguments = ["bootstrap", self.repo.url, "--allow-file-url", "-n", self.namespace, "--path", "site"]
        return await run_cli(*arguments, *self.options, *more, kubeconfig=self.plane.kubeconfig, typed=typed)

    async def confirmed(self, *more: str) -> Done:
        """In a script that knows what to expect."""
        done = await self.bootstrap("--expect-commit", self.root, "--expect-digest", self.digest, "--yes", *more)
        assert done.code == 0, done.err
        return done

    def get(self, path: str) -> Any:
        answer = self.plane.request("GET", path)
        assert answer.status == 200, answer.body
        return answer.body

    def exists(self, path: str) -> bool:
        return self.plane.request("GET", path).status == 200

    def token_file(self) -> str:
        path = self.folder / "token"
        path.write_text(f"{TOKEN}\n")
        return str(path)


@pytest.fixture
def desk(own_plane: ControlPlaneHandle, tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    keys = make_keys(tmp_path, (PLATFORM, ADMIN))
    desk = Desk(
        own_plane, RepoBuilder(tmp_path / "repo"), keys, request.node.name[:50].strip("_").replace("_", "-"), tmp_path
    )
    desk.namespace = desk.namespace.lower()
    files = {POLICY_PATH: policy_text(keys, people=(PLATFORM, ADMIN)), "site/base.yaml": config_map("base")}
    desk.root = desk.repo.commit(files, author=f"{ADMIN} <{ADMIN}@example.net>", signer=keys[ADMIN], message="Begin")
    return desk


def writes(log: AuditLog) -> list[str]:
    """What was really written, by the command."""
    return [
        f"{entry['verb']} {entry['objectRef']['resource']}/{entry['objectRef'].get('name', '')}"
        for entry in log.writes(user_agent="cli")
        if "dryRun=All" not in entry["requestURI"]
    ]


async def test_the_first_install_shows_root_digest_and_people_asks_once_and_installs(desk: Desk) -> None:
    done = await desk.bootstrap(typed="y\n")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:8] == [
        f"root commit    {desk.root}",
        "  subject      Begin",
        f"  committer    {ADMIN} <{ADMIN}@example.net>",
        f"  signed by    {ADMIN}, key {desk.keys[ADMIN].fingerprint}",
        f"trust policy   {POLICY_PATH}",
        f"  digest       {desk.digest}",
        "people",
        f"  {PLATFORM} ({PLATFORM}-role)",
    ]
    assert done.out.count("[y/N]") == 1
    assert "create  CustomResourceDefinition.apiextensions.k8s.io/gitsources.gitops-ctl.dev" in lines
    assert f"create  GitSource.gitops-ctl.dev/{desk.namespace}/main" in lines

    source = desk.get(f"{API}/namespaces/{desk.namespace}/gitsources/main")
    assert source["spec"]["trust"]["root"] == {"commit": desk.root, "policyDigest": desk.digest}
    sync = desk.get(f"{API}/namespaces/{desk.namespace}/syncs/main")
    assert (sync["spec"]["sourceRef"], sync["spec"]["path"]) == ({"name": "main"}, "site")
    assert desk.exists("/apis/apps/v1/namespaces/gitops-ctl-system/deployments/gitops-ctl-manager")
    assert desk.repo.head() == desk.root


async def test_it_prints_the_rights_that_are_missing_and_the_document_for_git_and_grants_nothing(desk: Desk) -> None:
    desk.root = desk.repo.commit(
        {"site/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: []\n"},
        author=f"{PLATFORM} <{PLATFORM}@example.net>",
        signer=desk.keys[PLATFORM],
    )
    done = await desk.confirmed()
    everywhere, bound, within, bound_within, document = (yaml.safe_load(part) for part in _documents(done.out))
    assert everywhere["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles"],
            "verbs": ["get", "create", "patch", "delete"],
        },
    ]
    assert "bind and escalate" in done.out
    assert [rule["resources"] for rule in within["rules"]] == [["syncs"]]
    assert within["metadata"]["namespace"] == desk.namespace
    assert (document["kind"], document["metadata"]) == ("Sync", {"name": "main", "namespace": desk.namespace})
    assert document["spec"] == {
        "sourceRef": {"name": "main"},
        "path": "site",
        "serviceAccountName": "gitops-ctl-sync",
        "prune": {"enabled": True},
    }
    account = {"kind": "ServiceAccount", "name": "gitops-ctl-sync", "namespace": desk.namespace}
    assert bound["subjects"] == bound_within["subjects"] == [account]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    bindings = desk.get(f"{rbac}/clusterrolebindings")["items"] + desk.get(f"{rbac}/rolebindings")["items"]
    assert [one["metadata"]["name"] for one in bindings if account in one.get("subjects", [])] == []


def _documents(text: str) -> list[str]:
    """The indented YAML documents of the next steps."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("   apiVersion:"):
            found.append("")
        if found and line.startswith("   ") and not line.startswith(("   It ", "   ---")):
            found[-1] += f"{line[3:]}\n"
    return found


async def test_a_repeat_changes_nothing_and_asks_nothing_more(desk: Desk) -> None:
    await desk.confirmed()
    log = AuditLog(desk.plane.audit)
    done = await desk.bootstrap(typed="y\n")
    assert done.code == 0, done.err
    assert done.out.count("[y/N]") == 1
    assert "create  " not in done.out
    assert "change  " not in done.out
    assert writes(log) == []


async def test_another_root_is_shown_as_a_difference_and_asked_for_again(desk: Desk) -> None:
    await desk.confirmed()
    before = desk.root
    desk.root = desk.repo.commit(
        {"site/base.yaml": config_map("base", "2")}, author=f"{PLATFORM} <p@example.net>", signer=desk.keys[PLATFORM]
    )
    log = AuditLog(desk.plane.audit)
    refused = await desk.bootstrap(typed="y\nn\n")
    assert refused.code == 130
    assert f"          /spec/trust/root/commit: '{before}' -> '{desk.root}'" in refused.out.splitlines()
    assert refused.out.count("[y/N]") == 2
    assert writes(log) == []

    accepted = await desk.bootstrap(typed="y\ny\n")
    assert accepted.code == 0, accepted.err
    path = f"{API}/namespaces/{desk.namespace}/gitsources/main"
    assert desk.get(path)["spec"]["trust"]["root"]["commit"] == desk.root
    assert writes(log) == ["patch gitsources/main"]


async def test_no_for_the_root_ends_before_anything_is_written(desk: Desk) -> None:
    log = AuditLog(desk.plane.audit)
    done = await desk.bootstrap(typed="n\n")
    assert done.code == 130
    assert log.entries(user_agent="cli") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--expect-commit", "0" * 40, "--expect-digest", "sha256:x", "--yes"], "the commit is "),
        (["--expect-digest", "sha256:" + "0" * 64], "the policy digest is sha256:"),
        (["--yes"], "--yes needs --expect-commit and --expect-digest"),
        ([], "there is nobody to ask"),
        (["--branch", "nowhere"], "nowhere"),
        (["--policy-path", "other.yaml"], "has no trust policy"),
        (["--username", "me"], "--username and --password-file belong together"),
    ],
    ids=["commit", "digest", "blind-yes", "nobody", "branch", "no-policy", "half-a-login"],
)
async def test_what_is_not_as_expected_ends_it_with_one_error_before_anything_is_written(
    desk: Desk, options: list[str], said: str
) -> None:
    log = AuditLog(desk.plane.audit)
    done = await desk.bootstrap(*options)
    assert done.code == 1
    assert done.err.startswith("error GC")
    assert said in done.err
    assert log.entries(user_agent="cli") == []


async def test_two_sources_share_a_namespace_and_an_account_each_with_a_role_of_its_own(desk: Desk) -> None:
    await desk.confirmed("--bearer-token-file", desk.token_file())
    await desk.confirmed("--name", "second")
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{desk.namespace}/roles"
    rules = {role["metadata"]["name"]: role["rules"] for role in desk.get(path)["items"]}
    act = {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["gitops-ctl-sync"]}
    read = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["main-git"], "verbs": ["get"]}
    assert rules == {
        "gitops-ctl-main": [{**act, "verbs": ["impersonate"]}, read],
        "gitops-ctl-second": [{**act, "verbs": ["impersonate"]}],
    }
    accounts = desk.get("/api/v1/namespaces/gitops-ctl-system/configmaps/gitops-ctl-admission")["data"]["syncAccounts"]
    assert f"system:serviceaccount:{desk.namespace}:gitops-ctl-sync" in accounts.splitlines()
    assert accounts.splitlines() == sorted(set(accounts.splitlines()))


async def test_credentials_are_stored_in_the_secret_and_shown_nowhere(desk: Desk) -> None:
    first = await desk.confirmed("--bearer-token-file", desk.token_file())
    secret = desk.get(f"/api/v1/namespaces/{desk.namespace}/secrets/main-git")
    assert base64.b64decode(secret["data"]["bearerToken"]).decode() == TOKEN
    (desk.folder / "token").write_text("another-token-43")
    second = await desk.confirmed("--bearer-token-file", str(desk.folder / "token"))
    assert "/data/bearerToken: '[redacted]' -> '[redacted]'" in second.out
    for text in (first.out, first.err, second.out, second.err):
        for value in (TOKEN, "another-token-43"):
            assert value not in text
            assert base64.b64encode(value.encode()).decode() not in text


async def test_an_unsigned_root_and_control_characters_in_it_are_shown_for_what_they_are(desk: Desk) -> None:
    desk.root = desk.repo.commit({"site/a.yaml": config_map("a")}, message="Nice \x1b[2J root")
    done = await desk.bootstrap(typed="n\n")
    assert "\x1b" not in done.out
    assert "  signed by    nobody that the policy knows (" in done.out
