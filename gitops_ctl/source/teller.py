"""Tells the forge of a source what was judged: one pass at a time per source (forges.md, section 11.3).

Rules:
  * Off without `spec.forge`, without its token, without `spec.trust` (nothing is judged then), and while suspended.
  * The status of a tip is sent when it changes, at most once in ten seconds.
  * This has a queue and workers of its own: a forge that is down, or a head that takes long, delays no source.
  * Read are the objects of the tenant, the forge's token and the fetch credentials; nothing of the cluster is changed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.api.gitops import GitSource, parse_git_source
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge import access
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.errors import RepositoryUnavailable, TokenRejected
from gitops_ctl.forge.neutral import Repository
from gitops_ctl.forge.project import project_of
from gitops_ctl.source.pulltelling import Ports, Post, PullTelling, Told
from gitops_ctl.source.summarise import error_text
from gitops_ctl.source.verdictstatus import CONTEXT, Verdict, verdict_of

_PROJECT: Final = "project"

Lookup = Callable[[NamespacedName], JsonObject | None]
SyncsOf = Callable[[NamespacedName], Iterable[JsonObject]]


@dataclass(slots=True)
class _Memory:
    """One source between passes.

    Attributes:
        verdict: the last one that the forge has; a restarted process asks the forge.
        rejected: the token that the forge does not know: nothing is tried with it again.
    """

    told: Told = field(default_factory=Told)
    verdict: Verdict | None = None
    verdict_due_s: float = 0.0
    rejected: str = ""


class Teller:
    """Reconciles what a forge is told about a GitSource."""

    def __init__(self, ports: Ports, *, lookup: Lookup, syncs: SyncsOf) -> None:
        """`lookup` and `syncs` (of a source) read the informers' caches."""
        self._ports = ports
        self._lookup = lookup
        self._syncs = syncs
        self._memories: dict[NamespacedName, _Memory] = {}

    async def reconcile(self, key: NamespacedName) -> float | None:
        """One pass; gives the seconds until the next one, None while there is nothing to tell.

        Raises:
            GitopsError: the forge, or the API server, cannot be asked; what was not sent is sent later.
        """
        tree = self._lookup(key)
        source = parse_git_source(tree) if tree is not None else None
        if tree is None or source is None or not _is_on(source):
            self._memories.pop(key, None)
            return None
        memory = self._memories.setdefault(key, _Memory())
        verdict = verdict_of(tree, self._syncs(key))
        rest_s = self._rest_s(memory, verdict)
        if rest_s > 0:
            return rest_s
        token = await access.read_forge_token(self._ports.client, source=source)
        if not token or token == memory.rejected:
            return self._ports.pace.refused_s
        ca = await access.read_authorities(self._ports.client, source=source)
        adapter = self._ports.adapter(source, token, ca)
        if adapter is None:
            return None
        post = Post(self._ports, tree, memory.told)
        try:
            project = await project_of(adapter)
            memory.told.refused.discard(_PROJECT)
            await self._tell_verdict(post, adapter, verdict, memory=memory)
            await self._tell_pulls(post, adapter, source, project=project)
        except (TokenRejected, RepositoryUnavailable) as error:
            return self._refused(tree, error, token=token, memory=memory)
        return self._rest_s(memory, verdict)

    def _refused(
        self, tree: JsonObject, error: TokenRejected | RepositoryUnavailable, *, token: str, memory: _Memory
    ) -> float:
        """Tell it, once while it lasts; gives the seconds until it is tried again."""
        is_known = isinstance(error, RepositoryUnavailable) and _PROJECT in memory.told.refused
        if not is_known:
            self._ports.events.emit(tree, type="Warning", reason=error.reason, action="Tell", note=error_text(error))
        if isinstance(error, TokenRejected):
            memory.rejected = token
            return self._ports.pace.refused_s
        memory.told.refused.add(_PROJECT)
        return self._ports.pace.poll_s

    def _rest_s(self, memory: _Memory, verdict: Verdict | None) -> float:
        """Seconds until there is something to do."""
        due_s = memory.told.due_s
        if verdict is not None and verdict != memory.verdict:
            due_s = min(due_s, memory.verdict_due_s)
        return max(0.0, due_s - self._ports.clock.boot_s())

    async def _tell_verdict(
        self, post: Post, adapter: ForgeAdapter, verdict: Verdict | None, *, memory: _Memory
    ) -> None:
        """Send the verdict when it is another one, and when it is time."""
        pace, now_s = self._ports.pace, self._ports.clock.boot_s()
        if verdict is None or verdict == memory.verdict or now_s < memory.verdict_due_s:
            return

        async def send() -> None:
            await adapter.set_status(verdict.commit, context=CONTEXT, state=verdict.state, text=verdict.text)

        taken = await post.send("statuses", send)
        if taken:
            memory.verdict = verdict
        memory.verdict_due_s = now_s + (pace.status_s if taken else pace.refused_s)

    async def _tell_pulls(self, post: Post, adapter: ForgeAdapter, source: GitSource, *, project: Repository) -> float:
        """Look at the pull requests when it is time; without an accepted base there is nothing to compare with."""
        told, now_s = post.told, self._ports.clock.boot_s()
        key = NamespacedName(source.metadata.namespace, source.metadata.name)
        revision = self._ports.revisions.get(key)
        if not source.spec.ref.branch or revision is None or not revision.effects_allowed:
            return self._ports.pace.poll_s
        if now_s < told.due_s:
            return told.due_s - now_s
        telling = PullTelling(post, source=source, adapter=adapter, project=project, revision=revision)
        wait_s = await telling.run()
        told.due_s = self._ports.clock.boot_s() + wait_s
        return wait_s


def _is_on(source: GitSource) -> bool:
    forge, trust = source.spec.forge, source.spec.trust
    if forge is None or forge.provider == "plain" or forge.credentials_secret_ref is None:
        return False
    return trust is not None and not source.spec.suspend and not source.metadata.deletion_timestamp
