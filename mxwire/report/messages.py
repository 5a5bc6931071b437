"""Messages and conversations as text lines, tables and JSON records."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.message_table import message_fields
from mxwire.ethernet import mac_text
from mxwire.report.compact import compact
from mxwire.report.json_line import plain_line, with_seconds
from mxwire.report.times import seconds_text
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

COOKED: Final = (
    "A Linux cooked capture does not record destinations: acks, pulls and replies cannot be matched to their messages."
)


def host_text(flow: Flow) -> str:
    """The address of the sending host; ``?`` if the capture does not record it."""
    return mac_text(flow.address) if flow.address else "?"


def endpoints_of(flow: Flow) -> str:
    """The endpoints of a flow as ``5→3``, with ``?`` for an unknown one."""
    return "→".join("?" if each is None else str(each) for each in (flow.endpoint, flow.back.endpoint))


def match_text(match: int | None) -> str:
    """Match information in hexadecimal; ``?`` if unknown."""
    return "?" if match is None else f"0x{match:x}"


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Columns of the one-line form of messages, for terminals of different widths."""

    gap: str
    widths: dict[str, int]
    """Column widths in characters, by heading; other columns are omitted."""
    digits: int
    """Decimal digits of the start time in seconds."""
    address: int
    """Trailing characters of an address to show."""
    arrow: str

    @property
    def width(self) -> int:
        """Characters of a line without remarks."""
        return sum(self.widths.values()) + len(self.gap) * (len(self.widths) - 1)

    def heading(self) -> str:
        """The heading line."""
        texts = {each: each for each in self.widths} | {"source → destination": f"source{self.arrow}destination"}
        if self.widths["endpoints"] < len("endpoints"):
            texts["endpoints"] = "ep"
        return self._row(texts)

    def lines(
        self, message: CapturedMessage, since_ns: int, width: int | None = None, names: HostNames | None = None
    ) -> Iterator[str]:
        """Format a message with its start time since ``since_ns``; remarks that do not fit wrap to further lines.

        ``names`` replace addresses where they fit.
        """
        flow = message.flow
        row = self._row(
            {
                "#": str(message.number),
                "seconds": seconds_text(message.first_ns - since_ns, self.digits).strip(),
                "source → destination": self.hosts(flow, names),
                "endpoints": endpoints_of(flow),
                "kind": message.kind,
                "length": "?" if message.length is None else str(message.length),
                "match": match_text(message.match),
                "frames": str(message.frame_count),
                "ms": f"{(message.end_ns - message.first_ns) / 1e6:.3f}",
                "sender": message.sender,
                "receiver": message.receiver,
            }
        )
        return self.noted(row, "; ".join(message_notes(message)), width)

    def noted(self, row: str, notes: str, width: int | None) -> Iterator[str]:
        """Append the remarks on a message to its line."""
        if not notes:
            yield row
        elif width is None or len(row) + len(notes) + 4 <= width:
            yield f"{row:{self.width}}  [{notes}]"
        else:
            yield row
            indent = " " * (self.widths["#"] + len(self.gap))
            # Indented below the number, so that the numbers of messages remain a column of their own.
            yield from textwrap.wrap(f"[{notes}]", width, initial_indent=indent, subsequent_indent=f"{indent} ")

    def hosts(self, flow: Flow, names: HostNames | None = None) -> str:
        """The source and the destination."""
        return f"{self._host(flow, names)}{self.arrow}{self._host(flow.back, names)}"

    def _host(self, flow: Flow, names: HostNames | None) -> str:
        label = None if names is None else names.labels(self.address).get(flow.address)
        return f"{host_text(flow)[-self.address :] if label is None else label:{self.address}}"

    def cells(self, texts: Mapping[str, str]) -> str:
        """The cells of some columns, by heading."""
        return self.gap.join(
            f"{texts[heading]:{'<' if heading in _LEFT else '>'}{width}}"
            for heading, width in self.widths.items()
            if heading in texts
        )

    def _row(self, texts: Mapping[str, str]) -> str:
        return self.cells(texts).rstrip()


_LEFT: Final = {"source → destination", "kind", "sender", "receiver"}
_HEADINGS: Final = (
    *("#", "seconds", "source → destination", "endpoints", "kind", "length"),
    *("match", "frames", "ms", "sender", "receiver"),
)


def _layout(gap: str, widths: tuple[int, ...], digits: int, address: int, arrow: str = " → ") -> MessageLayout:
    """A layout with one width per heading; columns of width 0 are omitted."""
    shown = {heading: width for heading, width in zip(_HEADINGS, widths, strict=True) if width}
    return MessageLayout(gap, shown, digits, address, arrow)


_WHOLE: Final = _layout("  ", (6, 14, 37, 9, 6, 10, 18, 6, 12, 9, 9), 9, 17)
_LAYOUTS: Final = (
    _WHOLE,
    _layout("  ", (5, 11, 19, 5, 6, 10, 10, 6, 10, 9, 9), 6, 8),
    _layout(" ", (5, 11, 19, 5, 6, 10, 10, 6, 10, 9, 9), 6, 8),
    _layout(" ", (5, 11, 19, 5, 6, 10, 0, 6, 10, 9, 9), 6, 8),
    _layout(" ", (4, 8, 17, 4, 6, 8, 0, 0, 8, 8, 9), 3, 8, "→"),
)
"""From the widest to the narrowest; all but the first omit the vendor octets of addresses."""


def message_layout(width: int | None) -> MessageLayout:
    """The widest layout that fits ``width`` columns; the full one if ``width`` is None (no terminal)."""
    if width is None:
        return _WHOLE
    return next((each for each in _LAYOUTS if each.width <= width), _LAYOUTS[-1])


def message_notes(message: CapturedMessage) -> Iterator[str]:
    """Remarks on a message: retransmissions, duplicates, refusals and missing parts."""
    if message.transmissions > 1:
        yield f"sent {message.transmissions} times"
    if message.duplicates:
        yield count_of(message.duplicates, "duplicate")
    if message.nack is not None:
        yield f"nack {message.nack.reason}"
    pull = message.pull
    if pull is not None:
        if pull.re_requests:
            yield count_of(pull.re_requests, "re-request")
        if pull.repeated_replies:
            yield f"{count_of(pull.repeated_replies, 'reply', 'replies')} retransmitted"
        if pull.duplicate_replies + pull.duplicate_pulls:
            yield count_of(pull.duplicate_replies + pull.duplicate_pulls, "duplicate")
        if pull.refusal is not None:
            yield f"{count_of(pull.nacks, 'pull')} refused: {pull.refusal.reason}"
        notice = pull.notice
        if notice is not None:
            if notice.total_length != message.length:
                yield f"{count_of(notice.total_length, 'byte')} received"
            if notice.transmissions > 1:
                yield f"NOTIFY sent {notice.transmissions} times"
            if notice.nack is not None:
                yield f"NOTIFY refused: {notice.nack.reason}"
    if message.refused_ack is not None and message.ack is None:
        yield "ack without a session"
    yield from message.half_seen


def message_record(message: CapturedMessage, names: Mapping[int, str]) -> dict[str, Any]:
    """A message as a record for JSON: match information in hexadecimal, frames as ranges."""
    fields = message_fields(message, names)
    fields["match"] = None if message.match is None else f"0x{message.match:016x}"
    fields["frames"] = [list(each) for each in message.frames]
    fields["resends"] = [
        {"frame": each.frame, "time_ns": each.time_ns, "after_ns": each.after_ns} for each in message.resends
    ]
    fields["re_requested"] = [
        {"frame": each.frame, "time_ns": each.time_ns, "after_ns": each.after_ns, "cause": each.cause}
        for each in (message.pull.requests if message.pull is not None else ())
    ]
    return fields


def message_json(
    message: CapturedMessage,
    names: Mapping[int, str],
    start_ns: int | None,
    *,
    file: str | None = None,
    full: bool = False,
) -> str:
    """A message as a line of JSON, without what was not there unless ``full``; ``file`` is the name of its capture."""
    record = message_record(message, names)
    made = with_seconds(record if file is None else {"file": file} | record, start_ns)
    return plain_line(made if full else compact(made))
