"""The ladder of an exchange as SVG: vertical lines for hosts, and an arrow per frame between them.

The drawing has the width of the page: horizontal positions are percentages. Repeated elements, such as an arrow from
the first host to the second, are defined once; labels have two lengths, for wide and narrow pages. Each picture holds a
few rows, because a printer cannot break a picture across pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup, escape

from mxwire.report.exchange import Exchange, FrameStep, Omission, Pause, Row, ShownFrame

MOST_HOSTS: Final = 6
"""Maximum number of lines side by side; frames of further hosts have no arrow."""
_HEAD: Final = 34
_ROW: Final = 30
_NOTE: Final = 24
_BASE: Final = 13
"""Vertical position of the text in a row; other positions count from there."""
_LINE: Final = 6
"""Vertical position of the start of an arrow; its end is lower, since time passes while a frame travels."""
_FALL: Final = 5
_BESIDE: Final = 3
"""Distance between the two lines of an arrow that stands for several frames."""
_FIRST: Final = 23.0
_LAST: Final = 97.5
"""Horizontal positions of the first and the last host, in percent of the width."""
_WIDE: Final = 80
_NARROW: Final = 31
"""Maximum characters of the two lengths of labels, between the first and the last host."""
_NAME: Final = 22
_MARK: Final = 30
"""Maximum characters of host names, and of marks."""
_ROWS: Final = 6
"""Rows per picture."""

KINDS: Final = {
    name: kind
    for kind, names in (
        ("discovery", "RAW HOST_QUERY HOST_REPLY"),
        ("connect", "CONNECT"),
        ("message", "TINY SMALL MEDIUM"),
        ("large", "RNDV PULL PULL_REPLY NOTIFY"),
        ("ack", "TRUC"),
        ("nack", "NACK_LIB NACK_MCP"),
    )
    for name in names.split()
}
"""Purposes of packet types, which select their colours."""

# Plain strings, because self-escaping markup takes far longer: text from captures is escaped where it is inserted.
_LADDER: Final = '<div class="ladder" role="group" aria-label="{}">{}</div>'
_SVG: Final = '<svg width="100%" height="{}">{}</svg>'
_DEFINITIONS: Final = (
    '<defs><path id="hr" d="M0 0-8-3.5v7z"/><path id="hl" d="M0 0 8-3.5v7z"/><path id="hx" d="M-4-4 4 4M-4 4 4-4"/>'
    "{}</defs>"
)
_LIFE: Final = '<line class="life" x1="{0}%" x2="{0}%" y1="{1}" y2="{2}"/>'
_HOST: Final = '<text class="host{}" x="{}%" y="20">{}</text>'
_STEP: Final = (
    '<a class="{classes}" href="#f{first}"{last} transform="translate(0 {y})"><rect y="-13"/>'
    '<text>{number}</text><text class="at" x="{at}%">{ms:.3f}</text>{flag}'
    '<text class="label" x="{middle}%">{label}</text>{arrows}</a>'
)
_FLAG: Final = '<text class="flag" x="{}%" y="12">{}</text>'
_BAND: Final = '<g class="{}" transform="translate(0 {})"><rect/><text x="{}%" y="16">{}</text></g>'
_ARROW: Final = '<line x1="{}%" y1="{}" x2="{}%" y2="{}"/><use href="#{}" x="{}%" y="{}"/>'


class LadderDrawing:
    """Draws one ladder; the arrows of frames are links to ``#fNUMBER``."""

    def __init__(self, exchange: Exchange, rows: list[Row], title: str) -> None:
        self._exchange = exchange
        self._rows = rows
        self._title = title
        hosts = exchange.hosts[:MOST_HOSTS]
        gap = (_LAST - _FIRST) / max(len(hosts) - 1, 1)
        self._across = {host: round(_FIRST + gap * place, 2) for place, host in enumerate(hosts)}
        self._arrows: dict[tuple[float, float, str], str] = {}
        """Names of arrow definitions, by hosts and appearance."""

    def markup(self) -> Markup:
        """Return the pictures, one below the other."""
        pictures = [self._picture(self._rows[at : at + _ROWS], head=at == 0) for at in range(0, len(self._rows), _ROWS)]
        definitions = _DEFINITIONS.format("".join(_arrow(name, *which) for which, name in self._arrows.items()))
        first = _SVG.format(_HEAD, definitions + "".join(self._names()))
        return Markup(_LADDER.format(escape(self._title), first + "".join(pictures)))

    def _picture(self, rows: list[Row], *, head: bool) -> str:
        y = 0
        drawn = []
        for row in rows:
            drawn.append(self._step(row, y) if isinstance(row, FrameStep) else _band(row, y))
            y += _ROW if isinstance(row, FrameStep) else _NOTE
        lines = [_LIFE.format(across, -6 if head else 0, y) for across in self._across.values()]
        return _SVG.format(y, "".join(lines + drawn))

    def _names(self) -> Iterator[str]:
        yield _HOST.format(" unit", _FIRST - 1.5, "ms")
        for place, (host, across) in enumerate(self._across.items()):
            side = " start" if not place else " end" if place == len(self._across) - 1 else ""
            name = _cut(self._exchange.name(host), _NAME)
            yield _HOST.format(side, 100 if side == " end" else across, escape(name))

    def _step(self, step: FrameStep, y: int) -> str:
        seen = step.first
        source = self._across.get(seen.source, _FIRST)
        targets = self._targets(seen)
        end = targets[-1] if targets and targets[-1] != source else _FIRST + _LAST - source
        room = abs(end - source) / (_LAST - _FIRST)
        arrows = [f'<use href="#{self._named(source, target, _look(step))}"/>' for target in targets]
        return _STEP.format(
            classes=_classes(step),
            first=seen.number,
            last=f' data-last="{step.last.number}"' if step.count > 1 else "",
            y=y + _BASE,
            number=f"{seen.number}-{step.last.number}" if step.count > 1 else seen.number,
            at=_FIRST - 1.5,
            ms=seen.time_ns / 1e6,
            flag=_FLAG.format(_FIRST - 1.5, escape(_flag(seen))) if seen.concerned else "",
            middle=round((source + end) / 2, 2),
            label=_label(step, int(_WIDE * room), int(_NARROW * room)),
            arrows="".join(arrows),
        )

    def _targets(self, seen: ShownFrame) -> list[float]:
        """Return the ends of a frame's arrows: all other hosts for a group."""
        if seen.is_group:
            return [across for host, across in self._across.items() if host != seen.source]
        return [self._across[seen.destination]] if seen.destination in self._across else []

    def _named(self, source: float, target: float, look: str) -> str:
        return self._arrows.setdefault((source, target, look), f"a{len(self._arrows)}")


def _band(row: Pause | Omission, y: int) -> str:
    if isinstance(row, Pause):
        kind, text = "pause", f"{row.duration_ns / 1e6:.3f} ms later"
    else:
        kind, text = "omission", f"{row.frames} frame{'s' if row.frames > 1 else ''} not shown here"
    return _BAND.format(kind, y, (_FIRST + _LAST) / 2, text)


def _classes(step: FrameStep) -> str:
    seen = step.first
    return " ".join(
        [
            "step",
            "malformed" if seen.reading.malformed else KINDS.get(seen.type, "other"),
            *["concerned"] * bool(seen.concerned),
            *["lost"] * (seen.fate.arrivals == 0),
            *["marked"] * bool(seen.mark),
        ]
    )


def _flag(seen: ShownFrame) -> str:
    return seen.concerned[0] + ("…" if len(seen.concerned) > 1 else "")


def _look(step: FrameStep) -> str:
    if step.first.fate.arrivals == 0:
        return "lost"
    return "many" if step.first.fate.arrivals > 1 or step.count > 1 else "plain"


def _arrow(name: str, source: float, target: float, look: str) -> str:
    """Return the definition of an arrow; that of a lost frame ends in a cross half way."""
    bottom = _LINE + _FALL
    head = "hr" if target > source else "hl"
    if look == "lost":
        half = round((source + target) / 2, 2)
        drawn = _ARROW.format(source, _LINE, half, _LINE + _FALL // 2, "hx", half, _LINE + _FALL // 2)
    else:
        drawn = _ARROW.format(source, _LINE, target, bottom, head, target, bottom)
    if look == "many":
        lower = bottom + _BESIDE
        drawn += _ARROW.format(source, _LINE + _BESIDE, target, lower, head, target, lower)
    return f'<g id="{name}">{drawn}</g>'


def _label(step: FrameStep, wide: int, narrow: int) -> str:
    """Return the type and the beginning of the frame's description, after its fate.

    On narrow pages the end of the description is hidden.
    """
    seen = step.first
    fate = _fate(seen)
    folded = step.count > 1
    kind = f"{seen.type} ({step.count} frames)" if folded else seen.type
    width = len(kind) + len(fate) + 2 + (min(len(seen.mark), _MARK) + 3 if seen.mark else 0)
    text = _cut(f"{seen.text} … {step.last.text}" if folded else seen.text, max(wide - width, 0))
    label = f'<tspan class="fate">{fate}</tspan> ' if fate else ""
    label += f"<tspan>{escape(kind)}</tspan> "
    if seen.mark:
        label += f'<tspan class="mark">[{escape(_cut(seen.mark, _MARK))}]</tspan> '
    room = max(narrow - width, 0)
    if len(text) <= room:
        return f"{label}{escape(text)}"
    return f'{label}{escape(text[:room])}<tspan class="more">{escape(text[room:])}</tspan><tspan class="less">…</tspan>'


def _fate(seen: ShownFrame) -> str:
    """Return the fate in one word, since it must be visible at once."""
    if seen.fate.arrivals == 0:
        return "LOST"
    if seen.fate.arrivals > 1:
        return "TWICE" if seen.fate.arrivals == 2 else f"{seen.fate.arrivals} TIMES"
    return "LATE" if seen.fate.late_ns else ""


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return text[: room - 1].rstrip() + "…" if room > 1 else ""
