"""The compatibility of two hosts as blocks of a report and as JSON records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from mxwire.analysis.compatibility import CLASSES, Judgement, Side
from mxwire.analysis.compatibility.judgement import MessageClass
from mxwire.analysis.compatibility.sides import Exchanged
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Listing, Paragraph, Row, Table, columns_of, tabulate
from mxwire.report.pointers import SEE_FRAME
from mxwire.report.result import Result, column, result

_SHOWS: Final = columns_of("observation, ~, #frames, #first frame")
_CLASSES: Final = columns_of("class, ~covers, works, ~reason")
_SEEN: Final = columns_of("messages, #A to B, #B to A")
_CONCLUSIONS: Final = {
    "yes": "They can communicate.",
    "unknown": "Nothing that was observed prevents it; classes marked unknown were not observed.",
    "partly": "They can communicate, with the limits listed above.",
    "no": "They can communicate, but not with all classes of messages.",
}
_NAMED: Final = 6
"""Maximum number of candidate builds listed by name."""
_ARROWS: Final = "→: messages from A to B; ←: messages from B to A."
_NOTHING: Final = "They cannot communicate at all."


# Results


@result("side")
class SideFacts(Result):
    """The build of a host, as far as its frames show it."""

    side: str
    """A or B."""
    host: str
    source: str = column(key="from")
    """The capture, or the host in it."""
    candidates: list[str]
    """The dialects of the builds that agree with all frames."""
    certain: bool
    """True if only one build agrees."""
    swapped: bool
    """True if the host sends its integers in little-endian order."""
    unknown: list[str]
    shows: list[dict[str, Any]]
    """The observations, each with its frames."""


@result("class")
class ClassVerdict(Result):
    """The verdict on a class of messages."""

    name: str = column(key="class")
    works: str
    """yes, partly, no or unknown."""
    why: str
    change: str
    """The changes that help."""
    arrived: dict[str, list[int]] | None
    """Messages delivered and sent per direction; missing with two captures."""

    def record(self) -> dict[str, Any]:
        """Return an object without ``arrived`` if that is unknown."""
        entry = Result.record(self)
        if self.arrived is None:
            del entry["arrived"]
        return entry


@result("conclusion")
class Conclusion(Result):
    """The conclusion in one sentence."""

    text: str


def compatibility_results(
    one: Side, other: Side, judgement: Judgement, exchanged: Exchanged | None
) -> Iterator[Result]:
    """Yield the compatibility of both sides."""
    for letter, side in (("A", one), ("B", other)):
        yield SideFacts(
            letter,
            mac_text(side.address),
            side.label,
            list(dict.fromkeys(each.dialect.name for each in side.candidates)),
            side.build is not None,
            side.candidates[0].swapped,
            list(side.unknown),
            [asdict(each) for each in side.facts],
        )
    for name, answer in judgement.items():
        arrived = None
        if exchanged is not None:
            ways = enumerate(("A to B", "B to A"))
            arrived = {text: list(exchanged.get((way, name), (0, 0))) for way, text in ways}
        yield ClassVerdict(name, answer.word, answer.why, answer.change, arrived)
    yield Conclusion(_conclusion(judgement))


# Blocks


def compatibility_blocks(one: Side, other: Side, judgement: Judgement, exchanged: Exchanged | None) -> list[Block]:
    """The observations about both sides, the verdict per message class, and the changes that help."""
    shown: list[Block] = []
    for letter, side in (("A", one), ("B", other)):
        shown += _side(letter, side)
    shown += [Heading("Can they communicate?"), Table(_CLASSES, tuple(_class_rows(judgement)))]
    if any("→" in answer.why for answer in judgement.values()):
        shown.append(Paragraph(_ARROWS))
    changes = dict.fromkeys(change for answer in judgement.values() for change in answer.change.split("; ") if change)
    shown.append(Paragraph(_conclusion(judgement)))
    if changes:
        shown += [Heading("Required changes", 3), Listing(tuple(changes))]
    if exchanged:
        classes = [each for each in CLASSES if _any(exchanged, each)]
        rows = [(each, *(_arrived(exchanged, direction, each) for direction in (0, 1))) for each in classes]
        if rows:
            shown += [Heading("Messages delivered between them in this capture", 3), tabulate(_SEEN, rows)]
    return [*shown, Paragraph(SEE_FRAME)]


def _side(letter: str, side: Side) -> Iterator[Block]:
    host = mac_text(side.address)
    yield Heading(f"{letter}: {host}" + (f" in {side.label}" if side.label != host else ""))
    yield Paragraph(_build(side))
    yield tabulate(_SHOWS, ((each.what, each.value, each.frames or "", each.first_frame or "") for each in side.facts))
    if side.unknown:
        yield Listing(side.unknown)


def _build(side: Side) -> str:
    if side.build is not None:
        return f"Built as {_name(side)}."
    names = list(dict.fromkeys(each.dialect.name for each in side.candidates))
    if len(names) == 1:
        return f"Built as {names[0]}, judging by its frames."
    if len(names) > _NAMED:
        return "No frame shows how it was built."
    return f"Its build is uncertain; candidates: {', '.join(names[:-1])} or {names[-1]}."


def _name(side: Side) -> str:
    build = side.candidates[0]
    texts = [build.dialect.name]
    if build.fragment is not None:
        texts.append(f"fragments of {build.fragment} bytes")
    if build.swapped:
        texts.append("little-endian")
    return ", ".join(texts)


def _class_rows(judgement: Judgement) -> Iterator[Row]:
    for name, meaning in CLASSES.items():
        answer = judgement[name]
        yield Row((name, meaning, answer.word, answer.why), muted=answer.word == "yes")


def _conclusion(judgement: Judgement) -> str:
    if judgement["connect"].word == "no":
        return _NOTHING
    words = [answer.word for answer in judgement.values()]
    return next(_CONCLUSIONS[word] for word in ("no", "partly", "unknown", "yes") if word in words)


def _any(exchanged: Exchanged, name: MessageClass) -> bool:
    return any(exchanged.get((direction, name), (0, 0))[1] for direction in (0, 1))


def _arrived(exchanged: Exchanged, direction: int, name: MessageClass) -> str:
    arrived, every = exchanged.get((direction, name), (0, 0))
    return f"{arrived} of {every}" if every else ""
