"""The project that a source names, looked at before anything is read or done there (forges.md, section 18).

A forge goes on answering for a project that was moved: it redirects to whatever stands there now.  So each pass begins with the project
itself, and every pull request that it reads has to be one of that very repository.
"""

from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.errors import BaseMissing, RepositoryUnavailable
from gitops_ctl.forge.neutral import PullRequest, Repository


async def project_of(forge: ForgeAdapter) -> Repository:
    """The project as it is now; also finds out which of two kinds of server answers.

    Raises:
        RepositoryUnavailable: it is archived, or it was moved.
    """
    found = await forge.repo()
    if found.archived:
        raise RepositoryUnavailable(f"the project {found.full_name} is archived: it takes nothing")
    return found


def of_project(pull: PullRequest, project: Repository) -> PullRequest:
    """The same pull request.

    Raises:
        RepositoryUnavailable: it belongs to another repository.
    """
    if pull.base.repository != project.id:
        raise RepositoryUnavailable(
            f"the forge answers for {project.full_name}, repository {project.id}, with pull request {pull.number} of "
            f"repository {pull.base.repository or 'unknown'}: the project was moved"
        )
    return pull


def base_missing(error: BaseMissing, project: Repository) -> BaseMissing:
    """The same error with the branch that the forge calls its default now, for a person: it is never used instead."""
    known = f"the default branch of {project.full_name} is {project.default_branch} now"
    missing = f"{project.full_name} has no default branch now"
    return BaseMissing(f"{error.message}; {known if project.default_branch else missing}", subject=error.subject)
