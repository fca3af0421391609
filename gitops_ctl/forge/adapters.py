"""Which adapter speaks to which forge, and where its API is (forges.md, sections 4 to 7)."""

from urllib.parse import urlsplit

from gitops_ctl import __version__
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import InternalError, Refused
from gitops_ctl.core.http import HttpClient, Terms
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.calls import Calls, checked_token
from gitops_ctl.forge.gitea import GiteaAdapter
from gitops_ctl.forge.github import GAP_S, GithubAdapter
from gitops_ctl.forge.gitlab import GitlabAdapter
from gitops_ctl.forge.plain import BranchReader, PlainAdapter

_API_PATHS = {"gitea": "/api/v1", "gitlab": "/api/v4", "github": "/api/v3"}
_GITHUB_HOSTS = ("github.com", "www.github.com", "api.github.com")


def forge_adapter(  # noqa: PLR0913 - each is a fact of its own
    provider: str,
    *,
    base_url: str,
    project: str,
    token: str,
    http: HttpClient,
    clock: Clock,
    ca: bytes | None = None,
    branches: BranchReader | None = None,
) -> ForgeAdapter:
    """The adapter of one project.

    Args:
        provider: `gitea` (Forgejo too), `github`, `gitlab` or `plain`, as in `spec.forge.provider`.
        base_url: address of the forge or of its API; the API's path is added when it is missing.
        project: `owner/name`; GitLab also takes more parts, or the numeric id.
        token: with the rights that forges.md, section 14, lists.
        http: the client of the process.
        clock: for times of plain Git.
        ca: PEM that replaces the system's authorities.
        branches: what plain Git is read through; needed for it alone.

    Raises:
        TokenRejected: the token holds characters that no header can carry.
        Refused: the project is no owner/name (REPOSITORY_UNAVAILABLE).
    """
    if provider == "plain":
        if branches is None:
            raise InternalError("plain Git is read through its branches, and none were given")
        return PlainAdapter(branches, url=base_url, clock=clock)
    if provider not in _API_PATHS:
        raise InternalError(f"{provider} is none of gitea, github, gitlab and plain")
    _require_project(provider, project)
    token, base = checked_token(token), api_address(provider, base_url)
    usual = Terms(ca=ca)
    headers = {"User-Agent": f"gitops-ctl/{__version__}"}
    match provider:
        case "gitea":
            headers["Authorization"] = f"token {token}"
            return GiteaAdapter(Calls(http, base, headers, token, usual, usual), project=project)
        case "gitlab":
            headers["Authorization"] = f"Bearer {token}"
            return GitlabAdapter(Calls(http, base, headers, token, usual, usual), project=project)
    headers |= {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return GithubAdapter(Calls(http, base, headers, token, usual, Terms(ca=ca, gap_s=GAP_S)), project=project)


def api_address(provider: str, base_url: str) -> str:
    """Address of the API without a slash at its end: `https://git.example.net` becomes `https://git.example.net/api/v1` for Gitea."""
    base = base_url.rstrip("/")
    if provider == "github" and (urlsplit(base).hostname or "") in _GITHUB_HOSTS:
        return "https://api.github.com"
    path = _API_PATHS[provider]
    return base if base.endswith(path) else base + path


def _require_project(provider: str, project: str) -> None:
    parts = project.split("/")
    fits = len(parts) == 2 or (provider == "gitlab" and (len(parts) > 2 or project.isdigit()))
    if not fits or not all(parts) or any(part in (".", "..") for part in parts):
        raise Refused(f"the project {project} is no owner/name", code=ErrorCode.REPOSITORY_UNAVAILABLE)
