"""Output of messages: the destination, lines of text, JSON Lines, a table file, and a part of a data set."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mxwire.analysis.message_table import message_columns, message_row
from mxwire.analysis.table_file import ROWS
from mxwire.report.ascii_text import print_octets
from mxwire.report.document import Paragraph, show
from mxwire.report.message_rows import FlowTexts, row_json, row_lines
from mxwire.report.messages import message_json, message_layout
from mxwire.report.pointers import SEE_MESSAGE
from mxwire.report.terminal import terminal_width

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.conversations.message_rows import MessageGroup
    from mxwire.analysis.dataset import DatasetPart
    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.message_table import MessageTable


class MessageOutput(ABC):
    """A destination of messages."""

    streams = True
    """True if messages are printed while the capture is read."""
    shown = 0
    """Number of messages."""

    def begin(self, path: str, start_ns: int, names: HostNames | None) -> None:
        """Start the messages of a capture, before the first of them; lines show ``names`` instead of addresses."""
        self.path = path
        self.start_ns = start_ns
        self.names = names

    @abstractmethod
    def show(self, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Output a message; ``names`` are those of hosts by address."""

    def end(self) -> None:  # noqa: B027 - JSON needs no end
        """Finish the output."""


class MessageText(MessageOutput):
    """Messages on standard output."""

    takes_rows = True
    """True if groups of messages are printed from their rows, without an object per message."""

    @abstractmethod
    def show_group(self, group: MessageGroup, names: Mapping[int, str]) -> None:
        """Print messages, if ``takes_rows``."""


class MessageListing(MessageText):
    """Lines of text; ``several``: with headings for the captures, ``live``: of an interface."""

    def __init__(self, *, several: bool, live: bool) -> None:
        self._several = several
        self._live = live
        self._width = terminal_width()
        self._layout = message_layout(self._width)
        self._flow_texts = FlowTexts()

    def begin(self, path: str, start_ns: int, names: HostNames | None) -> None:
        """Print the headings."""
        super().begin(path, start_ns, names)
        _print(*([f"== {path}"] if self._several else []), self._layout.heading())

    def show(self, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Print the lines of a message."""
        _print(self._text(message))

    def _text(self, message: CapturedMessage) -> str:
        return "\n".join(self._layout.lines(message, self.start_ns, self._width, self.names))

    def show_group(self, group: MessageGroup, names: Mapping[int, str]) -> None:
        """Print the lines of messages."""
        rows = row_lines(group, self._layout, self.start_ns, self._width, self.names, self._flow_texts)
        lines = group.merged(rows, [self._text(each).encode(errors="replace") for each in group.messages])
        print_octets(b"\n".join([*lines, b""]))

    def end(self) -> None:
        """Print a pointer to the details of a message."""
        if self.shown and not self._live:
            _print("")
            show([Paragraph(SEE_MESSAGE)])


class MessageJson(MessageText):
    """JSON Lines: one object per message, without what was not there unless ``full``; ``several``: with the name of its
    capture."""

    def __init__(self, *, several: bool, full: bool) -> None:
        self._several = several
        self._full = full
        # The full form contains what only objects of messages have.
        self.takes_rows = not full
        self._flow_texts = FlowTexts()

    def begin(self, path: str, start_ns: int, names: HostNames | None) -> None:
        """Start the messages of a capture."""
        super().begin(path, start_ns, names)
        self._file = path if self._several else None

    def show(self, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Print the object of a message."""
        _print(self._text(message, names))

    def _text(self, message: CapturedMessage, names: Mapping[int, str]) -> str:
        return message_json(message, names, self.start_ns, file=self._file, full=self._full)

    def show_group(self, group: MessageGroup, names: Mapping[int, str]) -> None:
        """Print the objects of messages."""
        rows = row_json(group, names, self.start_ns, self._file, self._flow_texts)
        _print(*group.merged(rows, [self._text(each, names) for each in group.messages]))


class MessageTableFile(MessageOutput):
    """All columns in a table file."""

    streams = False

    def __init__(self, table: MessageTable) -> None:
        self._table = table

    def show(self, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Append a row."""
        self._table.add_message(self.path, message, names)


class MessagePart(MessageOutput):
    """The part of a data set for one capture, whose messages are in the files that ``place_of`` names."""

    def __init__(self, part: DatasetPart, place_of: Callable[[int], tuple[str, int]]) -> None:
        self._part = part
        self._place_of = place_of
        self._rows: list[tuple[Any, ...]] = []

    def show(self, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Append a row."""
        file, before = self._place_of(next(message.frames)[0])
        self._rows.append(message_row(file, message, names, before))
        # In pieces, as a capture may have more messages than memory holds.
        if len(self._rows) == ROWS:
            self.end()

    def end(self) -> None:
        """Write the rows that are left."""
        self._part.put(message_columns(self._rows))
        self._rows = []


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join([*lines, ""]))
    # A reader of a pipe, such as jq, sees messages of an interface when they happen.
    sys.stdout.flush()
