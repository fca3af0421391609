"""The comment and the commit status on somebody's pull request (forges.md, section 11.3).  Pure.

Texts of files and commits are foreign: they stand inside code spans, cut and without what looks like a secret, so that they can neither
format, mention, link nor close anything.  The same report gives the same text: there is no time in it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gitops_ctl.forge.neutral import StatusState
from gitops_ctl.forge.text import code
from gitops_ctl.source.pullreport import Finding, Need, PullReport, Unaccepted

MARKER: Final = "<!-- gitops-ctl:check -->"
MOST_CHARACTERS: Final = 60_000
CONTEXT: Final = "gitops-ctl/check"

_MESSAGE: Final = 500
_SHOWN_PERSONS: Final = 20


def check_status(report: PullReport) -> tuple[StatusState, str]:
    """State and line of the commit status; warnings alone do not fail it."""
    words = [counted(report.errors, "error"), counted(report.warnings, "warning")]
    if report.conflicts:
        words.append("conflicts with the base")
    if report.refused_count:
        words.append(f"{counted(report.refused_count, 'commit')} not accepted as they are")
    return ("failure" if report.errors else "success"), ", ".join(words)


def comment_of(report: PullReport, *, head: str, base_branch: str) -> str:
    """The whole comment, without its marker."""
    lines = [
        f"**gitops-ctl check** of {code(head)} against what is accepted on {code(base_branch)}: "
        f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}.",
        *_conflicts(report),
        *_findings(report),
        *_needs(report),
        *_commits(report),
        *_touched(report),
        "",
        "This is information: what is accepted is judged from the signed commits after the merge.",
    ]
    return _capped(lines)


def counted(number: int, name: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _conflicts(report: PullReport) -> Iterator[str]:
    if report.conflicts:
        yield ""
        yield f"It conflicts with the base in {_codes(report.conflicts)}, so the head was looked at as it is."


def _findings(report: PullReport) -> Iterator[str]:
    if not report.findings:
        return
    yield ""
    yield "### Errors and held objects"
    yield ""
    yield from (_finding(finding) for finding in report.findings)
    more = report.errors + report.warnings - len(report.findings)
    if more > 0:
        yield f"- and {more} more; `gitops-ctl check` shows all of them"


def _finding(finding: Finding) -> str:
    place = f" at {code(finding.place, limit=_MESSAGE)}" if finding.place else ""
    held = f" {'Holds' if finding.severity == 'error' else 'About'} {code(finding.object)}." if finding.object else ""
    hint = f" Hint: {code(finding.hint, limit=_MESSAGE)}" if finding.hint else ""
    name = "error" if finding.severity == "error" else "warning"
    return f"- **{name}** {code(finding.code)}{place}: {code(finding.message, limit=_MESSAGE)}.{held}{hint}"


def _needs(report: PullReport) -> Iterator[str]:
    if not report.needs:
        return
    yield ""
    yield "### What the merge needs"
    yield ""
    yield from (_need(need) for need in report.needs)
    if not report.by_forge:
        yield ""
        yield "The policy accepts no merge by the forge: merge on a workstation, with a signed merge commit."


def _need(need: Need) -> str:
    where = f" on {_codes(need.paths)}" if need.paths else ""
    where += f" and {need.more} more" if need.more else ""
    if not need.rule:
        return f"- {code(need.verb)}{where}: **no rule of the policy gives this verb here**"
    number = "one" if need.threshold == 1 else str(need.threshold)
    who = f"{number} of {_codes(need.persons, limit=_SHOWN_PERSONS)}" if need.persons else "nobody holds a role of it"
    distinct = ", not who introduced what it authorises" if need.distinct else ""
    judged = f"; signed already by {_codes(need.judged, limit=_SHOWN_PERSONS)}" if need.judged else ""
    return f"- {code(need.verb)}{where}: {who}{distinct}{judged} ({code(need.rule)})"


def _commits(report: PullReport) -> Iterator[str]:
    if report.proposed:
        yield ""
        yield (
            f"{counted(report.proposed, 'commit')} by a proposer's key: whoever merges is judged for them, so merge, don't fast-forward."
        )
    if not report.refused_count:
        return
    yield ""
    yield f"### {counted(report.refused_count, 'commit')} not accepted as they are"
    yield ""
    yield from (_refused(each) for each in report.refused)
    more = report.refused_count - len(report.refused)
    if more > 0:
        yield f"- and {more} more"
    yield ""
    yield "Sign them, or let an entitled person squash them into a signed commit of their own."


def _refused(each: Unaccepted) -> str:
    hint = f" Hint: {code(each.hint, limit=_MESSAGE)}" if each.hint else ""
    return f"- {code(each.commit)} **{each.reason}**: {code(each.message, limit=_MESSAGE)}.{hint}"


def _touched(report: PullReport) -> Iterator[str]:
    if not report.trusted:
        yield ""
        yield (
            "What it would change is not shown: the head comes from a fork, or not all of its commits are signed by people of the policy."
        )
        return
    if not report.touched:
        return
    yield ""
    yield "### What it touches"
    yield ""
    if report.devices:
        yield f"- {counted(report.device_count, 'device')}: {_listed(report.devices, report.device_count)}"
    for action in ("added", "changed", "removed"):
        names = [each.object for each in report.touched if each.action == action]
        if names:
            yield f"- {action}: {', '.join(code(name) for name in names)}"
    more = report.touched_count - len(report.touched)
    if more > 0:
        yield f"- and {more} more objects"
    yield from _plans(report)


def _plans(report: PullReport) -> Iterator[str]:
    """What the plans of its objects say, as far as the documents tell."""
    for plan in report.plans:
        yield ""
        yield f"### The plan of {code(plan.object)}"
        yield ""
        yield from (f"- {code(line, limit=_MESSAGE)}" for line in plan.lines)
    more = report.plan_count - len(report.plans)
    if more > 0:
        yield ""
        yield f"The plans of {counted(more, 'more object')} are left out."


def _listed(names: Sequence[str], total: int) -> str:
    more = total - len(names)
    return ", ".join(code(name) for name in names) + (f" and {more} more" if more > 0 else "")


def _codes(names: Sequence[str], *, limit: int = 5) -> str:
    return _listed(names[:limit], len(names))


def _capped(lines: Sequence[str]) -> str:
    """Whole lines only: half of a code span would set free what stands in it."""
    room = MOST_CHARACTERS - len(MARKER) - 200
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, "", "The rest is left out: the comment would be too long."])
        kept.append(line)
    return "\n".join(kept)
