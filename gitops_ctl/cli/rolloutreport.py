"""The rollouts of the HTML report: facts, and a timeline of the devices by waves (rollouts.md, section 3.4).

Pure.  A bar is a block with a width in percent: the page has no script and loads nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at
from gitops_ctl.core.moment import from_rfc3339

_PARTS: Final = {
    "startTime": ("prepares", "#8c959f"),
    "installStartTime": ("installs", "#0969da"),
    "activationStartTime": ("activates", "#8250df"),
    "rollbackStartTime": ("rolls back", "#c5303a"),
}
"""What begins at each time of a leaf, and its colour."""
_SOAK: Final = ("is watched", "#1a7f37")
_END: Final = "completionTime"
_OVER: Final = frozenset({"Succeeded", "Failed", "Cancelled"})


@dataclass(frozen=True, slots=True)
class _Bar:
    word: str
    colour: str
    begins: datetime
    ends: datetime


def rollouts_html(items: Sequence[JsonObject], *, generated: str) -> str:
    """The part of the page; empty where there is no rollout.

    Args:
        items: summaries of `status`.
        generated: when the state was read; what has no end yet ends there.
    """
    if not items:
        return ""
    return "<h2>Rollouts</h2>" + "".join(_section(item, generated) for item in items)


def _section(item: JsonObject, generated: str) -> str:
    badge = text_at(item, "ready") if text_at(item, "ready") in ("True", "False") else "Unknown"
    name = escape(f"{text_at(item, 'namespace')}/{text_at(item, 'name')}")
    reason, since = escape(text_at(item, "reason")), escape(text_at(item, "since"))
    head = f'<h3>{name} <span class="badge {badge}">{reason}</span> <span class="small">{since}</span></h3>'
    facts = (("To version", text_at(item, "targetVersion")), ("Plan hash", text_at(item, "planHash")))
    shown = "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in facts if value)
    return f"<section>{head}<p>{escape(text_at(item, 'message'))}</p><dl>{shown}</dl>{_timeline(item, generated)}</section>"


def _timeline(item: JsonObject, generated: str) -> str:
    devices = objects_at(item, "devices")
    if not devices:
        return ""
    now = _moment(generated)
    bars = {text_at(one, "device"): tuple(_bars(one, now)) for one in devices}
    every = [bar for found in bars.values() for bar in found]
    first, last = min((bar.begins for bar in every), default=None), max((bar.ends for bar in every), default=None)
    rows = []
    for wave in objects_at(item, "waves"):
        rows.append(f'<tr><th colspan="3">{escape(text_at(wave, "text"))}</th></tr>')
        for device in devices:
            if device.get("wave") == wave.get("wave"):
                rows.append(_row(device, bars[text_at(device, "device")], first, last))
    ends = f'<p class="small">{_stamp(first)} to {_stamp(last)}: {_legend()}</p>' if every else ""
    return f"<table>{''.join(rows)}</table>{ends}"


def _row(device: JsonObject, bars: Sequence[_Bar], first: datetime | None, last: datetime | None) -> str:
    words = [text_at(device, "phase"), text_at(device, "reason")]
    said = escape(": ".join(dict.fromkeys(word for word in words if word)))
    blocks = "" if first is None or last is None else "".join(_block(bar, first, last) for bar in bars)
    track = f'<div style="position:relative;height:1rem;min-width:14rem;background:#8882">{blocks}</div>'
    return f'<tr><td class="id">{escape(text_at(device, "device"))}</td><td style="width:60%">{track}</td><td>{said}</td></tr>'


def _block(bar: _Bar, first: datetime, last: datetime) -> str:
    whole = max((last - first).total_seconds(), 1.0)
    left = 100 * (bar.begins - first).total_seconds() / whole
    width = max(100 * (bar.ends - bar.begins).total_seconds() / whole, 0.5)
    title = escape(f"{bar.word}: {_stamp(bar.begins)} to {_stamp(bar.ends)}", quote=True)
    place = f"position:absolute;left:{min(left, 99.5):.1f}%;width:{width:.1f}%;height:100%;background:{bar.colour}"
    return f'<div title="{title}" style="{place}"></div>'


def _bars(device: JsonObject, now: datetime | None) -> Iterator[_Bar]:
    """One for each part of the work; the one that goes on ends now."""
    times = {text_at(one, "what"): _moment(text_at(one, "at")) for one in objects_at(device, "times")}
    end = times.get(_END) or now
    begins = [(name, moment) for name in _PARTS if (moment := times.get(name)) is not None]
    if end is None or not begins:
        return
    for (name, start), until in zip(begins, [*(moment for _, moment in begins[1:]), end], strict=True):
        yield _Bar(*_PARTS[name], start, max(start, until))
    soaked = _soaked(device, times.get(_END), now)
    if soaked is not None:
        yield soaked


def _soaked(device: JsonObject, ended: datetime | None, now: datetime | None) -> _Bar | None:
    """From the end of the work to the end of the target."""
    since = _moment(text_at(device, "since"))
    until = since if text_at(device, "phase") in _OVER else now
    if ended is None or until is None or until <= ended:
        return None
    return _Bar(*_SOAK, ended, until)


def _legend() -> str:
    return ", ".join(
        f'<span style="color:{colour}">&#9632;</span> {word}' for word, colour in (*_PARTS.values(), _SOAK)
    )


def _moment(text: str) -> datetime | None:
    try:
        return from_rfc3339(text) if text else None
    except ValueError:
        return None


def _stamp(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
