"""Files of a Helm chart: input of a renderer, not documents (gitops.md, section 5.1)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.problem import Problem

CHART_FILE: Final = "Chart.yaml"
RENDER_FIRST: Final = "render it before the commit, or list its file in .gitops-ctlignore"


def in_charts(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The same findings; what is no object because it belongs to a Helm chart is told so."""
    listed = list(problems)
    charts = {one.file.removesuffix(CHART_FILE) for one in listed if one.file.rpartition("/")[2] == CHART_FILE}
    for problem in listed:
        if charts and problem.code is ErrorCode.NOT_AN_OBJECT and any(problem.file.startswith(one) for one in charts):
            yield replace(
                problem, code=ErrorCode.NOT_RESOLVED, message="the file belongs to a Helm chart", hint=RENDER_FIRST
            )
        else:
            yield problem
