"""The ladder of an exchange as SVG: the lines of hosts, and an arrow for each frame between them.

The drawing is as wide as its place on the page: across, everything is in per cent. What repeats, such as an arrow from
the first host to the second, is defined once; labels come in two lengths, for wide and for narrow places. Some rows at
a time are a picture of their own, as paper cannot break one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup, escape

from mxwire.interop.site.exchange import Exchange, Seen
from mxwire.interop.site.rows import Omission, Pause, Row, Step

MOST_HOSTS: Final = 6
"""Lines beside each other; frames of other hosts have no arrow."""
_HEAD: Final = 34
_ROW: Final = 30
_NOTE: Final = 24
_BASE: Final = 13
"""Where in a row its words stand; what follows counts from there."""
_LINE: Final = 6
"""Where an arrow begins; it ends lower, as time goes on while a frame travels."""
_FALL: Final = 5
_BESIDE: Final = 3
"""Between the two lines of an arrow that stands for several frames."""
_FIRST: Final = 23.0
_LAST: Final = 97.5
"""The first and the last line of a host, in per cent of the width."""
_WIDE: Final = 80
_NARROW: Final = 31
"""Characters of the two lengths of labels, between the first and the last host."""
_NAME: Final = 22
_ROWS: Final = 6
"""In a picture."""

KINDS: Final = {
    "RAW": "discovery",
    "HOST_QUERY": "discovery",
    "HOST_REPLY": "discovery",
    "CONNECT": "connect",
    "TINY": "message",
    "SMALL": "message",
    "MEDIUM": "message",
    "RNDV": "large",
    "PULL": "large",
    "PULL_REPLY": "large",
    "NOTIFY": "large",
    "TRUC": "ack",
    "NACK_LIB": "nack",
    "NACK_MCP": "nack",
}
"""What the packet types are for: their colours."""

# Plain text, as markup that escapes by itself takes far longer: words from outside are escaped where they are put in.
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
    '<text class="says" x="{middle}%">{says}</text>{arrows}</a>'
)
_FLAG: Final = '<text class="flag" x="{}%" y="12">{}</text>'
_BAND: Final = '<g class="{}" transform="translate(0 {})"><rect/><text x="{}%" y="16">{}</text></g>'
_ARROW: Final = '<line x1="{}%" y1="{}" x2="{}%" y2="{}"/><use href="#{}" x="{}%" y="{}"/>'


class Drawing:
    """Draws one ladder; the frames' arrows are links to ``#fNUMBER``."""

    def __init__(self, exchange: Exchange, rows: list[Row], title: str) -> None:
        self._exchange = exchange
        self._rows = rows
        self._title = title
        hosts = exchange.hosts[:MOST_HOSTS]
        gap = (_LAST - _FIRST) / max(len(hosts) - 1, 1)
        self._across = {host: round(_FIRST + gap * place, 2) for place, host in enumerate(hosts)}
        self._arrows: dict[tuple[float, float, str], str] = {}
        """The name of each arrow's definition, by its hosts and its look."""

    def markup(self) -> Markup:
        """The pictures, one below the other."""
        pictures = [self._picture(self._rows[at : at + _ROWS], head=at == 0) for at in range(0, len(self._rows), _ROWS)]
        definitions = _DEFINITIONS.format("".join(_arrow(name, *which) for which, name in self._arrows.items()))
        first = _SVG.format(_HEAD, definitions + "".join(self._names()))
        return Markup(_LADDER.format(escape(self._title), first + "".join(pictures)))

    def _picture(self, rows: list[Row], *, head: bool) -> str:
        y = 0
        drawn = []
        for row in rows:
            drawn.append(self._step(row, y) if isinstance(row, Step) else _band(row, y))
            y += _ROW if isinstance(row, Step) else _NOTE
        lines = [_LIFE.format(across, -6 if head else 0, y) for across in self._across.values()]
        return _SVG.format(y, "".join(lines + drawn))

    def _names(self) -> Iterator[str]:
        yield _HOST.format(" unit", _FIRST - 1.5, "ms")
        for place, (host, across) in enumerate(self._across.items()):
            side = " start" if not place else " end" if place == len(self._across) - 1 else ""
            name = _cut(self._exchange.name(host), _NAME)
            yield _HOST.format(side, 100 if side == " end" else across, escape(name))

    def _step(self, step: Step, y: int) -> str:
        seen = step.first
        source = self._across.get(seen.source, _FIRST)
        targets = self._targets(seen)
        end = targets[-1] if targets and targets[-1] != source else _FIRST + _LAST - source
        room = abs(end - source) / (_LAST - _FIRST)
        arrows = [f'<use href="#{self._named(source, target, _look(step))}"/>' for target in targets]
        return _STEP.format(
            classes=_classes(step),
            first=seen.number,
            last=f' data-last="{step.last.number}"' if len(step.frames) > 1 else "",
            y=y + _BASE,
            number=f"{seen.number}-{step.last.number}" if len(step.frames) > 1 else seen.number,
            at=_FIRST - 1.5,
            ms=seen.time_ns / 1e6,
            flag=_FLAG.format(_FIRST - 1.5, escape(_flag(seen))) if seen.concerned else "",
            middle=round((source + end) / 2, 2),
            says=_says(step, int(_WIDE * room), int(_NARROW * room)),
            arrows="".join(arrows),
        )

    def _targets(self, seen: Seen) -> list[float]:
        """Where the arrows of a frame end: at all others, if it is for all."""
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


def _classes(step: Step) -> str:
    seen = step.first
    return " ".join(
        [
            "step",
            "malformed" if seen.reading.malformed else KINDS.get(seen.type, "other"),
            *["concerned"] * bool(seen.concerned),
            *["lost"] * (seen.fate.copies == 0),
        ]
    )


def _flag(seen: Seen) -> str:
    return seen.concerned[0] + ("…" if len(seen.concerned) > 1 else "")


def _look(step: Step) -> str:
    if step.first.fate.copies == 0:
        return "lost"
    return "many" if step.first.fate.copies > 1 or len(step.frames) > 1 else "plain"


def _arrow(name: str, source: float, target: float, look: str) -> str:
    """The definition of an arrow; that of a lost frame ends in a cross half way."""
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


def _says(step: Step, wide: int, narrow: int) -> str:
    """The type and the beginning of what the frame says; what befell it comes first.

    In narrow places the end of it is left out.
    """
    seen = step.first
    fate = _fate(seen)
    folded = len(step.frames) > 1
    kind = f"{seen.type} ({len(step.frames)} frames)" if folded else seen.type
    taken = len(kind) + len(fate) + 2
    text = _cut(f"{seen.text} … {step.last.text}" if folded else seen.text, max(wide - taken, 0))
    says = f'<tspan class="fate">{fate}</tspan> ' if fate else ""
    says += f"<tspan>{escape(kind)}</tspan> "
    room = max(narrow - taken, 0)
    if len(text) <= room:
        return f"{says}{escape(text)}"
    return f'{says}{escape(text[:room])}<tspan class="more">{escape(text[room:])}</tspan><tspan class="less">…</tspan>'


def _fate(seen: Seen) -> str:
    """In a word, as readers must see it at once."""
    if seen.fate.copies == 0:
        return "LOST"
    if seen.fate.copies > 1:
        return "TWICE" if seen.fate.copies == 2 else f"{seen.fate.copies} TIMES"
    return "LATE" if seen.fate.late_ns else ""


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return text[: room - 1].rstrip() + "…" if room > 1 else ""
