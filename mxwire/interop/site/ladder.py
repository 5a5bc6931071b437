"""The ladder of an exchange as SVG: the lines of hosts, and an arrow for each frame between them.

The drawing is as wide as its place on the page: across, everything is in per cent. What repeats, such as an arrow from
the first host to the second, is defined once; labels come in two lengths, for wide and for narrow places. Some rows at
a time are a picture of their own, as paper cannot break one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from markupsafe import Markup

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
_WIDE: Final = 84
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

_LADDER: Final = Markup('<div class="ladder" role="group" aria-label="{}">{}</div>')
_SVG: Final = Markup('<svg width="100%" height="{}">{}</svg>')
_DEFINITIONS: Final = Markup(
    '<defs><path id="hr" d="M0 0-8-3.5v7z"/><path id="hl" d="M0 0 8-3.5v7z"/><path id="hx" d="M-4-4 4 4M-4 4 4-4"/>'
    "{}</defs>"
)
_LIFE: Final = Markup('<line class="life" x1="{0}%" x2="{0}%" y1="{1}" y2="{2}"/>')
_HOST: Final = Markup('<text class="host{}" x="{}%" y="20">{}</text>')
_STEP: Final = (
    '<a class="{classes}" href="#f{first}"{last} transform="translate(0 {y})"><rect y="-13"/>'
    '<text>{number}</text><text class="at" x="{at}%">{ms:.3f}</text>{flag}'
    '<text class="says" x="{middle}%">{says}</text>{arrows}</a>'
)
"""For plain text: all that is put in is a number, a name of ours, or markup."""
_FLAG: Final = Markup('<text class="flag" x="{}%" y="12">{}</text>')
_FATE: Final = Markup('<tspan class="fate">{}</tspan> ')
_SAYS: Final = Markup("{}<tspan>{}</tspan> {}")
_SAYS_MORE: Final = Markup('{}<tspan>{}</tspan> {}<tspan class="more">{}</tspan><tspan class="less">…</tspan>')
_BAND: Final = Markup('<g class="{}" transform="translate(0 {})"><rect/><text x="{}%" y="16">{}</text></g>')
_ARROW: Final = Markup('<line x1="{}%" y1="{}" x2="{}%" y2="{}"/><use href="#{}" x="{}%" y="{}"/>')


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
        definitions = _DEFINITIONS.format(_joined(_arrow(name, *which) for which, name in self._arrows.items()))
        first = _SVG.format(_HEAD, definitions + _joined(self._names()))
        return _LADDER.format(self._title, first + _joined(pictures))

    def _picture(self, rows: list[Row], *, head: bool) -> Markup:
        y = 0
        drawn = []
        for row in rows:
            drawn.append(self._step(row, y) if isinstance(row, Step) else _band(row, y))
            y += _ROW if isinstance(row, Step) else _NOTE
        lines = _joined(_LIFE.format(across, -6 if head else 0, y) for across in self._across.values())
        return _SVG.format(y, lines + _joined(drawn))

    def _names(self) -> Iterator[Markup]:
        yield _HOST.format(" unit", _FIRST - 1.5, "ms")
        for place, (host, across) in enumerate(self._across.items()):
            side = " start" if not place else " end" if place == len(self._across) - 1 else ""
            name = _cut(self._exchange.name(host), _NAME)
            yield _HOST.format(side, 100 if side == " end" else across, name)

    def _step(self, step: Step, y: int) -> Markup:
        seen = step.first
        source = self._across.get(seen.source, _FIRST)
        targets = self._targets(seen)
        end = targets[-1] if targets and targets[-1] != source else _FIRST + _LAST - source
        room = abs(end - source) / (_LAST - _FIRST)
        arrows = [f'<use href="#{self._named(source, target, _look(step))}"/>' for target in targets]
        return Markup(
            _STEP.format(
                classes=_classes(step),
                first=seen.number,
                last=f' data-last="{step.last.number}"' if len(step.frames) > 1 else "",
                y=y + _BASE,
                number=f"{seen.number}-{step.last.number}" if len(step.frames) > 1 else seen.number,
                at=_FIRST - 1.5,
                ms=seen.time_ns / 1e6,
                flag=_FLAG.format(_FIRST - 1.5, _flag(seen)) if seen.concerned else "",
                middle=round((source + end) / 2, 2),
                says=_says(step, int(_WIDE * room), int(_NARROW * room)),
                arrows="".join(arrows),
            )
        )

    def _targets(self, seen: Seen) -> list[float]:
        """Where the arrows of a frame end: at all others, if it is for all."""
        if seen.is_group:
            return [across for host, across in self._across.items() if host != seen.source]
        return [self._across[seen.destination]] if seen.destination in self._across else []

    def _named(self, source: float, target: float, look: str) -> str:
        return self._arrows.setdefault((source, target, look), f"a{len(self._arrows)}")


def _joined(pieces: Iterable[Markup]) -> Markup:
    return Markup("").join(pieces)


def _band(row: Pause | Omission, y: int) -> Markup:
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
            "malformed" if seen.malformed else KINDS.get(seen.type, "other"),
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


def _arrow(name: str, source: float, target: float, look: str) -> Markup:
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
    return Markup(f'<g id="{name}">{drawn}</g>')


def _says(step: Step, wide: int, narrow: int) -> Markup:
    """The type and the beginning of what the frame says; what befell it comes first.

    In narrow places the end of it is left out.
    """
    seen = step.first
    fate = _fate(seen)
    folded = len(step.frames) > 1
    kind = f"{seen.type} ({len(step.frames)} frames)" if folded else seen.type
    taken = len(kind) + len(fate) + 2
    text = _cut(f"{seen.text} … {step.last.text}" if folded else seen.text, max(wide - taken, 0))
    marked = _FATE.format(fate) if fate else ""
    room = max(narrow - taken, 0)
    if len(text) <= room:
        return _SAYS.format(marked, kind, text)
    return _SAYS_MORE.format(marked, kind, text[:room], text[room:])


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
